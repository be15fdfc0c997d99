"""Seconds per epoch of `comes.training.train` against a plain loop over a dense DataLoader.

The same network (d-500-q, ReLU), risk (COMES-HL), optimiser (SGD, momentum 0.9, weight decay) and
batch size, measured in turns in one process:

    python benchmarks/fit_time.py

reads mirflickr5000 and the sparse YeastBP, bibtex and delicious (dense in the plain loop; the last
two have candidates of case b, rate 0.5), and writes ``benchmarks/results/fit_time.json``. For
sparse sets it also has the share of features that a batch touches, and the seconds per epoch of the
optimiser's sweep over all weights, measured alone.
"""

import functools
import statistics
import time
from typing import Any

import numpy as np
import torch
from measuring import compared, seconds_in_turns, significant, write
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from comes.datasets import open_dataset
from comes.generation import case_b
from comes.models import mlp
from comes.priors import count_class_prior
from comes.risks import HammingRisk
from comes.training import TrainOptions, make_optimizer, train
from comes.training.rows import SparseRows, to_device

REPEATS, EPOCHS, BATCH = 7, 2, 256
SGD = make_optimizer("sgd", learning_rate=5e-3, weight_decay=1e-4)


def ours(model: nn.Module, X: Any, candidates: torch.Tensor, risk: nn.Module) -> None:
    """Train with our loop, on X as it was read."""
    options = TrainOptions(SGD, epochs=EPOCHS, batch_size=BATCH, progress=False)
    train(model, X, candidates, risk, options)


def plain(loader: Any, model: nn.Module, optimizer: Any, risk: nn.Module) -> None:
    """Train with the usual hand-written loop."""
    for _ in range(EPOCHS):
        for x, candidates in loader:
            optimizer.zero_grad()
            risk(model(x), candidates).backward()
            optimizer.step()


def updates(X: SparseRows, model: nn.Module) -> dict[str, float]:
    """Return which share of features a batch touches, and the seconds of an update of all."""
    shuffle = torch.Generator().manual_seed(0)
    batches = torch.randperm(len(X), generator=shuffle).split(BATCH)[:-1]
    touched = [len(np.unique(X.matrix[rows.numpy()].indices)) for rows in batches]
    optimizer = SGD(model.parameters())
    seconds = []
    for _ in range(4 * REPEATS):
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        started = time.perf_counter()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
    return {
        "touched_share": significant(statistics.mean(touched) / X.matrix.shape[1]),
        "update_seconds_per_epoch": significant(statistics.median(seconds) * (len(batches) + 1)),
    }


def read_task(name: str) -> tuple[Any, torch.Tensor, nn.Module, nn.Module]:
    """Return the rows of a data set, its candidates, the risk and the network."""
    dataset = open_dataset(name)
    relevant = dataset.known_relevant()
    S = dataset.candidates
    S = case_b(relevant, exclude_rate=0.5) if S is None else S
    prior = torch.tensor(count_class_prior(relevant), dtype=torch.float32)
    X, (d, q) = to_device(dataset.X, torch.device("cpu")), (dataset.X.shape[1], S.shape[1])
    return X, torch.tensor(S), HammingRisk(prior), mlp(d, q)


def main() -> None:
    """Measure both loops in turns and write the medians and their ratio."""
    result: dict[str, Any] = {"repeats": REPEATS, "batch": BATCH, "seconds_per_epoch": {}}
    for name in ("mirflickr5000", "YeastBP", "bibtex", "delicious"):
        X, candidates, risk, model = read_task(name)
        dense = torch.from_numpy(X.matrix.toarray()) if isinstance(X, SparseRows) else X
        rows = TensorDataset(dense, candidates)
        d, q = dense.shape[1], candidates.shape[1]
        network = nn.Sequential(nn.Linear(d, 500), nn.ReLU(), nn.Linear(500, q))
        sgd = torch.optim.SGD(network.parameters(), lr=5e-3, momentum=0.9, weight_decay=1e-4)
        loader = DataLoader(rows, batch_size=BATCH, shuffle=True)
        actions = {
            "comes": functools.partial(ours, model, X, candidates, risk),
            "plain": functools.partial(plain, loader, network, sgd, risk),
        }
        seconds = seconds_in_turns(actions, REPEATS)
        per_epoch = {n: [s / EPOCHS for s in values] for n, values in seconds.items()}
        row = compared(per_epoch, "comes")
        row |= updates(X, model) if isinstance(X, SparseRows) else {}
        result["seconds_per_epoch"][name] = row
        print(name, row, flush=True)
    write("fit_time", result)


if __name__ == "__main__":
    main()
