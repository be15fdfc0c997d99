"""Choosing one of 36 models on candidates alone: what it costs against clean labels.

    python experiments/selection.py

writes ``experiments/results/selection.json``. Six methods times three learning rates times two
numbers of epochs, else trained as in the paper, on four data sets with candidates of case b at two
rates, and on mirflickr5000 with its own. Every model is given the true class prior. It is
cross-fitted over the training rows and judged there by the ranking risk estimated from candidates
(with the true class prior, and with an estimated one), then fitted on all training rows and judged
on true labels of the test rows.
"""

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from sklearn.model_selection import train_test_split

from comes.datasets import open_dataset
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier, cross_fit, fit_together
from comes.files import replacing_file
from comes.flat_settings import from_flat, frozen_settings
from comes.generation import case_b
from comes.metrics import average_precision, ranking_loss
from comes.priors import count_class_prior, estimate_class_prior
from comes.selection import compare_metrics, estimate_metrics

RESULT = Path(__file__).parent / "results" / "selection.json"
METHODS = ("bce", "ccmn", "gdf", "ctl", "comes-hl", "comes-rl")
GRID = list(itertools.product(METHODS, (1e-3, 5e-3, 2.5e-2), (20, 100)))
CASES: list[tuple[str, float | None]] = [
    *itertools.product(("emotions", "scene", "yeast", "enron"), (0.1, 0.5)),
    ("mirflickr5000", None),
]


def run(name: str, rate: float | None, seed: int) -> dict[str, Any]:
    """Return the estimates and the true metrics of every model on one data set."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ComesWarning)
    dataset = open_dataset(name)
    X = dataset.X.to_numpy(dtype=float) if hasattr(dataset.X, "to_numpy") else dataset.X
    relevant = dataset.known_relevant()
    rows, test = train_test_split(np.arange(len(relevant)), test_size=0.3, random_state=seed)
    if rate is None:
        assert dataset.candidates is not None
        candidates = dataset.candidates[rows]
    else:
        candidates = case_b(relevant[rows], rate, seed=seed)
    true_prior = count_class_prior(relevant[rows])
    classifiers = [make_classifier(*model, true_prior, seed) for model in GRID]
    found = cross_fit(classifiers, X[rows], candidates, seed=seed, n_jobs=1)
    crossed = [own.scores for own in found]
    everything = np.arange(len(rows))
    fitted = fit_together(classifiers, X[rows], candidates, [everything] * len(GRID), n_jobs=1)
    priors: dict[str, Any] = {
        "true": true_prior,
        "estimated": estimate_class_prior(X[rows], candidates),
    }
    truth = []
    for classifier in fitted:
        scores = classifier.decision_function(X[test])
        truth.append(
            {
                "average_precision": average_precision(scores, relevant[test]),
                "ranking_loss": ranking_loss(scores, relevant[test]),
            }
        )
    estimates = {
        known: [
            estimate_metrics(scores, candidates, prior, n_resamples=0)["ranking_risk"].value
            for scores in crossed
        ]
        for known, prior in priors.items()
    }
    return {
        "data": name,
        "rate": rate,
        "seed": seed,
        "truth": truth,
        "estimates": estimates,
        "choices": {
            known: _choice(estimates[known], truth, crossed, candidates, prior)
            for known, prior in priors.items()
        },
    }


def make_classifier(
    method: str, learning_rate: float, epochs: int, prior: Any, seed: int
) -> CandidateClassifier:
    """Return one of the models, not fitted, with the class prior."""
    known: dict[str, Any] = {"method": method}
    known |= {} if method == "gdf" else {"class_prior": prior}
    if method == "ccmn":
        known["flip_rate"] = "class_prior"
    known |= {"learning_rate": learning_rate, "epochs": epochs, "random_state": seed}
    settings = from_flat(frozen_settings(method, None, None, known))
    return CandidateClassifier(**settings, verbose=-1)


def _choice(
    estimates: list[float], truth: list[Any], crossed: list[Any], S: Any, prior: Any
) -> dict[str, Any]:
    """Return how well the estimates rank the models, and what the choice costs."""
    values = np.array(estimates)
    true = np.array([t["average_precision"] for t in truth])
    chosen, best = int(values.argmin()), int(true.argmax())
    difference = compare_metrics(crossed[chosen], crossed[best], S, prior)["ranking_risk"]
    return {
        "rank_correlation": round(float(spearmanr(-values, true).statistic), 3),
        "chosen": GRID[chosen],
        "best": GRID[best],
        "regret": round(float(true[best] - true[chosen]), 4),
        "interval": [round(difference.low, 4), round(difference.high, 4)],
    }


def main() -> None:
    """Run all and write the result."""
    tasks = [(name, rate, seed) for seed in range(2) for name, rate in CASES]
    results = Parallel(n_jobs=2)(delayed(run)(*task) for task in tasks)
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps({"models": GRID, "runs": results}) + "\n")


if __name__ == "__main__":
    try:
        main()
    except ComesError as error:
        raise SystemExit(f"Error: {error}") from None
