"""Fit many classifiers on rows of one data set: the folds of a cross-validation, label seeds."""

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from torch import Tensor, nn

from comes.answers import Answers
from comes.answers.convert import check_paired
from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.fit_checks import warn_of_many
from comes.estimator.inputs import check_training_features
from comes.estimator.preparation import Training
from comes.estimator.reading_answers import has_many_labels, read_answers
from comes.estimator.row_risks import weigh_prior
from comes.estimator.row_training import prepare_rows
from comes.estimator.settings import check_row_settings, find_settings
from comes.estimator.table_inputs import is_table
from comes.estimator.training_length import choose_epochs, count_sure
from comes.files import end_with_parent
from comes.methods import DEFAULT
from comes.training.rows import becomes_dense, choose_device
from comes.training.stacked import Trainee, train_together

# Up to this many products per step a CPU spends more time on starting operations than on doing
# them, and batching pays: benchmarks/many_trainings.py.
SMALL_STEP = 2**27
# Numbers of X that the trainings of a batch may hold together (1 and 8 GiB).
NUMBERS_TOGETHER = {"cpu": 2**28, "cuda": 2**31}
# Within a batch.
MAY_DIFFER = (
    "random_state",
    "class_prior",
    "flip_rate",
    "exclude_rate",
    "no_rate",
    "yes_rate",
    "flood_level",
)


@dataclass(eq=False, frozen=True)
class Fitting:
    """A classifier whose clone is to be fitted, and the rows that it is fitted on."""

    classifier: CandidateClassifier
    X: Any
    candidates: Any
    rows: npt.NDArray[Any]

    def __post_init__(self) -> None:
        check_paired(X=self.X, candidates=self.candidates)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, features and labels."""
        n = int(self.rows.sum()) if self.rows.dtype == bool else len(self.rows)
        return n, self.X.shape[1], self.candidates.shape[1]

    @property
    def settings(self) -> dict[str, Any]:
        """How it is trained, with the number of epochs."""
        method = DEFAULT if self.classifier.method is None else self.classifier.method
        found = find_settings(self.classifier, method)
        if found["epochs"] is None:
            answers = self._read_labels()
            n_sure = count_sure(answers)
            found["epochs"] = choose_epochs(*answers.shape, n_sure, found["batch_size"])
        return found

    def _read_labels(self) -> Answers:
        """Return what was said about its rows."""
        own = _safe_indexing(self.candidates, self.rows)
        return read_answers(**{"answers" if isinstance(own, Answers) else "candidates": own})

    @property
    def form(self) -> tuple[Any, ...]:
        """What decides, beside the settings, which parts a risk has; equal within a batch."""
        floods = self.classifier.flood_level != 0
        if not isinstance(self.candidates, Answers) or self.candidates.kind == "candidates":
            return "candidates", floods
        # How strongly it is kept near the class prior is one number of the risks of a batch.
        weight = weigh_prior(self.classifier, self._read_labels())
        return self.candidates.kind, floods, self.candidates.annotations is not None, weight

    @property
    def on_gpu(self) -> bool:
        """Whether it is to be trained on a GPU."""
        return choose_device(self.classifier.device).type == "cuda"

    @property
    def can_be_batched(self) -> bool:
        """Whether it can be one of a batch, and is likely to gain by it."""
        c, (n, d, q) = self.classifier, self.shape
        if not all(isinstance(part, str | None) for part in (c.method, c.model, c.optimizer)):
            return False
        said = self.candidates
        if c.model == "low_rank" or (isinstance(said, Answers) and has_many_labels(said)):
            return False  # these cannot be stacked
        if c.early_stopping or c.callbacks is not None or c.verbose:  # each stops where it likes
            return False
        settings = self.settings
        if c.model == "mlp" and (settings["dropout"] or settings["n_networks"] > 1):
            return False  # each draws what it leaves out, and is a batch already
        weights = c.hidden * (d + q) if c.model == "mlp" else d * q
        small = self.on_gpu or min(n, settings["batch_size"]) * weights <= SMALL_STEP
        # Each encodes the rows of a table that it is trained on.
        return small and not is_table(self.X) and becomes_dense(self.X, choose_device(c.device))

    def prepare(self) -> tuple[CandidateClassifier, Training]:
        """Return a clone, and its training, ready to run."""
        classifier = clone(self.classifier)
        X = check_training_features(classifier, _safe_indexing(self.X, self.rows))
        return classifier, prepare_rows(classifier, X, self._read_labels())

    def run(self) -> CandidateClassifier:
        """Return a clone, fitted alone."""
        classifier, training = self.prepare()
        return classifier._finish(training, training.run(return_on_interrupt=False))

    def try_to_run(self) -> CandidateClassifier | ComesError:
        """Return a clone, fitted alone, or the error that it raised."""
        try:
            return self.run()
        except ComesError as error:
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
        priors, rates and flood levels can be batched.
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
    >>> from sklearn.model_selection import KFold
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> classifier = CandidateClassifier(epochs=2, class_prior=[0.5, 0.5], random_state=0)
    >>> folds = [train for train, test in KFold(3).split(X)]
    >>> fitted = fit_together([classifier] * 3, X, candidates, folds)
    >>> [model.predict([[3.0, -3.0]]).shape for model in fitted]
    [(1, 2), (1, 2), (1, 2)]
    """
    one_each = isinstance(candidates, list) and all(np.ndim(own) == 2 for own in candidates)
    of_each = candidates if one_each else [candidates] * len(classifiers)
    if not len(classifiers) == len(rows) == len(of_each):
        raise ComesError(
            "fit_together needs rows for every classifier, and candidates too if they are a list; "
            f"got {len(classifiers)} classifiers, {len(rows)} rows and {len(of_each)} candidates."
        )
    X = as_matrix(X, "X")
    fittings = [
        Fitting(classifier, X, as_matrix(own, "candidates"), np.asarray(some))
        for classifier, own, some in zip(classifiers, of_each, rows, strict=True)
    ]
    fitted = dict(fit_each(fittings, n_jobs))
    warn_of_many([classifier.history_ for classifier in fitted.values()])
    return [fitted[fitting] for fitting in fittings]


def fit_each(
    fittings: Sequence[Fitting], n_jobs: int | None
) -> Iterator[tuple[Fitting, CandidateClassifier]]:
    """Yield every fitted clone as soon as it is ready, so that few are in memory at a time."""
    for fitting, outcome in _run_each(fittings, n_jobs, goes_on=False):
        assert isinstance(outcome, CandidateClassifier)
        yield fitting, outcome


def try_each(
    fittings: Sequence[Fitting], n_jobs: int | None
) -> Iterator[tuple[Fitting, CandidateClassifier | ComesError]]:
    """Yield every fitted clone, or the error of a training that failed, e.g. by diverging."""
    return _run_each(fittings, n_jobs, goes_on=True)


def _run_each(
    fittings: Sequence[Fitting], n_jobs: int | None, *, goes_on: bool
) -> Iterator[tuple[Fitting, CandidateClassifier | ComesError]]:
    """Yield the outcome of every fitting: first batches, then workers, then singly on a GPU."""
    for fitting in fittings:
        check_row_settings(fitting.classifier)
    batched: set[Fitting] = set()
    for batch in _make_batches(fittings):
        batched |= set(batch)
        yield from zip(batch, _fit_batch(batch, goes_on), strict=True)
    others = [fitting for fitting in fittings if fitting not in batched]
    for_workers = [fitting for fitting in others if not fitting.on_gpu]
    yield from zip(for_workers, _fit_in_workers(for_workers, n_jobs, goes_on), strict=True)
    for fitting in others:
        if fitting.on_gpu:
            yield fitting, _fit_alone(fitting, goes_on)


def as_matrix(values: Any, name: str) -> Any:
    """Return values whose rows can be selected; refuse anything but a matrix."""
    if sparse.issparse(values):
        return values.tocsr()
    values = values if hasattr(values, "shape") else np.asarray(values)
    if len(values.shape) != 2:
        raise ComesError(f"{name} must be a matrix; got an array of shape {values.shape}.")
    return values


def _make_batches(fittings: Sequence[Fitting]) -> Iterator[list[Fitting]]:
    """Yield fittings that can be trained as one: same settings, shapes and number of batches."""
    alike: dict[Any, list[Fitting]] = defaultdict(list)
    for fitting in fittings:
        if fitting.can_be_batched:
            settings = fitting.classifier.get_params()
            shared = tuple(settings[name] for name in sorted(settings) if name not in MAY_DIFFER)
            n, d, q = fitting.shape
            trained = fitting.settings
            n_batches = math.ceil(n / trained["batch_size"])
            alike[shared, fitting.form, trained["epochs"], n_batches, d, q].append(fitting)
    for same in alike.values():
        n, d, _ = max(fitting.shape for fitting in same)
        size = NUMBERS_TOGETHER["cuda" if same[0].on_gpu else "cpu"] // max(1, n * d)
        for start in range(0, len(same), max(2, size)):
            batch = same[start : start + max(2, size)]
            if len(batch) > 1:
                yield batch


def _fit_batch(
    fittings: list[Fitting], goes_on: bool
) -> Sequence[CandidateClassifier | ComesError]:
    """Return clones that were trained as one; if that fails, raise, or go on with each alone."""
    try:
        return _train_batch(fittings)
    except ComesError:  # one diverged: which?
        if not goes_on:
            raise
        return [fitting.try_to_run() for fitting in fittings]


def _train_batch(fittings: list[Fitting]) -> list[CandidateClassifier]:
    """Return clones that were trained as one batched computation."""
    classifiers, trainings = zip(*(fitting.prepare() for fitting in fittings), strict=True)
    first = trainings[0]
    trainees = [
        Trainee(t.module, cast(Tensor, t.X), t.seen, cast(nn.Module, t.risk), t.options.seed)
        for t in trainings
    ]
    options = replace(
        first.options,
        description=f"{first.options.description} x {len(fittings)}",
        graph=first.can_be_a_graph,
        return_on_interrupt=False,
    )
    histories = train_together(trainees, options, vectorised_risk=not first.has_large_risk)
    return [
        classifier._finish(training, history)
        for classifier, training, history in zip(classifiers, trainings, histories, strict=True)
    ]


def _fit_alone(fitting: Fitting, goes_on: bool) -> CandidateClassifier | ComesError:
    """Return a fitted clone; if that fails, raise the error, or return it to go on."""
    return fitting.try_to_run() if goes_on else fitting.run()


def _fit_in_workers(
    fittings: list[Fitting], n_jobs: int | None, goes_on: bool
) -> Iterator[CandidateClassifier | ComesError]:
    """Yield clones in the order of the fittings, each fitted by one of several processes."""
    workers = min(effective_n_jobs(-1 if n_jobs is None else n_jobs), len(fittings))
    if workers <= 1:
        for fitting in fittings:
            yield _fit_alone(fitting, goes_on)
        return
    # One thread per process: two processes of two threads on two cores wait for each other.
    watch = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    with parallel_config(backend="loky", inner_max_num_threads=1, **watch):
        run = Parallel(n_jobs=workers, return_as="generator")
    yield from run(delayed(_fit_alone)(fitting, goes_on) for fitting in fittings)
