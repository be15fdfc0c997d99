"""What class priors are worth where little is excluded, and what else could tell them.

    python experiments/low_rates.py

draws candidates with one irrelevant pair in ten excluded, and trains the default with class priors
that are estimated, estimated as if rows had about two labels (a population that many published sets
share), halved in their distance from the mean prior, or true. A row of
``experiments/results/low_rates.json`` is a set (300 or 1000 rows), a seed and such a prior: its
mean absolute error, and average precision and mAP over a fifth of the rows.
"""

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from defaults import load
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import independent
from comes.metrics import average_precision, mean_average_precision
from comes.priors import estimate_class_prior, rate_model

RESULT = Path(__file__).parent / "results" / "low_rates.json"
SETS = (
    *("scenes:300", "scene:300", "scene:1000", "yeast:300", "yeast:1000", "emotions", "enron:300"),
    *("enron:1000", "mirflickr5000:300", "YeastCC:1000", "goemotions:1000", "bibtex:1000"),
    *("medical:300", "medical", "yahoo-arts:300", "yahoo-arts:1000"),
)
RATE, SEEDS = 0.1, range(3)
LABELS_PER_ROW, SPREAD, FREEDOM = 2.0, 0.7, 3.0  # of a t distribution of log labels per row
FEWEST = 1e-3


def suppose_two_labels(q: int) -> Any:
    """Return parameters of the priors of q labels, of which rows have about two."""
    a, b, weight = rate_model.beta_parameters()
    z = np.log(a / (a + b) * q / LABELS_PER_ROW) / SPREAD
    weight = weight * (1 + z**2 / FREEDOM) ** (-(FREEDOM + 1) / 2)
    return a, b, weight / weight.sum()


def run(name: str, seed: int) -> list[dict[str, Any]]:
    """Return what the default makes of one draw with every prior."""
    warnings.simplefilter("ignore", ComesWarning)
    dataset = load(name, None)
    X, relevant = dataset.X, dataset.known_relevant()
    X = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    candidates = independent(relevant, exclude_rate=RATE, seed=seed)
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    found = estimate_class_prior(X[train], candidates[train], random_state=seed)
    usual, supposed = rate_model.beta_parameters, suppose_two_labels(relevant.shape[1])
    rate_model.beta_parameters = lambda: supposed  # type: ignore[assignment]
    try:
        of_two = estimate_class_prior(X[train], candidates[train], random_state=seed)
    finally:
        rate_model.beta_parameters = usual
    true = relevant[train].mean(axis=0)
    shares = np.append(found.class_prior, found.class_prior.mean())
    odds = np.log(shares.clip(FEWEST, 1 - FEWEST) / (1 - shares.clip(FEWEST, 1 - FEWEST)))
    half = 1 / (1 + np.exp(-(odds[:-1] + odds[-1]) / 2))
    rows = []
    for title, prior, rate in (
        ("estimated", found.class_prior, found.exclude_rate),
        ("about two labels a row", of_two.class_prior, of_two.exclude_rate),
        ("half as far from their mean", half, found.exclude_rate),
        ("true", np.maximum(true, FEWEST), found.exclude_rate),
    ):
        classifier = CandidateClassifier(
            class_prior=prior, rates={"exclude": rate}, random_state=seed, verbose=-1
        )
        scores = classifier.fit(X[train], candidates[train]).decision_function(X[test])
        values = {
            "prior_error": np.abs(prior - true).mean(),
            "average_precision": average_precision(scores, relevant[test]),
            "mean_average_precision": mean_average_precision(scores, relevant[test]),
        }
        row = {"set": name, "seed": seed, "prior": title}
        rows.append(row | {key: round(float(value), 4) for key, value in values.items()})
    return rows


def main() -> None:
    """Run all draws and write the result."""
    tasks = [delayed(run)(name, seed) for seed in SEEDS for name in SETS]
    rows = list(itertools.chain.from_iterable(Parallel(n_jobs=2)(tasks)))
    result = {"command": "python experiments/low_rates.py", "rate": RATE, "rows": rows}
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")
    table = pd.DataFrame(rows)
    print(table.groupby("prior", sort=False).mean(numeric_only=True).round(4).to_string())


if __name__ == "__main__":
    main()
