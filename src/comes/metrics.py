"""Scores and the truth to a number, in a named convention.

``convention="pml"`` is that of partial multi-label learning and of the paper's tables,
``"sklearn"`` that of scikit-learn. They differ on rows without a relevant label (60 % of YeastCC)
and on the scale of coverage; ``docs/metrics.md`` has the table. In ``pml``:

- ranking loss skips rows where no label or every label is relevant; a tie counts 1/2
- one-error counts a row without a relevant label as an error
- coverage is (mean depth - 1) / q over all rows; a row without a relevant label has depth 0
- average precision skips rows without a relevant label
- mAP leaves out labels without a relevant row
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, coverage_error
from sklearn.metrics import label_ranking_average_precision_score as sklearn_average_precision
from sklearn.metrics import label_ranking_loss as sklearn_ranking_loss

from comes.errors import ComesError
from comes.labels import BoolMatrix, as_indicators, as_relevant

Convention = Literal["pml", "sklearn"]
Scores = npt.NDArray[np.floating]


def ranking_loss(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return the share of a row's (relevant, irrelevant) pairs in the wrong order; lower is better.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    convention : {"pml", "sklearn"}

    Returns
    -------
    loss : float in [0, 1]; NaN if no row counts

    Examples
    --------
    >>> ranking_loss([[3.0, 2.0, 1.0]], [[True, False, True]])
    0.5
    """
    scores, relevant = _checked(scores, relevant, convention)
    q = scores.shape[1]
    if convention == "sklearn":  # which has no rule for a single label; every row is degenerate
        return float(sklearn_ranking_loss(relevant, scores)) if q > 1 else 0.0
    m = relevant.sum(axis=1)
    wrong_pairs = ((_ranks(scores) - 1) * relevant).sum(axis=1) - m * (m - 1) / 2
    counts = (m > 0) & (m < q)
    return _mean(wrong_pairs[counts] / (m * (q - m))[counts])


def average_precision(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return the mean, over the relevant labels of a row, of the precision at their rank.

    Higher is better. With ties, a label has the mean rank of those it is tied with.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    convention : {"pml", "sklearn"}

    Returns
    -------
    precision : float in [0, 1]; NaN if no row counts

    Examples
    --------
    >>> average_precision([[3.0, 2.0, 1.0]], [[True, False, True]])
    0.8333333333333333
    """
    scores, relevant = _checked(scores, relevant, convention)
    if convention == "sklearn":
        return float(sklearn_average_precision(relevant, scores)) if scores.shape[1] > 1 else 1.0
    ranks_among_relevant = _ranks(np.where(relevant, scores, -np.inf))
    precision = np.where(relevant, ranks_among_relevant / _ranks(scores), 0).sum(axis=1)
    m = relevant.sum(axis=1)
    return _mean(precision[m > 0] / m[m > 0])


def one_error(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return how often the label with the highest score is not relevant; lower is better.

    If several labels share the highest score, the share of them that is not relevant.
    scikit-learn has no such metric; ``"sklearn"`` lets a row without a relevant label count as
    perfect, as its other ranking metrics do.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    convention : {"pml", "sklearn"}

    Returns
    -------
    error : float in [0, 1]

    Examples
    --------
    >>> one_error([[3.0, 2.0], [1.0, 2.0]], [[True, False], [True, False]])
    0.5
    """
    scores, relevant = _checked(scores, relevant, convention)
    top = scores == scores.max(axis=1, keepdims=True)
    errors = (top & ~relevant).sum(axis=1) / top.sum(axis=1)
    if convention == "sklearn":
        errors = np.where(relevant.any(axis=1), errors, 0)
    return _mean(errors)


def coverage(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return how far down the ranking one must go to find every relevant label; lower is better.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    convention : {"pml", "sklearn"}
        ``pml`` is (mean depth - 1) / n_labels, ``sklearn`` the mean depth, counted from 1.

    Returns
    -------
    coverage : float

    Examples
    --------
    >>> coverage([[3.0, 2.0, 1.0]], [[True, False, True]])
    0.6666666666666666
    """
    scores, relevant = _checked(scores, relevant, convention)
    if convention == "sklearn" and scores.shape[1] > 1:
        return float(coverage_error(relevant, scores))
    depth = np.where(relevant, _ranks(scores), 0).max(axis=1)
    if convention == "sklearn":
        return float(depth.mean())
    return float((depth.mean() - 1) / scores.shape[1])


def hamming_loss(predictions: npt.ArrayLike, relevant: npt.ArrayLike) -> float:
    """Return the share of (row, label) entries predicted wrongly; lower is better.

    Parameters
    ----------
    predictions, relevant : bool arrays of shape (n_samples, n_labels)

    Returns
    -------
    loss : float in [0, 1]

    Examples
    --------
    >>> hamming_loss([[True, True]], [[True, False]])
    0.5
    """
    predicted = as_indicators(predictions, "predictions")
    _, truth = _checked(predicted, relevant, "pml")
    return float((predicted != truth).mean())


def mean_average_precision(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return the mean over labels of the area under the precision-recall curve over rows (mAP).

    Higher is better. A label without a relevant row is left out (``pml``) or counts 0
    (``sklearn``).

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    convention : {"pml", "sklearn"}

    Returns
    -------
    precision : float in [0, 1]; NaN if no label counts

    Examples
    --------
    >>> mean_average_precision([[3.0, 1.0], [2.0, 2.0]], [[True, False], [True, False]])
    1.0
    """
    scores, relevant = _checked(scores, relevant, convention)
    present = relevant.any(axis=0)
    per_label = np.zeros(scores.shape[1])
    per_label[present] = [
        average_precision_score(relevant[:, j], scores[:, j]) for j in np.flatnonzero(present)
    ]
    return _mean(per_label if convention == "sklearn" else per_label[present])


class Metric(NamedTuple):
    """A metric of scores, and which way is up."""

    title: str
    higher_is_better: bool
    compute: Callable[..., float]


# hamming_loss takes predictions, the others scores.
METRICS = {
    "ranking_loss": Metric("ranking loss", False, ranking_loss),
    "one_error": Metric("one-error", False, one_error),
    "hamming_loss": Metric("Hamming loss", False, hamming_loss),
    "coverage": Metric("coverage", False, coverage),
    "average_precision": Metric("average precision", True, average_precision),
    "mean_average_precision": Metric("mAP", True, mean_average_precision),
}


def evaluate(
    scores: npt.ArrayLike,
    relevant: npt.ArrayLike,
    predictions: npt.ArrayLike | None = None,
    convention: Convention = "pml",
) -> dict[str, float]:
    """Return every metric by name.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    predictions : bool array of shape (n_samples, n_labels), optional
        For the Hamming loss; by default ``scores > 0``.
    convention : {"pml", "sklearn"}

    Returns
    -------
    metrics : dict of str to float

    Examples
    --------
    >>> evaluate([[2.0, -1.0], [-1.0, 3.0]], [[1, 0], [0, 1]])["average_precision"]
    1.0
    """
    if predictions is None:
        predictions = np.asarray(scores) > 0
    return {
        name: hamming_loss(predictions, relevant)
        if name == "hamming_loss"
        else metric.compute(scores, relevant, convention)
        for name, metric in METRICS.items()
    }


def count_degenerate(relevant: npt.ArrayLike) -> dict[str, int]:
    """Return how many rows and labels the conventions treat differently.

    Examples
    --------
    >>> count_degenerate([[1, 0], [0, 0]])
    {'rows_without_relevant': 1, 'rows_all_relevant': 0, 'labels_without_relevant': 1}
    """
    truth = as_relevant(relevant)
    return {
        "rows_without_relevant": int((~truth.any(axis=1)).sum()),
        "rows_all_relevant": int(truth.all(axis=1).sum()),
        "labels_without_relevant": int((~truth.any(axis=0)).sum()),
    }


def _ranks(scores: Scores) -> npt.NDArray[np.float64]:
    """Rank labels within a row, 1 for the highest score, ties at their mean."""
    return np.asarray(rankdata(-scores, axis=1))


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _checked(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: str
) -> tuple[Scores, BoolMatrix]:
    if convention not in ("pml", "sklearn"):
        raise ComesError(f"convention must be 'pml' or 'sklearn'; got {convention!r}.")
    values = np.asarray(scores, dtype=np.float64)  # unsigned scores could not be negated
    truth = as_relevant(relevant)
    if values.shape != truth.shape:
        raise ComesError(
            f"scores must have the shape of the relevant labels, {truth.shape}; got {values.shape}."
        )
    if not np.isfinite(values).all():
        row, label = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise ComesError(
            f"scores must be finite; got {values[row, label]} at row {row}, label {label}."
        )
    return values, truth
