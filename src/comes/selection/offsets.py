"""Scores moved to a class prior: by an offset, or by a power of the probability of irrelevance."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from comes.errors import ComesError

FAR_BELOW = -30.0  # scores below are so small that 1 - (1 - eta)^k is k eta
LARGEST_LOG_POWER = 15.0


def offset_matching_prior(
    scores: npt.ArrayLike, class_prior: npt.ArrayLike, *, weight: npt.ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """Return, per label, the offset for which sigmoid(score - offset) has the prior as its mean.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)
        In [0, 1]; at 0 or 1 the offset lies far above or below every score.
    weight : array of shape (n_samples,), optional
        How much each row counts in the mean.

    Returns
    -------
    offset : array of shape (n_labels,)

    Examples
    --------
    >>> offset_matching_prior([[3.0], [3.0]], [0.5]).round(6)
    array([3.])
    """
    values = _check(scores, class_prior)
    low, high = values.min(axis=0) - 40, values.max(axis=0) + 40
    for _ in range(60):  # bisection: the mean probability falls as the offset rises
        offset = (low + high) / 2
        too_many = _mean(expit(values - offset), weight) > np.asarray(class_prior)
        low, high = np.where(too_many, offset, low), np.where(too_many, high, offset)
    return np.asarray((low + high) / 2)


def _check(scores: npt.ArrayLike, class_prior: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the scores, or raise an error unless they are finite and the priors in [0, 1]."""
    values, prior = np.asarray(scores, dtype=np.float64), np.asarray(class_prior, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ComesError("scores must be finite; got NaN or infinity. Look at the model's inputs.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(f"class_prior must hold numbers in [0, 1]; got {prior.tolist()}.")
    return values


def _mean(values: npt.NDArray[np.float64], weight: npt.ArrayLike | None) -> npt.NDArray[np.float64]:
    """Return the mean over rows, with their weights if there are any, (q,)."""
    if weight is None:
        return np.asarray(values.mean(axis=0))
    return np.asarray(np.average(values, axis=0, weights=np.asarray(weight, dtype=np.float64)))


def recalibrate_to_prior(scores: npt.ArrayLike, power: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """Return the scores of eta with 1 - eta = (1 - h)^power, given those of h.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Log odds of h.
    power : array of shape (n_labels,)
        Above 0; 1 leaves a label as it is. The order of rows within a label stays.

    Returns
    -------
    bent : array of shape (n_samples, n_labels)
        Log odds of eta, in the precision of the scores.

    Examples
    --------
    >>> bent = recalibrate_to_prior([[0.0, 0.0]], [1.0, 2.0])  # 1/2, and 1 - 1/4
    >>> expit(bent).round(3)
    array([[0.5 , 0.75]])
    """
    g = np.asarray(scores)
    k = np.asarray(power, dtype=np.float64)
    far = k * np.logaddexp(0, np.maximum(g, FAR_BELOW))  # -log(1 - eta)
    bent = np.where(g < FAR_BELOW, g + np.log(k), far + np.log(-np.expm1(-far)))
    return bent.astype(np.result_type(g.dtype, np.float32))


def exponent_matching_prior(
    scores: npt.ArrayLike, class_prior: npt.ArrayLike, *, weight: npt.ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """Return the power per label for which `recalibrate_to_prior` has the prior as mean.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)
        In [0, 1]; at 0 or 1 the power is very small or very large.
    weight : array of shape (n_samples,), optional
        How much each row counts in the mean.

    Returns
    -------
    power : array of shape (n_labels,)

    Examples
    --------
    >>> exponent_matching_prior([[0.0], [0.0]], [0.75]).round(6)
    array([2.])
    """
    values = _check(scores, class_prior)
    low = np.full(values.shape[1], -LARGEST_LOG_POWER)
    high = -low
    for _ in range(60):  # bisection: the mean probability rises with the power
        middle = (low + high) / 2
        mean = _mean(expit(recalibrate_to_prior(values, np.exp(middle))), weight)
        too_many = mean > np.asarray(class_prior)
        low, high = np.where(too_many, low, middle), np.where(too_many, middle, high)
    return np.asarray(np.exp((low + high) / 2))
