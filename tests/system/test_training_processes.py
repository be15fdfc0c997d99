"""Two processes that train together must find the weights of one that trains alone."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from comes.errors import ComesError
from comes.risks import RankingRisk
from comes.training import (
    Risk,
    TrainOptions,
    count_processes,
    gather_objects,
    join_processes,
    leave_processes,
    of_all_processes,
    process_number,
    processes,
    steps,
    train,
)
from shared_trainings import (
    CANDIDATES,
    CPU,
    PRIOR,
    SGD,
    TRAININGS,
    StoppedError,
    X,
    gradients,
    my_rows,
    network,
    on_pixels,
    resumable,
    risk_of,
    trained,
)
from two_processes import TwoProcesses


def naively_trained(name: str) -> dict[str, Any]:
    """Train on the risk of each process, as data parallelism without thought does."""

    def of_own_rows(risk: Risk, n: int) -> Risk:
        return lambda scores, seen: risk(scores, processes.take_share(seen))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "of_whole_batch", of_own_rows)
        return trained(name)


def refused() -> str:
    with pytest.raises(ComesError) as raised:
        trained("hamming", batch_size=1)
    return str(raised.value)


class Noise(nn.Module):
    """Adds random numbers to its input, and keeps them."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = torch.rand(x.shape)
        return x + self.last


def noise_of_one_batch() -> Tensor:
    noise = Noise()
    model = nn.Sequential(noise, network())
    options = TrainOptions(SGD, epochs=1, batch_size=40)
    train(model, X[:40], CANDIDATES[:40], risk_of("hamming"), options, is_shared=True)
    return noise.last


def stopped_and_resumed(folder: Path) -> dict[str, Any]:
    (folder / "kept").mkdir(exist_ok=True)
    through = resumable(folder / "kept")
    dist.barrier()
    (folder / "kept" / "training.pt").unlink(missing_ok=True)
    dist.barrier()
    with pytest.raises(StoppedError):
        resumable(folder / "kept", stops_after=2)
    dist.barrier()
    files = os.listdir(folder / "kept")
    state = (folder / "kept" / "training.pt").read_bytes()
    dist.barrier()
    resumed = resumable(folder / "kept", seed=1)
    dist.barrier()
    left = os.listdir(folder / "kept")
    return {"through": through, "resumed": resumed, "files": files, "left": left, "kept": state}


def gradient_of_30(name: str, rank: int) -> Tensor:
    """Return what two processes with 13 and 17 rows find, in a loop with accelerate."""
    from accelerate import Accelerator  # type: ignore[import-untyped]

    accelerator = Accelerator(cpu=True)
    assert accelerator.num_processes == 2
    model = network()
    prepared, _ = accelerator.prepare(model, SGD(model.parameters()))
    risk = of_all_processes(risk_of(name))
    rows = my_rows(rank)
    accelerator.backward(risk(prepared(X[rows]), CANDIDATES[rows]))
    return gradients(model)


def squares_of_half_precision(rank: int) -> Tensor:
    scores = network()(X)[my_rows(rank)].detach().bfloat16()
    risk = of_all_processes(lambda scores, candidates: scores.square().sum())
    return risk(scores, CANDIDATES[my_rows(rank)])


def one_process(rank: int, path: str, port: int) -> None:
    """Do everything that needs two processes, and write what was found."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # the store is in the process of the tests
    folder = Path(path)
    assert join_processes(CPU) == CPU  # they have met
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: dict[str, Any] = {name: run() for name, run in TRAININGS.items()}
    found["warnings"] = sorted({str(warning.message) for warning in caught})
    found["naive"] = {name: naively_trained(name) for name in ("hamming", "ranking")}
    found["refused"] = refused()
    found["noise"] = noise_of_one_batch()
    found["mixed"] = on_pixels("mixup", mixes_pairs=True)
    found["checkpoint"] = stopped_and_resumed(folder)
    found["gradient"] = {name: gradient_of_30(name, rank) for name in ("hamming", "ranking")}
    found["half"] = squares_of_half_precision(rank)
    found["numbers"] = gather_objects((process_number(), count_processes()))
    leave_processes()
    found["alone"] = process_number(), count_processes()
    join_processes(CPU)
    found["joined again"] = gather_objects(process_number())
    leave_processes()
    torch.save(found, folder / f"{rank}.pt")


def train_and_write(rank: int, folder: str) -> None:
    torch.save(trained("hamming"), Path(folder) / f"{rank}.pt")


@pytest.mark.smoke
def test_two_processes_train_to_the_model_of_one(
    two_processes: TwoProcesses, tmp_path: Path
) -> None:
    two_processes.run(train_and_write, str(tmp_path))
    alone = trained("hamming")
    assert max(alone["risk"]) - min(alone["risk"]) > 1e-3
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(found["weights"], alone["weights"], rtol=0, atol=1e-6)
        assert found["risk"] == pytest.approx(alone["risk"], abs=1e-6)


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, two_processes: TwoProcesses
) -> list[dict[str, Any]]:
    """What each process found."""
    folder = tmp_path_factory.mktemp("processes")
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )
    two_processes.run(one_process, str(folder), store.port)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_find_the_weights_of_one(name: str, both: list[dict[str, Any]]) -> None:
    alone = TRAININGS[name]()
    assert max(alone["risk"]) - min(alone["risk"]) > 1e-3
    for found in both:
        torch.testing.assert_close(found[name]["weights"], alone["weights"], rtol=0, atol=1e-6)
        assert found[name]["risk"] == pytest.approx(alone["risk"], abs=1e-6)
    assert torch.equal(both[0][name]["weights"], both[1][name]["weights"])


def test_two_processes_train_without_a_warning(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["warnings"] == []


def test_the_flood_level_acts_in_some_batches() -> None:
    seen: list[bool] = []
    plain = RankingRisk(PRIOR)

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        seen.append(plain(scores, candidates).item() < 2.4)
        result: Tensor = risk_of("ranking")(scores, candidates)
        return result

    train(network(), X, CANDIDATES, risk, TrainOptions(SGD, epochs=4, batch_size=9, seed=3))
    assert set(seen) == {True, False}


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_the_mean_of_the_risks_of_processes_leads_elsewhere(
    name: str, both: list[dict[str, Any]]
) -> None:
    alone = trained(name)["weights"]
    for found in both:
        assert (found["naive"][name]["weights"] - alone).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_a_loop_with_accelerate_has_the_gradient_of_one_process(
    name: str, both: list[dict[str, Any]]
) -> None:
    model = network()
    risk_of(name)(model(X[:30]), CANDIDATES[:30]).backward()
    for found in both:
        torch.testing.assert_close(found["gradient"][name], gradients(model), rtol=0, atol=1e-6)


def test_scores_in_half_precision_meet_in_full_precision(both: list[dict[str, Any]]) -> None:
    scores = network()(X)[:30].detach().bfloat16().float()
    for found in both:
        torch.testing.assert_close(found["half"], scores.square().sum())


def test_a_batch_that_cannot_be_shared_is_refused(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert "a batch of 1 rows cannot be shared by 2 processes" in found["refused"]


def test_processes_draw_different_random_numbers(both: list[dict[str, Any]]) -> None:
    noises = [found["noise"] for found in both]
    assert noises[0].shape == noises[1].shape == (20, 3)
    assert not torch.equal(noises[0], noises[1])


def test_processes_that_mix_pairs_agree(both: list[dict[str, Any]]) -> None:
    assert torch.equal(both[0]["mixed"]["weights"], both[1]["mixed"]["weights"])
    assert both[0]["mixed"]["risk"] == both[1]["mixed"]["risk"]
    assert both[0]["mixed"]["risk"][-1] < both[0]["mixed"]["risk"][0]


def test_one_process_goes_on_from_what_two_have_kept(
    both: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "training.pt").write_bytes(both[0]["checkpoint"]["kept"])
    found = resumable(tmp_path, seed=1)
    assert found["calls"] == 2  # of the validation, which two have called twice
    assert found["risk"][:2] == both[0]["checkpoint"]["through"]["risk"][:2]
    assert len(found["risk"]) == 4


def test_a_stopped_training_of_two_processes_goes_on_to_the_same_weights(
    both: list[dict[str, Any]],
) -> None:
    for found in both:
        through, resumed = found["checkpoint"]["through"], found["checkpoint"]["resumed"]
        assert torch.equal(through.pop("weights"), resumed.pop("weights"))
        assert (through.pop("calls"), resumed.pop("calls")) == (4, 2)
        assert through == resumed
        assert len(through["risk"]) == len(through["validation"]) == 4


def test_two_processes_keep_one_file(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["checkpoint"]["files"] == ["training.pt"]
        assert found["checkpoint"]["left"] == ["training.pt"]


def test_processes_know_their_number_and_can_leave_and_join(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["numbers"] == [(0, 2), (1, 2)]
        assert found["alone"] == (0, 1)
        assert found["joined again"] == [0, 1]
