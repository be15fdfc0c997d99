"""Fit many classifiers on rows of one data set: the folds of a cross-validation, label seeds."""

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from torch import Tensor, nn

from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.methods import Training
from comes.training import choose_device, train_together
from comes.training.rows import DENSE_ON_GPU

# Up to so many products per step, a CPU spends more time on starting operations than on doing
# them, and batching pays: benchmarks/many_trainings.py.
SMALL_STEP = 2**26
# Numbers of X that trainings may hold together (1 and 16 GiB).
NUMBERS_TOGETHER = {"cpu": 2**28, "cuda": 2**32}
OF_ONE = ("random_state", "class_prior", "flip_rate")  # may differ among those batched


@dataclass(eq=False)
class Task:
    """A classifier and what it is to be fitted on."""

    classifier: CandidateClassifier
    X: Any
    candidates: Any

    def fit(self, threads: int | None = None) -> CandidateClassifier:
        """Fit alone."""
        if threads is not None:
            torch.set_num_threads(threads)
        return self.classifier.fit(self.X, candidates=self.candidates)


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
    other on a GPU. Each gets the weights that its own ``fit`` would give, to rounding.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
        They may differ in anything; those that differ in no more than ``random_state``,
        ``class_prior`` and ``flip_rate`` can be batched.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : array or DataFrame of shape (n_samples, n_labels), or a list of one for each
    rows : list of index arrays
        The rows that each classifier is trained on.
    n_jobs : int, optional
        Processes for what is not batched; by default one for every core.

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
    of_each = candidates if isinstance(candidates, list) else [candidates] * len(classifiers)
    if not len(classifiers) == len(rows) == len(of_each):
        raise ComesError(
            "fit_together needs rows for every classifier, and candidates too if they are a list; "
            f"got {len(classifiers)} classifiers, {len(rows)} rows and {len(of_each)} candidates."
        )
    tasks = [
        Task(clone(classifier), _safe_indexing(X, own_rows), _safe_indexing(own, own_rows))
        for classifier, own_rows, own in zip(classifiers, rows, of_each, strict=True)
    ]
    batched = [task for task in tasks if is_batchable(task)]
    in_workers = [task for task in tasks if task not in batched and not _on_gpu(task)]
    fitted: dict[Task, CandidateClassifier] = {}
    for group in _groups(batched):
        fitted |= zip(group, _fit_batched(group), strict=True)
    fitted |= zip(in_workers, _fit_in_workers(in_workers, n_jobs), strict=True)
    return [fitted[task] if task in fitted else task.fit() for task in tasks]


def is_batchable(task: Task) -> bool:
    """Return whether a training can be one of a batch, and is likely to gain by it."""
    classifier = task.classifier
    ours = (classifier.method, classifier.model, classifier.optimizer)
    if not all(isinstance(part, str) for part in ours):
        return False
    (n, d), q = task.X.shape, np.shape(task.candidates)[1]
    if _on_gpu(task):
        return not sparse.issparse(task.X) or n * d <= DENSE_ON_GPU
    width = classifier.hidden if classifier.model == "mlp" else 0
    weights = width * (d + q) if width else d * q
    return not sparse.issparse(task.X) and min(n, classifier.batch_size) * weights <= SMALL_STEP


def _on_gpu(task: Task) -> bool:
    return choose_device(task.classifier.device).type == "cuda"


def _groups(tasks: list[Task]) -> Iterator[list[Task]]:
    """Give tasks that can be one batch: the same settings, shapes and number of batches."""
    alike: dict[Any, list[Task]] = defaultdict(list)
    for task in tasks:
        settings = task.classifier.get_params()
        shared = tuple((name, settings[name]) for name in sorted(settings) if name not in OF_ONE)
        (n, d), q = task.X.shape, np.shape(task.candidates)[1]
        alike[shared, math.ceil(n / task.classifier.batch_size), d, q].append(task)
    for same in alike.values():
        room = NUMBERS_TOGETHER["cuda" if _on_gpu(same[0]) else "cpu"]
        largest = max(task.X.shape[0] * task.X.shape[1] for task in same)
        size = max(1, room // largest)
        yield from (same[start : start + size] for start in range(0, len(same), size))


def _fit_batched(tasks: list[Task]) -> list[CandidateClassifier]:
    if len(tasks) == 1:
        return [tasks[0].fit()]
    classifiers = [task.classifier for task in tasks]
    trainings: list[Training] = [
        task.classifier._prepare(task.X, None, task.candidates, None) for task in tasks
    ]
    first = trainings[0]
    histories = train_together(
        [classifier.module_ for classifier in classifiers],
        [cast(Tensor, t.X) for t in trainings],
        [t.candidates for t in trainings],
        [cast(nn.Module, t.risk) for t in trainings],
        seeds=[t.seed for t in trainings],
        vectorised_risk=not first.has_large_risk,
        return_on_interrupt=False,
        **first.options | {"description": f"{first.options['description']} x {len(tasks)}"},
    )
    finished = zip(classifiers, trainings, histories, strict=True)
    return [classifier._finish(training, history) for classifier, training, history in finished]


def _fit_in_workers(tasks: list[Task], n_jobs: int | None) -> list[CandidateClassifier]:
    workers = min(n_jobs or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        return [task.fit() for task in tasks]
    # One thread each: two processes of two threads on two cores wait for each other.
    run = Parallel(n_jobs=workers)
    return list(run(delayed(Task.fit)(task, threads=1) for task in tasks))
