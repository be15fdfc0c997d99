"""Choose a classifier on candidates alone: cross-fitted, judged by the estimated ranking risk."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from comes.errors import ComesError
from comes.estimator import CandidateClassifier, cross_fit
from comes.priors import ClassPriorEstimate
from comes.selection import (
    CRITERIA,
    Criterion,
    choose_thresholds,
    compare_metrics,
    estimate_metrics,
)

# What ``--select`` may vary, and how. GDF and MLCL are not among the methods: in no experiment here
# were they the best.
METHODS = ("bce", "ccmn", "ctl", "comes-hl", "comes-rl")
FACTORS = {"learning_rate": (0.2, 1.0, 5.0), "epochs": (0.1, 1.0)}
SHORT = {"lr": "learning_rate"}


@dataclass(frozen=True)
class Choice:
    """Which classifier was chosen, and why."""

    best: int
    classifier: CandidateClassifier  # not fitted
    table: pd.DataFrame  # a row per classifier: its settings, estimates, and what it is behind by


def variations(classifier: CandidateClassifier, names: Sequence[str]) -> list[CandidateClassifier]:
    """Return the classifier with other methods, learning rates or numbers of epochs.

    Examples
    --------
    >>> [c.epochs for c in variations(CandidateClassifier(epochs=100), ["epochs"])]
    [10, 100]
    """
    values: dict[str, list[Any]] = {}
    for short in names:
        name = SHORT.get(short, short)
        if name == "method":
            if classifier.variant is not None or classifier.flip_rate is not None:
                raise ComesError("variant and flip_rate are of one method; leave them out.")
            values[name] = list(METHODS)
        elif name in FACTORS:
            values[name] = [getattr(classifier, name) * factor for factor in FACTORS[name]]
        else:
            raise ComesError(f"what varies must be method, lr or epochs; got {short!r}.")
    found: list[CandidateClassifier] = []
    tried: list[dict[str, Any]] = []
    for combination in itertools.product(*values.values()):
        settings: dict[str, Any] = dict(zip(values, combination, strict=True))
        if "epochs" in settings:
            settings["epochs"] = max(1, round(settings["epochs"]))
        if "method" in settings:
            settings["variant"] = None
            settings["flip_rate"] = "class_prior" if settings["method"] == "ccmn" else None
        if settings not in tried:
            tried.append(settings)
            found.append(clone(classifier).set_params(**settings))
    return found


def choose_classifier(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: npt.NDArray[np.bool_],
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    criterion: Criterion = "ranking",
    folds: int = 3,
    seed: int = 0,
) -> Choice:
    """Compare classifiers on candidates of rows that they did not see.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        The same for all, in training and in judging.
    criterion : {"ranking", "hamming", "auc"}
    folds : int
        Of the cross-fitting: so many trainings for each classifier.
    seed : int

    Returns
    -------
    choice : Choice
        In its table ``behind`` is what the criterion says a classifier is behind the best by, with
        an interval for other rows; one that contains 0 says that it may well be as good.
    """
    prior = np.asarray(class_prior, dtype=float)
    name, sign = CRITERIA[criterion]
    told = [clone(c).set_params(class_prior=prior, threshold="auto") for c in classifiers]
    crossed = cross_fit(told, X, candidates, folds=folds, seed=seed)
    # The ranking risk compares labels of a row; the others compare rows, also of several folds.
    raw, aligned = [c.scores for c in crossed], [c.scores - c.level for c in crossed]
    judged = raw if name == "ranking_risk" else aligned
    # Cut by the prior, so that methods are not judged by the level of their scores.
    cuts = [s > choose_thresholds(s, candidates, prior, "prior") for s in aligned]
    rows: list[dict[str, Any]] = []
    for k, classifier in enumerate(classifiers):
        risk = estimate_metrics(raw[k], candidates, prior, n_resamples=0)["ranking_risk"]
        found = estimate_metrics(aligned[k], candidates, prior, predictions=cuts[k], n_resamples=0)
        rows.append(
            {
                "method": classifier.method,
                "learning_rate": classifier.learning_rate,
                "epochs": classifier.epochs,
                "ranking_risk": risk.value,
                "hamming_loss": found["hamming_loss"].value,
                "macro_auc": found["macro_auc"].value,
            }
        )
    best = int(np.argmin([-sign * row[name] for row in rows]))
    for k, row in enumerate(rows):
        gap = compare_metrics(
            judged[k], judged[best], candidates, class_prior, predictions=(cuts[k], cuts[best])
        )[name]
        low, high = sorted((-sign * gap.low_with_prior, -sign * gap.high_with_prior))
        row |= {"behind": -sign * gap.value, "behind_low": low, "behind_high": high}
    return Choice(best, classifiers[best], pd.DataFrame(rows))
