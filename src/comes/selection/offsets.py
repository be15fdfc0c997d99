"""Offsets for scores whose level has no meaning, such as those of a ranking risk."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit


def offset_matching_prior(
    scores: npt.ArrayLike, class_prior: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return, per label, the offset for which sigmoid(score - offset) has the prior as its mean.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)
        In [0, 1]; at 0 or 1 the offset lies far above or below every score.

    Returns
    -------
    offset : array of shape (n_labels,)

    Examples
    --------
    >>> offset_matching_prior([[3.0], [3.0]], [0.5]).round(6)
    array([3.])
    """
    values = np.asarray(scores, dtype=np.float64)
    low, high = values.min(axis=0) - 40, values.max(axis=0) + 40
    for _ in range(60):  # bisection: the mean probability falls as the offset rises
        offset = (low + high) / 2
        too_many = expit(values - offset).mean(axis=0) > np.asarray(class_prior)
        low, high = np.where(too_many, offset, low), np.where(too_many, high, offset)
    return np.asarray((low + high) / 2)
