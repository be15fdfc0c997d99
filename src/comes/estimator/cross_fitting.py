"""Scores of rows by classifiers that did not see them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.together import Fitting, as_matrix, fit_each

Rows = npt.NDArray[np.intp]
Split = tuple[Rows, Rows]  # rows to train on, rows held out


class CrossFitted(NamedTuple):
    """Scores of all rows by classifiers that were fitted without them.

    Examples
    --------
    >>> crossed = CrossFitted(np.array([[2.0]]), np.array([[0.5]]))
    >>> crossed.scores - crossed.level  # can be compared between rows of different folds
    array([[1.5]])
    """

    scores: npt.NDArray[np.float64]  # (n_samples, n_labels)
    # The `score_offset_` of the classifier that scored a row. Risks over pairs leave it open, so
    # only scores above it can be compared between rows of different folds.
    level: npt.NDArray[np.float64]  # (n_samples, n_labels)


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
    n, q = candidates.shape
    X, candidates = as_matrix(X, "X"), as_matrix(candidates, "candidates")
    held_out, fittings = {}, []
    found = [CrossFitted(np.empty((n, q)), np.empty((n, q))) for _ in classifiers]
    for classifier, crossed in zip(classifiers, found, strict=True):
        for train, held in split_into_folds(n, folds, seed):
            fittings.append(Fitting(classifier, X, candidates, train))
            held_out[fittings[-1]] = crossed, held
    for fitting, fitted in fit_each(fittings, n_jobs):
        crossed, held = held_out[fitting]
        crossed.scores[held] = fitted._compute_scores(_safe_indexing(X, held))
        crossed.level[held] = fitted.score_offset_
    return found


def split_into_folds(n: int, folds: int, seed: int) -> list[Split]:
    """Return the rows to train on and to hold out, for every fold of shuffled rows."""
    if not 2 <= folds <= n:
        raise ComesError(f"{n} rows cannot be split into {folds} folds; 2 to {n} are possible.")
    return list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))
