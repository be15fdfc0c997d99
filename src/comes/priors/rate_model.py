"""Exclude rates and class priors of all labels together: how much rates differ is estimated too.

The rows are sorted by how much they look like excluding label j, and cut into bins of equal size.
In bin k, of whose rows a share eta_jk has the label, a row excludes it with probability

    p_j (1 - eta_jk),    logit p_j ~ N(mu, tau^2),    eta_jk = sigmoid(a_j + b_j z_k)^theta_j,

where z_k is the normal score of the bin, and a_j makes the mean of eta_jk over bins the class prior
pi_j, which is drawn from a beta distribution. With tau = 0 all labels have one rate, and the labels
that are rare tell it; with a large tau each label's own bins do. Rates, priors and shapes (b_j,
theta_j), and what they are drawn from, lie on grids, so that every integral is a sum.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri, xlogy
from scipy.stats import beta

from comes.answers.convert import BoolMatrix

FloatArray = npt.NDArray[np.float64]

N_BINS = 10
MOST_ROWS = 3000  # more count as so many: beyond, bins differ from the model more than by chance
SLOPES, POWERS = (0.5, 1.0, 2.0, 3.0, 4.5), (0.15, 0.4, 1.0)  # b and theta; b = 0 beside them
FLAT_WEIGHT = 1.0
PRIOR_EDGES = np.concatenate([[0, 0.002, 0.005], np.linspace(0.01, 1, 100)])  # cells of pi_j
# What tau may be, and how likely. One procedure for all labels is the usual case.
SPREADS, SPREAD_WEIGHTS = np.array([0.0, 0.3, 1.2]), np.array([0.8, 0.05, 0.15])
# Mean and concentration of the beta distribution. That most labels have most rows is rare.
MEANS = np.array([0.01, 0.03, 0.07, 0.12, 0.2, 0.3, 0.45, 0.6])
MEAN_WEIGHTS = np.array([0.1, 0.2, 0.5, 1, 1, 0.8, 0.4, 0.1])
CONCENTRATIONS = np.array([1.0, 3.0, 8.0, 20.0, 60.0])
COARSE, FINE = 40, 80  # values of the logit of p_j: over its range, then where it may be
HIGHEST_LOGIT, TAIL = 7.6, 1e-3
MISFIT = 0.01  # of the model, relative to p_j and 1 - pi_j: no data make the errors smaller
LABELS_AT_ONCE = 200


@dataclass(frozen=True)
class RatePosterior:
    """What the bins say of every label, arrays of shape (n_labels,)."""

    exclude_rate: FloatArray  # median
    exclude_rate_error: FloatArray
    class_prior: FloatArray  # mean
    standard_error: FloatArray


def count_bins(
    excluded: BoolMatrix, scores: npt.NDArray[np.floating]
) -> tuple[FloatArray, FloatArray]:
    """Return how many rows exclude each label in each bin, (q, bins), and the sizes of the bins."""
    n = len(excluded)
    order = np.argsort(-scores, axis=0, kind="stable")
    running = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)
    ends = np.unique(np.round(np.linspace(0, n, N_BINS + 1)).astype(int))[1:]
    return np.diff(running[ends - 1], axis=0, prepend=0).T.astype(float), np.diff(ends, prepend=0.0)


def fit_rates(count: FloatArray, size: FloatArray) -> RatePosterior:
    """Return the posterior of exclude rates and class priors, given the bins of `count_bins`.

    The grid of rates is laid twice: over all rates, then over those that some label may have.
    """
    scale = min(1.0, MOST_ROWS / size.sum())
    share = count.sum(axis=1) / size.sum()
    lowest = logit(np.clip(0.6 * share.min(), 1e-4, 0.9))
    grid = np.linspace(lowest, HIGHEST_LOGIT, COARSE)
    below = _find_posterior(count * scale, size * scale, grid).sum(axis=2).cumsum(axis=1)
    first = int((below <= TAIL).sum(axis=1).min()) - 1
    last = int((below <= 1 - TAIL).sum(axis=1).max()) + 1
    grid = np.linspace(grid[max(first, 0)], grid[min(last, COARSE - 1)], FINE)
    posterior = _find_posterior(count * scale, size * scale, grid)
    of_rate, of_prior = posterior.sum(axis=2), posterior.sum(axis=1)
    step = grid[1] - grid[0]
    rate = _find_median(of_rate, expit(np.append(grid - step / 2, grid[-1] + step / 2)))
    prior = of_prior @ _prior_values()
    return RatePosterior(
        rate,
        np.hypot(_find_error(of_rate, expit(grid), rate), MISFIT * rate),
        prior,
        np.hypot(_find_error(of_prior, _prior_values(), prior), MISFIT * (1 - prior)),
    )


def _find_posterior(count: FloatArray, size: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the probability of every rate and prior of every label, (q, rates, priors)."""
    likelihood = _find_likelihood(count, size, grid)
    q, n_rates, n_priors = likelihood.shape
    beta_weights, of_beta = _lay_beta()
    n_betas = len(of_beta)
    # (betas, labels, rates): the prior pi_j summed out.
    given_rate = np.moveaxis(likelihood @ beta_weights.T, 2, 0).reshape(-1, n_rates)
    by_spread = [_lay_rates(grid, spread) for spread in SPREADS]  # (mu, rates)
    given_mean = [np.maximum(given_rate @ of_rate.T, 1e-300) for of_rate in by_spread]
    evidence = np.stack(
        [np.log(values).reshape(n_betas, q, n_rates).sum(axis=1) for values in given_mean]
    ) + np.log(SPREAD_WEIGHTS[:, None, None] * of_beta[:, None])
    weight = np.exp(evidence - evidence.max())  # (spreads, betas, mu)
    posterior = np.zeros((q * n_rates, n_priors))
    for of_rate, values, of_mean in zip(by_spread, given_mean, weight, strict=True):
        each = of_mean[:, None] / values.reshape(n_betas, q, n_rates)
        posterior += (each.reshape(-1, n_rates) @ of_rate).reshape(n_betas, -1).T @ beta_weights
    product = posterior.reshape(likelihood.shape) * likelihood
    return np.asarray(product / product.sum(axis=(1, 2), keepdims=True))


def _find_likelihood(count: FloatArray, size: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the likelihood of every rate and prior, (q, rates, priors), shapes summed out.

    It is relative to that of bins that are free, which is the highest.
    """
    irrelevant, of_shape = _lay_shapes(len(size))
    best = (xlogy(count, count / size) + xlogy(size - count, 1 - count / size)).sum(axis=1)
    result = np.zeros((len(count), len(grid) * (len(PRIOR_EDGES) - 1)))
    for shape, weight in zip(irrelevant, of_shape, strict=True):
        f = np.clip(expit(grid)[:, None, None] * shape, 1e-12, 1 - 1e-9).reshape(-1, len(size))
        log_f, log_rest = np.log(f).T, np.log1p(-f).T
        for start in range(0, len(count), LABELS_AT_ONCE):
            part = slice(start, start + LABELS_AT_ONCE)
            logs = count[part] @ log_f + (size - count[part]) @ log_rest
            result[part] += weight * np.exp(logs - best[part, None])
    return result.reshape(len(count), len(grid), -1)


@cache
def _lay_shapes(n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Return 1 - eta for every shape, prior and bin, and the weights of the shapes."""
    prior = _prior_values()
    score = ndtri((np.arange(n_bins) + 0.5) / n_bins)  # the last bin is the most relevant
    offsets = np.linspace(-80, 80, 8001)
    shapes = [np.repeat(1 - prior[:, None], n_bins, axis=1)]
    for slope in SLOPES:
        for power in POWERS:
            mean = (expit(offsets[:, None] + slope * score) ** power).mean(axis=1)
            offset = np.interp(prior, mean, offsets)
            shapes.append(1 - expit(offset[:, None] + slope * score) ** power)
    weights = np.array([FLAT_WEIGHT, *[1 / len(POWERS)] * (len(shapes) - 1)])
    return np.array(shapes), weights / weights.sum()


@cache
def beta_parameters() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the two parameters of every beta distribution of priors, and their weights."""
    mean = np.repeat(MEANS, len(CONCENTRATIONS))
    concentration = np.tile(CONCENTRATIONS, len(MEANS))
    weight = np.repeat(MEAN_WEIGHTS, len(CONCENTRATIONS))
    return mean * concentration, (1 - mean) * concentration, weight / weight.sum()


@cache
def _lay_beta() -> tuple[FloatArray, FloatArray]:
    """Return the probability of every cell of priors by beta distribution, and their weights."""
    a, b, weight = beta_parameters()
    return np.diff(beta.cdf(PRIOR_EDGES, a[:, None], b[:, None]), axis=1), weight


def _lay_rates(grid: FloatArray, spread: float) -> FloatArray:
    """Return the probability of every rate, for every mean mu of their logits on the same grid."""
    if spread == 0:
        return np.eye(len(grid))
    density = np.exp(-((grid - grid[:, None]) ** 2) / (2 * spread**2))
    return np.asarray(density / density.sum(axis=1, keepdims=True))


def _prior_values() -> FloatArray:
    """Return the middle of every cell of priors."""
    return np.asarray((PRIOR_EDGES[1:] + PRIOR_EDGES[:-1]) / 2)


def _find_median(probability: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the median of every row, the probability spread evenly over each cell."""
    below = probability.cumsum(axis=1)
    cell = np.minimum((below < 0.5).sum(axis=1), probability.shape[1] - 1)
    rows = np.arange(len(probability))
    within = probability[rows, cell]
    part = 1 - (below[rows, cell] - 0.5) / np.maximum(within, 1e-300)
    return np.asarray(edges[cell] + np.clip(part, 0, 1) * np.diff(edges)[cell])


def _find_error(probability: FloatArray, values: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the root mean square distance of the values from the centre of every row."""
    return np.asarray(np.sqrt((probability * (values - centre[:, None]) ** 2).sum(axis=1)))
