"""One training in two processes, then three, then two, each time after a worker was killed.

    python benchmarks/elastic_processes.py

trains COMES-HL, COMES-RL and the likelihood (four networks with dropout) in float64, once in one
process, and once in a group of two processes of which one kills itself (SIGKILL) in the middle of
an epoch, then in three of which one is killed, then in two to the end. Each group goes on from the
checkpoint of the one before. Then COMES-HL is trained by three workers of torchrun, of which one
kills itself; torchrun starts them again. ``benchmarks/results/elastic_processes.json`` has the
largest difference of a weight from the training in one process, and how far training moved them.
"""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measuring import significant, write
from torch import Tensor, nn

from comes.models import Ensemble, mlp
from comes.models.tabular import EnsembleRisk
from comes.risks import HammingRisk, LikelihoodRisk, RankingRisk
from comes.training import (
    Checkpoint,
    MakeOptimizer,
    TrainOptions,
    join_processes,
    leave_processes,
    make_optimizer,
    process_number,
    seeded,
    train,
)

CPU = torch.device("cpu")
N, D, Q, BATCH, EPOCHS = 500, 20, 8, 32, 6
STEPS = -(-N // BATCH)  # of an epoch
# How many processes, and in which of their steps a worker is killed: in the second epoch, and in
# the fourth; what is done is not done again.
GROUPS = ((2, STEPS + 5), (3, 2 * STEPS + 3), (2, None))
SGD = make_optimizer("sgd", learning_rate=0.02)
ADAM = make_optimizer("adam", learning_rate=5e-4)


def problem() -> tuple[Tensor, Tensor, Tensor]:
    """Return rows, candidates and class priors, from a seed."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=generator, dtype=torch.float64)
    scores = X @ torch.randn(D, Q, generator=generator, dtype=torch.float64)
    relevant = scores > 3
    is_asked = torch.rand(N, Q, generator=generator) < 0.5
    return X, relevant | ~is_asked, relevant.double().mean(dim=0)


@dataclass(frozen=True)
class Case:
    """A risk, a network and an optimiser."""

    make_risk: Callable[[Tensor], nn.Module]
    make_model: Callable[[], nn.Module]
    optimizer: MakeOptimizer


CASES = {
    "comes-hl": Case(HammingRisk, lambda: mlp(D, Q, 32), SGD),
    "comes-rl": Case(lambda prior: RankingRisk(prior, flood_level=2.0), lambda: mlp(D, Q, 32), SGD),
    "likelihood": Case(
        lambda prior: EnsembleRisk(LikelihoodRisk(0.5 * torch.ones(Q), class_prior=prior)),
        lambda: Ensemble(D, Q, 32, dropout=0.5),
        ADAM,
    ),
}


def train_case(name: str, folder: Path | None, dies_at: int | None = None) -> Tensor:
    """Train, from the checkpoint in a folder if there is one; return all weights."""
    X, candidates, prior = problem()
    case, n_calls = CASES[name], 0
    with seeded(1, CPU):
        model = case.make_model().double()
    risk = case.make_risk(prior).double()

    def risk_until_death(scores: Tensor, seen: Tensor) -> Tensor:
        nonlocal n_calls
        n_calls += 1
        if n_calls == dies_at and process_number() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        value: Tensor = risk(scores, seen)
        return value

    train(
        model,
        X,
        candidates,
        risk_until_death,
        TrainOptions(case.optimizer, epochs=EPOCHS, batch_size=BATCH, seed=3, progress=False),
        checkpoint=None if folder is None else Checkpoint(folder / "training.pt", name, every=0),
        is_shared=folder is not None,
    )
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def work(rank: int, n_processes: int, port: int, name: str, folder: Path, dies: int | None) -> None:
    """Be one process of a group."""
    torch.set_num_threads(1)
    os.environ |= {"WORLD_SIZE": str(n_processes), "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    join_processes(CPU)
    try:
        weights = train_case(name, folder, dies)
    except RuntimeError:  # of torch, as another process is gone
        os._exit(1)
    if rank == 0:
        torch.save(weights, folder / "weights.pt")
    leave_processes()


def run_group(n_processes: int, name: str, folder: Path, dies: int | None) -> list[int | None]:
    """Start a group, and return how its processes ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "comes.training"])
    workers = [
        context.Process(target=work, args=(rank, n_processes, port, name, folder, dies))
        for rank in range(n_processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [worker.exitcode for worker in workers]


def run_torchrun(folder: Path, workers: int = 3, name: str = "comes-hl") -> dict[str, Any]:
    """Train in workers of torchrun, of which one is killed once; compare with one process."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers)]
    command += ["--max-restarts", "3", __file__, "--worker", name, str(folder)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    epochs_and_steps = torch.load(folder / "found.pt")
    return {
        "method": name,
        "torchrun": f"{workers} workers, one of them killed",
        "epochs_and_steps_done": epochs_and_steps,
        "steps_of_an_epoch": STEPS,
        **compare(name, torch.load(folder / "weights.pt")),
    }


def be_torchrun_worker(name: str, folder: Path) -> None:
    """Train as a worker of torchrun; one is killed in the second epoch, but not once restarted."""
    is_restarted = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    join_processes(CPU)
    if is_restarted and process_number() == 0 and not (folder / "found.pt").exists():
        state = torch.load(folder / "training.pt", weights_only=True)
        torch.save([len(state["risk"]), state["steps"]], folder / "found.pt")
    weights = train_case(name, folder, None if is_restarted else STEPS + 5)
    if process_number() == 0:
        torch.save(weights, folder / "weights.pt")
    leave_processes()


def compare(name: str, weights: Tensor) -> dict[str, float]:
    """Compare weights with those of a training in one process."""
    alone = train_case(name, None)
    with seeded(1, CPU):
        start = CASES[name].make_model().double()
    moved = alone - torch.cat([p.detach().flatten() for p in start.parameters()])
    return {
        "largest_difference": significant(float((weights - alone).abs().max())),
        "largest_move": significant(float(moved.abs().max())),
    }


def come_and_go(
    name: str, folder: Path, groups: Sequence[tuple[int, int | None]] = GROUPS
) -> dict[str, Any]:
    """Train in groups of processes, one after the other, and compare with one process."""
    exits, done = [], []
    for n_processes, dies in groups:
        exits.append(run_group(n_processes, name, folder, dies))
        state = torch.load(folder / "training.pt", weights_only=True)
        done.append([len(state["risk"]), state["steps"]])
    return {
        "method": name,
        "processes": [n_processes for n_processes, _ in groups],
        "exit_codes": exits,
        "epochs_and_steps_done": done,
        "steps_of_an_epoch": STEPS,
        **compare(name, torch.load(folder / "weights.pt")),
    }


def main() -> None:
    """Train all, and write the result."""
    rows = []
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(come_and_go(name, Path(folder)))
        print(rows[-1], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        restarted = run_torchrun(Path(folder))
    print(restarted, flush=True)
    write("elastic_processes", {"rows": rows, "restarted": restarted})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        be_torchrun_worker(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
