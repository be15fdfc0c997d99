"""Metrics of scores against the true labels, in a named convention.

``convention="pml"`` is that of partial multi-label learning and of the paper's tables,
``"sklearn"`` that of scikit-learn. They differ on rows without a relevant label (60 % of YeastCC)
and on the scale of coverage; ``docs/reference/metrics.md`` compares them. In ``pml``:

- ranking loss skips rows where no label or every label is relevant; a tie counts 1/2
- one-error counts a row without a relevant label as an error
- coverage is (mean depth - 1) / q over all rows; a row without a relevant label has depth 0
- average precision skips rows without a relevant label
- mAP leaves out labels without a relevant row

`METRICS` has every metric by name; `Convention` is the type of the names of conventions.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, coverage_error
from sklearn.metrics import label_ranking_average_precision_score as sklearn_average_precision
from sklearn.metrics import label_ranking_loss as sklearn_ranking_loss

from comes.answers.convert import BoolMatrix, as_indicators, as_relevant, check_paired
from comes.errors import ComesError, first_line

__all__ = [
    "METRICS",
    "Convention",
    "Metric",
    "average_precision",
    "count_degenerate",
    "coverage",
    "evaluate",
    "hamming_loss",
    "mean_average_precision",
    "one_error",
    "ranking_loss",
]

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
    scores, relevant = _check_pair(scores, relevant, convention)
    q = scores.shape[1]
    if convention == "sklearn":  # which has no rule for a single label; every row is degenerate
        return float(sklearn_ranking_loss(relevant, scores)) if q > 1 else 0.0
    m = relevant.sum(axis=1)
    wrong_pairs = ((_rank_labels(scores) - 1) * relevant).sum(axis=1) - m * (m - 1) / 2
    counts = (m > 0) & (m < q)
    return _mean(wrong_pairs[counts] / (m * (q - m))[counts])


def average_precision(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return the mean, over the relevant labels of a row, of the precision at their rank.

    Higher is better. Tied labels share the mean of their ranks.

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
    scores, relevant = _check_pair(scores, relevant, convention)
    if convention == "sklearn":
        return float(sklearn_average_precision(relevant, scores)) if scores.shape[1] > 1 else 1.0
    ranks_among_relevant = _rank_labels(np.where(relevant, scores, -np.inf))
    precision = np.where(relevant, ranks_among_relevant / _rank_labels(scores), 0).sum(axis=1)
    m = relevant.sum(axis=1)
    return _mean(precision[m > 0] / m[m > 0])


def one_error(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return how often the label with the highest score is not relevant; lower is better.

    If several labels share the highest score, a row counts with the share of them that is not
    relevant. scikit-learn has no such metric; here ``"sklearn"`` counts a row without a relevant
    label as perfect, as the ranking metrics of scikit-learn do.

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
    scores, relevant = _check_pair(scores, relevant, convention)
    top = scores == scores.max(axis=1, keepdims=True)
    errors = (top & ~relevant).sum(axis=1) / top.sum(axis=1)
    if convention == "sklearn":
        errors = np.where(relevant.any(axis=1), errors, 0)
    return _mean(errors)


def coverage(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: Convention = "pml"
) -> float:
    """Return how deep in the ranking the last relevant label is; lower is better.

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
    scores, relevant = _check_pair(scores, relevant, convention)
    if convention == "sklearn" and scores.shape[1] > 1:
        return float(coverage_error(relevant, scores))
    depth = np.where(relevant, _rank_labels(scores), 0).max(axis=1)
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
    _, truth = _check_pair(predicted, relevant, "pml")
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
    scores, relevant = _check_pair(scores, relevant, convention)
    present = relevant.any(axis=0)
    per_label = np.zeros(scores.shape[1])
    per_label[present] = [
        average_precision_score(relevant[:, j], scores[:, j]) for j in np.flatnonzero(present)
    ]
    return _mean(per_label if convention == "sklearn" else per_label[present])


class Metric(NamedTuple):
    """A metric with its title and its direction.

    Examples
    --------
    >>> metric = METRICS["ranking_loss"]
    >>> metric.title, metric.higher_is_better
    ('ranking loss', False)
    >>> metric.compute([[3.0, 2.0, 1.0]], [[True, False, True]])
    0.5
    """

    title: str
    higher_is_better: bool
    compute: Callable[..., float]


# The order is that of tables. hamming_loss takes predictions, the others take scores.
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
        For the Hamming loss; by default ``scores > 0``, and probabilities are refused.
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
        predictions = _cut_at_zero(np.asarray(scores))
    return {
        name: hamming_loss(predictions, relevant)
        if name == "hamming_loss"
        else metric.compute(scores, relevant, convention)
        for name, metric in METRICS.items()
    }


def _cut_at_zero(scores: npt.NDArray[np.floating]) -> BoolMatrix:
    """Return which scores are above 0; raise an error if they look like probabilities."""
    if scores.size > 1 and scores.min() >= 0 and 0 < scores.max() <= 1:
        raise ComesError(
            "scores must be above 0 where a label is predicted; got only numbers in [0, 1], which "
            "look like probabilities. Pass predictions=, for example scores > 0.5."
        )
    return np.asarray(scores > 0)


def count_degenerate(relevant: npt.ArrayLike) -> dict[str, int]:
    """Count the rows and labels that the conventions treat differently.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)

    Returns
    -------
    counts : dict of str to int

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


def _rank_labels(scores: Scores) -> npt.NDArray[np.float64]:
    """Return the rank of every label in its row, 1 for the highest score; ties share their mean."""
    return np.asarray(rankdata(-scores, axis=1))


def _mean(values: npt.NDArray[np.float64]) -> float:
    """Return the mean, NaN if there are no values."""
    return float(values.mean()) if len(values) else float("nan")


def _check_pair(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: str
) -> tuple[Scores, BoolMatrix]:
    """Return finite scores and relevant labels of one shape, or raise an error."""
    if convention not in ("pml", "sklearn"):
        raise ComesError(f"convention must be 'pml' or 'sklearn'; got {convention!r}.")
    check_paired(same_labels=True, scores=scores, relevant=relevant)
    try:
        values = np.asarray(scores, dtype=np.float64)  # unsigned scores could not be negated
    except (TypeError, ValueError) as error:
        raise ComesError(f"scores must be a matrix of numbers; got {first_line(error)}.") from None
    truth = as_relevant(relevant)
    if values.shape != truth.shape:
        raise ComesError(
            f"scores must have the shape of the relevant labels, {truth.shape}; got {values.shape}."
        )
    if not np.isfinite(values).all():
        row, label = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        where = f"{values[row, label]} at row {row}, label {label}"
        raise ComesError(f"scores must be finite; got {where}.")
    return values, truth
