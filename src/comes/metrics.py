"""Metrics of scores against the true labels, in a named convention.

``convention="pml"`` is that of partial multi-label learning and of the paper's tables,
``"sklearn"`` that of scikit-learn. They differ on rows without a relevant label (60 % of YeastCC)
and on the scale of coverage; ``docs/reference/metrics.md`` compares them. In ``pml``:

- ranking loss skips rows where no label or every label is relevant; a tie counts 1/2
- one-error counts a row without a relevant label as an error
- coverage is (mean depth - 1) / q over all rows; a row without a relevant label has depth 0
- average precision skips rows without a relevant label
- mAP leaves out labels without a relevant row

For very many labels, `precision_at_k` and `ndcg_at_k` compare the best k of a row;
`measure_labels` measures each label.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, coverage_error
from sklearn.metrics import label_ranking_average_precision_score as sklearn_average_precision
from sklearn.metrics import label_ranking_loss as sklearn_ranking_loss

from comes.answers.convert import BoolMatrix, as_indicators, as_relevant, check_paired
from comes.errors import ComesError, first_line
from comes.label_metrics import measure_labels

__all__ = [
    "average_precision",
    "coverage",
    "evaluate",
    "hamming_loss",
    "mean_average_precision",
    "measure_labels",
    "ndcg_at_k",
    "one_error",
    "precision_at_k",
    "ranking_loss",
]
Convention = Literal["pml", "sklearn"]
FloatArray = npt.NDArray[np.float64]
SCORES_AT_ONCE = 2**24


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
    scores, relevant, convention
        As in `ranking_loss`.

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
    scores, relevant, convention
        As in `ranking_loss`.

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
    scores, relevant, convention
        As in `ranking_loss`.

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
    """A metric with its title and its direction."""

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
        values = np.asarray(scores)
        if values.size > 1 and values.min() >= 0 and 0 < values.max() <= 1:
            raise ComesError(
                "scores must be above 0 where a label is predicted; got only numbers in [0, 1], "
                "which look like probabilities. Pass predictions=, for example scores > 0.5."
            )
        predictions = values > 0
    return {
        name: hamming_loss(predictions, relevant)
        if name == "hamming_loss"
        else metric.compute(scores, relevant, convention)
        for name, metric in METRICS.items()
    }


def count_degenerate(relevant: npt.ArrayLike) -> dict[str, int]:
    """Count the rows and labels that the conventions treat differently."""
    truth = as_relevant(relevant)
    return {
        "rows_without_relevant": int((~truth.any(axis=1)).sum()),
        "rows_all_relevant": int(truth.all(axis=1).sum()),
        "labels_without_relevant": int((~truth.any(axis=0)).sum()),
    }


def _rank_labels(scores: FloatArray) -> FloatArray:
    """Return the rank of every label in its row, 1 for the highest score; ties share their mean."""
    return np.asarray(rankdata(-scores, axis=1))


def _mean(values: FloatArray) -> float:
    """Return the mean, NaN if there are no values."""
    return float(values.mean()) if len(values) else float("nan")


def _check_pair(
    scores: npt.ArrayLike, relevant: npt.ArrayLike, convention: str
) -> tuple[FloatArray, BoolMatrix]:
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


# The best k labels of every row. The truth may be sparse, and is never made dense.


def precision_at_k(ranking: npt.ArrayLike, relevant: Any, k: int = 1) -> float:
    """Return P@k, the share of the k best labels of a row that is relevant; higher is better.

    Parameters
    ----------
    ranking : float array of shape (n_samples, n_labels), or int array of at least k columns
        Scores of all labels; or the best labels of each row, the best first.
    relevant : bool array or sparse matrix of shape (n_samples, n_labels)
    k : int

    Returns
    -------
    precision : float in [0, 1]
        The mean over all rows. The divisor is k also where a row has fewer relevant labels, so
        that 1 may be out of reach.

    Examples
    --------
    >>> precision_at_k([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]], [[1, 0, 1], [0, 0, 0]], k=2)
    0.25
    >>> precision_at_k([[0, 1], [2, 1]], [[1, 0, 1], [0, 0, 0]], k=2)
    0.25
    """
    return evaluate_top(ranking, relevant, [k])[f"precision@{k}"]


def ndcg_at_k(ranking: npt.ArrayLike, relevant: Any, k: int = 1) -> float:
    r"""Return nDCG@k: hits at the head of the ranking count more; higher is better.

    A hit at rank r counts :math:`1 / \log_2(r + 1)`; the sum of a row is divided by that of its
    best ranking, :math:`\sum_{r=1}^{\min(k, |Y|)} 1 / \log_2(r + 1)`.

    Parameters
    ----------
    ranking, relevant, k
        As in `precision_at_k`.

    Returns
    -------
    gain : float in [0, 1]
        The mean over all rows. Without ties between scores, that of scikit-learn's ``ndcg_score``,
        which takes the mean over the orders of tied labels.

    Examples
    --------
    >>> ndcg_at_k([[0.9, 0.5, 0.1]], [[1, 0, 1]], k=1), ndcg_at_k([[1, 0]], [[1, 0, 1]], k=1)
    (1.0, 0.0)
    """
    return evaluate_top(ranking, relevant, [k])[f"ndcg@{k}"]


def evaluate_top(
    ranking: npt.ArrayLike, relevant: Any, ks: Sequence[int] = (1, 3, 5)
) -> dict[str, float]:
    """Return P@k and nDCG@k at every k by name, such as ``precision@5``."""
    if min(ks) < 1:
        raise ComesError(f"k must be 1 or more; got {min(ks)}.")
    truth = _as_csr(relevant)
    n, q = truth.shape
    labels = np.asarray(ranking)
    if np.issubdtype(labels.dtype, np.integer):
        labels = _check_labels(labels, min(max(ks), q), q)
    else:
        check_paired(same_labels=True, scores=ranking, relevant=relevant)
        if labels.shape != (n, q) or not np.issubdtype(labels.dtype, np.floating):
            raise ComesError(
                "scores must be a matrix of floats in the shape of the relevant labels, "
                f"{(n, q)}; got {labels.dtype} of shape {labels.shape}."
            )
        if not np.isfinite(labels).all():
            raise ComesError("scores must be finite; got NaN or infinity.")
        rows = range(0, n, max(1, SCORES_AT_ONCE // q))
        parts = (-labels[row : row + rows.step] for row in rows)
        ranked = [np.argsort(part, axis=1, kind="stable")[:, : max(ks)] for part in parts]
        labels = np.concatenate(ranked)  # ties by column
    if len(labels) != n:
        raise ComesError(
            f"ranking and relevant must have the same rows; got {len(labels)} and {n}."
        )
    # Pairs of a row and a label as numbers: those that are relevant are in order.
    pairs = np.arange(n)[:, None] * q + labels
    m = np.diff(truth.indptr)  # how many labels of each row are relevant
    relevant_pairs = np.append(np.repeat(np.arange(n), m) * q + truth.indices, -1)
    all_hits = relevant_pairs[np.searchsorted(relevant_pairs[:-1], pairs)] == pairs
    precision, ndcg = {}, {}
    for k in ks:
        hits = all_hits[:, :k]
        precision[f"precision@{k}"] = float(hits.sum() / (n * k))
        best = np.cumsum(_discounts(min(k, max(int(m.max()), 1))))
        gains = hits @ _discounts(hits.shape[1])
        ndcg[f"ndcg@{k}"] = float((gains / best[np.clip(m, 1, len(best)) - 1]).mean())
    return precision | ndcg


def _check_labels(ranking: npt.NDArray[Any], k: int, q: int) -> npt.NDArray[np.int64]:
    """Return the first k columns if each row has k different labels there, or raise an error."""
    labels, fault = ranking, f"shape {ranking.shape}"
    if ranking.ndim == 2 and ranking.shape[1] >= k:
        labels = ranking[:, :k].astype(np.int64)
        ordered = np.sort(labels, axis=1)
        outside, repeated = (ordered < 0) | (ordered >= q), ordered[:, 1:] == ordered[:, :-1]
        if not outside.any() and not repeated.any():
            return labels
        fault = f"a label twice in row {repeated.any(axis=1).argmax()}"
        if outside.any():
            fault = f"label {ordered[outside][0]}"
    raise ComesError(
        f"a ranking of integers must hold the {k} best of the {q} labels, counted from 0; got "
        f"{fault}. Scores must be floats."
    )


def _as_csr(relevant: Any) -> sparse.csr_array:
    """Return relevant labels as CSR: columns of a row in order, nothing stored but ones."""
    if not sparse.issparse(relevant):
        return sparse.csr_array(as_relevant(relevant))
    truth = sparse.csr_array(relevant, copy=True)
    truth.sum_duplicates()
    truth.eliminate_zeros()
    if 0 in truth.shape or (truth.data != 1).any():
        what = f"shape {truth.shape}" if 0 in truth.shape else truth.data[truth.data != 1][0]
        raise ComesError(f"relevant labels must be a matrix of 0 and 1; got {what}. 1 is relevant.")
    return truth


def _discounts(k: int) -> FloatArray:
    """Return what a hit at each of the first k ranks counts."""
    return np.asarray(1 / np.log2(np.arange(2, k + 2)))
