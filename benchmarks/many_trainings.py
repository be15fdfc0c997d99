"""Ten folds at once against fold by fold.

    python benchmarks/many_trainings.py

writes ``benchmarks/results/many_trainings.json``. First, ten folds of mirflickr5000, COMES-HL, 200
epochs: `fit_together` against the usual hand-written loop (DataLoader, same network, risk and
optimiser), in turns. Second, on data of several widths, seconds for four epochs of ten trainings
as one batch, one after the other, and in processes: which way `fit_together` should choose.
"""

import functools
from typing import Any

import numpy as np
import torch
from measuring import compared, seconds_in_turns, write
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from comes.datasets import open_dataset
from comes.estimator import CandidateClassifier, fit_together, together
from comes.priors import count_class_prior
from comes.risks import HammingRisk

EPOCHS, BATCH, REPEATS = 200, 256, 5
Folds = list[np.ndarray]


def ours(X: Any, S: Any, prior: Any, folds: Folds, epochs: int = EPOCHS) -> None:
    """Fit all folds at once."""
    options: dict[str, Any] = {"epochs": epochs, "class_prior": prior, "verbose": -1}
    published = CandidateClassifier.as_published
    classifiers = [published(random_state=k, **options) for k in range(len(folds))]
    fit_together(classifiers, X, S, folds)


def one_by_one(X: Any, S: Any, prior: Any, folds: Folds, epochs: int) -> None:
    """Fit fold by fold with our own loop."""
    for k, rows in enumerate(folds):
        options: dict[str, Any] = {"epochs": epochs, "class_prior": prior, "verbose": -1}
        CandidateClassifier.as_published(random_state=k, **options).fit(X[rows], S[rows])


def plain(X: Any, S: Any, prior: Any, folds: Folds) -> None:
    """Train fold by fold with a DataLoader."""
    risk = HammingRisk(torch.tensor(prior, dtype=torch.float32))
    d, q = X.shape[1], S.shape[1]
    for rows in folds:
        x = np.asarray(X[rows], dtype=np.float32)
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        loader = DataLoader(
            TensorDataset(torch.tensor(x), torch.tensor(S[rows])), batch_size=BATCH, shuffle=True
        )
        model = nn.Sequential(nn.Linear(d, 500), nn.ReLU(), nn.Linear(500, q))
        optimizer = torch.optim.SGD(model.parameters(), lr=5e-3, momentum=0.9, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
        for _ in range(EPOCHS):
            for batch, candidates in loader:
                optimizer.zero_grad()
                (q * risk(model(batch), candidates)).backward()
                optimizer.step()
            schedule.step()


def choices(d: int) -> dict[str, float]:
    """Return the seconds of ten trainings of 2000 rows with d features, by how they are run."""
    rng = np.random.default_rng(0)
    X, S = rng.normal(size=(2200, d)), rng.random((2200, 10)) < 0.7
    data = (X, S, np.full(10, 0.2), [rows for rows, _ in KFold(10).split(X)], 4)

    def forced(largest: int) -> None:
        kept, together.SMALL_STEP = together.SMALL_STEP, largest
        ours(*data)
        together.SMALL_STEP = kept

    actions = {
        "batched": functools.partial(forced, 2**62),
        "one_by_one": functools.partial(one_by_one, *data),
        "processes": functools.partial(forced, 0),
    }
    return compared(seconds_in_turns(actions, REPEATS), "batched")


def main() -> None:
    """Measure all and write the result."""
    result: dict[str, Any] = {"epochs": EPOCHS, "repeats": REPEATS, "choices": {}}
    for d in (50, 200, 500, 1500):
        result["choices"][str(d)] = choices(d)
        print(d, result["choices"][str(d)], flush=True)
    dataset = open_dataset("mirflickr5000")
    X, S, prior = dataset.X, dataset.candidates, count_class_prior(dataset.known_relevant())
    folds = [rows for rows, _ in KFold(10, shuffle=True, random_state=0).split(X)]
    actions = {
        "comes": functools.partial(ours, X, S, prior, folds),
        "plain": functools.partial(plain, X, S, prior, folds),
    }
    result["ten_folds"] = compared(seconds_in_turns(actions, REPEATS), "comes")
    print(result["ten_folds"])
    write("many_trainings", result)


if __name__ == "__main__":
    main()
