"""The best labels of every row, and which of them are relevant."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comes.answers.convert import as_relevant, check_paired
from comes.errors import ComesError

SCORES_AT_ONCE = 2**24

Labels = npt.NDArray[np.integer]


class Compared(NamedTuple):
    """The best labels of every row, and which of them are relevant."""

    labels: Labels  # (n, min(k, q))
    hits: npt.NDArray[np.bool_]  # (n, min(k, q))
    relevant: sparse.csr_array  # (n, q)

    def within(self, k: int) -> "Compared":
        """Return the same for fewer labels."""
        return Compared(self.labels[:, :k], self.hits[:, :k], self.relevant)


def top_labels(scores: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Return the k labels of highest score of every row, the best first, ties by column.

    Parameters
    ----------
    scores : float array of shape (n_samples, n_labels)
    k : int
        Of more than there are labels, all are returned.

    Returns
    -------
    labels : int array of shape (n_samples, min(k, n_labels))

    Examples
    --------
    >>> top_labels([[0.1, 0.7, 0.7, 0.9]], 2)
    array([[3, 1]])
    """
    values = np.asarray(scores)
    if values.ndim != 2 or 0 in values.shape or not np.issubdtype(values.dtype, np.floating):
        raise ComesError(
            "scores must be a matrix of floats, a row per sample and a column per label; got "
            f"{values.dtype} of shape {values.shape}."
        )
    k = min(check_k(k), values.shape[1])
    at_once = max(1, SCORES_AT_ONCE // values.shape[1])
    starts = range(0, len(values), at_once)
    return np.concatenate([_take_top(values[row : row + at_once], k) for row in starts])


def _take_top(scores: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.int64]:
    """Return the k best labels of a few rows, (n, k)."""
    if not np.isfinite(scores).all():
        raise ComesError("scores must be finite; got NaN or infinity. Look at the model's inputs.")
    border = np.partition(scores, -k, axis=1)[:, -k, None]  # the k-th highest score of each row
    above, at_border = scores > border, scores == border
    places_left = k - above.sum(axis=1, keepdims=True)
    taken = above | (at_border & (at_border.cumsum(axis=1, dtype=np.int32) <= places_left))
    labels = np.nonzero(taken)[1].reshape(len(scores), k)
    order = np.argsort(-np.take_along_axis(scores, labels, axis=1), axis=1, kind="stable")
    return np.take_along_axis(labels, order, axis=1)


def count_empty_rows(relevant: Any) -> int:
    """Return how many rows have no relevant label: they count 0 in every metric.

    Parameters
    ----------
    relevant : bool array or sparse matrix of shape (n_samples, n_labels)

    Examples
    --------
    >>> count_empty_rows([[1, 0], [0, 0]])
    1
    """
    return int((count_relevant(as_csr(relevant)) == 0).sum())


def compare(ranking: npt.ArrayLike, relevant: Any, k: int) -> Compared:
    """Return the k best labels, and which of them are relevant."""
    truth, given, k = as_csr(relevant), np.asarray(ranking), check_k(k)
    n, q = truth.shape
    if np.issubdtype(given.dtype, np.integer):
        labels = _check_labels(given, min(k, q), q)
    else:
        check_paired(same_labels=True, scores=ranking, relevant=relevant)
        if given.shape != (n, q):
            raise ComesError(
                f"scores must have the shape of the relevant labels, {(n, q)}; got {given.shape}."
            )
        labels = top_labels(given, k)
    if len(labels) != n:
        raise ComesError(
            f"ranking and relevant must have the same rows; got {len(labels)} and {n}."
        )
    pairs = np.arange(n)[:, None] * q + labels
    known = np.repeat(np.arange(n), count_relevant(truth)) * q + truth.indices  # in order
    found = np.searchsorted(known, pairs)
    hits = np.append(known, -1)[found] == pairs
    return Compared(labels, hits, truth)


def _check_labels(given: Labels, k: int, q: int) -> Labels:
    """Return the first k columns if each row has k different labels there, or raise an error."""
    wanted = f"a ranking of integers must hold the {k} best of the {q} labels, counted from 0"
    advice = "Scores must be floats."
    if given.ndim != 2 or given.shape[1] < k:
        raise ComesError(f"{wanted}; got shape {given.shape}. {advice}")
    labels = given[:, :k]
    ordered = np.sort(labels, axis=1)
    if ordered.size and (ordered.min() < 0 or ordered.max() >= q):
        outside = int(ordered.min() if ordered.min() < 0 else ordered.max())
        raise ComesError(f"{wanted}; got label {outside}. {advice}")
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        row = int(repeated.argmax())
        raise ComesError(f"{wanted}; got a label twice in row {row}. {advice}")
    return labels.astype(np.int64)


def check_k(k: int) -> int:
    """Return how many labels are looked at, or raise an error."""
    if k < 1:
        raise ComesError(f"k must be 1 or more; got {k}.")
    return k


def as_csr(relevant: Any) -> sparse.csr_array:
    """Return relevant labels as CSR: columns of a row in order, nothing stored but ones."""
    if not sparse.issparse(relevant):
        return sparse.csr_array(as_relevant(relevant))
    found = sparse.csr_array(relevant, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    if 0 in found.shape or (found.data != 1).any():
        what = f"shape {found.shape}" if 0 in found.shape else found.data[found.data != 1][0]
        raise ComesError(f"relevant labels must be a matrix of 0 and 1; got {what}. 1 is relevant.")
    return found


def count_relevant(truth: sparse.csr_array) -> npt.NDArray[np.integer]:
    """Return how many labels of each row are relevant, (n,)."""
    return np.asarray(np.diff(truth.indptr))
