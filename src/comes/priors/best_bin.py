"""The exclude rate of every label, read off the rows that look most like excluding it.

A *bin* is the k rows of highest score. Rows that exclude label j are a part of all rows, so the
share of excluding rows in a bin without relevant rows is the exclude rate p_j, and its uncertainty
is binomial. In a bin with relevant rows the share is lower: the best bin has the highest share,
judged by a lower bound. Rates are then drawn towards their mean over labels.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from comes.labels import BoolMatrix

FloatArray = npt.NDArray[np.float64]

MIN_BIN_SHARE, MIN_BIN_EXCLUDED, MAX_MIN_BIN_SHARE = 0.1, 25, 0.3  # how small a bin may be
Z = 0.67  # of the lower bound that the best bin maximises
N_RESAMPLED = 50
SMALLEST_BOUND_BIN, BIN_GROWTH = 20, 1.25  # of the bins that a bound looks at


def best_bin_rate(
    excluded: BoolMatrix, scores: npt.NDArray[np.floating]
) -> tuple[FloatArray, FloatArray]:
    """Return, per label, the share of excluding rows in the best bin, and the rows in the bin.

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
    return _best_of(count, np.arange(1.0, len(excluded) + 1)[:, None])


def _best_of(
    count: npt.NDArray[np.floating] | npt.NDArray[np.int64], k: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best of bins with k rows, of which so many exclude the label; (n, q) each."""
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
    """Draw rates towards their common mean: a DerSimonian-Laird random-effects model of logits."""
    rate = np.clip(rate, 0.5 / n_bin, 1 - 0.5 / n_bin)
    logit = np.log(rate / (1 - rate))
    variance = 1 / (n_bin * rate * (1 - rate))
    weight = 1 / variance
    mean = (weight * logit).sum() / weight.sum()
    excess = (weight * (logit - mean) ** 2).sum() - (len(rate) - 1)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(0.0, excess / scale) if scale > 0 else 0.0  # one label: its own mean
    weight = 1 / (variance + between)
    mean = (weight * logit).sum() / weight.sum()
    shrunk = (between * logit + variance * mean) / (between + variance)
    return np.asarray(1 / (1 + np.exp(-shrunk)))


def sampling_error(excluded: BoolMatrix, scores: npt.NDArray[np.floating], seed: int) -> FloatArray:
    """Return the spread of the class prior over resampled rows, with the scores as they are."""
    rng = np.random.default_rng(seed)
    n = len(excluded)
    order = np.argsort(-scores, axis=0)
    sorted_excluded = np.take_along_axis(excluded, order, axis=0)
    priors = []
    for _ in range(N_RESAMPLED):
        times = rng.multinomial(n, np.full(n, 1 / n)).astype(float)[order]  # a row is drawn
        k = np.maximum(times.cumsum(axis=0), 1e-9)
        count = (sorted_excluded * times).cumsum(axis=0)
        share = count[-1] / n
        rate = np.maximum(shrink(*_best_of(count, k)), share)
        priors.append(1 - share / np.where(rate > 0, rate, 1))
    return np.asarray(np.std(priors, axis=0, ddof=1))


def prior_bounds(
    excluded: BoolMatrix, scores: npt.NDArray[np.floating], confidence: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the class prior that need a constant exclude rate and nothing else.

    The upper one is the share of rows in which the label is a candidate. The lower one comes of the
    bin with the highest exclude rate that is sure, of bins that grow by a quarter.
    """
    n = len(excluded)
    n_excluded = excluded.sum(axis=0)
    error = (1 - confidence) / 2
    upper = 1 - _clopper_pearson(n_excluded, n, error)[0]
    sizes = np.unique(
        np.minimum(
            n, np.ceil(SMALLEST_BOUND_BIN * BIN_GROWTH ** np.arange(_n_steps(n))).astype(int)
        )
    )
    order = np.argsort(-scores, axis=0)
    count = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)[sizes - 1]  # (bins, q)
    sure = _clopper_pearson(count, sizes[:, None], error / len(sizes))[0].max(axis=0)
    share = _clopper_pearson(n_excluded, n, error)[1]
    lower = np.maximum(1 - share / np.maximum(sure, 1e-9), 0)
    return np.minimum(lower, upper), upper


def _n_steps(n: int) -> int:
    return max(1, math.ceil(math.log(max(n / SMALLEST_BOUND_BIN, 1)) / math.log(BIN_GROWTH)) + 1)


def _clopper_pearson(
    count: npt.NDArray[np.int64], n: npt.ArrayLike, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of a share, each wrong with at most that probability."""
    count, n = np.broadcast_arrays(count, n)
    lower = np.where(count > 0, beta.ppf(error, np.maximum(count, 1), n - count + 1), 0)
    upper = np.where(count < n, beta.ppf(1 - error, count + 1, np.maximum(n - count, 1)), 1)
    return np.asarray(lower), np.asarray(upper)
