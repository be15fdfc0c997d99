"""The exclude rate of every label, estimated on the rows that look most like excluding it.

A *bin* is the k rows with the highest scores. In a bin without relevant rows, the share of rows
that exclude label j estimates the exclude rate p_j, with a binomial error. In a bin with relevant
rows the share is lower: the best bin is the one with the highest share, judged by a lower bound.
Rates are then shrunk towards their mean over labels.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from comes.answers.convert import BoolMatrix

FloatArray = npt.NDArray[np.float64]

MIN_BIN_SHARE, MIN_BIN_EXCLUDED, MAX_MIN_BIN_SHARE = 0.1, 25, 0.3  # how small a bin may be
Z = 0.67  # of the lower bound that the best bin maximises
SMALLEST_BOUND_BIN, BIN_GROWTH = 20, 1.25  # sizes of the bins that `prior_bounds` tries


def best_bin_rate(
    excluded: BoolMatrix, scores: npt.NDArray[np.floating]
) -> tuple[FloatArray, FloatArray]:
    """Return, per label, the share of excluding rows in the best bin, and the size of that bin.

    Parameters
    ----------
    excluded : bool array of shape (n_samples, n_labels)
    scores : array of shape (n_samples, n_labels)
        Higher for rows that look more like excluding the label.

    Returns
    -------
    rate, n_bin : arrays of shape (n_labels,)
    """
    order = np.argsort(-scores, axis=0)
    count = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)
    return _find_best(count, np.arange(1.0, len(excluded) + 1)[:, None])


def _find_best(
    count: npt.NDArray[np.floating] | npt.NDArray[np.int64], k: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the rate and size of the best bin, where ``count`` of k rows exclude, both (n, q)."""
    n = len(count)
    rate = count / k
    spread = Z * np.sqrt(rate * (1 - rate) / k + Z**2 / (4 * k**2))
    lower = (rate + Z**2 / (2 * k) - spread) / (1 + Z**2 / k)  # Wilson
    smallest = np.maximum(MIN_BIN_SHARE * n, MIN_BIN_EXCLUDED / np.maximum(rate[-1], 1e-9))
    allowed = k >= np.minimum(smallest, MAX_MIN_BIN_SHARE * n)
    best = np.where(allowed, lower, -1).argmax(axis=0)
    labels = np.arange(rate.shape[1])
    return rate[best, labels], np.broadcast_to(k, rate.shape)[best, labels]


def shrink(rate: FloatArray, n_bin: FloatArray) -> FloatArray:
    """Shrink rates towards their mean: a DerSimonian-Laird random-effects model of their logits."""
    rate = np.clip(rate, 0.5 / n_bin, 1 - 0.5 / n_bin)
    logit = np.log(rate / (1 - rate))
    variance = 1 / (n_bin * rate * (1 - rate))
    weight = 1 / variance
    mean = (weight * logit).sum() / weight.sum()
    excess = (weight * (logit - mean) ** 2).sum() - (len(rate) - 1)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(0.0, excess / scale) if scale > 0 else 0.0  # a single label has none
    weight = 1 / (variance + between)
    mean = (weight * logit).sum() / weight.sum()
    shrunk = (between * logit + variance * mean) / (between + variance)
    return np.asarray(1 / (1 + np.exp(-shrunk)))


def prior_bounds(
    excluded: BoolMatrix, scores: npt.NDArray[np.floating], confidence: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the class prior that assume only a constant exclude rate.

    The upper bound is the share of rows in which the label is a candidate. The lower bound uses the
    highest lower confidence limit of the exclude rate, over bins that grow by a quarter.
    """
    n = len(excluded)
    error = (1 - confidence) / 2
    lowest, highest = share_bounds(excluded.sum(axis=0), n, confidence)
    upper = 1 - lowest
    sizes = _choose_bin_sizes(n)
    order = np.argsort(-scores, axis=0)
    count = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)[sizes - 1]  # (bins, q)
    sure = _clopper_pearson(count, sizes[:, None], error / len(sizes))[0].max(axis=0)
    lower = np.maximum(1 - highest / np.maximum(sure, 1e-9), 0)
    return np.minimum(lower, upper), upper


def share_bounds(
    n_excluded: npt.NDArray[np.int64], n: int, confidence: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the share of rows that exclude each label."""
    return _clopper_pearson(n_excluded, n, (1 - confidence) / 2)


def _choose_bin_sizes(n: int) -> npt.NDArray[np.int64]:
    """Return sizes that grow by a quarter, from the smallest to all rows."""
    n_steps = math.ceil(math.log(max(n / SMALLEST_BOUND_BIN, 1)) / math.log(BIN_GROWTH)) + 1
    sizes = np.ceil(SMALLEST_BOUND_BIN * BIN_GROWTH ** np.arange(n_steps))
    return np.unique(np.minimum(n, sizes.astype(int)))


def _clopper_pearson(
    count: npt.NDArray[np.int64], n: npt.ArrayLike, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of a share, each wrong with at most the probability ``error``."""
    count, n = np.broadcast_arrays(count, n)
    lower = np.where(count > 0, beta.ppf(error, np.maximum(count, 1), n - count + 1), 0)
    upper = np.where(count < n, beta.ppf(1 - error, count + 1, np.maximum(n - count, 1)), 1)
    return np.asarray(lower), np.asarray(upper)
