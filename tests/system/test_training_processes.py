"""Two processes that train together must find the weights of one that trains alone."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import shared_trainings
from comes.errors import ComesError
from comes.risks import RankingRisk
from comes.training import TrainOptions, loop, of_all_processes, processes, train
from comes.training.gradients import Risk
from comes.training.processes import (
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
    PRIOR,
    SGD,
    TRAININGS,
    StoppedError,
    X,
    gradients,
    my_rows,
    network,
    resumable,
    risk_of,
    trained,
)
from two_processes import TwoProcesses


def naively_trained(name: str) -> dict[str, Any]:
    """Train on the risk of each process, as data parallelism without thought does."""

    def risk_of_own_rows(name: str, dtype: torch.dtype) -> Risk:
        risk = risk_of(name, dtype)
        return lambda scores, seen: risk(scores, processes.take_share(seen))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "gather_rows", lambda scores, n: scores)
        patch.setattr(shared_trainings, "risk_of", risk_of_own_rows)
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
    train(model, X[:40], CANDIDATES[:40], risk_of("hamming"), options, distributed=True)
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
    resumed = resumable(folder / "kept", seed=1)
    dist.barrier()
    left = os.listdir(folder / "kept")
    return {"through": through, "resumed": resumed, "files": files, "left": left}


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
    found |= {name: run() for name, run in DRAWN.items()}
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


@pytest.mark.parametrize("name", DRAWN)
def test_what_processes_draw_on_their_own_leaves_them_with_the_same_weights(
    name: str, both: list[dict[str, Any]]
) -> None:
    first, second = (found[name] for found in both)
    assert torch.equal(first["weights"], second["weights"])
    assert first["risk"] == second["risk"]
    assert first["risk"][-1] < first["risk"][0]


def test_a_stopped_training_of_two_processes_goes_on_to_the_same_weights(
    both: list[dict[str, Any]],
) -> None:
    for found in both:
        through, resumed = found["checkpoint"]["through"], found["checkpoint"]["resumed"]
        assert torch.equal(through["weights"], resumed.pop("weights"))
        assert (through["calls"], resumed.pop("calls")) == (4, 2)
        assert (through["steps"], resumed.pop("steps")) == (20, 10)
        assert all(through[name] == value for name, value in resumed.items())
        assert len(through["risk"]) == len(through["validation"]) == 4


def test_two_processes_keep_one_file(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["checkpoint"]["files"] == ["training.pt"]
        assert found["checkpoint"]["left"] == ["training.pt"]


WORKER = """
import os, signal, sys
from pathlib import Path
import torch
from comes.training.processes import join_processes, leave_processes, process_number
from shared_trainings import CPU, resumable

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

join_processes(CPU)
dies = process_number() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
found = resumable(Path(sys.argv[1]), stops_in=13 if dies else 99, then=kill, every=0)
torch.save(found, Path(sys.argv[1]) / f"{process_number()}.pt")
leave_processes()
"""


def test_torchrun_goes_on_after_the_loss_of_a_worker(
    both: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "--max-restarts", "1"]
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])
    ended = subprocess.run(
        [*command, str(tmp_path / "worker.py"), str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for rank, found in enumerate(both):
        restarted = torch.load(tmp_path / f"{rank}.pt")
        assert 0 < restarted["steps"] < 20  # what was done is not done again
        assert torch.equal(restarted["weights"], found["checkpoint"]["through"]["weights"])


def test_processes_know_their_number_and_can_leave_and_join(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["numbers"] == [(0, 2), (1, 2)]
        assert found["alone"] == (0, 1)
        assert found["joined again"] == [0, 1]
