"""Precision and discounted gain of the k best labels of a row."""

from typing import Any

import numpy as np
import numpy.typing as npt

from comes.top_metrics.rankings import Compared, compare, count_relevant

FloatArray = npt.NDArray[np.float64]


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
    return find_precision(compare(ranking, relevant, k), k)


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
    return find_ndcg(compare(ranking, relevant, k), k)


def find_precision(compared: Compared, k: int) -> float:
    """Return P@k."""
    return float(compared.hits.sum() / (len(compared.hits) * k))


def find_ndcg(compared: Compared, k: int) -> float:
    """Return nDCG@k."""
    gains = compared.hits @ discounts(compared.hits.shape[1])
    return float((gains / best_gains(compared, k)).mean())


def discounts(k: int) -> FloatArray:
    """Return what a hit at each of the first k ranks counts."""
    return np.asarray(1 / np.log2(np.arange(2, k + 2)))


def best_gains(compared: Compared, k: int) -> FloatArray:
    """Return the largest sum of discounts that a row can have; that of a hit if it has none."""
    m = count_relevant(compared.relevant)
    best = np.cumsum(discounts(min(k, max(int(m.max()), 1))))
    return np.asarray(best[np.clip(m, 1, len(best)) - 1])
