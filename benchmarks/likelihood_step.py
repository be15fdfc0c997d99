"""A training step of the likelihood against one of BCE, on candidates and on answers.

    python benchmarks/likelihood_step.py
    python benchmarks/likelihood_step.py --device cuda

The same network (d-500-q, ReLU), rows, optimiser (SGD, momentum 0.9, weight decay) and batches of
256; on a GPU a step is a CUDA graph, as in the estimator. Both take ten steps at a time, in turns
in one process, and the ratio is the median of those within a turn. On the CPU this is done with one
thread and with two. Data are mirflickr5000 and the sparse YeastBP and delicious, or drawn in their
shapes where they are absent; candidates exclude half of the irrelevant labels, and of answers one
pair in ten was asked, four fifths of them surely answered. A CPU run writes
``benchmarks/results/likelihood_step.json``, one on a GPU ``likelihood_step_cuda.json``.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import compared, seconds_in_turns, write
from scipy import sparse
from torch import Tensor, nn

from comes.answers import State
from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.generation import case_a
from comes.models import mlp
from comes.risks import BceRisk, LikelihoodRisk
from comes.training import TrainOptions, make_optimizer
from comes.training.loop import Training
from comes.training.rows import SparseRows, to_device
from comes.training.speed import kept_memory

BATCH, STEPS, ASKED, SURE = 256, 10, 0.1, 0.8
# Rows, features, the share of features that are not 0, labels, and the share that is relevant.
SHAPES = {
    "YeastBP": (6139, 6139, 0.0147, 217, 0.0255),
    "mirflickr5000": (5000, 100, 1.0, 7, 0.253),
    "delicious": (16105, 500, 0.0366, 983, 0.0193),
}
SGD = make_optimizer("sgd", learning_rate=5e-3, weight_decay=1e-4)


def read_or_draw(name: str) -> tuple[Any, Any, str]:
    """Return X and the relevant labels of a data set, or drawn in its shape, and which it is."""
    try:
        dataset = open_dataset(name)
    except (ComesError, ImportError):  # no data here, or nothing to find it with
        n, d, density, q, share = SHAPES[name]
        rng = np.random.default_rng(0)
        X: Any = rng.normal(size=(n, d)).astype(np.float32)
        if density < 1:
            X = sparse.random_array((n, d), density=density, format="csr", rng=rng)
        return X[: STEPS * BATCH], rng.random((STEPS * BATCH, q)) < share, "drawn"
    return dataset.X[: STEPS * BATCH], dataset.known_relevant()[: STEPS * BATCH], "read"


def answer(relevant: Any) -> Any:
    """Return the states of pairs of which some were asked, (n, q)."""
    rng = np.random.default_rng(1)
    said = np.where(relevant, State.YES, State.NO)
    said = np.where(rng.random(said.shape) < SURE, said, State.MAYBE)
    return np.where(rng.random(said.shape) < ASKED, said, State.NOT_ASKED).astype(np.int8)


def make_epoch(X: Tensor | SparseRows, answers: Tensor, risk: nn.Module) -> Callable[[], float]:
    """Return what takes ten steps with a network of its own."""
    device = answers.device
    torch.manual_seed(0)
    matrix = X.matrix if isinstance(X, SparseRows) else X
    model = mlp(matrix.shape[1], answers.shape[1]).to(device).train()
    training = Training(model, X, answers, risk.to(device), TrainOptions(SGD, graph=True))
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))

    def run() -> float:
        return torch.stack(list(training.take_steps(order, [BATCH] * STEPS, ()))).mean().item()

    return run


def compare(X: Any, answers: Any, device: torch.device, repeats: int) -> dict[str, float]:
    """Return milliseconds per step of both risks, and the ratios of the likelihood's to BCE's."""
    rows, known = to_device(X, device), torch.as_tensor(answers, device=device)
    q = known.shape[1]
    rates, weight, prior = torch.full((q,), SURE), torch.full((q,), 2.0), torch.full((q,), 0.1)
    is_candidates = known.dtype == torch.bool
    make = functools.partial(LikelihoodRisk, rates, None if is_candidates else rates)
    risks = {
        "bce": BceRisk(label_weight=None if is_candidates else weight),
        "likelihood": make(label_weight=weight),
        "likelihood_near_prior": make(label_weight=weight, class_prior=prior),
    }
    actions = {name: make_epoch(rows, known, risk) for name, risk in risks.items()}
    with kept_memory():
        seconds = seconds_in_turns(actions, repeats)
    milliseconds = {name: [1000 * s / STEPS for s in values] for name, values in seconds.items()}
    return compared(milliseconds, "bce")


def main() -> None:
    """Measure all and write the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=41)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    result: dict[str, Any] = {"repeats": arguments.repeats, "batch": BATCH}
    for name in SHAPES:
        X, relevant, source = read_or_draw(name)
        matrices = {"candidates": case_a(relevant, flip_rate=0.5), "answers": answer(relevant)}
        for threads in (1, 2) if device.type == "cpu" else (torch.get_num_threads(),):
            torch.set_num_threads(threads)
            on = f"{threads} threads" if device.type == "cpu" else device.type
            for kind, answers in matrices.items():
                row = compare(X, answers, device, arguments.repeats)
                result[f"{name}, {kind}, {on}"] = {"data": source, **row}
                print(name, kind, on, row, flush=True)
    if device.type == "cpu":
        write("likelihood_step", result)
    else:
        command = f"python benchmarks/likelihood_step.py --device {device.type}"
        write(f"likelihood_step_{device.type}", {"command": command, **result})


if __name__ == "__main__":
    main()
