"""Choose a classifier by a criterion on the answers about rows that training did not see."""

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.prepare import PASSES, choose_settings, count_epochs
from comes.estimator.together import Fitting, Rows, Split, as_rows, fit_each, split_into_folds
from comes.methods import METHODS, Method, find_method, table_rank
from comes.priors import ClassPriorEstimate, estimate_class_prior
from comes.selection import choose_thresholds, compare_metrics, estimate_metrics, likelihood_losses
from comes.selection.scorers import CRITERIA, Criterion

Prior = npt.ArrayLike | ClassPriorEstimate
Candidates = npt.NDArray[np.bool_] | Answers
AnyCriterion = Criterion | Literal["own_risk", "trained_risk"]
TIE = 1e-6  # losses this near each other, relative to their size, are level
ROUNDS = 3  # how often a grid is extended at most
LARGEST_STEP = 10.0  # what a step beyond a grid multiplies or divides by at most
METRICS = ("ranking_risk", "hamming_loss", "macro_auc")  # that are estimated
N_RESAMPLES, LEVEL = 400, 0.95  # of the interval of a difference of likelihoods
FACTORS: dict[str, Sequence[Any]] = {
    "lr": (0.2, 1.0, 5.0),
    "epochs": (0.1, 1.0),
}  # that `vary_settings` multiplies by


@dataclass(frozen=True, eq=False)
class Choice:
    """Which classifier was chosen, and why.

    Attributes
    ----------
    best : int
        Its number among those that were compared.
    classifier : CandidateClassifier
        It is not fitted.
    table : DataFrame
        A row per classifier: settings, estimates, and how far it is behind.
    tied : tuple of int
        Others that are level with it by the criterion.
    edges : tuple of str
        Settings in which nothing was tried beyond the best.

    Examples
    --------
    >>> choice = Choice(0, CandidateClassifier(epochs=9), pd.DataFrame({"behind": [0.0]}))
    >>> choice.classifier.epochs, choice.tied, choice.edges
    (9, (), ())
    """

    best: int
    classifier: CandidateClassifier
    table: pd.DataFrame
    tied: tuple[int, ...] = ()
    edges: tuple[str, ...] = ()


def choose_classifier(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Candidates,
    class_prior: Prior | None,
    *,
    criterion: AnyCriterion = "log_likelihood",
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
        The greatest likelihood of the answers, the least estimated ranking risk or Hamming loss,
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
        that are level, the one with fewer epochs is taken, then with a smaller learning rate.

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


@dataclass(eq=False)
class Contest:
    """Classifiers to choose from, what they learn from, and the rows that judge them."""

    classifiers: Sequence[CandidateClassifier]
    candidates: Candidates  # (n, q)
    splits: Sequence[Split]  # rows to train on, rows held out
    # (q,), the same in training and in judging. None, only for "own_risk": that of each classifier.
    class_prior: Prior | None = None
    # By the number of a classifier, for every split: the risk of held-out rows, or these rows with
    # their scores and the level of the scores, or an error.
    results: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The settings that a table of the classifiers shows."""
        return [describe_settings(classifier) for classifier in self.classifiers]

    def make_clones(self) -> list[CandidateClassifier]:
        """Return clones with the same class prior, and without learned thresholds."""
        shared: dict[str, Any] = {"threshold": "auto"}
        if isinstance(self.class_prior, ClassPriorEstimate):  # an estimate stays one
            shared["class_prior"] = self.class_prior
        elif self.class_prior is not None:
            shared["class_prior"] = np.asarray(self.class_prior, dtype=float)
        return [clone(classifier).set_params(**shared) for classifier in self.classifiers]

    def judge(self, outcome: Any, X: Any, held: Rows, criterion: AnyCriterion) -> Any:
        """Return what the criterion needs of a fitted classifier, or its error."""
        if isinstance(outcome, ComesError):
            return outcome
        if criterion in CRITERIA:
            return held, outcome._raw_scores(X), outcome.score_offset_
        risk = outcome.risk(X, self.candidates[held], corrected=criterion == "trained_risk")
        return risk if math.isfinite(risk) else math.inf

    def choose(self, criterion: AnyCriterion) -> Choice:
        """Return the best of the classifiers, and how far the others are behind."""
        is_estimate, rows = criterion in CRITERIA, self.settings
        if is_estimate and self.class_prior is None:
            raise ComesError(f"criterion {criterion!r} needs a class_prior; got None.")
        scores: dict[int, _HeldOutScores] = {}
        errors: dict[int, ComesError] = {}
        for k, row in enumerate(rows):
            for result in self.results[k]:
                if isinstance(result, ComesError):
                    errors[k] = result
            if not is_estimate:
                row[criterion] = math.inf if k in errors else float(np.mean(self.results[k]))
            elif k in errors:
                row |= dict.fromkeys((*METRICS, "likelihood_loss"), math.nan)
            else:
                scores[k] = _HeldOutScores(self, self.results[k])
                row |= scores[k].metrics
        name, sign = CRITERIA.get(criterion, (criterion, -1))
        losses = [-sign * row[name] for row in rows]
        best, tied = self.find_best(losses)
        if criterion == "trained_risk":
            best, tied = int(np.argmin(losses)), ()
        if is_estimate and best in errors:
            raise errors[best]
        for k, row in enumerate(rows):
            if k in scores:
                row |= scores[k].compare(scores[best], criterion)
            elif is_estimate:
                row |= dict.fromkeys(("behind", "behind_low", "behind_high"), math.inf)
            else:  # where all may be infinite
                row["behind"] = 0.0 if losses[k] == losses[best] else losses[k] - losses[best]
        edges = tuple(
            f"{edge} {value:g} is the {'least' if value < other else 'greatest'} tried"
            for edge, value, other in self.find_edges(best)
        )
        return Choice(best, self.classifiers[best], pd.DataFrame(rows), tied, edges)

    def find_best(self, losses: Sequence[float]) -> tuple[int, tuple[int, ...]]:
        """Return which classifier has the least loss, and which others are level with it."""
        finite = [math.inf if math.isnan(loss) else loss for loss in losses]
        least, settings = min(finite), self.settings
        level = [
            k for k, loss in enumerate(finite) if loss == least or loss - least <= TIE * abs(least)
        ]
        # The cheaper and more careful one: fewer epochs, a smaller learning rate, the first.
        best = min((settings[k]["epochs"], settings[k]["learning_rate"], k) for k in level)[-1]
        return best, tuple(k for k in level if k != best)

    def find_edges(self, best: int) -> list[tuple[str, float, float]]:
        """Return settings in which the best is an end of its method's: name, value, next value."""
        settings, edges = self.settings, []
        for name in ("learning_rate", "epochs"):
            same = [row for row in settings if row["method"] == settings[best]["method"]]
            values, value = sorted({row[name] for row in same}), settings[best][name]
            if len(values) > 1 and value in (values[0], values[-1]):
                edges.append((name, value, values[1] if value == values[0] else values[-2]))
        return edges

    def extend_grid(self, best: int) -> list[CandidateClassifier]:
        """Return classifiers one step of the grid beyond the edges at which the best lies."""
        new, tried = [], self.settings
        for name, outer, inner in self.find_edges(best):
            value = outer * min(max(outer / inner, 1 / LARGEST_STEP), LARGEST_STEP)
            if name == "epochs":  # their greatest number is a budget, and stays
                value = max(1, min(round(value), outer))
            if math.isfinite(value) and value > 0:
                new.append(clone(self.classifiers[best]).set_params(**{name: value}))
        return [classifier for classifier in new if describe_settings(classifier) not in tried]


def describe_settings(classifier: CandidateClassifier) -> dict[str, Any]:
    """Return the settings that a table of classifiers shows."""
    method = find_method(classifier.method)
    settings = choose_settings(classifier, method)
    return {
        "method": classifier.method if method.is_custom else method.name,
        "learning_rate": settings["learning_rate"],
        "epochs": settings["epochs"] or PASSES,
    }


def choose_each(
    contests: Sequence[Contest],
    X: Any,
    *,
    criterion: AnyCriterion = "log_likelihood",
    extend: bool = False,
    n_jobs: int | None = None,
) -> list[Choice]:
    """Choose a classifier in every contest on rows of one X, for example in each fold.

    All are trained as by `fit_together`, so equal settings of several contests are batched. A
    training that fails loses; if all of a contest fail, one is chosen by "own_risk" as if they were
    level, and its error raised by other criteria. "trained_risk" is "own_risk" with the corrections
    of training, and the first of those that are level: as results of `comes bench` were made that
    name no criterion.
    """
    if criterion not in (*CRITERIA, "own_risk", "trained_risk"):
        raise ComesError(
            f"criterion must be one of {', '.join(CRITERIA)}, own_risk; got {criterion!r}."
        )
    if not all(contest.classifiers for contest in contests):
        raise ComesError("there must be at least one classifier to choose from; got none.")
    X = as_rows(X, "X")
    contests = [replace(contest, results={}) for contest in contests]
    for _ in range(1 + ROUNDS if extend else 1):
        judged: dict[Fitting, tuple[Contest, int, Rows]] = {}
        for contest in contests:
            for k, classifier in enumerate(contest.make_clones()):
                for train, held in () if k in contest.results else contest.splits:
                    judged[Fitting(classifier, X, contest.candidates, train)] = contest, k, held
        for fitting, outcome in fit_each(list(judged), n_jobs, keep_errors=True):
            contest, k, held = judged[fitting]
            result = contest.judge(outcome, _safe_indexing(X, held), held, criterion)
            contest.results.setdefault(k, []).append(result)
        choices = [contest.choose(criterion) for contest in contests]
        n_before = sum(len(contest.classifiers) for contest in contests)
        for contest, choice in zip(contests, choices, strict=True):
            contest.classifiers = [*contest.classifiers, *contest.extend_grid(choice.best)]
        if sum(len(contest.classifiers) for contest in contests) == n_before:
            break
    return choices


class _HeldOutScores:
    """Scores of the held-out rows of a contest by one classifier, judged by the answers."""

    def __init__(self, contest: Contest, parts: list[Any]) -> None:
        raw, level = np.empty(contest.candidates.shape), np.empty(contest.candidates.shape)
        for held, scores, offset in parts:
            raw[held], level[held] = scores, offset
        rows = np.sort(np.concatenate([held for _, held in contest.splits]))
        self.raw, self.candidates = raw[rows], contest.candidates[rows]
        self.aligned = self.raw - level[rows]  # so that rows of several folds can be compared
        self.class_prior: Any = contest.class_prior
        prior = np.asarray(contest.class_prior, dtype=float)
        # Cut by the prior, so that methods are not judged by the level of their scores.
        cut = choose_thresholds(self.aligned, self.candidates, prior, "prior")
        self.predictions = self.aligned > cut
        self.losses = likelihood_losses(self.aligned, self.candidates, prior)  # (n_held,)
        options: Any = {"predictions": self.predictions, "n_resamples": 0}
        of_raw = estimate_metrics(self.raw, self.candidates, prior, **options)
        of_aligned = estimate_metrics(self.aligned, self.candidates, prior, **options)
        self.metrics = {name: of_aligned[name].value for name in METRICS}
        self.metrics["ranking_risk"] = of_raw["ranking_risk"].value
        self.metrics["likelihood_loss"] = float(self.losses.mean())

    def compare(self, best: "_HeldOutScores", criterion: str) -> dict[str, float]:
        """Return how far they are behind the best, with an interval."""
        if criterion == "log_likelihood":  # a class prior moves the losses of both alike
            gaps, n = self.losses - best.losses, len(self.losses)
            counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
            ends = np.quantile(counts @ gaps / n, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            value = float(gaps.mean())
            low, _, high = sorted([float(ends[0]), value, float(ends[1])])
        else:
            name, sign = CRITERIA[criterion]
            # The ranking risk compares labels of a row; the others rows, also of several folds.
            kind = "raw" if criterion == "ranking" else "aligned"
            gap = compare_metrics(
                getattr(self, kind),
                getattr(best, kind),
                self.candidates,
                self.class_prior,
                predictions=(self.predictions, best.predictions),
            )[name]
            value = -sign * gap.value
            low, high = sorted((-sign * gap.low_with_prior, -sign * gap.high_with_prior))
        return {"behind": value, "behind_low": low, "behind_high": high}


def estimate_shared_prior(X: Any, candidates: Any, random_state: Any = None) -> Any:
    """Return the class prior that candidates or answers suggest, for all classifiers."""
    is_matrix = not isinstance(candidates, Answers)
    answers = Answers.from_candidates(candidates) if is_matrix else candidates
    estimate = estimate_class_prior(X, answers, random_state=random_state)
    return estimate if answers.kind == "candidates" else estimate.class_prior


def vary_settings(
    classifier: CandidateClassifier, names: Sequence[str], answers: Answers | None = None
) -> list[CandidateClassifier]:
    """Return clones with all combinations of other values of "method", "lr" and "epochs"."""
    own = find_method(classifier.method)
    methods = {
        name: clone(method).set_params(**method.settings_with_prior)
        for name, method in METHODS.items()
        if method.is_selectable or name == own.name
    }
    if own.name in methods and isinstance(classifier.method, Method):
        methods[own.name] = own  # with its own settings
    factors = FACTORS | {"method": [methods[name] for name in sorted(methods, key=table_rank)]}
    for name in names:
        if name not in factors:
            raise ComesError(f"what varies must be method, lr or epochs; got {name!r}.")
    variations: list[dict[str, Any]] = []
    for combination in itertools.product(*(factors[name] for name in names)):
        chosen: dict[str, Any] = dict(zip(names, combination, strict=True))
        usual = choose_settings(classifier, chosen.get("method", own))
        if usual["epochs"] is None and answers is not None:
            usual["epochs"] = count_epochs(usual, answers)
            chosen.setdefault("epochs", 1.0)
        if "lr" in chosen:
            chosen["learning_rate"] = usual["learning_rate"] * chosen.pop("lr")
        if "epochs" in chosen:
            chosen["epochs"] = max(1, round((usual["epochs"] or PASSES) * chosen["epochs"]))
        if chosen not in variations:
            variations.append(chosen)
    return [clone(classifier).set_params(**copy.deepcopy(chosen)) for chosen in variations]
