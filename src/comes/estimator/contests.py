"""Classifiers to choose from: what a contest is, who wins a tie, and where its grid ends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from comes.answers import Answers
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import Rows, Split
from comes.estimator.settings import find_settings
from comes.estimator.training_length import PASSES
from comes.methods import DEFAULT
from comes.priors import ClassPriorEstimate, estimate_class_prior

Prior = npt.ArrayLike | ClassPriorEstimate
Said = npt.NDArray[np.bool_] | Answers  # candidates, or answers
TIE = 1e-6  # losses this near each other, relative to their size, are level
FURTHEST = 10.0  # what a step beyond a grid multiplies or divides by at most
NUMBERS = ("learning_rate", "epochs")  # settings that may end a grid


@dataclass(frozen=True, eq=False)
class Contest:
    """Classifiers to choose from, what they learn from, and the rows that judge them.

    Examples
    --------
    >>> candidates = np.array([[True, False], [True, True], [False, True]])
    >>> models = [CandidateClassifier(epochs=epochs) for epochs in (1, 9)]
    >>> contest = Contest(models, candidates, [(np.array([0, 1]), np.array([2]))])
    >>> contest.rows
    array([2])
    """

    classifiers: Sequence[CandidateClassifier]
    candidates: Said  # (n, q)
    splits: Sequence[Split]  # rows to train on, rows held out
    # (q,), the same in training and in judging. None, only for "own_risk", leaves every classifier
    # its own.
    class_prior: Prior | None = None

    @property
    def rows(self) -> Rows:
        """The rows that are held out by some split, in their order."""
        return np.sort(np.concatenate([held for _, held in self.splits]))

    def entrants(self) -> list[CandidateClassifier]:
        """Return clones that know the same prior, and learn no threshold."""
        shared: dict[str, Any] = {"threshold": "auto"}
        if isinstance(self.class_prior, ClassPriorEstimate):  # an estimate stays one
            shared["class_prior"] = self.class_prior
        elif self.class_prior is not None:
            shared["class_prior"] = np.asarray(self.class_prior, dtype=float)
        return [clone(classifier).set_params(**shared) for classifier in self.classifiers]


@dataclass(frozen=True, eq=False)
class Choice:
    """Which classifier was chosen, and why.

    Examples
    --------
    >>> classifier = CandidateClassifier()
    >>> choice = Choice(0, classifier, pd.DataFrame({"behind": [0.0]}))
    >>> choice.classifier is classifier, choice.tied, choice.edges
    (True, (), ())
    """

    best: int
    classifier: CandidateClassifier  # not fitted
    table: pd.DataFrame  # a row per classifier: settings, estimates, and how far it is behind
    tied: tuple[int, ...] = ()  # others that are level with it by the criterion
    edges: tuple[str, ...] = ()  # settings in which nothing was tried beyond the best


def estimate_shared_prior(X: Any, said: Any, random_state: Any = None) -> Any:
    """Return the class prior that candidates or answers suggest, for all classifiers of a contest.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    said : bool array of shape (n_samples, n_labels), or Answers
    random_state : int, RandomState or None

    Returns
    -------
    class_prior : ClassPriorEstimate

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> prior = estimate_shared_prior(X, case_b(X > 0, exclude_rate=0.5), 0)
    >>> bool(np.abs(np.asarray(prior) - 0.5).max() < 0.1)
    True
    """
    answers = said if isinstance(said, Answers) else Answers.from_candidates(said)
    estimate = estimate_class_prior(X, answers, random_state=random_state)
    return estimate if answers.kind == "candidates" else estimate.class_prior


def describe_settings(classifier: CandidateClassifier) -> dict[str, Any]:
    """Return the settings that a table of classifiers shows."""
    method = DEFAULT if classifier.method is None else classifier.method
    settings = find_settings(classifier, method)
    settings["epochs"] = settings["epochs"] or PASSES
    return {"method": method, **{name: settings[name] for name in NUMBERS}}


def find_best(
    losses: Sequence[float], classifiers: Sequence[CandidateClassifier]
) -> tuple[int, tuple[int, ...]]:
    """Return which classifier has the least loss, and which others are level with it.

    Of those that are level, the cheaper and more careful one is taken: fewer epochs, then a smaller
    learning rate, then the first. The order in which somebody wrote a grid decides nothing before.
    """
    known = [math.inf if math.isnan(loss) else loss for loss in losses]
    least = min(known)
    level = [k for k, loss in enumerate(known) if loss == least or loss - least <= TIE * abs(least)]
    settings = [describe_settings(classifier) for classifier in classifiers]
    best = min(level, key=lambda k: tuple(settings[k][name] for name in reversed(NUMBERS)))
    return best, tuple(k for k in level if k != best)


def find_edges(classifiers: Sequence[CandidateClassifier], best: int) -> dict[str, list[float]]:
    """Return the numbers in which the best is the least or greatest of its method's.

    Returns
    -------
    edges : dict of str to list of float
        By name, the values that were tried, from the best one inwards.
    """
    settings = [describe_settings(classifier) for classifier in classifiers]
    own = [s for s in settings if s["method"] == settings[best]["method"]]
    found = {}
    for name in NUMBERS:
        values, value = sorted({s[name] for s in own}), settings[best][name]
        if len(values) > 1 and value in (values[0], values[-1]):
            found[name] = values if value == values[0] else values[::-1]
    return found


def describe_edges(classifiers: Sequence[CandidateClassifier], best: int) -> tuple[str, ...]:
    """Return a phrase for every number in which nothing was tried beyond the best."""
    return tuple(
        f"{name} {values[0]:g} is the {'least' if values[0] < values[1] else 'greatest'} tried"
        for name, values in find_edges(classifiers, best).items()
    )


def go_beyond(classifiers: Sequence[CandidateClassifier], best: int) -> list[CandidateClassifier]:
    """Return classifiers beyond the edges at which the best lies: one step of the grid further.

    A step multiplies by the ratio of the two outermost values, at most 10. The greatest number of
    epochs is a budget, and stays.
    """
    beyond = []
    for name, (outer, inner, *_) in find_edges(classifiers, best).items():
        value: float = outer * min(max(outer / inner, 1 / FURTHEST), FURTHEST)
        if name == "epochs":
            value = max(1, round(value))
            if value >= outer:
                continue
        if math.isfinite(value) and value > 0:
            beyond.append(clone(classifiers[best]).set_params(**{name: value}))
    return beyond
