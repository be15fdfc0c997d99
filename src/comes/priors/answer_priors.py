r"""How often each label is relevant, from counts of answers and their rates, shared over labels.

With n_0 times "no", n_1 times "yes" and m times "maybe" about a label, the class prior pi is where

.. math:: (n_0 + \beta) \log (1 - \pi) + (n_1 + \alpha) \log \pi
          + m \log ((1 - a)(1 - \pi) + (1 - b) \pi)

is highest. Alpha and beta are counts that stand for the other labels: a beta distribution of the
class priors, with the mean and the spread that the labels have.
"""

import numpy as np
import numpy.typing as npt

from comes.answers import LongAnswers, State

FloatArray = npt.NDArray[np.float64]

N_HALVINGS = 50
FEWEST, MOST = 1.0, 1000.0  # counts that may stand for the other labels


def count_answers(records: LongAnswers, q: int) -> FloatArray:
    """Return how many pairs of each label were answered no, yes and maybe, (q, 3).

    Where several people answered about a pair, each answer is a part of it.
    """
    pair = records.row * q + records.label
    _, number, times = np.unique(pair, return_inverse=True, return_counts=True)
    part = 1 / times[number]
    counts = [
        np.bincount(records.label[is_it], part[is_it], minlength=q)
        for is_it in (records.code == state for state in (State.NO, State.YES, State.MAYBE))
    ]
    return np.stack(counts, axis=1)


def estimate_priors(
    counts: FloatArray, rates: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the class prior of every label, and its standard error.

    Parameters
    ----------
    counts : array of shape (n_labels, 3)
        Of no, yes and maybe.
    rates : array of shape (n_labels, 2)
        a and b.
    covariance : array of shape (n_labels, 2, 2)
        Of a and b.
    """
    half = np.full(2, 0.5)
    is_asked = counts.any(axis=1)
    own = solve_priors(counts, rates, half)
    error = _standard_error(own, counts, rates, covariance, half)
    return find_priors(counts, rates, covariance, fit_beta(own[is_asked], error[is_asked]))


def find_priors(
    counts: FloatArray, rates: FloatArray, covariance: FloatArray, others: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the class prior of every label and its error, given alpha and beta of the others."""
    prior = solve_priors(counts, rates, others)
    return prior, _standard_error(prior, counts, rates, covariance, others)


def fit_beta(prior: FloatArray, error: FloatArray) -> FloatArray:
    """Return alpha and beta of the beta distribution that the class priors come from.

    Its variance is that of the estimates less that of their errors, but at least as much as the
    difference of the two is uncertain: few labels do not know how much labels differ.
    """
    mean, noise, n_other = prior.mean(), (error**2).mean(), len(prior) - 1
    if n_other == 0:
        return np.array([mean, 1 - mean]) * FEWEST
    between = max(prior.var(ddof=1) - noise, noise * np.sqrt(2 / n_other))
    strength = np.clip(mean * (1 - mean) / between - 1, FEWEST, MOST)
    return np.asarray(np.array([mean, 1 - mean]) * strength)


def solve_priors(counts: FloatArray, rates: FloatArray, others: FloatArray) -> FloatArray:
    """Return where the likelihood of each label is highest, (q,), by bisection of its slope."""
    low, high = np.zeros(len(counts)), np.ones(len(counts))
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        rises = _slope(middle, counts, rates, others) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return (low + high) / 2


def _slope(
    prior: FloatArray, counts: FloatArray, rates: FloatArray, others: FloatArray
) -> FloatArray:
    """Return how the log-likelihood of each label rises with its class prior."""
    no, yes, maybe = counts.T
    a, b = rates.T
    alpha, beta = others
    doubt = np.maximum((1 - a) * (1 - prior) + (1 - b) * prior, 1e-12)
    slope = (yes + alpha) / prior - (no + beta) / (1 - prior) + maybe * (a - b) / doubt
    return np.asarray(slope)


def _standard_error(
    prior: FloatArray,
    counts: FloatArray,
    rates: FloatArray,
    covariance: FloatArray,
    others: FloatArray,
) -> FloatArray:
    """Return the error of the counts, with that of a and b by how the prior moves with them."""
    no, yes, maybe = counts.T
    a, b = rates.T
    alpha, beta = others
    doubt = np.maximum((1 - a) * (1 - prior) + (1 - b) * prior, 1e-12)
    curvature = (yes + alpha) / prior**2 + (no + beta) / (1 - prior) ** 2
    curvature += maybe * ((a - b) / doubt) ** 2
    moves = np.stack([maybe * (1 - b), -maybe * (1 - a)], axis=1)
    moves /= (doubt**2 * curvature)[:, None]
    of_rates = np.einsum("qa,qab,qb->q", moves, covariance, moves)
    return np.asarray(np.sqrt(1 / curvature + of_rates))
