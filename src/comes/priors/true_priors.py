"""Class priors from true labels, for experiments that assume them known."""

import numpy as np
import numpy.typing as npt

from comes.answers.convert import as_relevant
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]


def count_class_prior(relevant: npt.ArrayLike) -> FloatArray:
    """Return the share of rows that each label is relevant to.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)

    Returns
    -------
    class_prior : array of shape (n_labels,)

    Examples
    --------
    >>> count_class_prior([[1, 0], [1, 1]])
    array([1. , 0.5])
    """
    return np.asarray(as_relevant(relevant).mean(axis=0))


def add_prior_noise(
    class_prior: npt.ArrayLike, sigma: float, seed: int | np.random.Generator = 0
) -> FloatArray:
    """Add Gaussian noise to a class prior and clip it to [0, 0.999], to study what errors cost.

    Parameters
    ----------
    class_prior : array of shape (n_labels,)
    sigma : float
        Standard deviation of the noise, before clipping.
    seed : int or numpy Generator

    Returns
    -------
    noisy : array of shape (n_labels,)

    Examples
    --------
    >>> add_prior_noise([0.5, 0.0], sigma=0.0)
    array([0.5, 0. ])
    """
    if not 0 <= sigma < np.inf:
        raise ComesError(f"sigma, the noise of priors, must be 0 or more; got {sigma!r}.")
    prior = np.asarray(class_prior, dtype=float)
    noise = np.random.default_rng(seed).normal(scale=sigma, size=prior.shape)
    return np.clip(prior + noise, 0, 1 - 1e-3)
