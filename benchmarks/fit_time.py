"""Seconds per epoch of `comes.training.train` against a plain loop over a dense DataLoader.

The same network (d-500-q, ReLU), risk (COMES-HL), optimiser (SGD, momentum 0.9) and batch size,
measured in turns in one process:

    python benchmarks/fit_time.py

reads mirflickr5000 and YeastBP (sparse; the plain loop has it dense) under ``$COMES_DATA/pml`` and
writes ``benchmarks/results/fit_time.json``.
"""

import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from comes.datasets import Dataset, read_dataset
from comes.files import replacing_file
from comes.models import mlp
from comes.priors import count_class_prior
from comes.risks import HammingRisk
from comes.training import make_optimizer, to_device, train

REPEATS, EPOCHS, BATCH = 7, 2, 256
RESULT = Path(__file__).parent / "results" / "fit_time.json"


def ours(dataset: Dataset, risk: nn.Module) -> float:
    """Return seconds per epoch of our loop, on X as it was read."""
    device = torch.device("cpu")
    X, candidates = to_device(dataset.X, device), torch.tensor(dataset.candidates)
    model = mlp(dataset.X.shape[1], len(dataset.label_names))
    sgd = make_optimizer("sgd", learning_rate=5e-3, weight_decay=1e-4)
    history = train(
        model, X, candidates, risk, optimizer=sgd, epochs=EPOCHS, batch_size=BATCH, progress=False
    )
    return history.seconds / EPOCHS


def plain(dataset: Dataset, risk: nn.Module) -> float:
    """Return seconds per epoch of the loop that everybody writes."""
    X = dataset.X.toarray() if sparse.issparse(dataset.X) else dataset.X
    rows = TensorDataset(
        torch.tensor(np.asarray(X), dtype=torch.float32), torch.tensor(dataset.candidates)
    )
    loader = DataLoader(rows, batch_size=BATCH, shuffle=True)
    d, q = dataset.X.shape[1], len(dataset.label_names)
    model = nn.Sequential(nn.Linear(d, 500), nn.ReLU(), nn.Linear(500, q))
    optimizer = torch.optim.SGD(model.parameters(), lr=5e-3, momentum=0.9, weight_decay=1e-4)
    started = time.perf_counter()
    for _ in range(EPOCHS):
        for x, candidates in loader:
            optimizer.zero_grad()
            risk(model(x), candidates).backward()
            optimizer.step()
    return (time.perf_counter() - started) / EPOCHS


def main() -> None:
    """Measure both loops in turns and write the medians and their ratio."""
    result: dict[str, Any] = {
        "command": "python benchmarks/fit_time.py",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "repeats": REPEATS,
        "seconds_per_epoch": {},
    }
    for name in ("mirflickr5000", "YeastBP"):
        dataset = read_dataset(Path(os.environ["COMES_DATA"]) / "pml" / f"{name}.mat")
        prior = count_class_prior(dataset.known_relevant())
        risk = HammingRisk(torch.tensor(prior, dtype=torch.float32))
        times = [(ours(dataset, risk), plain(dataset, risk)) for _ in range(REPEATS)]
        row = {
            "comes": round(statistics.median(ours for ours, _ in times), 4),
            "plain": round(statistics.median(plain for _, plain in times), 4),
            "plain_over_comes": round(statistics.median(p / o for o, p in times), 2),
        }
        result["seconds_per_epoch"][name] = row
        print(name, row, flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    with replacing_file(RESULT) as path:
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
