"""What a GPU brings: seven methods on ten folds of YeastBP, graphs, and 10,000 labels.

    python benchmarks/gpu.py

needs a GPU and YeastBP and mirflickr5000 under ``$COMES_DATA/pml``, and writes
``benchmarks/results/gpu.json``:

- wall seconds of seven methods x ten folds, as the paper trains, with `fit_together`, including
  MLCL's first stages (on the CPU); class priors are given, and CCMN takes its rates from them;
- seconds per epoch of one training, with and without a CUDA graph, and of ten folds at once;
- one step of COMES-RL and of COMES-HL with 10,000 labels, batch 256, and its memory.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import compared, seconds_in_turns, significant, write
from sklearn.model_selection import KFold
from torch import nn

from comes.datasets import Dataset, open_dataset
from comes.estimator import CandidateClassifier, fit_together
from comes.flat_settings import from_flat, frozen_settings
from comes.models import mlp
from comes.priors import count_class_prior
from comes.risks import HammingRisk, RankingRisk
from comes.training import TrainOptions, make_optimizer, train
from comes.training.rows import to_device
from comes.training.stacked import Trainee, train_together

DEVICE = torch.device("cuda")
METHODS = ("bce", "ccmn", "gdf", "ctl", "mlcl", "comes-hl", "comes-rl")
REPEATS = 5


def seven_methods(dataset: Dataset, epochs: int) -> dict[str, float]:
    """Return the wall seconds of each method for all ten folds, and of all."""
    X, S = dataset.X, dataset.candidates
    folds = [rows for rows, _ in KFold(10, shuffle=True, random_state=0).split(X)]
    prior = count_class_prior(dataset.known_relevant())
    seconds: dict[str, float] = {}
    for method in METHODS:
        known: dict[str, Any] = {"method": method, "epochs": epochs, "progress": False}
        known |= {"class_prior": prior} if method.startswith("comes") else {}
        known |= {"class_prior": prior, "flip_rate": "class_prior"} if method == "ccmn" else {}
        classifiers = [
            CandidateClassifier(**from_flat(frozen_settings(method, None, None, known | seed)))
            for seed in ({"random_state": k} for k in range(10))
        ]
        started = time.perf_counter()
        fit_together(classifiers, X, S, folds)
        torch.cuda.synchronize()
        seconds[method] = significant(time.perf_counter() - started)
        print(method, seconds[method], flush=True)
    return seconds | {"all": significant(sum(seconds.values()))}


def epochs_of(dataset: Dataset) -> dict[str, float]:
    """Return seconds per epoch: kernel by kernel, as a graph, and ten folds at once as a graph."""
    X, S = to_device(dataset.X, DEVICE), torch.tensor(dataset.candidates, device=DEVICE)
    prior = torch.tensor(count_class_prior(dataset.known_relevant()), dtype=torch.float32)
    q, sgd = S.shape[1], make_optimizer("sgd", learning_rate=5e-3, weight_decay=1e-4)
    options = TrainOptions(sgd, epochs=20, risk_scale=q, progress=False)
    assert isinstance(X, torch.Tensor)

    def model() -> nn.Module:
        return mlp(X.shape[1], q).to(DEVICE)

    def risk() -> nn.Module:
        return HammingRisk(prior).to(DEVICE)

    def one(graph: bool) -> float:
        return train(model(), X, S, risk(), replace(options, graph=graph)).seconds / 20

    def ten() -> float:
        trainees = [Trainee(model(), X, S, risk(), seed) for seed in range(10)]
        histories = train_together(trainees, replace(options, graph=True))
        return 10 * histories[0].seconds / 20

    def median(action: Callable[[], float]) -> float:
        return significant(float(np.median([action() for _ in range(REPEATS)])))

    return {"plain": median(lambda: one(False)), "graph": median(lambda: one(True))} | {
        "ten_at_once": median(ten)
    }


def many_labels(q: int = 10_000, batch: int = 256) -> dict[str, float]:
    """Return seconds of a step of each risk, without a graph, and the peak memory in GB."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch, 1000, generator=generator).to(DEVICE)
    candidates = (torch.rand(batch, q, generator=generator) < 0.9).to(DEVICE)
    actions = {}
    for name, make in (("comes_hl", HammingRisk), ("comes_rl", RankingRisk)):
        model, risk = mlp(1000, q).to(DEVICE), make(torch.full((q,), 0.01)).to(DEVICE)
        optimizer = make_optimizer("sgd", learning_rate=1e-5)(model.parameters())

        def step(model: Any = model, risk: Any = risk, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            (risk(model(rows), candidates) / q).backward()
            optimizer.step()
            torch.cuda.synchronize()

        actions[name] = step
    torch.cuda.reset_peak_memory_stats()
    row = compared(seconds_in_turns(actions, 4 * REPEATS, calls=5), "comes_hl")
    return row | {"gigabytes": significant(torch.cuda.max_memory_allocated() / 1e9)}


def main() -> None:
    """Measure all and write the result."""
    folder = Path(os.environ["COMES_DATA"]) / "pml"
    sets = {name: open_dataset(folder / f"{name}.mat") for name in ("mirflickr5000", "YeastBP")}
    result: dict[str, Any] = {"repeats": REPEATS, "many_labels": many_labels()}
    print(result["many_labels"], flush=True)
    result["seconds_per_epoch"] = {name: epochs_of(dataset) for name, dataset in sets.items()}
    print(result["seconds_per_epoch"], flush=True)
    result["seven_methods_ten_folds"] = seven_methods(sets["YeastBP"], epochs=200)
    write("gpu", result)


if __name__ == "__main__":
    main()
