r"""How often answers are sure, by group: efficient moments, and random effects over the groups.

A record is one answer about one pair, and eta the probability that the pair is relevant. With
a and b the rates of "no" and "yes" (`comes.answers.AnswerRates`), whatever the truth is,

.. math:: \rho = \mathrm{no} / a + \mathrm{yes} / b - 1

has mean 0, so every weight that depends only on x gives an equation for a and b. The best weights
are :math:`D / V`, where :math:`D = ((1 - \eta)(1 - a), \eta (1 - b))` is how fast the mean of
:math:`\rho` moves with the logits of a and b, and :math:`V = (1 - \eta) (1 / a - 1) + \eta (1 / b -
1)` is its variance. An eta that is off costs precision, and does not bias. Where it is 0 or 1, the
truth is known, and the equation is that of a share.

The logits of a group (a label, a person) are drawn around a mean with a variance that is itself
estimated (REML). So groups that agree share one rate, groups that do not have their own, and one
with few records gets the mean. Where eta says nothing, only the share of sure answers is known; a
weak prior then makes a and b one, with a large error: the logits of a and b differ by about 2, and
half an answer is sure, half is not (so that a rate of 1 is not reached with few answers).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

FloatArray = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

N_STEPS = 25
LARGEST_LOGIT = 7.0  # a rate of 0.999
LARGEST_STEP = 1.0  # of a logit
SPREADS = np.concatenate([[0.0], np.geomspace(0.05, 3, 12)])  # of logits over groups, tried in turn
ALIKE = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 4  # the precision of logit a - logit b ~ N(0, 4)
A_LITTLE = 0.01


@dataclass(frozen=True, eq=False)
class Records:
    """Answers one by one.

    Attributes
    ----------
    is_no, is_yes : bool arrays of shape (n_records,)
        What was said; neither is "maybe".
    lean : array of shape (n_records,)
        The logit of "yes" among sure answers, given x; that of eta is lean + log a - log b.
    group, row : int arrays of shape (n_records,)
        Whose rates count, and the item: answers about one item may depend on each other.
    offset : array of shape (n_records, 2)
        Is added to the logits of a and b of the group.
    n_groups : int
    """

    is_no: npt.NDArray[np.bool_]
    is_yes: npt.NDArray[np.bool_]
    lean: FloatArray
    group: Places
    row: Places
    offset: FloatArray
    n_groups: int


@dataclass(frozen=True, eq=False)
class RateEffects:
    """The logits of a and b by group.

    Attributes
    ----------
    logit : array of shape (n_groups, 2)
    mean : array of shape (2,)
        Of the groups.
    spread : array of shape (2,)
        Standard deviations between groups.
    own : array of shape (n_groups, 2, 2)
        Covariance of a group's logits, were the mean known.
    share_of_mean : array of shape (n_groups, 2, 2)
        How a group's logits follow the mean.
    mean_covariance : array of shape (2, 2)
    """

    logit: FloatArray
    mean: FloatArray
    spread: FloatArray
    own: FloatArray
    share_of_mean: FloatArray
    mean_covariance: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Of the logits of each group, (n_groups, 2, 2)."""
        follow = self.share_of_mean
        return self.own + follow @ self.mean_covariance @ follow.transpose(0, 2, 1)

    def average(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means of the rates a and b over groups, (2,), and their standard errors.

        Parameters
        ----------
        weights : array of shape (n_groups, 2)
            They add up to 1 over the groups.
        """
        rates = expit(self.logit)
        moves = weights * rates * (1 - rates)
        own = (moves**2 * np.diagonal(self.own, axis1=1, axis2=2)).sum(axis=0)
        common = np.einsum("ga,gab->ab", moves, self.share_of_mean)
        shared = np.einsum("ab,bc,ac->a", common, self.mean_covariance, common)
        return (weights * rates).sum(axis=0), np.sqrt(own + shared)


def fit_rates(records: Records, start: FloatArray) -> RateEffects:
    """Return the logits of a and b of every group, from ``start``, of shape (2,).

    Each step solves the equations that are linear at the current logits: with the slopes P_g and
    moments s_g of a group, its logits theta_g and their mean mu,
    (T^-1 + P_g) (theta_g - mu) = P_g (theta_g - mu) + s_g at the old theta_g.
    """
    mean = np.asarray(start, dtype=float)
    logit = np.tile(mean, (records.n_groups, 1))
    for step in range(N_STEPS):
        # The mean is fitted with slopes at the mean: slopes at a group's own logits are smaller
        # where chance made these large, which would lower the mean and take skewness for a spread.
        moment, slope = sum_moments(records, np.tile(mean, (records.n_groups, 1)))
        if step % 4 == 0:
            spread = choose_spread(slope, moment, mean)
        follow, weight = _weigh_groups(slope, spread)
        prior_moment, prior_slope = weigh_prior(mean)
        towards = np.einsum("gba,gb->a", follow, moment) + prior_moment
        move = np.linalg.solve(weight.sum(axis=0) + prior_slope, towards)
        mean = _move(mean, mean + move)
        moment, slope = sum_moments(records, logit)
        follow, _ = _weigh_groups(slope, spread)
        own = follow * spread**2  # B T, where T is diagonal
        pull = np.einsum("gab,gb->ga", slope, logit - mean) + moment
        before, logit = logit, _move(logit, mean + np.einsum("gab,gb->ga", own, pull))
        if step % 4 and abs(logit - before).max() < 1e-6:
            break
    covariance = _mean_covariance(records, logit, follow, spread, weigh_prior(mean)[1])
    return RateEffects(logit, mean, spread, own, follow, covariance)


def _move(logit: FloatArray, target: FloatArray) -> FloatArray:
    """Return logits moved towards a target, not too far at once."""
    step = np.clip(target - logit, -LARGEST_STEP, LARGEST_STEP)
    return np.clip(logit + step, -LARGEST_LOGIT, LARGEST_LOGIT)


def sum_moments(records: Records, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, by group, the sum of the moments at these logits, (g, 2), and its slope, (g, 2, 2).

    Parameters
    ----------
    records : Records
    logit : array of shape (n_groups, 2)
    """
    rates = expit(logit[records.group] + records.offset)
    direction, variance, residual = _weigh_records(records, rates)
    moments = direction * (residual / variance)[:, None]
    scaled = direction / np.sqrt(variance)[:, None]
    slopes = scaled[:, :, None] * scaled[:, None, :]
    return _sum_by(records.group, moments, records.n_groups), _sum_by(
        records.group, slopes, records.n_groups
    )


def _weigh_records(
    records: Records, rates: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return D, (n, 2), V and rho of every record, at its rates a and b, (n, 2)."""
    a, b = rates.T
    eta = expit(records.lean + np.log(a) - np.log(b))
    direction = np.stack([(1 - eta) * (1 - a), eta * (1 - b)], axis=1)
    variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
    residual = records.is_no / a + records.is_yes / b - 1
    return direction, variance, residual


def choose_spread(slope: FloatArray, pull: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the standard deviations of a's and b's logits between groups, by REML on a grid.

    The prior of the mean counts only as much as a mean that is not known needs: a mean that differs
    from it is no sign that groups differ.
    """
    grid = np.stack(np.meshgrid(SPREADS, SPREADS), axis=-1).reshape(-1, 2)
    follow, weight = _weigh_groups(slope, grid[:, None])  # (grid, g, 2, 2)
    prior_moment, prior_slope = (A_LITTLE * part for part in weigh_prior(mean))
    precision = weight.sum(axis=1) + prior_slope
    towards = np.einsum("sgba,gb->sa", follow, pull) + prior_moment
    shift = np.linalg.solve(precision, towards[:, :, None])[:, :, 0]
    own = follow * (grid**2)[:, None, None, :]
    deviance = (
        -np.linalg.slogdet(follow)[1].sum(axis=1)
        - np.einsum("ga,sgab,gb->s", pull, own, pull, optimize=True)
        - (towards * shift).sum(axis=1)
        + np.linalg.slogdet(precision)[1]
        + grid.sum(axis=1)  # a weak preference for groups that agree
    )
    return np.asarray(grid[deviance.argmin()])


def weigh_prior(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the moment of the prior of the mean, (2,), and its slope, (2, 2)."""
    rate = expit(mean.mean())
    return (0.5 - rate) / 2 - ALIKE @ mean, ALIKE + rate * (1 - rate) / 4


def _weigh_groups(slope: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return B = (1 + T P)^-1, how a group follows the mean, and P B, its weight for it."""
    follow = np.asarray(np.linalg.inv(np.eye(2) + (spread**2)[..., None] * slope), dtype=np.float64)
    return follow, slope @ follow


def _mean_covariance(
    records: Records,
    logit: FloatArray,
    follow: FloatArray,
    spread: FloatArray,
    prior_slope: FloatArray,
) -> FloatArray:
    """Return the covariance of the mean: a sandwich over rows, groups and the prior."""
    rates = expit(logit[records.group] + records.offset)
    direction, variance, residual = _weigh_records(records, rates)
    weights = np.einsum("nba,nb->na", follow[records.group], direction / variance[:, None])
    said = np.stack([records.is_no, records.is_yes], axis=1)
    bread = weights.T @ (said * (1 - rates) / rates) + prior_slope
    by_row = _sum_by(records.row, weights * residual[:, None], int(records.row.max()) + 1)
    slope = sum_moments(records, logit)[1]
    between = (slope @ follow).transpose(0, 2, 1) * spread**2 @ (slope @ follow)
    meat = by_row.T @ by_row + between.sum(axis=0) + prior_slope
    inverse = np.linalg.inv(bread)
    return np.asarray(inverse @ meat @ inverse.T)


def _sum_by(place: Places, values: FloatArray, n: int) -> FloatArray:
    """Return the sums of values, (n_records, ...), over the records of each place, (n, ...)."""
    flat = values.reshape(len(values), -1)
    sums = [np.bincount(place, column, minlength=n) for column in flat.T]
    return np.stack(sums, axis=1, dtype=np.float64).reshape(n, *values.shape[1:])
