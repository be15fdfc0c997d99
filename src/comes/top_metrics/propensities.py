"""Precision and gain in which a hit on a rare label counts more, by its propensity."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comes.errors import ComesError
from comes.top_metrics.gains import best_gains, discounts
from comes.top_metrics.rankings import Compared, Labels, as_csr, compare, count_relevant

FEWEST_ROWS = 3  # of training: log N - 1 is negative below

FloatArray = npt.NDArray[np.float64]


def label_propensity(relevant: Any, a: float = 0.55, b: float = 1.5) -> FloatArray:
    r"""Return how likely a relevant label is to be found in the truth, for every label.

    .. math:: p_l = \frac{1}{1 + C e^{-A \log(N_l + B)}}, \quad C = (\log N - 1) (B + 1)^A

    with N the rows and N_l those that have label l (Jain, Prabhu and Varma, 2016).

    Parameters
    ----------
    relevant : bool array or sparse matrix of shape (n_samples, n_labels)
        Of the training rows; at least three.
    a, b : float
        A and B. The field takes 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon, and the
        defaults elsewhere.

    Returns
    -------
    propensity : array of shape (n_labels,)
        In (0, 1), higher for frequent labels.

    Examples
    --------
    >>> label_propensity([[1, 0], [1, 0], [1, 1], [1, 0]]).round(3)
    array([0.8  , 0.721])
    """
    truth = as_csr(relevant)
    n = truth.shape[0]
    if n < FEWEST_ROWS:
        raise ComesError(
            f"propensities need at least {FEWEST_ROWS} rows of training; got {n}. Pass more rows."
        )
    counts = np.bincount(truth.indices, minlength=truth.shape[1])
    c = (np.log(n) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + c * np.exp(-a * np.log(counts + b))))


def propensity_precision_at_k(
    ranking: npt.ArrayLike, relevant: Any, propensity: npt.ArrayLike, k: int = 1
) -> float:
    r"""Return PSP@k: P@k in which a hit on label l counts :math:`1 / p_l`; higher is better.

    Divided by the value of the best possible ranking, which has the relevant labels of least
    propensity first. As ``psprecision`` of PyXCLib: the ratio of two means over rows, not the mean
    of ratios.

    Parameters
    ----------
    ranking, relevant, k
        As in `precision_at_k`.
    propensity : array of shape (n_labels,)
        Above 0; of the training rows, from `label_propensity`.

    Returns
    -------
    precision : float in [0, 1]; NaN if no label is relevant anywhere

    Examples
    --------
    >>> relevant, propensity = [[1, 0, 1]], [0.5, 1.0, 0.25]
    >>> propensity_precision_at_k([[0, 1]], relevant, propensity)  # 2 of 4
    0.5
    >>> propensity_precision_at_k([[2, 0]], relevant, propensity, k=2)
    1.0
    """
    compared = compare(ranking, relevant, k)
    return find_scored_precision(compared, invert(propensity, compared), k)


def propensity_ndcg_at_k(
    ranking: npt.ArrayLike, relevant: Any, propensity: npt.ArrayLike, k: int = 1
) -> float:
    r"""Return PSnDCG@k: nDCG@k in which a hit on label l counts :math:`1 / p_l`; higher is better.

    Divided by the value of the best possible ranking, as ``psndcg`` of PyXCLib: the ratio of two
    means over rows, each row divided by :math:`\sum_{r=1}^{\min(k, |Y|)} 1 / \log_2(r + 1)`.

    Parameters
    ----------
    ranking, relevant, propensity, k
        As in `propensity_precision_at_k`.

    Returns
    -------
    gain : float in [0, 1]; NaN if no label is relevant anywhere

    Examples
    --------
    >>> propensity_ndcg_at_k([[0, 2]], [[1, 0, 1]], [0.5, 1.0, 0.5], k=2)
    1.0
    """
    compared = compare(ranking, relevant, k)
    return find_scored_ndcg(compared, invert(propensity, compared), k)


def find_scored_precision(compared: Compared, weight: FloatArray, k: int) -> float:
    """Return PSP@k; ``weight`` is one over the propensity of every label."""
    _, ranks, weights = _best_ranking(compared.relevant, weight)
    if not len(ranks):
        return np.nan
    return float((compared.hits * weight[compared.labels]).sum() / weights[ranks < k].sum())


def find_scored_ndcg(compared: Compared, weight: FloatArray, k: int) -> float:
    """Return PSnDCG@k; ``weight`` is one over the propensity of every label."""
    rows, ranks, weights = _best_ranking(compared.relevant, weight)
    if not len(rows):
        return np.nan
    of_row = 1 / best_gains(compared, k)
    gains = (compared.hits * weight[compared.labels]) @ discounts(compared.hits.shape[1])
    head = ranks < k
    best = of_row[rows[head]] * weights[head] * discounts(k)[ranks[head]]
    return float((of_row * gains).sum() / best.sum())


def _best_ranking(
    relevant: sparse.csr_array, weight: FloatArray
) -> tuple[Labels, Labels, FloatArray]:
    """Return row, rank from 0, and weight of all relevant labels, the heaviest of a row first."""
    rows = np.repeat(np.arange(relevant.shape[0]), count_relevant(relevant))
    weights = weight[relevant.indices]
    order = np.lexsort((-weights, rows))
    return rows, np.arange(len(rows)) - relevant.indptr[rows], weights[order]


def invert(propensity: npt.ArrayLike, compared: Compared) -> FloatArray:
    """Return one over the propensity of every label."""
    values, q = np.asarray(propensity, dtype=np.float64), compared.relevant.shape[1]
    if values.shape != (q,) or not (values > 0).all() or not np.isfinite(values).all():
        got = f"shape {values.shape}" if values.shape != (q,) else f"{values.min():g} among them"
        raise ComesError(
            f"propensity must hold a number above 0 for each of {q} labels; got {got}. "
            "label_propensity computes them from the training rows."
        )
    return 1 / values
