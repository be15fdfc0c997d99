"""Scores of rows by classifiers that did not see them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.together import fit_together


def cross_fit(
    classifiers: Sequence[CandidateClassifier],
    X: Any,
    candidates: Any,
    *,
    folds: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
) -> list[npt.NDArray[np.floating]]:
    """Return, for every classifier, scores of all rows by clones that were fitted without them.

    Parameters
    ----------
    classifiers : list of CandidateClassifier
        They are not fitted themselves.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    candidates : array or DataFrame of shape (n_samples, n_labels)
    folds : int
        Rows are shuffled and split; each part is scored by a clone that was fitted on the others.
    seed : int
        Of the split; the same for all classifiers.
    n_jobs : int, optional
        As in `fit_together`, which trains them.

    Returns
    -------
    scores : list of arrays of shape (n_samples, n_labels)

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> classifier = CandidateClassifier(epochs=2, class_prior=[0.5, 0.5], random_state=0)
    >>> [scores.shape for scores in cross_fit([classifier], X, candidates)]
    [(200, 2)]
    """
    n, q = candidates.shape
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n)))
    clones = [classifier for classifier in classifiers for _ in splits]
    rows = [train for _ in classifiers for train, _ in splits]
    fitted = iter(fit_together(clones, X, candidates, rows, n_jobs=n_jobs))
    found = []
    for _ in classifiers:
        scores = np.empty((n, q))
        for _, held_out in splits:
            scores[held_out] = next(fitted).decision_function(_safe_indexing(X, held_out))
        found.append(scores)
    return found
