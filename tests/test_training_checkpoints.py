"""A training that was stopped and goes on must end where one without a stop does."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning
from comes.risks import HammingRisk
from comes.training import (
    BlockOrder,
    Checkpoint,
    History,
    PixelRows,
    Rows,
    StreamedRows,
    TrainOptions,
    Validation,
    seeded,
    train,
)
from drawn_problems import annotate, prior_of, problem
from pictures import pictures

CPU = torch.device("cpu")
X, _ = problem(seed=5, n=60, q=3)
_, RELEVANT = problem(seed=6, n=60)
CANDIDATES = annotate(RELEVANT, 0.5, seed=7)
EPOCHS, BATCHES = 12, 3  # batches of an epoch


class StoppedError(Exception):
    pass


def stop() -> None:
    raise StoppedError


def interrupt() -> None:
    raise KeyboardInterrupt


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def network(d: int = 3) -> nn.Module:
    with seeded(0, CPU):
        layers = [nn.Flatten(), ToDouble(), nn.Linear(d, 8), nn.BatchNorm1d(8), nn.ReLU()]
        return nn.Sequential(*layers, nn.Dropout(0.3), nn.Linear(8, 4)).double()


class ToDouble(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.double()


def adam_with_two_rates(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    *first, weight, bias = parameters
    groups: list[dict[str, Any]] = [{"params": first}, {"params": [weight, bias], "lr": 0.1}]
    return torch.optim.Adam(groups, lr=0.03)


def trained(
    path: Path | None = None,
    *,
    rows: Rows | StreamedRows = X,
    order: BlockOrder | None = None,
    fingerprint: str = "the same",
    every: float | None = None,
    at_score: int = 0,  # in which call of the validation score ...
    at_batch: int = 0,  # ... or of the risk ...
    then: Callable[[], None] = stop,  # ... what happens
    patience: int | None = 3,
    validates: bool = True,
    as_score: Callable[[float], float] = float,
) -> tuple[dict[str, Tensor], History, int]:
    """Train; return the state, the history and how many batches were computed."""
    model = network(3 * 8 * 8 if isinstance(rows, PixelRows) else 3)
    risk, n_scores, n_batches = HammingRisk(prior_of(RELEVANT)), 0, 0

    def counted(scores: Tensor, candidates: Tensor) -> Tensor:
        nonlocal n_batches
        n_batches += 1
        if n_batches == at_batch:
            then()
        value: Tensor = risk(scores, candidates)
        return value

    def score() -> float:
        """Has its best in the fifth epoch, for a validation that is about something else."""
        nonlocal n_scores
        n_scores += 1
        if n_scores == at_score:
            then()
        number = round(model.get_buffer("3.num_batches_tracked").item() / BATCHES)
        return as_score(abs(number - 5) + weights(model)[0].item() / 1e3)

    history = train(
        model,
        rows,
        None if isinstance(rows, StreamedRows) else CANDIDATES,
        counted,
        TrainOptions(adam_with_two_rates, epochs=EPOCHS, batch_size=20, seed=4, order=order),
        validation=Validation(score, patience) if validates else None,
        checkpoint=None if path is None else Checkpoint(path, fingerprint, every),
    )
    return model.state_dict(), history, n_batches


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def assert_equal(
    found: tuple[dict[str, Tensor], History, int], expected: tuple[dict[str, Tensor], History, int]
) -> None:
    """Compare to the last bit."""
    assert found[0].keys() == expected[0].keys()
    for name, tensor in found[0].items():
        assert torch.equal(tensor, expected[0][name]), name
    for name in ("risk", "validation", "best_epoch", "interrupted"):
        assert getattr(found[1], name) == getattr(expected[1], name)


def test_a_checkpoint_changes_nothing_and_stays(tmp_path: Path) -> None:
    plain = trained()
    assert_equal(trained(tmp_path / "training.pt"), plain)
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]
    assert plain[1].best_epoch == 5
    assert len(plain[1].risk) == 8  # three more, as the patience says


def test_the_format_of_a_checkpoint_stays(tmp_path: Path) -> None:
    trained(tmp_path / "training.pt")
    state = torch.load(tmp_path / "training.pt", weights_only=True)
    assert set(state) == {
        "best", "fingerprint", "is_enough", "model", "optimiser", "random", "risk", "shuffle",
        "steps", "total",
    }  # fmt: skip
    assert set(state["best"]) == {"best", "scores", "weights"}
    assert state["is_enough"] is True
    assert len(state["random"]) == 1  # that of a process which trains alone
    assert state["steps"] == 0  # of the next epoch


@pytest.mark.parametrize("when", [{"at_score": 2}, {"at_score": 7}, {"at_score": 8}])
@pytest.mark.parametrize("patience", [3, None])
def test_a_stop_between_epochs_changes_nothing(
    when: dict[str, int], patience: int | None, tmp_path: Path
) -> None:
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", patience=patience, **when)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]
    expected = trained(patience=patience)
    found = trained(tmp_path / "training.pt", patience=patience)
    assert_equal(found, expected)
    assert found[2] == expected[2] - BATCHES * (when["at_score"] - 1)  # nothing done twice
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]


@pytest.mark.parametrize("validates", [True, False])
def test_stops_in_the_middle_of_epochs_change_nothing(validates: bool, tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for at_batch in (2, 8, 5):  # before the first file; then after epochs 2 and 3
        with pytest.raises(StoppedError):
            trained(path, at_batch=at_batch, validates=validates)
    found = trained(path, validates=validates)
    assert_equal(found, trained(validates=validates))
    assert found[2] == BATCHES * ((8 if validates else EPOCHS) - 3)


def test_a_stop_within_an_epoch_loses_no_step(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for at_batch in (2, 4, 5):  # after 1, 4 and 8 steps, of 3 in an epoch
        with pytest.raises(StoppedError):
            trained(path, every=0, at_batch=at_batch)
    found, expected = trained(path, every=0), trained()
    assert_equal(found, expected)
    assert found[2] == expected[2] - 8
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]


def test_ctrl_c_within_an_epoch_loses_no_step(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.warns(ComesWarning, match="Interrupted after 2 of 12 epochs"):
        trained(path, every=0, at_batch=9, then=interrupt)
    found, expected = trained(path, every=0), trained()
    assert_equal(found, expected)
    assert found[2] == expected[2] - 8


@pytest.mark.parametrize(("every", "n_steps"), [(0, 5), (1e6, 3), (None, 3)])
def test_a_state_is_kept_within_an_epoch_if_the_last_is_old_enough(
    every: float | None, n_steps: int, tmp_path: Path
) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, every=every, at_batch=6)
    expected = trained()
    assert trained(path, every=every)[2] == expected[2] - n_steps


def test_a_state_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_batch=8)
    state = torch.load(path, weights_only=True)
    del state["steps"], state["total"]
    torch.save(state, path)
    found, expected = trained(path), trained()
    assert_equal(found, expected)
    assert found[2] == expected[2] - 2 * BATCHES


def test_augmentation_goes_on_where_it_was_within_an_epoch(tmp_path: Path) -> None:
    rows = PixelRows(list(pictures(60)[0]), 8, CPU, "crop")
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", rows=rows, every=0, at_batch=9)
    assert_equal(trained(tmp_path / "training.pt", rows=rows, every=0), trained(rows=rows))


SIZES = (7, 13, 5, 20, 9, 6)
ORDER = BlockOrder(SIZES, 21)


def streamed(read: list[int] | None = None) -> StreamedRows:
    """Return the rows as a stream, which notes the blocks that are read."""

    def read_block(block: int) -> tuple[Any, Tensor]:
        if read is not None:
            read.append(block)
        rows = slice(ORDER.starts[block], ORDER.starts[block] + SIZES[block])
        return X[rows].numpy(), CANDIDATES[rows]

    return StreamedRows(SIZES, read_block, CPU)


WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "memory": dict,
    "stream": lambda: {"rows": streamed(), "order": ORDER},
}


def train_until_killed(path: Path, every: float | None, way: str) -> None:
    torch.set_num_threads(1)
    trained(path, every=every, at_batch=BATCHES * 4 + 3, then=kill, **WAYS[way]())


@pytest.mark.parametrize(
    ("way", "every", "n_steps"),
    [("memory", None, BATCHES * 4), ("memory", 0, BATCHES * 4 + 2), ("stream", 0, BATCHES * 4 + 2)],
)
def test_a_killed_process_leaves_what_another_goes_on_from(
    way: str, every: float | None, n_steps: int, tmp_path: Path
) -> None:
    path = tmp_path / "training.pt"
    arguments = (path, every, way)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "comes.training"])
    process = context.Process(target=train_until_killed, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.is_file()
    expected, found = trained(**WAYS[way]()), trained(path, every=every, **WAYS[way]())
    assert_equal(found, expected)
    assert found[2] == expected[2] - n_steps
    path.unlink()


def test_a_stream_goes_on_without_reading_what_is_done(tmp_path: Path) -> None:
    path, read = tmp_path / "training.pt", list[int]()
    with pytest.raises(StoppedError):
        trained(path, rows=streamed(), order=ORDER, every=0, at_batch=3)
    assert_equal(
        trained(path, rows=streamed(read), order=ORDER),
        trained(rows=X.float(), order=ORDER),
    )
    drawn = ORDER.draw(torch.Generator().manual_seed(4))
    third = set(drawn.rows[40:].tolist())  # the batch that is left of the first epoch
    starts = ORDER.starts
    needed = [
        group
        for group in drawn.groups
        if third & {starts[b] + row for b in group for row in range(SIZES[b])}
    ]
    assert len(needed) < len(drawn.groups)
    blocks = [block for group in needed for block in group]
    assert read[: len(blocks)] == blocks


def test_a_finished_training_trains_no_more(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    for patience in (3, None):  # stopped early, and not
        first = trained(path, patience=patience)
        found = trained(path, patience=patience)
        assert found[2] == 0
        assert_equal(found, first)
        path.unlink()


def test_a_crash_while_writing_leaves_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, save, n_saved = tmp_path / "training.pt", torch.save, 0

    def save_or_fail(state: Any, file: Any) -> None:
        nonlocal n_saved
        n_saved += 1
        save(state, file)
        if n_saved == 3:
            raise StoppedError

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(torch, "save", save_or_fail)
        trained(path)
    assert [path.name for path in tmp_path.iterdir()] == ["training.pt"]
    found = trained(path)
    assert_equal(found, trained())
    assert found[2] == BATCHES * (8 - 2)


def test_ctrl_c_keeps_the_checkpoint_and_the_weights_so_far(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.warns(ComesWarning, match="Interrupted after 2 of 12 epochs"):
        _, history, _ = trained(path, at_batch=8, then=interrupt)
    assert history.interrupted
    assert len(history.risk) == 2
    assert path.is_file()
    assert_equal(trained(path), trained())


def test_augmentation_goes_on_where_it_was(tmp_path: Path) -> None:
    rows = PixelRows(list(pictures(60)[0]), 8, CPU, "crop")
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", rows=rows, at_batch=8)
    assert_equal(trained(tmp_path / "training.pt", rows=rows), trained(rows=rows))


def test_going_on_leaves_the_global_random_state_alone(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", at_batch=8)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained(tmp_path / "training.pt")
    assert torch.equal(torch.rand(3), expected)


def test_scores_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        trained(tmp_path / "training.pt", at_score=4, as_score=np.float64)
    assert_equal(trained(tmp_path / "training.pt", as_score=np.float64), trained())


def test_the_checkpoint_of_another_training_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_score=2)
    before = path.read_bytes()
    with pytest.raises(ComesError, match="training.pt belongs to another training"):
        trained(path, fingerprint="another")
    assert path.read_bytes() == before


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_text(path: Path) -> None:
    path.write_text("no checkpoint\n")


def replaced_by_weights(path: Path) -> None:
    torch.save(network().state_dict(), path)


def replaced_by_code(path: Path) -> None:
    torch.save({"fingerprint": "the same", "code": stop}, path)


@pytest.mark.parametrize(
    "damage", [truncated, emptied, replaced_by_text, replaced_by_weights, replaced_by_code]
)
def test_a_damaged_checkpoint_is_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "training.pt"
    with pytest.raises(StoppedError):
        trained(path, at_score=2)
    damage(path)
    with pytest.raises(ComesError, match="training.pt is not a checkpoint, or is damaged"):
        trained(path)
    assert path.exists()
