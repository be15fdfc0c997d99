"""Fit many classifiers on rows of one data set: the folds of a cross-validation, label seeds."""

import math
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

from comes.errors import ComesError
from comes.estimator.checks import check_numbers
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.preparation import Training
from comes.training import Trainee, becomes_dense, choose_device, train_together

# Up to so many products per step a CPU spends more time on starting operations than on doing
# them, and batching pays: benchmarks/many_trainings.py.
SMALL_STEP = 2**27
# Numbers of X that the trainings of a batch may hold together (1 and 8 GiB).
NUMBERS_TOGETHER = {"cpu": 2**28, "cuda": 2**31}
MAY_DIFFER = ("random_state", "class_prior", "flip_rate")  # within a batch


@dataclass(eq=False, frozen=True)
class Task:
    """A classifier to be fitted, and on which rows of what."""

    classifier: CandidateClassifier
    X: Any
    candidates: Any
    rows: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, features and labels."""
        n = int(self.rows.sum()) if self.rows.dtype == bool else len(self.rows)
        return n, self.X.shape[1], self.candidates.shape[1]

    @property
    def on_gpu(self) -> bool:
        """Whether it is to be trained on a GPU."""
        return choose_device(self.classifier.device).type == "cuda"

    @property
    def can_be_batched(self) -> bool:
        """Whether it can be one of a batch, and is likely to gain by it."""
        c, (n, d, q) = self.classifier, self.shape
        if not all(isinstance(part, str) for part in (c.method, c.model, c.optimizer)):
            return False
        if c.early_stopping:  # each stops where it likes
            return False
        weights = c.hidden * (d + q) if c.model == "mlp" else d * q
        small = self.on_gpu or min(n, c.batch_size) * weights <= SMALL_STEP
        return small and becomes_dense(self.X, choose_device(c.device))

    def prepare(self) -> Training:
        """Do all that comes before the training."""
        X, S = _safe_indexing(self.X, self.rows), _safe_indexing(self.candidates, self.rows)
        return self.classifier._prepare(X, None, S, None)

    def fit(self) -> CandidateClassifier:
        """Fit alone."""
        training = self.prepare()
        return self.classifier._finish(training, training.run(return_on_interrupt=False))


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
        They may differ in anything; those that differ in no more than ``random_state``,
        ``class_prior`` and ``flip_rate`` can be batched.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : array or DataFrame of shape (n_samples, n_labels), or a list of such, one for each
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
    tasks = []
    for classifier, own, some in zip(classifiers, of_each, rows, strict=True):
        check_numbers(classifier)
        tasks.append(Task(clone(classifier), X, as_matrix(own, "candidates"), np.asarray(some)))
    fitted: dict[Task, CandidateClassifier] = {}
    for batch in _batches(tasks):
        fitted |= zip(batch, _fit_batch(batch), strict=True)
    in_workers = [task for task in tasks if task not in fitted and not task.on_gpu]
    fitted |= zip(in_workers, _fit_in_workers(in_workers, n_jobs), strict=True)
    return [fitted[task] if task in fitted else task.fit() for task in tasks]


def as_matrix(values: Any, name: str) -> Any:
    """Return values of which rows can be taken; refuse what is not a matrix."""
    if sparse.issparse(values):
        return values.tocsr()
    values = values if hasattr(values, "shape") else np.asarray(values)
    if len(values.shape) != 2:
        raise ComesError(f"{name} must be a matrix; got an array of shape {values.shape}.")
    return values


def _batches(tasks: list[Task]) -> Iterator[list[Task]]:
    """Give tasks that can be trained as one: the same settings, shapes and number of batches."""
    alike: dict[Any, list[Task]] = defaultdict(list)
    for task in tasks:
        if task.can_be_batched:
            settings = task.classifier.get_params()
            shared = tuple(settings[name] for name in sorted(settings) if name not in MAY_DIFFER)
            n, d, q = task.shape
            alike[shared, math.ceil(n / task.classifier.batch_size), d, q].append(task)
    for same in alike.values():
        n, d, _ = max(task.shape for task in same)
        size = NUMBERS_TOGETHER["cuda" if same[0].on_gpu else "cpu"] // max(1, n * d)
        for start in range(0, len(same), max(2, size)):
            batch = same[start : start + max(2, size)]
            if len(batch) > 1:
                yield batch


def _fit_batch(tasks: list[Task]) -> list[CandidateClassifier]:
    """Fit classifiers of one shape as one batched computation."""
    trainings = [task.prepare() for task in tasks]
    first = trainings[0]
    trainees = [
        Trainee(t.module, cast(Tensor, t.X), t.candidates, cast(nn.Module, t.risk), t.options.seed)
        for t in trainings
    ]
    options = replace(
        first.options,
        description=f"{first.options.description} x {len(tasks)}",
        graph=first.can_be_a_graph,
        return_on_interrupt=False,
    )
    histories = train_together(trainees, options, vectorised_risk=not first.has_large_risk)
    return [
        task.classifier._finish(training, history)
        for task, training, history in zip(tasks, trainings, histories, strict=True)
    ]


def _fit_in_workers(tasks: list[Task], n_jobs: int | None) -> list[CandidateClassifier]:
    workers = min(effective_n_jobs(-1 if n_jobs is None else n_jobs), len(tasks))
    if workers <= 1:
        return [task.fit() for task in tasks]
    # Of one thread each: two processes of two threads on two cores wait for each other.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        return list(Parallel(n_jobs=workers)(delayed(Task.fit)(task) for task in tasks))
