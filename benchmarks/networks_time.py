"""CPU seconds of an epoch of the default network, of a bare loop, and of several networks at once.

    python benchmarks/networks_time.py

trains d-500-q networks by `comes.training.train` and by a bare loop of torch that takes the same
batches of 64 with the same Adam, risk and dropout, on dense rows (mirflickr5000) and on CSR rows
(bibtex, YeastBP), in turns and with one thread; then four networks at once. Last it fits 100,000
rows of 20 numbers with answers about a tenth of the pairs with 10 labels for an epoch, and takes
the time of the rates apart. ``benchmarks/results/networks_time.json`` has medians of CPU seconds,
and of the ratios within a turn.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from measuring import significant, write
from scipy import sparse
from torch import nn

from comes.datasets import open_dataset
from comes.estimator import CandidateClassifier, prepare, rates
from comes.generation import independent, simulate_answers
from comes.models import Ensemble, mlp
from comes.models.tabular import EnsembleRisk
from comes.risks import BceRisk
from comes.training import TrainOptions, make_optimizer, train
from comes.training.rows import to_device

REPEATS, EPOCHS, BATCH = 5, 2, 64
ADAM = make_optimizer("adam", learning_rate=5e-4, weight_decay=1e-4)
OPTIONS = TrainOptions(ADAM, epochs=EPOCHS, batch_size=BATCH, progress=False)
SETS = ("mirflickr5000", "bibtex", "YeastBP")
N, D, Q = 100_000, 20, 10


def plain_loop(model: nn.Module, X: Any, targets: torch.Tensor, risk: nn.Module) -> None:
    """Train as one would by hand: rows are shuffled, and indexed batch by batch."""
    optimizer = ADAM(model.parameters())
    model.train()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(targets)).tensor_split(-(-len(targets) // BATCH)):
            x = X[rows] if isinstance(X, torch.Tensor) else to_csr(X[rows.numpy()])
            optimizer.zero_grad()
            risk(model(x), targets[rows]).backward()
            optimizer.step()


def to_csr(X: sparse.csr_array) -> torch.Tensor:
    """Return rows as a CSR tensor."""
    starts, columns, values = map(torch.from_numpy, (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(starts, columns, values, X.shape)


def make_plain(d: int, q: int) -> nn.Module:
    """Return the network of torch's own layers."""
    return nn.Sequential(nn.Linear(d, 500), nn.ReLU(), nn.Dropout(0.5), nn.Linear(500, q))


def measure(name: str) -> dict[str, float]:
    """Return CPU seconds of an epoch by way, and their ratios, on a set."""
    dataset = open_dataset(name)
    given = dataset.candidates
    candidates = independent(dataset.known_relevant(), 0.5, seed=0) if given is None else given
    targets = torch.from_numpy(np.asarray(candidates, dtype=bool))
    is_sparse = sparse.issparse(dataset.X)
    X: Any = np.asarray(dataset.X, np.float32) if not is_sparse else None
    X = torch.from_numpy(X) if X is not None else sparse.csr_array(dataset.X, dtype=np.float32)
    rows, risk = X if not is_sparse else to_device(X, torch.device("cpu")), BceRisk()
    d, q = X.shape[1], targets.shape[1]
    four = Ensemble(d, q, dropout=0.5, n_networks=4)
    ways: dict[str, Callable[[], object]] = {
        "bare": partial(plain_loop, make_plain(d, q), X, targets, risk),
        "one": partial(train, mlp(d, q, dropout=0.5), rows, targets, risk, OPTIONS),
        "four": partial(train, four, rows, targets, EnsembleRisk(risk), OPTIONS),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(REPEATS):
        for way, action in ways.items():
            started = time.process_time()
            action()
            seconds[way].append((time.process_time() - started) / EPOCHS)
    row = {way: significant(statistics.median(values)) for way, values in seconds.items()}
    for over, way in (("bare", "one"), ("one", "four")):
        ratios = [a / b for a, b in zip(seconds[way], seconds[over], strict=True)]
        row[f"{way}_over_{over}"] = significant(statistics.median(ratios))
    return row


def measure_rates() -> dict[str, float]:
    """Return CPU seconds of an epoch on many rows, and the share that rates take of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    relevant = X @ rng.normal(size=(D, Q)) / D**0.5 + rng.normal(size=(N, Q)) / 2 > 1
    answers = simulate_answers(relevant, asked_rate=0.1, no_rate=0.8, yes_rate=0.8, seed=0)
    seconds, estimate = 0.0, rates.determine_rates

    def estimate_timed(*arguments: Any, **options: Any) -> Any:
        nonlocal seconds
        started = time.process_time()
        try:
            return estimate(*arguments, **options)
        finally:
            seconds += time.process_time() - started

    prepare.determine_rates = estimate_timed  # type: ignore[attr-defined]
    started = time.process_time()
    CandidateClassifier(epochs=1, random_state=0, verbose=-1).fit(X, answers=answers)
    whole = time.process_time() - started
    return {
        "seconds": significant(whole),
        "rates": significant(seconds),
        "share": significant(seconds / whole, 2),
    }


def main() -> None:
    """Measure everything with one thread and write it."""
    torch.set_num_threads(1)
    result: dict[str, Any] = {"epochs": EPOCHS, "repeats": REPEATS, "batch": BATCH}
    result["seconds_per_epoch"] = {name: measure(name) for name in SETS}
    result["many_rows"] = measure_rates()
    write("networks_time", result)
    print(result)


if __name__ == "__main__":
    main()
