r"""One rate of answers for all labels, from counts of two halves of the rows.

Where only "no" is counted (an exclusion), label j has the share :math:`p (1 - \pi_j)`, which is
nearly p where the label is rare. The quarter of the labels with the largest share in one half is
rare, or lucky; its share in the other half has no luck. Its labels still have some relevant rows:
of q labels, one in q + 1 is the guess, and the standard error is as large.

Where "no" and "yes" are said, the shares of label j are :math:`a (1 - \pi_j)` and :math:`b \pi_j`,
so all labels lie on the line

.. math:: \mathrm{share\ of\ no} / a + \mathrm{share\ of\ yes} / b = 1.

Its residual has mean 0 in every label, so each weight of the labels gives an equation. The best
weights are those of `comes.priors.rate_effects`, with :math:`\eta` the class prior as the other
half of the rows suggests it: it does not depend on the residual, so shares that are noisy cost
precision, and do not bias.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from comes.priors.rate_effects import LARGEST_LOGIT, LARGEST_STEP, weigh_prior

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

TOP, HIGHEST = 1 / 4, 1 / 16  # parts of the labels that tell the rate, and whether it is one
FEW_LABELS = 20  # of fewer, perhaps none is rare
DIFFERENT, BY_CHANCE = 0.02, 3.0  # how far rates differ to matter, and in standard errors
N_STEPS = 60
PSEUDO_PAIRS = 2.0  # of all labels together, that add to what the other half has of a label


@dataclass(frozen=True, eq=False)
class SharedRate:
    """The rate at which irrelevant pairs get the one answer that is counted."""

    rate: FloatArray  # (n_labels,)
    lowest: FloatArray  # a lower bound, 19 times in 20
    error: float = 0.0
    differs: bool = False  # whether some labels have a higher rate


@dataclass(frozen=True, eq=False)
class SharedLine:
    """The rates of "no" and "yes"."""

    rates: FloatArray  # (2, n_labels)
    covariance: FloatArray  # (2, 2); 0 for what was given
    differs: bool  # whether labels have different rates


def find_shared_rate(count: Counts, asked: Counts) -> SharedRate:
    """Return the rate that the rarest labels show.

    Parameters
    ----------
    count, asked : int arrays of shape (2, n_labels)
        How many pairs have the answer, of how many; some have.
    """
    q = count.shape[1]
    said, n = count_top(count, asked, TOP)
    mean = count.sum() / asked.sum()
    share, n = (said / n, n) if said / max(n, 1) > mean else (mean, int(asked.sum()))
    sampling = math.sqrt(share * (1 - share) / n)
    relevant = 1 / (int(asked.any(axis=0).sum()) + 1)
    rate = min(1.0, share / (1 - relevant))
    of_all = (1 - mean / rate) / 2  # a rarest label has less than half of the mean class prior
    error = math.hypot(sampling / (1 - relevant), rate * math.hypot(relevant, of_all))
    above, n_above = count_top(count, asked, HIGHEST)
    excess = above / max(n_above, 1) - rate
    chance = math.sqrt(rate * (1 - rate) / max(n_above, 1))
    differs = excess > max(DIFFERENT * rate, BY_CHANCE * chance)
    lowest = max(share - 1.645 * sampling, 1e-9)
    return SharedRate(np.full(q, rate), np.full(q, lowest), error, differs)


def count_top(count: Counts, asked: Counts, part: float) -> tuple[int, int]:
    """Return how many pairs have the answer, and of how many, in labels with large shares.

    A half of the rows chooses the labels, the other one counts, and the other way round.
    """
    said = total = 0
    for chosen, counted in ((0, 1), (1, 0)):
        labels = np.flatnonzero(asked[chosen])
        if len(labels):
            n_top = math.ceil(part * len(labels))
            share = count[chosen, labels] / asked[chosen, labels]
            top = labels[np.argpartition(-share, n_top - 1)[:n_top]]
            said += int(count[counted, top].sum())
            total += int(asked[counted, top].sum())
    return said, total


def fit_line(
    no: Counts, yes: Counts, maybe: Counts, given: tuple[FloatArray | None, FloatArray | None]
) -> SharedLine:
    """Return the rates of "no" and "yes" that all labels share.

    Parameters
    ----------
    no, yes, maybe : int arrays of shape (2, n_labels)
    given : pair of arrays of shape (n_labels,), or None
        Rates that are known, and are kept.
    """
    asked, q = no + yes + maybe, no.shape[1]
    is_free = np.array([rate is None for rate in given])
    if not maybe.any():  # every answer is sure
        ones = [np.ones(q) if rate is None else rate for rate in given]
        return SharedLine(np.stack(ones), np.zeros((2, 2)), False)
    known = [np.nan if rate is None else logit(np.clip(rate, 1e-3, 0.999)).mean() for rate in given]
    sure = logit((no.sum() + yes.sum() + 0.5) / (asked.sum() + 1))
    theta = np.where(is_free, sure, known)
    free = np.flatnonzero(is_free)
    for _ in range(N_STEPS * len(free)):
        rates = _spread_rates(theta, given, q)
        weight, direction, residual = _weigh_labels(no, yes, asked, rates)
        moment = (weight * residual).sum(axis=(1, 2))
        slope = np.einsum("ahq,bhq->ab", weight, direction * asked)
        prior_moment, prior_slope = weigh_prior(theta)
        step = np.zeros(2)
        towards = (moment + prior_moment)[free]
        step[free] = np.linalg.solve((slope + prior_slope)[np.ix_(free, free)], towards)
        step = np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        theta = np.where(is_free, np.clip(theta + step, -LARGEST_LOGIT, LARGEST_LOGIT), theta)
        if abs(step).max() < 1e-7:
            break
    rates = _spread_rates(theta, given, q)
    covariance = _find_covariance(no, yes, asked, rates, free, weigh_prior(theta)[1])
    return SharedLine(rates, covariance, _find_difference(no, yes, asked, rates))


def _spread_rates(
    theta: FloatArray, given: tuple[FloatArray | None, FloatArray | None], q: int
) -> FloatArray:
    """Return a and b of every label, (2, n_labels)."""
    pairs = zip(expit(theta), given, strict=True)
    return np.stack([np.full(q, found) if rate is None else rate for found, rate in pairs])


def _weigh_labels(
    no: Counts, yes: Counts, asked: Counts, rates: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return D / V, D, (2, halves, n_labels) for a and b, and the residuals of all pairs."""
    a, b = np.clip(rates, 1e-3, 0.999)
    is_not, is_it = no / a, yes / b
    mean = is_it.sum() / (is_it.sum() + is_not.sum())
    others, of_others = is_it[::-1], (is_it + is_not)[::-1]
    eta = (others + PSEUDO_PAIRS * mean) / (of_others + PSEUDO_PAIRS)
    direction = np.stack([(1 - eta) * (1 - a), eta * (1 - b)])
    variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
    return direction / variance, direction, is_not + is_it - asked


def _find_covariance(
    no: Counts,
    yes: Counts,
    asked: Counts,
    rates: FloatArray,
    free: npt.NDArray[np.int64],
    prior_slope: FloatArray,
) -> FloatArray:
    """Return the covariance of a and b, (2, 2): a sandwich over labels."""
    weight, direction, residual = _weigh_labels(no, yes, asked, rates)
    by_label = (weight * residual).sum(axis=1)
    inside = np.ix_(free, free)
    said = np.stack([no, yes]) * ((1 - rates) / np.maximum(rates, 1e-3))[:, None]
    slope = (np.einsum("ahq,bhq->ab", weight, said) + prior_slope)[inside]
    inverse = np.linalg.inv(slope)
    # Where few labels tell the rates, their residuals are small since the rates were fitted to
    # them, so the variance that the model expects counts if it is larger.
    expected = np.einsum("ahq,bhq->ab", weight, direction * asked)
    seen = by_label @ by_label.T
    meats = [(meat + prior_slope)[inside] for meat in (expected, seen)]
    of_logits = np.zeros((2, 2))
    of_logits[inside] = max((inverse @ meat @ inverse.T for meat in meats), key=np.trace)
    scale = (rates * (1 - rates)).mean(axis=1)
    return np.asarray(of_logits * np.outer(scale, scale))


def _find_difference(no: Counts, yes: Counts, asked: Counts, rates: FloatArray) -> bool:
    """Return whether the residuals of a label agree in the two halves, so rates are its own.

    The product of the two has the mean of a squared deviation, and none where rates are shared.
    """
    product = _weigh_labels(no, yes, asked, rates)[2].prod(axis=0)
    deviation = product.sum() / max(asked.prod(axis=0).sum(), 1)
    return bool(
        deviation > DIFFERENT**2 and product.sum() > BY_CHANCE * math.sqrt((product**2).sum())
    )
