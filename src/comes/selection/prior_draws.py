"""How far class priors may be off: the standard error of an estimate, and priors drawn with it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from comes.priors import ClassPriorEstimate, RatesEstimate

FloatArray = npt.NDArray[np.float64]

# The standard error of other labels says nothing: never excluded, never asked, a rate too low.
TRUSTED_FLAGS = (
    "ok",
    "known",
    "always excluded",
    "all no",
    "few excluded",
    "few asked",
    "uncertain",
)
LEAST_SHARE = 0.25  # of the prior: draws below would divide by almost nothing


def prior_error(class_prior: Any) -> FloatArray | None:
    """Return the standard error of a class prior that was estimated, None of any other.

    Parameters
    ----------
    class_prior : ClassPriorEstimate, RatesEstimate, or numbers

    Returns
    -------
    error : array of shape (n_labels,), or None
        NaN for labels whose flag says that the estimate cannot be trusted.

    Examples
    --------
    >>> one = np.array([0.2, 0.9])
    >>> estimate = ClassPriorEstimate(one, one, one, one, one / 10, ("ok", "never excluded"))
    >>> prior_error(estimate), prior_error([0.2, 0.9]) is None
    (array([0.02,  nan]), True)
    """
    if isinstance(class_prior, ClassPriorEstimate):
        error = class_prior.standard_error
    elif isinstance(class_prior, RatesEstimate):
        error = class_prior.class_prior_error
    else:
        return None
    return np.where(np.isin(class_prior.flags, TRUSTED_FLAGS), error, np.nan)


def draw_priors(
    prior: FloatArray,
    error: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    n_draws: int,
    seed: int,
) -> FloatArray:
    """Return priors around the estimated ones, (n_draws, q), that are possible on the rows.

    One normal number moves the priors of all labels. Their errors go together: the estimated rates
    of excluding are pooled, and rows that look irrelevant but are not lower all priors at once.
    Drawn label by label, errors would cancel in the mean over labels, and intervals be too narrow.
    """
    normal = np.random.default_rng([seed, 1]).normal(size=(n_draws, 1))
    least = np.minimum(np.maximum(bounds[0], LEAST_SHARE * prior), prior)
    most = np.maximum(bounds[1], prior)
    return np.clip(prior + np.nan_to_num(error) * normal, least, most)
