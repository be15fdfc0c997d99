"""Choose a classifier on what was said, by a criterion on rows that training did not see."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import CrossFitted, Rows, Split, split_into_folds
from comes.estimator.settings import find_settings
from comes.estimator.together import Fitting, as_matrix, try_each
from comes.methods import DEFAULT
from comes.priors import ClassPriorEstimate
from comes.selection import (
    CRITERIA,
    Criterion,
    choose_thresholds,
    compare_metrics,
    estimate_metrics,
)

Prior = npt.ArrayLike | ClassPriorEstimate
Said = npt.NDArray[np.bool_] | Answers  # candidates, or answers


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
        if self.class_prior is not None:
            shared["class_prior"] = np.asarray(self.class_prior, dtype=float)
        return [clone(classifier).set_params(**shared) for classifier in self.classifiers]


@dataclass(frozen=True, eq=False)
class Choice:
    """Which classifier was chosen, and why.

    Examples
    --------
    >>> classifier = CandidateClassifier()
    >>> choice = Choice(0, classifier, pd.DataFrame({"behind": [0.0]}))
    >>> choice.classifier is classifier
    True
    """

    best: int
    classifier: CandidateClassifier  # not fitted
    table: pd.DataFrame  # a row per classifier: settings, estimates, and how far it is behind


def choose_classifier(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Said,
    class_prior: Prior | None,
    *,
    criterion: Criterion | Literal["own_risk"] = "ranking",
    folds: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Compare classifiers on candidates or answers of rows that they did not see, by cross-fitting.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels), or Answers
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        The same for all, in training and in judging. May be None for "own_risk".
    criterion : {"ranking", "hamming", "auc", "own_risk"}
        The least estimated ranking risk or Hamming loss, the greatest estimated macro AUC, or,
        among classifiers of one method, the least risk of their own.
    folds : int
        Of the cross-fitting: the number of trainings for each classifier.
    seed : int
    n_jobs : int, optional
        As in `fit_together`.

    Returns
    -------
    choice : Choice
        In its table ``behind`` is how far a classifier is behind the best by the criterion, with an
        interval; an interval that contains 0 means that it may well be as good.

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> models = [CandidateClassifier(epochs=e, hidden=8, random_state=0) for e in (1, 30)]
    >>> choose_classifier(models, X, candidates, [0.5, 0.5]).classifier.epochs
    30
    """
    splits = split_into_folds(len(candidates), folds, seed)
    contest = Contest(classifiers, candidates, splits, class_prior)
    return choose_each([contest], X, criterion=criterion, n_jobs=n_jobs)[0]


def choose_each(
    contests: Sequence[Contest],
    X: Any,
    *,
    criterion: Criterion | Literal["own_risk"] = "ranking",
    n_jobs: int | None = None,
) -> list[Choice]:
    """Choose a classifier in every contest on rows of one X, for example in each fold.

    All are trained as by `fit_together`, so equal settings of several contests are batched. A
    training that fails loses; if all of a contest fail, its first classifier is chosen by
    "own_risk", and its error raised by other criteria.

    Parameters
    ----------
    contests : list of Contest
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    criterion, n_jobs
        As in `choose_classifier`.

    Returns
    -------
    choices : list of Choice

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> rates = (1e-9, 1e-2)
    >>> models = [CandidateClassifier("bce", epochs=20, learning_rate=rate) for rate in rates]
    >>> contest = Contest(models, candidates, [(np.arange(150), np.arange(150, 200))])
    >>> (choice,) = choose_each([contest], X, criterion="own_risk", n_jobs=1)
    >>> choice.classifier.learning_rate
    0.01
    """
    if criterion != "own_risk" and criterion not in CRITERIA:
        raise ComesError(
            f"criterion must be one of {', '.join(CRITERIA)}, own_risk; got {criterion!r}."
        )
    X = as_matrix(X, "X")
    places: dict[Fitting, tuple[Contest, int, Rows]] = {}
    for contest in contests:
        for k, classifier in enumerate(contest.entrants()):
            for train, held in contest.splits:
                places[Fitting(classifier, X, contest.candidates, train)] = contest, k, held
    looks: dict[Contest, dict[int, list[Any]]] = {c: defaultdict(list) for c in contests}
    look = _look_at_own_risk if criterion == "own_risk" else _look_at_scores
    for fitting, outcome in try_each(list(places), n_jobs):
        contest, k, held = places[fitting]
        looks[contest][k].append(look(outcome, X, contest, held))
    if criterion == "own_risk":
        return [_choose_by_own_risk(contest, looks[contest]) for contest in contests]
    return [_choose_by_estimates(contest, looks[contest], criterion) for contest in contests]


def _look_at_own_risk(
    outcome: CandidateClassifier | ComesError, X: Any, contest: Contest, held: Rows
) -> float:
    """Return the risk on the candidates of held-out rows; infinity if training diverged."""
    if isinstance(outcome, ComesError):
        return math.inf
    risk = outcome.risk(_safe_indexing(X, held), contest.candidates[held])
    return risk if math.isfinite(risk) else math.inf


def _look_at_scores(
    outcome: CandidateClassifier | ComesError, X: Any, contest: Contest, held: Rows
) -> tuple[Rows, CrossFitted] | ComesError:
    """Return the scores of held-out rows, or why there are none."""
    if isinstance(outcome, ComesError):
        return outcome
    scores = outcome.decision_function(_safe_indexing(X, held)).astype(np.float64)
    return held, CrossFitted(scores, np.broadcast_to(outcome.score_offset_, scores.shape))


def _choose_by_own_risk(contest: Contest, looks: dict[int, list[float]]) -> Choice:
    """Return the classifier with the least mean risk over the splits."""
    risks = [float(np.mean(looks[k])) for k in range(len(contest.classifiers))]
    best = int(np.argmin(risks))
    rows = [
        {**_describe(classifier), "own_risk": risk, "behind": _measure_gap(risk, risks[best])}
        for classifier, risk in zip(contest.classifiers, risks, strict=True)
    ]
    return Choice(best, contest.classifiers[best], pd.DataFrame(rows))


def _measure_gap(risk: float, least: float) -> float:
    """Return how far a risk is above the least; 0 if both are infinite."""
    return 0.0 if risk == least else risk - least


def _describe(classifier: CandidateClassifier) -> dict[str, Any]:
    """Return the settings that a table of classifiers shows."""
    method = DEFAULT if classifier.method is None else classifier.method
    settings = find_settings(classifier, method)
    return {"method": method, **{name: settings[name] for name in ("learning_rate", "epochs")}}


@dataclass(frozen=True, eq=False)
class _Judged:
    """Scores of held-out rows by one classifier, and their cuts."""

    raw: npt.NDArray[np.float64]  # (n_held, q)
    aligned: npt.NDArray[np.float64]  # above their level, so that rows of several folds compare
    predictions: npt.NDArray[np.bool_]


def _choose_by_estimates(contest: Contest, looks: dict[int, list[Any]], criterion: str) -> Choice:
    """Return the classifier that an estimated metric favours, and how far others are behind."""
    if contest.class_prior is None:
        raise ComesError(f"criterion {criterion!r} needs a class_prior; got None.")
    S, prior = contest.candidates[contest.rows], np.asarray(contest.class_prior, dtype=float)
    judged = {k: _judge(contest, S, prior, looks[k]) for k in range(len(contest.classifiers))}
    name, sign = CRITERIA[criterion]
    rows = [
        {**_describe(classifier), **_estimate(judged[k], S, prior)}
        for k, classifier in enumerate(contest.classifiers)
    ]
    losses = [math.inf if judged[k] is None else -sign * row[name] for k, row in enumerate(rows)]
    best = int(np.argmin(losses))
    winner = judged[best]
    if winner is None:
        raise next(look for look in looks[best] if isinstance(look, ComesError))
    for k, row in enumerate(rows):
        row |= _compare(judged[k], winner, S, contest.class_prior, criterion)
    return Choice(best, contest.classifiers[best], pd.DataFrame(rows))


def _judge(
    contest: Contest,
    S: Said,
    prior: npt.NDArray[np.float64],
    looks: list[Any],
) -> _Judged | None:
    """Gather the scores of all splits, and cut them by the prior; None if a training failed."""
    if any(isinstance(look, ComesError) for look in looks):
        return None
    raw, level = np.empty(contest.candidates.shape), np.empty(contest.candidates.shape)
    for held, crossed in looks:
        raw[held], level[held] = crossed
    raw, level = raw[contest.rows], level[contest.rows]
    aligned = raw - level
    # Cut by the prior, so that methods are not judged by the level of their scores.
    return _Judged(raw, aligned, aligned > choose_thresholds(aligned, S, prior, "prior"))


def _estimate(judged: _Judged | None, S: Said, prior: npt.NDArray[np.float64]) -> dict[str, float]:
    """Return the metrics of a table of classifiers; NaN for one whose training failed."""
    if judged is None:
        return dict.fromkeys(("ranking_risk", "hamming_loss", "macro_auc"), math.nan)
    risk = estimate_metrics(judged.raw, S, prior, n_resamples=0)["ranking_risk"]
    found = estimate_metrics(
        judged.aligned, S, prior, predictions=judged.predictions, n_resamples=0
    )
    return {
        "ranking_risk": risk.value,
        "hamming_loss": found["hamming_loss"].value,
        "macro_auc": found["macro_auc"].value,
    }


def _compare(
    judged: _Judged | None,
    winner: _Judged,
    S: Said,
    class_prior: Prior,
    criterion: str,
) -> dict[str, float]:
    """Return how far a classifier is behind the best, with an interval."""
    if judged is None:
        return dict.fromkeys(("behind", "behind_low", "behind_high"), math.inf)
    name, sign = CRITERIA[criterion]
    # The ranking risk compares labels of a row; the others compare rows, also of several folds.
    own, best = (j.raw if name == "ranking_risk" else j.aligned for j in (judged, winner))
    predictions = (judged.predictions, winner.predictions)
    gap = compare_metrics(own, best, S, class_prior, predictions=predictions)[name]
    low, high = sorted((-sign * gap.low_with_prior, -sign * gap.high_with_prior))
    return {"behind": -sign * gap.value, "behind_low": low, "behind_high": high}
