"""Fit on candidates with BCE: ours against scikit-learn's MLPClassifier and against skorch.

The same network (d-500-q, ReLU), epochs, batch size and optimiser (SGD with momentum 0.9), the
whole ``fit`` measured in turns. Dense features are standardised beforehand (ours does it in
``fit``). Weight decay and the scale of the loss are each library's own, and cost nothing:

    pip install skorch
    python benchmarks/against_others.py

reads mirflickr5000, scene and bibtex (sparse; dense for skorch) and writes
``benchmarks/results/against_others.json``.
"""

import functools
import warnings
from typing import Any

import numpy as np
import torch
from measuring import compared, seconds_in_turns, write
from scipy import sparse
from sklearn.neural_network import MLPClassifier
from skorch import NeuralNet
from torch import nn

from comes.datasets import open_dataset
from comes.estimator import CandidateClassifier
from comes.estimator.scaling import fit_scaling
from comes.generation import case_b

EPOCHS, BATCH, REPEATS = 20, 256, 5


def fit_ours(X: Any, candidates: Any) -> None:
    """Fit a CandidateClassifier, with the settings of the paper."""
    CandidateClassifier.as_published(
        "bce",
        epochs=EPOCHS,
        batch_size=BATCH,
        optimizer={"name": "sgd", "cosine": False, "starts_at_prior": False},
        random_state=0,
        verbose=-1,
    ).fit(X, candidates)


def fit_sklearn(X: Any, candidates: Any) -> None:
    """Fit scikit-learn's network, told not to stop early."""
    network = MLPClassifier(
        (500,),
        solver="sgd",
        learning_rate_init=5e-3,
        nesterovs_momentum=False,
        batch_size=BATCH,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS + 1,
        tol=0.0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        network.fit(X, candidates.astype(int))


def fit_skorch(X: Any, candidates: Any) -> None:
    """Fit the same network with skorch."""
    d, q = X.shape[1], candidates.shape[1]
    NeuralNet(
        nn.Sequential(nn.Linear(d, 500), nn.ReLU(), nn.Linear(500, q)),
        nn.BCEWithLogitsLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        optimizer__weight_decay=1e-4,
        lr=5e-3,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    ).fit(X, candidates.astype(np.float32))


def main() -> None:
    """Measure all and write medians and ratios."""
    result: dict[str, Any] = {"epochs": EPOCHS, "repeats": REPEATS, "seconds": {}}
    for name in ("mirflickr5000", "scene", "bibtex"):
        dataset = open_dataset(name)
        candidates = dataset.candidates
        if candidates is None:
            candidates = case_b(dataset.known_relevant(), exclude_rate=0.5)
        X = dataset.X if sparse.issparse(dataset.X) else np.asarray(dataset.X, dtype=np.float32)
        scaled = fit_scaling(X, "auto")(X).astype(np.float32)
        dense = scaled.toarray() if sparse.issparse(scaled) else scaled
        actions = {
            "comes": functools.partial(fit_ours, X, candidates),
            "scikit_learn": functools.partial(fit_sklearn, scaled, candidates),
            "skorch": functools.partial(fit_skorch, dense, candidates),
        }
        result["seconds"][name] = compared(seconds_in_turns(actions, REPEATS), "comes")
        print(name, result["seconds"][name], flush=True)
    write("against_others", result)


if __name__ == "__main__":
    main()
