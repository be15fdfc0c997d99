"""Whether rows are rows that a classifier was trained on, by one number per row."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comes.estimator.inputs import as_feature_matrix

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

FloatArray = npt.NDArray[np.float64]

MOST_ROWS = 100_000  # that a model remembers
TOLERANCE = 1e-9  # relative: the same row may come as a dense or a sparse one


def fingerprint_rows(X: Any) -> FloatArray:
    """Return a number for every row of a matrix, (n,): equal for equal rows, else hardly ever."""
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    return np.asarray(X @ direction, dtype=np.float64)


def remember_rows(X: Any) -> FloatArray:
    """Return the sorted numbers of up to 100,000 rows, evenly spread over the matrix."""
    numbers = fingerprint_rows(X)
    chosen = np.linspace(0, len(numbers) - 1, min(len(numbers), MOST_ROWS)).astype(int)
    return np.sort(numbers[chosen])


def add_rows(earlier: FloatArray | None, own: FloatArray) -> FloatArray:
    """Return the numbers of earlier rows and of others, up to 100,000 of them, sorted."""
    both = own if earlier is None else np.sort(np.concatenate([earlier, own]))
    chosen = np.linspace(0, len(both) - 1, min(len(both), MOST_ROWS)).astype(int)
    return np.asarray(both[chosen])


def count_seen_rows(classifier: "CandidateClassifier", X: Any) -> int:
    """Return how many rows have the features of a row that the classifier was trained on.

    Parameters
    ----------
    classifier : fitted CandidateClassifier
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    n_seen : int
        0 if the classifier was saved by a version that did not remember its rows.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> classifier = CandidateClassifier("bce", epochs=1).fit(X[:40], X[:40] > 0)
    >>> count_seen_rows(classifier, X[30:])
    10
    """
    seen = getattr(classifier, "seen_rows_", None)
    if seen is None or len(seen) == 0:
        return 0
    numbers = fingerprint_rows(as_feature_matrix(classifier, X))
    after = np.searchsorted(seen, numbers)
    neighbours = np.stack([after - 1, after]).clip(0, len(seen) - 1)
    gap = np.abs(numbers - seen[neighbours]).min(axis=0)
    return int((gap <= TOLERANCE * (np.abs(numbers) + np.abs(seen).mean())).sum())
