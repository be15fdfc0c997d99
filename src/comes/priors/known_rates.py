"""Class priors where the exclude rate is known: no features are needed, only counts.

Of n rows, n (1 - pi_j) do not have label j, and each of them excludes it with probability p_j:

    n_j ~ Binomial(n (1 - pi_j), p_j),    pi_j ~ Beta.

The plug-in 1 - n_j / (n p_j) has the standard error sqrt((1 - p_j)(1 - pi_j) / (n p_j)), which is
large where the rate is small; the beta distribution, itself estimated from all labels, shrinks it.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln

from comes.errors import ComesError
from comes.priors.rate_model import beta_parameters

FloatArray = npt.NDArray[np.float64]

N_NODES, REACH = 120, 6.0  # of the integral over pi_j: within so many standard errors
TOO_HIGH = 3.0  # standard errors of a share above the rate that cannot be chance


def check_exclude_rate(exclude_rate: npt.ArrayLike, q: int) -> FloatArray:
    """Return one exclude rate per label, or raise an error."""
    try:
        rate = np.asarray(exclude_rate, dtype=float)
        if rate.shape not in ((), (q,)) or not ((rate > 0) & (rate <= 1)).all():
            raise ValueError
        return np.broadcast_to(rate, (q,))
    except (TypeError, ValueError):
        raise ComesError(
            f"exclude_rate must be a number above 0 and at most 1, or one for each of {q} labels; "
            f"got {exclude_rate!r}. Leave it out to estimate it."
        ) from None


def shrink_priors(
    n_excluded: npt.NDArray[np.int64], n: int, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of every class prior, given the exclude rates.

    Parameters
    ----------
    n_excluded : array of shape (n_labels,)
        How many of n rows exclude each label.
    n : int
    rate : array of shape (n_labels,)
    """
    low, high = bound_priors(n_excluded, n, rate)
    nodes = low[:, None] + (high - low)[:, None] * (np.arange(N_NODES) + 0.5) / N_NODES
    likelihood = find_likelihood(nodes, n_excluded, n, rate)
    a, b, weight = beta_parameters()  # (betas,)
    inside = np.clip(nodes, 1e-9, 1 - 1e-9)
    log_density = np.multiply.outer(a - 1, np.log(inside)) + np.multiply.outer(
        b - 1, np.log1p(-inside)
    )
    joint = likelihood * np.exp(log_density - betaln(a, b)[:, None, None])  # (betas, q, nodes)
    total = np.maximum(joint.sum(axis=2), 1e-300)
    evidence = np.log(total).sum(axis=1) + np.log(weight)
    of_beta = np.exp(evidence - evidence.max())
    of_beta /= of_beta.sum()
    posterior = np.tensordot(of_beta, joint / total[:, :, None], 1)  # (q, nodes)
    mean = (posterior * nodes).sum(axis=1)
    error = np.sqrt((posterior * (nodes - mean[:, None]) ** 2).sum(axis=1))
    return np.asarray(mean), np.asarray(error)


def bound_priors(
    n_excluded: npt.NDArray[np.int64], n: npt.ArrayLike, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return between which class priors the likelihood of every label is not negligible."""
    n = np.asarray(n)
    highest = 1 - n_excluded / n
    plug_in = np.clip(1 - n_excluded / (n * rate), 0, highest)
    reach = REACH * np.sqrt((1 - rate) * (n_excluded + 1)) / (n * rate) + 1 / n
    return np.maximum(plug_in - reach, 0), np.minimum(plug_in + reach, highest)


def find_likelihood(
    prior: FloatArray, n_excluded: npt.NDArray[np.int64], n: npt.ArrayLike, rate: FloatArray
) -> FloatArray:
    """Return the likelihood of class priors, (n_labels, n_nodes), relative to the highest.

    ``n`` is the number of rows, or one for each label.
    """
    irrelevant = np.broadcast_to(n, len(rate))[:, None] * (1 - prior)
    seen = n_excluded[:, None]
    log_likelihood = (
        gammaln(irrelevant + 1)
        - gammaln(np.maximum(irrelevant - seen, 0) + 1)
        + irrelevant * np.log1p(-np.minimum(rate, 1 - 1e-9))[:, None]
    )
    return np.asarray(np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))


def exceeds_rate(
    share: FloatArray, n: npt.ArrayLike, rate: FloatArray, reach: float = TOO_HIGH
) -> npt.NDArray[np.bool_]:
    """Return for which labels more rows exclude than the rate allows, had they no relevant row."""
    return np.asarray(share - rate > reach * np.sqrt(rate * (1 - rate) / np.asarray(n)) + 1e-9)
