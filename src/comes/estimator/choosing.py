"""Choose a classifier on what was said, by a criterion on rows that training did not see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.contests import (
    Choice,
    Contest,
    Prior,
    Said,
    describe_edges,
    describe_settings,
    find_best,
    go_beyond,
)
from comes.estimator.cross_fitting import CrossFitted, Rows, split_into_folds
from comes.estimator.judged_scores import describe_failure, judge_scores
from comes.estimator.together import Fitting, as_matrix, try_each
from comes.selection.scorers import CRITERIA, Criterion

Every = Criterion | Literal["own_risk", "trained_risk"]
ROUNDS = 3  # how often a grid is extended at most


def choose_classifier(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Said,
    class_prior: Prior | None,
    *,
    criterion: Every = "log_likelihood",
    extend: bool = False,
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
    criterion : {"log_likelihood", "ranking", "hamming", "auc", "own_risk"}
        The greatest likelihood of what was said, the least estimated ranking risk or Hamming loss,
        the greatest estimated macro AUC, or, among classifiers of one method, the least risk of
        their own. All are estimates without the corrections that training needs, and all but
        the last can compare methods.
    extend : bool
        Where the best has the least or greatest learning rate, or the fewest epochs, of those with
        its method, also try values beyond, a step of the grid further, up to three times.
    folds : int
        Of the cross-fitting: the number of trainings for each classifier.
    seed : int
    n_jobs : int, optional
        As in `fit_together`.

    Returns
    -------
    choice : Choice
        In its table ``behind`` is how far a classifier is behind the best by the criterion, with an
        interval; an interval that contains 0 means that it may well be as good. Of classifiers
        that are level, the one with fewer epochs is taken, then with a smaller learning rate;
        ``tied`` has the others. ``edges`` says where nothing was tried beyond the best.

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
    return choose_each([contest], X, criterion=criterion, extend=extend, n_jobs=n_jobs)[0]


def choose_each(
    contests: Sequence[Contest],
    X: Any,
    *,
    criterion: Every = "log_likelihood",
    extend: bool = False,
    n_jobs: int | None = None,
) -> list[Choice]:
    """Choose a classifier in every contest on rows of one X, for example in each fold.

    All are trained as by `fit_together`, so equal settings of several contests are batched. A
    training that fails loses; if all of a contest fail, one is chosen by "own_risk" as if they were
    level, and its error raised by other criteria.

    Parameters
    ----------
    contests : list of Contest
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    criterion, extend, n_jobs
        As in `choose_classifier`. "trained_risk" is "own_risk" with the corrections of training,
        and the first of those that are level: as results of `comes bench` were found that name no
        criterion.

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
    if criterion not in (*CRITERIA, "own_risk", "trained_risk"):
        raise ComesError(
            f"criterion must be one of {', '.join(CRITERIA)}, own_risk; got {criterion!r}."
        )
    X = as_matrix(X, "X")
    bouts = [_Bout(contest, criterion) for contest in contests]
    _train(bouts, X, n_jobs)
    choices = [bout.choose() for bout in bouts]
    for _ in range(ROUNDS if extend else 0):
        wider = [bout for bout, choice in zip(bouts, choices, strict=True) if bout.extend(choice)]
        if not wider:
            break
        _train(wider, X, n_jobs)
        choices = [bout.choose() for bout in bouts]
    return choices


@dataclass(eq=False)
class _Bout:
    """A contest while it runs: what was seen of its classifiers on held-out rows, by number."""

    contest: Contest
    criterion: Every
    looks: dict[int, list[Any]] = field(default_factory=dict)

    def extend(self, choice: Choice) -> bool:
        """Let classifiers beyond the edges of the grid take part; return whether there are any."""
        known = self.contest.classifiers
        tried = [describe_settings(classifier) for classifier in known]
        new = [c for c in go_beyond(known, choice.best) if describe_settings(c) not in tried]
        self.contest = replace(self.contest, classifiers=[*known, *new])
        return bool(new)

    def look(self, outcome: CandidateClassifier | ComesError, X: Any, held: Rows) -> Any:
        """Return what the criterion wants to know of a training."""
        own = _safe_indexing(X, held)
        if self.criterion in CRITERIA:
            return _score(outcome, own, held)
        corrected = self.criterion == "trained_risk"
        return _find_risk(outcome, own, self.contest.candidates[held], corrected)

    def choose(self) -> Choice:
        """Return the best classifier by what was seen."""
        if self.criterion in CRITERIA:
            return _choose_by_estimates(self.contest, self.looks, self.criterion)
        return _choose_by_risk(self.contest, self.looks, self.criterion)


def _train(bouts: Sequence[_Bout], X: Any, n_jobs: int | None) -> None:
    """Train the classifiers that nothing is known of, and look at each."""
    places: dict[Fitting, tuple[_Bout, int, Rows]] = {}
    for bout in bouts:
        for k, classifier in enumerate(bout.contest.entrants()):
            if k in bout.looks:
                continue
            for train, held in bout.contest.splits:
                fitting = Fitting(classifier, X, bout.contest.candidates, train)
                places[fitting] = bout, k, held
    for fitting, outcome in try_each(list(places), n_jobs):
        bout, k, held = places[fitting]
        bout.looks.setdefault(k, []).append(bout.look(outcome, X, held))


def _find_risk(
    outcome: CandidateClassifier | ComesError, X: Any, said: Said, corrected: bool
) -> float:
    """Return the risk on the candidates of held-out rows; infinity if training diverged."""
    if isinstance(outcome, ComesError):
        return math.inf
    risk = outcome.risk(X, said, corrected=corrected)
    return risk if math.isfinite(risk) else math.inf


def _score(
    outcome: CandidateClassifier | ComesError, X: Any, held: Rows
) -> tuple[Rows, CrossFitted] | ComesError:
    """Return the scores of held-out rows, or why there are none."""
    if isinstance(outcome, ComesError):
        return outcome
    scores = outcome._compute_scores(X).astype(np.float64)
    return held, CrossFitted(scores, np.broadcast_to(outcome.score_offset_, scores.shape))


def _choose_by_risk(contest: Contest, looks: dict[int, list[float]], name: str) -> Choice:
    """Return the classifier with the least mean risk over the splits."""
    classifiers = contest.classifiers
    risks = [float(np.mean(looks[k])) for k in range(len(classifiers))]
    best, tied = find_best(risks, classifiers)
    if name == "trained_risk":  # as results were found that say no more than this
        best, tied = int(np.argmin(risks)), ()
    rows = [
        {**describe_settings(classifier), name: risk, "behind": _measure_gap(risk, risks[best])}
        for classifier, risk in zip(classifiers, risks, strict=True)
    ]
    edges = describe_edges(classifiers, best)
    return Choice(best, classifiers[best], pd.DataFrame(rows), tied, edges)


def _measure_gap(risk: float, least: float) -> float:
    """Return how far a risk is above the least; 0 if both are infinite."""
    return 0.0 if risk == least else risk - least


def _choose_by_estimates(contest: Contest, looks: dict[int, list[Any]], criterion: str) -> Choice:
    """Return the classifier that an estimated metric favours, and how far others are behind."""
    if contest.class_prior is None:
        raise ComesError(f"criterion {criterion!r} needs a class_prior; got None.")
    S, prior = contest.candidates[contest.rows], np.asarray(contest.class_prior, dtype=float)
    classifiers = contest.classifiers
    judged = [
        None
        if any(isinstance(look, ComesError) for look in looks[k])
        else judge_scores(contest, S, prior, looks[k])
        for k in range(len(classifiers))
    ]
    name, sign = CRITERIA[criterion]
    rows = [describe_failure() if own is None else own.estimate(S, prior) for own in judged]
    losses = [
        math.inf if own is None else -sign * row[name]
        for own, row in zip(judged, rows, strict=True)
    ]
    best, tied = find_best(losses, classifiers)
    winner = judged[best]
    if winner is None:
        raise next(look for look in looks[best] if isinstance(look, ComesError))
    for own, row in zip(judged, rows, strict=True):
        if own is not None:
            row |= own.compare(winner, S, contest.class_prior, criterion)
    described = [describe_settings(c) | row for c, row in zip(classifiers, rows, strict=True)]
    edges = describe_edges(classifiers, best)
    return Choice(best, classifiers[best], pd.DataFrame(described), tied, edges)
