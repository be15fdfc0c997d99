"""Two processes that train together compute what one computes alone: here as threads in turns.

Real processes do the same in system/test_training_processes.py.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.training import TrainOptions, Validation, of_all_processes, train
from comes.training.checkpoint import Checkpoint
from comes.training.gradients import Risk
from comes.training.processes import (
    broadcast_from_first,
    count_processes,
    gather_objects,
    join_processes,
    leave_processes,
    process_number,
)
from shared_trainings import (
    CANDIDATES,
    CPU,
    DRAWN,
    SGD,
    TRAININGS,
    StoppedError,
    X,
    my_rows,
    network,
    resumable,
    risk_of,
    trained,
    weights,
)
from two_ranks import TwoRanks


@pytest.mark.parametrize("name", TRAININGS)
def test_two_ranks_find_the_weights_of_one(name: str) -> None:
    alone = TRAININGS[name]()
    assert max(alone["risk"]) - min(alone["risk"]) > 1e-3
    both = TwoRanks().run(lambda rank: TRAININGS[name]())
    for found in both:
        torch.testing.assert_close(found["weights"], alone["weights"], rtol=0, atol=1e-6)
        assert found["risk"] == pytest.approx(alone["risk"], abs=1e-6)
    assert torch.equal(both[0]["weights"], both[1]["weights"])


def test_a_loop_of_ones_own_has_the_risk_and_the_gradient_of_one_process() -> None:
    for name in ("hamming", "ranking"):
        leaves: list[Tensor] = [network()(X[my_rows(rank)]).detach() for rank in range(2)]
        whole = torch.cat(leaves).requires_grad_()
        value = risk_of(name)(whole, CANDIDATES[:30])
        value.backward()
        assert whole.grad is not None

        def own_loss(rank: int, name: str = name, leaves: list[Tensor] = leaves) -> Any:
            scores = leaves[rank].clone().requires_grad_()
            risk = of_all_processes(risk_of(name))(scores, CANDIDATES[my_rows(rank)])
            risk.backward()
            return risk.detach(), scores.grad

        for rank, (risk, slopes) in enumerate(TwoRanks().run(own_loss)):
            torch.testing.assert_close(risk, value.detach())
            # the gradients of weights are averaged over the two afterwards
            torch.testing.assert_close(slopes / 2, whole.grad[my_rows(rank)])


def test_scores_in_half_precision_meet_in_full_precision() -> None:
    scores = network()(X)[:30].detach().bfloat16()

    def squares(rank: int) -> Tensor:
        risk = of_all_processes(lambda scores, candidates: scores.square().sum())
        return risk(scores[my_rows(rank)], CANDIDATES[my_rows(rank)])

    for found in TwoRanks().run(squares):
        torch.testing.assert_close(found, scores.float().square().sum())


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ComesError, match="a batch of 1 rows cannot be shared by 2 processes"):
        TwoRanks().run(lambda rank: trained("hamming", batch_size=1))


def test_models_draw_different_random_numbers_in_each_process_and_step() -> None:
    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            drawn.append(torch.rand(x.shape))
            return x + drawn[-1]

    drawn: list[Tensor] = []

    def draw(rank: int) -> None:
        model = nn.Sequential(Noise(), network())
        options = TrainOptions(SGD, epochs=2, batch_size=20, seed=5)
        train(model, X[:40], CANDIDATES[:40], risk_of("hamming"), options, distributed=True)

    for _ in range(2):
        TwoRanks().run(draw)
    assert [len(noise) for noise in drawn] == [10] * 16  # two runs, ranks, epochs and batches
    assert len({tuple(noise.flatten().tolist()) for noise in drawn}) == 8  # the same in both runs


@pytest.mark.parametrize("name", DRAWN)
def test_what_processes_draw_on_their_own_leaves_them_with_the_same_weights(name: str) -> None:
    first, second = TwoRanks().run(lambda rank: DRAWN[name]())
    assert torch.equal(first["weights"], second["weights"])
    assert first["risk"] == second["risk"]
    assert first["risk"][-1] < first["risk"][0]


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    through, stopped = tmp_path / "through", tmp_path / "stopped"
    for folder in (through, stopped):
        folder.mkdir()
    expected = TwoRanks().run(lambda rank: resumable(through))
    with pytest.raises(StoppedError):
        TwoRanks().run(lambda rank: resumable(stopped, stops_after=2))
    resumed = TwoRanks().run(lambda rank: resumable(stopped, seed=1))
    for one, two in zip(expected, resumed, strict=True):
        assert torch.equal(one["weights"], two.pop("weights"))
        assert (one["calls"], two.pop("calls")) == (4, 2)
        assert (one["steps"], two.pop("steps")) == (20, 10)
        assert all(one[name] == value for name, value in two.items())
        assert len(one["risk"]) == len(one["validation"]) == 4
    (stopped / "training.pt").unlink()
    with pytest.raises(StoppedError):  # in the middle of the third epoch of five steps
        TwoRanks().run(lambda rank: resumable(stopped, stops_in=13, every=0))
    for one, two in zip(expected, TwoRanks().run(lambda rank: resumable(stopped)), strict=True):
        assert two["steps"] == 8
        assert torch.equal(one["weights"], two["weights"])
        assert one["risk"] == two["risk"]


def test_a_training_goes_on_in_as_many_processes_as_before(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        TwoRanks().run(lambda rank: resumable(tmp_path, stops_after=2))
    with pytest.raises(ComesError, match="by a training in 2 processes; got 1. Start as many, or"):
        resumable(tmp_path)
    (tmp_path / "training.pt").unlink()
    with pytest.raises(StoppedError):
        resumable(tmp_path, stops_after=2)
    with pytest.raises(ComesError, match="by a training in 1 processes; got 2. Start as many, or"):
        TwoRanks().run(lambda rank: resumable(tmp_path))


def test_processes_that_read_different_checkpoints_are_refused(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
    with pytest.raises(StoppedError):
        TwoRanks().run(lambda rank: resumable(tmp_path / "0", stops_after=2))
    with pytest.raises(ComesError, match="must read the same checkpoint.*not the same for all"):
        TwoRanks().run(lambda rank: resumable(tmp_path / str(rank)))


def test_all_processes_stop_by_the_score_of_the_first() -> None:
    def stopped_early(rank: int) -> Any:
        scores = iter([[2.0, 1.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]][rank])
        model = network()
        history = train(
            model,
            X,
            CANDIDATES,
            risk_of("hamming"),
            TrainOptions(SGD, epochs=4, batch_size=20),
            validation=Validation(lambda: next(scores), patience=1),
            distributed=True,
        )
        return history.validation, history.best_epoch, weights(model).tolist()

    first, second = TwoRanks().run(stopped_early)
    assert first == second
    assert first[:2] == ([2.0, 1.0, 3.0], 2)


def test_the_first_process_alone_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[int] = []
    write = Checkpoint.write

    def noted(checkpoint: Checkpoint, state: dict[str, Any]) -> None:
        writers.append(process_number())
        write(checkpoint, state)

    monkeypatch.setattr(Checkpoint, "write", noted)
    TwoRanks().run(lambda rank: resumable(tmp_path))
    assert writers == [0] * 4  # once in every epoch


def test_what_the_first_process_makes_or_raises_reaches_all() -> None:
    def make() -> str:
        made.append(process_number())
        if len(made) > 1:
            raise ComesError("there is no file.")
        return "made"

    def of_first(rank: int) -> Any:
        numbers = gather_objects((process_number(), count_processes()))
        first = broadcast_from_first(make)
        with pytest.raises(ComesError, match="there is no file"):
            broadcast_from_first(make)
        return numbers, first

    made: list[int] = []
    assert TwoRanks().run(of_first) == [([(0, 2), (1, 2)], "made")] * 2
    assert made == [0, 0]


def test_one_process_alone_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for world_size in (None, "1"):
        monkeypatch.delenv("WORLD_SIZE", raising=False)
        monkeypatch.setenv("RANK", "0")
        if world_size is not None:
            monkeypatch.setenv("WORLD_SIZE", world_size)
        assert join_processes(CPU) == CPU
        assert (process_number(), count_processes()) == (0, 1)
    assert gather_objects("me") == ["me"]
    risk: Risk = of_all_processes(lambda scores, candidates: scores.sum())
    assert risk(torch.ones(2, 3), CANDIDATES) == 6
    leave_processes()
