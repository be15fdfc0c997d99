"""Fit many classifiers on rows of one data set: as one batched computation, or in processes."""

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from comes.answers import Answers, State
from comes.answers.convert import check_paired
from comes.errors import ComesError, warn_user
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.inputs import has_many_labels, read_answers
from comes.estimator.prepare import Training, choose_settings, count_epochs, prepare
from comes.estimator.rates import read_rates, weigh_prior
from comes.files import end_with_parent
from comes.methods import Likelihood, find_method
from comes.tables.columns import needs_encoding
from comes.training.rows import becomes_dense, choose_device
from comes.training.stacked import Trainee, train_together

Rows = npt.NDArray[np.intp]
Split = tuple[Rows, Rows]  # rows to train on, rows held out
# Up to this many products per step a CPU spends more time on starting operations than on doing
# them, and batching pays: benchmarks/many_trainings.py.
SMALL_STEP = 2**27
# Numbers of X that the trainings of a batch may hold together (1 and 8 GiB).
NUMBERS_TOGETHER = {"cpu": 2**28, "cuda": 2**31}
# Parameters of a classifier and of its method that may differ within a batch.
MAY_DIFFER = {"random_state", "class_prior", "rates", "method", "flip_rate", "flood_level"}


@dataclass(eq=False, frozen=True)
class Fitting:
    """A classifier whose clone is to be fitted, and the rows that it is fitted on."""

    classifier: CandidateClassifier
    X: Any
    candidates: Any  # or answers
    rows: npt.NDArray[Any]  # a mask or numbers

    def __post_init__(self) -> None:
        check_paired(X=self.X, candidates=self.candidates)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, features and labels."""
        n = int(self.rows.sum()) if self.rows.dtype == bool else len(self.rows)
        return n, self.X.shape[1], self.candidates.shape[1]

    @property
    def on_gpu(self) -> bool:
        """Whether it is to be trained on a GPU."""
        return choose_device(self.classifier.device).type == "cuda"

    def _read_answers(self) -> Answers:
        chosen = _safe_indexing(self.candidates, self.rows)
        return read_answers(**{"answers" if isinstance(chosen, Answers) else "candidates": chosen})

    def make_key(self) -> tuple[Any, ...] | None:
        """Return what all of its batch have in common; None if it is better trained alone."""
        model, X, (n, d, q) = self.classifier, self.X, self.shape
        method = find_method(model.method)
        settings = choose_settings(model, method)
        is_mlp = settings["model"] == "mlp"
        is_frame, batch_size = isinstance(X, pd.DataFrame), settings["batch_size"]
        weights = model.hidden * (d + q) if is_mlp else d * q
        is_small = min(n, batch_size) * weights <= SMALL_STEP
        if (
            method.is_custom
            or not (
                settings["model"] in ("mlp", "linear") and isinstance(settings["optimizer"], str)
            )
            or (model.early_stopping or model.callbacks is not None or model.verbose > 0)
            # Each draws what it leaves out, and is a batch already.
            or (is_mlp and (settings["dropout"] or settings["n_networks"] > 1))
            or not (is_small or self.on_gpu)
            or not becomes_dense(X, choose_device(model.device))
            or (is_frame and (model.encoder is not None or needs_encoding(X)))
        ):
            return None
        answers = self._read_answers()
        if has_many_labels(answers):
            return None
        settings["epochs"] = count_epochs(settings, answers)
        parameters = method.get_params() | model.get_params(deep=False) | settings
        shared = [(name, parameters[name]) for name in sorted(parameters.keys() - MAY_DIFFER)]
        # What decides which parts a risk has, and the numbers of it that are no buffers.
        parts: list[Any] = [answers.kind, answers.has(State.YES), answers.annotations is not None]
        parts.append(getattr(method, "flood_level", 0) != 0)
        parts.append(read_rates(model.rates, answers.kind).get("mistake", 0.0))
        if isinstance(method, Likelihood):
            parts.append(weigh_prior(method, answers, model.class_prior))
        return type(method), *shared, *parts, math.ceil(n / batch_size), d, q

    def prepare(self) -> tuple[CandidateClassifier, Training]:
        """Return a clone, and its training, ready to run."""
        classifier = clone(self.classifier)
        X = classifier._learn_features(_safe_indexing(self.X, self.rows))
        return classifier, prepare(classifier, X, self._read_answers())

    def run(self, keep_error: bool = False) -> Any:
        """Return a clone, fitted alone, or the error that it raised."""
        try:
            classifier, training = self.prepare()
            return classifier._keep(training, training.run(return_on_interrupt=False))
        except ComesError as error:
            if not keep_error:
                raise
            return error


def fit_together(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Any,
    rows: Sequence[npt.ArrayLike],
    *,
    n_jobs: int | None = None,
) -> list[CandidateClassifier]:
    """Fit a clone of every classifier on its own rows of X, all at once where that is faster.

    Our networks and methods are trained as one batched computation on a GPU, and on a CPU if X is
    dense and a step is small. Others are trained in processes of one thread each, or one after the
    other on a GPU. Each gets the weights that its own ``fit`` would give, to rounding. Ctrl-C ends
    it without a result.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
        They may differ in anything; those that differ in no more than ``random_state``, class
        priors, rates, flip rates and flood levels can be batched.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : array, DataFrame or Answers of shape (n_samples, n_labels), or a list of such
        For all classifiers, or one for each.
    rows : list of index arrays
        The rows that each classifier is trained on.
    n_jobs : int, optional
        Processes for what is not batched, as in joblib; by default one for every core.

    Returns
    -------
    fitted : list of CandidateClassifier

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> classifier = CandidateClassifier(epochs=2, class_prior=[0.5, 0.5], random_state=0)
    >>> folds = [train for train, test in KFold(3).split(X)]
    >>> fitted = fit_together([classifier] * 3, X, candidates, folds)
    >>> [model.predict([[3.0, -3.0]]).shape for model in fitted]
    [(1, 2), (1, 2), (1, 2)]
    """
    one_each = isinstance(candidates, list) and all(np.ndim(some) == 2 for some in candidates)
    of_each = candidates if one_each else [candidates] * len(classifiers)
    if not len(classifiers) == len(rows) == len(of_each):
        raise ComesError(
            "fit_together needs rows for every classifier, and candidates too if they are a list; "
            f"got {len(classifiers)} classifiers, {len(rows)} rows and {len(of_each)} candidates."
        )
    X = as_rows(X, "X")
    fittings = [
        Fitting(classifier, X, as_rows(some, "candidates"), np.asarray(chosen))
        for classifier, some, chosen in zip(classifiers, of_each, rows, strict=True)
    ]
    fitted = dict(fit_each(fittings, n_jobs))
    concerned = [one.history_.warnings for one in fitted.values() if one.history_.warnings]
    if concerned:
        warn_user(
            f"{len(concerned)} of {len(fitted)} fits have warnings (history_.warnings). The first: "
            f"{concerned[0][0]}"
        )
    return [fitted[fitting] for fitting in fittings]


class CrossFitted(NamedTuple):
    """Scores of all rows by classifiers that were fitted without them.

    Attributes
    ----------
    scores : array of shape (n_samples, n_labels)
    level : array of shape (n_samples, n_labels)
        The ``score_offset_`` of the classifier that scored a row. Risks over pairs leave it open,
        so only scores above it can be compared between rows of different folds.

    Examples
    --------
    >>> crossed = CrossFitted(np.array([[2.0]]), np.array([[0.5]]))
    >>> crossed.scores - crossed.level
    array([[1.5]])
    """

    scores: npt.NDArray[np.float64]
    level: npt.NDArray[np.float64]


def cross_fit(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Any,
    *,
    folds: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
) -> list[CrossFitted]:
    """Return, for every classifier, scores of all rows by clones that were fitted without them.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
        They are not fitted themselves.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : array, DataFrame or Answers of shape (n_samples, n_labels)
    folds : int
        Rows are shuffled and split; each part is scored by a clone that was fitted on the others.
    seed : int
        Of the split; the same for all classifiers.
    n_jobs : int, optional
        As in `fit_together`, which trains them.

    Returns
    -------
    crossed : list of CrossFitted

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> classifier = CandidateClassifier(epochs=2, class_prior=[0.5, 0.5], random_state=0)
    >>> cross_fit([classifier], X, candidates)[0].scores.shape
    (200, 2)
    """
    X, candidates = as_rows(X, "X"), as_rows(candidates, "candidates")
    shape = candidates.shape
    crossed = [CrossFitted(np.empty(shape), np.empty(shape)) for _ in classifiers]
    targets = {
        Fitting(classifier, X, candidates, train): (result, held)
        for classifier, result in zip(classifiers, crossed, strict=True)
        for train, held in split_into_folds(shape[0], folds, seed)
    }
    for fitting, fitted in fit_each(list(targets), n_jobs):
        result, held = targets[fitting]
        result.scores[held] = fitted._raw_scores(_safe_indexing(X, held))
        result.level[held] = fitted.score_offset_
    return crossed


def split_into_folds(n: int, folds: int, seed: int) -> list[Split]:
    """Return the rows to train on and to hold out, for every fold of shuffled rows."""
    if not 2 <= folds <= n:
        raise ComesError(f"{n} rows cannot be split into {folds} folds; 2 to {n} are possible.")
    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))


def as_rows(values: Any, name: str) -> Any:
    """Return a matrix whose rows can be selected; refuse anything but a matrix."""
    if sparse.issparse(values):
        return values.tocsr()
    values = values if hasattr(values, "shape") else np.asarray(values)
    if len(values.shape) != 2:
        raise ComesError(f"{name} must be a matrix; got an array of shape {values.shape}.")
    return values


def fit_each(
    fittings: Sequence[Fitting], n_jobs: int | None, *, keep_errors: bool = False
) -> Iterator[tuple[Fitting, Any]]:
    """Yield every fitted clone, or its error, when it is ready: few are in memory at a time."""
    for fitting in fittings:
        fitting.classifier._check_settings()
    others = dict.fromkeys(fittings)
    for batch in _make_batches(fittings):
        for fitting in batch:
            del others[fitting]
        yield from zip(batch, _fit_batch(batch, keep_errors), strict=True)
    on_cpu = [fitting for fitting in others if not fitting.on_gpu]
    yield from zip(on_cpu, _fit_in_workers(on_cpu, n_jobs, keep_errors), strict=True)
    for fitting in others:
        if fitting.on_gpu:
            yield fitting, fitting.run(keep_errors)


def _make_batches(fittings: Sequence[Fitting]) -> Iterator[list[Fitting]]:
    """Yield fittings that can be trained as one: same settings, shapes and number of batches."""
    groups: dict[Any, list[Fitting]] = defaultdict(list)
    for fitting in fittings:
        key = fitting.make_key()
        if key is not None:
            groups[key].append(fitting)
    for group in groups.values():
        n, d, _ = max(fitting.shape for fitting in group)
        numbers = NUMBERS_TOGETHER["cuda" if group[0].on_gpu else "cpu"]
        most = max(2, numbers // max(1, n * d))
        for start in range(0, len(group) - 1, most):  # a last one alone is no batch
            yield group[start : start + most]


def _fit_batch(fittings: list[Fitting], keep_errors: bool) -> list[Any]:
    """Return clones that were trained as one batched computation."""
    try:
        classifiers, trainings = zip(*(fitting.prepare() for fitting in fittings), strict=True)
        first = trainings[0]
        options = replace(
            first.options,
            description=f"{first.options.description} x {len(fittings)}",
            graph=first.can_be_a_graph,
            return_on_interrupt=False,
        )
        trainees = [Trainee(t.network, t.X, t.targets, t.risk, t.options.seed) for t in trainings]
        histories = train_together(trainees, options, vectorised_risk=not first.has_large_risk)
        results = zip(classifiers, trainings, histories, strict=True)
        return [classifier._keep(training, history) for classifier, training, history in results]
    except ComesError:
        if not keep_errors:
            raise
        return [fitting.run(keep_error=True) for fitting in fittings]  # one diverged: which?


def _fit_in_workers(
    fittings: list[Fitting], n_jobs: int | None, keep_errors: bool
) -> Iterator[Any]:
    """Yield clones in the order of the fittings, each fitted by one of several processes."""
    workers = min(effective_n_jobs(-1 if n_jobs is None else n_jobs), len(fittings))
    if workers <= 1:
        yield from (fitting.run(keep_errors) for fitting in fittings)
        return
    # One thread per process: two processes of two threads on two cores wait for each other.
    watch = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    with parallel_config(backend="loky", inner_max_num_threads=1, **watch):
        run = Parallel(n_jobs=workers, return_as="generator")
    yield from run(delayed(fitting.run)(keep_errors) for fitting in fittings)
