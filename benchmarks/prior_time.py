"""Class priors of all labels at once against one classifier per label.

    python benchmarks/prior_time.py

estimates the priors of YeastBP (217 labels) and writes ``benchmarks/results/prior_time.json``: our
estimate of all labels, the same estimate label by label, and cross-fitted scores of scikit-learn's
LogisticRegression label by label (without the estimate that would follow). The last two are
measured on one label in each turn, drawn at random, and multiplied by the number of labels.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measuring import significant, write
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from comes.datasets import open_dataset
from comes.priors import estimate_class_prior

REPEATS = 5


def cross_fit(X: Any, candidates: Any) -> None:
    """Score every row by a logistic regression that has not seen it."""
    regression = LogisticRegression(max_iter=200)
    cross_val_predict(regression, X, candidates, cv=3, method="predict_proba")


def main() -> None:
    """Measure all three in turns and write medians and ratios."""
    dataset = open_dataset("YeastBP")
    assert dataset.candidates is not None
    X, S = dataset.X, dataset.candidates
    seconds: dict[str, list[float]] = {"all_at_once": [], "label_by_label": [], "logistic": []}
    labels = np.random.default_rng(0).permutation(S.shape[1])[:REPEATS]

    def record(name: str, action: Callable[[], object], factor: int) -> None:
        started = time.perf_counter()
        action()
        seconds[name].append(factor * (time.perf_counter() - started))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels whose prior is uncertain
        for j in labels:
            one, q = S[:, [j]], S.shape[1]
            record("all_at_once", partial(estimate_class_prior, X, S, random_state=0), 1)
            record("label_by_label", partial(estimate_class_prior, X, one, random_state=0), q)
            record("logistic", partial(cross_fit, X, one[:, 0]), q)
            print({name: round(values[-1], 1) for name, values in seconds.items()}, flush=True)
    result: dict[str, Any] = {"labels": S.shape[1], "repeats": REPEATS}
    result["seconds"] = {n: significant(statistics.median(v)) for n, v in seconds.items()}
    result["ratio"] = {
        name: significant(statistics.median(np.divide(values, seconds["all_at_once"])))
        for name, values in seconds.items()
        if name != "all_at_once"
    }
    write("prior_time", result)


if __name__ == "__main__":
    main()
