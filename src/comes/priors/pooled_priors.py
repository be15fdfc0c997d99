r"""Class priors of very many labels, given rates, shrunk towards what labels usually have.

Where only one answer is counted ("no", or an exclusion), n_j of the m_j pairs of label j have it:

.. math:: n_j \sim \mathrm{Binomial}(m_j (1 - \pi_j), a_j), \qquad \pi_j \sim \mathrm{Beta}(M, C)

as in `comes.priors.known_rates`. The mean M and the strength C of the beta distribution are where
the evidence of all labels is highest, on a grid of labels a row, q M. Where the counts cannot tell,
a row has about three labels. Most of a beta distribution with a small mean lies at 0, so the
integral over pi_j is a sum over cells with exact probabilities.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from comes.priors.known_rates import bound_priors, find_likelihood

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

N_CELLS = 60
LABELS_AT_ONCE = 10_000
MOST_DISTINCT = 1000  # labels that decide about the beta distribution; of more, every k-th
USUAL_LABELS = 3.0  # of a row; its logarithm has a standard deviation of 1
HIGHEST_MEAN = 0.7
STRENGTHS = 10.0 ** np.arange(0, 3, 0.5)  # in rows, that the other labels may count as
FEWEST, MOST = 1.0, 1e6  # the same, where both "no" and "yes" are counted


def shrink_many(count: Counts, asked: Counts, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the class prior of every label and its standard deviation, (n_labels,).

    Labels with the same numbers are computed once.

    Parameters
    ----------
    count, asked : int arrays of shape (n_labels,)
        How many pairs have the answer, of how many.
    rate : array of shape (n_labels,)
        How often an irrelevant pair has it, above 0.
    """
    numbers, place, times = np.unique(
        np.stack([count, asked, rate]), axis=1, return_inverse=True, return_counts=True
    )
    is_asked = numbers[1] > 0
    known, weight = numbers[:, is_asked], times[is_asked]
    mean, strength = _choose_beta(known, weight, len(count))
    usual = math.sqrt(mean * (1 - mean) / (strength + 1))
    found = np.tile([[mean], [usual]], len(times))
    for start in range(0, known.shape[1], LABELS_AT_ONCE):
        part = slice(start, start + LABELS_AT_ONCE)
        found[:, np.flatnonzero(is_asked)[part]] = _integrate(known[:, part], mean, strength)
    prior, error = found[:, place.ravel()]
    return prior, error


def fit_many(yes: Counts, asked: Counts, rate: FloatArray) -> FloatArray:
    """Return alpha and beta of the beta distribution of priors, where "yes" is counted.

    The mean square of the class priors is that of products of the two halves, which has no noise of
    its own.

    Parameters
    ----------
    yes, asked : int arrays of shape (2, n_labels)
    rate : array of shape (n_labels,)
        How often a relevant pair is called "yes", above 0.
    """
    q, found = yes.shape[1], yes / rate
    mean = np.clip(found.sum() / asked.sum(), 0.1 / q, HIGHEST_MEAN)
    pairs = asked.prod(axis=0)
    noise = found.prod(axis=0) - pairs * mean**2
    total = max(pairs.sum(), 1)
    between = max(noise.sum(), math.sqrt((noise**2).sum())) / total
    strength = np.clip(mean * (1 - mean) / max(between, 1e-12) - 1, FEWEST, MOST)
    return np.asarray(np.array([mean, 1 - mean]) * strength)


def _choose_beta(numbers: FloatArray, times: Counts, q: int) -> tuple[float, float]:
    """Return the mean and the strength of the beta distribution with the highest evidence."""
    step = math.ceil(len(times) / MOST_DISTINCT)
    numbers, weight = numbers[:, ::step], times[::step] * (times.sum() / times[::step].sum())
    edges, likelihood = _lay_cells(numbers)
    n_steps = max(math.floor(math.log2(2 * HIGHEST_MEAN * q)), 0)
    best = -np.inf, 0.0, 0.0
    for labels in 2.0 ** np.arange(-1, n_steps):
        mean, usual = labels / q, -(math.log(labels / USUAL_LABELS) ** 2) / 2
        for strength in STRENGTHS:
            cells = np.diff(betainc(mean * strength, (1 - mean) * strength, edges), axis=1)
            total = np.maximum((cells * likelihood).sum(axis=1), 1e-300)
            best = max(best, (usual + float(weight @ np.log(total)), mean, float(strength)))
    return best[1:]


def _integrate(numbers: FloatArray, mean: float, strength: float) -> FloatArray:
    """Return the mean and the standard deviation of every class prior, (2, n_labels)."""
    alpha, beta = mean * strength, (1 - mean) * strength
    edges, likelihood = _lay_cells(numbers)
    below = betainc(alpha, beta, edges)
    weight = np.diff(below, axis=1) * likelihood
    total = weight.sum(axis=1, keepdims=True)
    # Far from what is usual, the beta distribution does not count.
    weight = np.where(total > 0, weight / np.where(total > 0, total, 1), 0)
    weight = np.where(total > 0, weight, likelihood / likelihood.sum(axis=1, keepdims=True))
    centre = (edges[:, 1:] + edges[:, :-1]) / 2
    inside = np.maximum(below[:, 1], 1e-300)
    lowest = mean * betainc(alpha + 1, beta, edges[:, 1]) / inside  # the mean of the first cell
    centre[:, 0] = np.where(edges[:, 0] == 0, np.minimum(lowest, centre[:, 0]), centre[:, 0])
    prior = (weight * centre).sum(axis=1)
    spread = np.sqrt((weight * (centre - prior[:, None]) ** 2).sum(axis=1))
    return np.stack([prior, spread])


def _lay_cells(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the edges of the cells of priors of each label, and the likelihood of every cell."""
    count, asked, rate = numbers
    low, high = bound_priors(count, asked, rate)
    # Narrow at the low end: with a rare label most of the probability is next to 0.
    edges = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, N_CELLS + 1) ** 2
    return edges, find_likelihood((edges[:, 1:] + edges[:, :-1]) / 2, count, asked, rate)
