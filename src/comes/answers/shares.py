r"""How often people say yes (or no) about a label, from questions drawn in several rounds.

A label has n items. Round k draws among the items :math:`O_k` that no earlier round asked about,
item i with probability :math:`p_i`, which may depend on everything that was said before. With
:math:`v_i` = 1 where the answer is the one that is counted, and :math:`m_i` any number that is
known before the round (what a model expects, or the share as estimated so far),

.. math:: T_k = \sum_{i \notin O_k} v_i + \sum_{i \in O_k} m_i
    + \sum_{i \text{ drawn}} \frac{v_i - m_i}{p_i}, \qquad
    E[T_k \mid \text{earlier rounds}] = \sum_i v_i

so every :math:`T_k` is unbiased, and the errors of different rounds are uncorrelated. They are
combined with weights inverse to the spread :math:`\sum_{O_k} (1 / p_i - 1)`, which the design fixes
and no answer changes:

.. math:: \hat s = \frac1n \sum_k w_k T_k, \qquad
    \hat V = \frac1{n^2} \sum_k w_k^2 \sum_{i \text{ drawn}} \frac{1 - p_i}{p_i^2} (v_i - m_i)^2

Where all rounds are uniform, that is the share among all items asked about. Answers that are still
missing are taken to be missing by chance, which adds to the variance. The interval is that of
Clopper and Pearson for :math:`\hat s (1 - \hat s) / \hat V` answers (Korn and Graubard, 1998).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]


class Share(NamedTuple):
    """An estimated share of the items, with its bounds.

    Examples
    --------
    >>> Share(0.3, 0.05, 0.21, 0.4).lower
    0.21
    """

    share: float
    standard_error: float
    lower: float
    upper: float


def pool_shares(
    shares: Sequence[Share], sizes: Sequence[int], *, confidence: float = 0.95
) -> Share:
    """Return the share over several groups of items, of which each was estimated by itself.

    Parameters
    ----------
    shares : sequence of Share
    sizes : sequence of int
        How many items each group has.
    confidence : float

    Examples
    --------
    >>> first, second = Share(0.4, 0.05, 0.3, 0.5), Share(0.2, 0.05, 0.1, 0.3)
    >>> pooled = pool_shares([first, second], [300, 100])
    >>> round(pooled.share, 3), round(pooled.standard_error, 3)
    (0.35, 0.04)
    """
    if len(shares) == 1:
        return shares[0]
    part = np.asarray(sizes) / sum(sizes)
    share, error, lower, upper = np.array(shares).T
    variance = float(part**2 @ error**2)
    # Where the variance is 0, the groups say how wide their intervals are.
    unit = float(part**2 @ ((upper - lower) / 4) ** 2) / 0.25
    return _bound(float(part @ share), variance, unit, (0.0, 1.0), confidence)


class _Round(NamedTuple):
    """What one round asked: answers NaN where there is none yet."""

    values: FloatArray
    p: FloatArray  # of all that were drawn; NaN where they were chosen without chance
    expected: FloatArray
    n_open: int
    spread: float
    expected_total: float

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        return ~np.isnan(self.values)

    @property
    def is_drawn(self) -> bool:
        """Whether it was drawn by chance, and somebody answered."""
        return not np.isnan(self.p).any() and bool(self.answered.any())


def estimate_share(
    values: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    rounds: npt.ArrayLike,
    n_items: int,
    *,
    expected: npt.ArrayLike | None = None,
    spreads: Mapping[int, float] | None = None,
    expected_totals: Mapping[int, float] | None = None,
    confidence: float = 0.95,
) -> Share:
    """Estimate the share of all items about which people would say yes (or no), for one label.

    Parameters
    ----------
    values : array of shape (n_asked,)
        1 where the answer is the one that is counted, 0 where it is another one, NaN where a
        question was drawn and nobody has answered it. It is taken to be missing by chance.
    probabilities : array of shape (n_asked,)
        With which a round drew the item among those that were not asked before. NaN in a round that
        was not drawn by chance: chosen by a model, or imported.
    rounds : int array of shape (n_asked,)
        Number of the round that asked first; they follow each other in this order.
    n_items : int
        Of which these are a part.
    expected : array of shape (n_asked,), optional
        What a model expected the value to be before the round; NaN where there was none.
    spreads : mapping of round to number, optional
        The sum of 1 / p - 1 over all items that the round could draw, as `Drawn` has it. By default
        it is estimated from the items drawn.
    expected_totals : mapping of round to number, optional
        The sum of ``expected`` over all items that the round could draw; without it the model is
        not used.
    confidence : float

    Returns
    -------
    share : Share

    Examples
    --------
    >>> uniform = estimate_share([1, 0, 0, 1, 0], [0.5] * 5, [0] * 5, n_items=10)
    >>> uniform.share
    0.4
    >>> values, p = [1, 0, 0, 1, 0, 1, 1], [0.5] * 5 + [0.8, 0.9]  # two more, of the likely ones
    >>> later = estimate_share(values, p, [0] * 5 + [1] * 2, n_items=10)
    >>> round(later.share, 2), later.lower >= 0.4  # four of ten are known
    (0.54, True)
    """
    v, p, numbers = (
        np.asarray(array, dtype=np.float64) for array in (values, probabilities, rounds)
    )
    m = np.full(len(v), np.nan) if expected is None else np.asarray(expected, dtype=np.float64)
    if not len(v) == len(p) == len(numbers) == len(m) <= n_items:
        raise ComesError(
            "values, probabilities, rounds and expected must have the same length, at most "
            f"n_items; got {len(v)}, {len(p)}, {len(numbers)}, {len(m)} of {n_items}."
        )
    if ((p <= 0) | (p > 1)).any():
        raise ComesError("probabilities must be in (0, 1], or NaN. Give those of the draw.")
    asked, n_before = [], 0
    for number in np.unique(numbers):
        own = numbers == number
        spread = (spreads or {}).get(int(number), float(((1 - p[own]) / p[own] ** 2).sum()))
        total = (expected_totals or {}).get(int(number), np.nan)
        asked.append(_Round(v[own], p[own], m[own], n_items - n_before, spread, total))
        n_before += int(own.sum())
    known = v[~np.isnan(v)]
    bounds = known.sum() / n_items, 1 - (1 - known).sum() / n_items
    return _bound(*_combine_rounds(asked, n_items), bounds, confidence)


def _combine_rounds(asked: list[_Round], n_items: int) -> tuple[float, float, float]:
    """Return the share, its variance, and the variance that it would have per unit."""
    totals, units, predicted = np.zeros(len(asked)), np.full(len(asked), np.inf), []
    known = known_unit = 0.0  # total of the items of earlier rounds
    so_far = 0.5, 0.0  # share and how many answers it stands on
    for k, one in enumerate(asked):
        v, part = one.values[one.answered], one.answered.mean()
        m, m_total = _predict(one, so_far)
        predicted.append(m)
        if one.is_drawn:
            differences = (v - m[one.answered]) / one.p[one.answered]
            totals[k] = known + m_total + differences.sum() / part
            units[k] = known_unit + (one.spread + one.n_open) / part - one.n_open
        # What is not answered yet is as what is answered.
        known += v.sum() / part if part else so_far[0] * len(one.values)
        known_unit += len(one.values) ** 2 * (1 - part) / max(len(v), 1)
        so_far = _update(so_far, totals[: k + 1], units[: k + 1], n_items)
    if np.isinf(units).all():
        return np.nan, np.nan, np.nan
    weight = _weigh(units)
    later = weight[::-1].cumsum()[::-1] - weight  # of the rounds to which a round is known
    variance = sum(map(_find_variance, asked, predicted, weight, later))
    unit = float((weight**2)[weight > 0] @ units[weight > 0])
    return float(weight @ totals) / n_items, float(variance) / n_items**2, unit / n_items**2


def _find_variance(one: _Round, expected: FloatArray, weight: float, later: float) -> float:
    """Return what a round adds to the variance: by who was drawn, and by who has answered."""
    is_there = one.answered
    n_drawn, n_answered = len(is_there), int(is_there.sum())
    if n_answered == 0:
        return 0.0
    v, m = one.values[is_there], expected[is_there]
    p = one.p[is_there] if one.is_drawn else np.ones(n_answered)
    by_draw = weight**2 * ((1 - p) / p**2 * (v - m) ** 2).sum() * n_drawn / n_answered
    adds = weight * (v - m) / p + later * v  # what an answer adds to the total
    missing = n_drawn**2 * (1 / n_answered - 1 / n_drawn)
    by_answer = missing * (adds.var(ddof=1) if n_answered > 1 else adds @ adds)
    return float(by_draw + by_answer)


def _predict(one: _Round, so_far: tuple[float, float]) -> tuple[FloatArray, float]:
    """Return what was expected of the items drawn, and in all of those that could be drawn."""
    if not np.isnan(one.expected).any() and not np.isnan(one.expected_total):
        return one.expected, one.expected_total
    share, n = so_far
    v, p = one.values[one.answered], one.p[one.answered]
    if one.is_drawn and (n == 0 or np.ptp(one.p) == 0):
        # A uniform round estimates the same, whatever is expected; its own mean is the best guess.
        share, n = float((v / p).sum() / (1 / p).sum()), len(v)
    share = (share * n + 0.5) / (n + 1)
    return np.full(len(one.values), share), share * one.n_open


def _update(
    so_far: tuple[float, float], totals: FloatArray, units: FloatArray, n_items: int
) -> tuple[float, float]:
    """Return the share as the rounds so far estimate it, and how many answers it stands on."""
    if np.isinf(units).all():
        return so_far
    weight = _weigh(units)
    unit = float((weight**2)[weight > 0] @ units[weight > 0]) / n_items**2
    share = min(max(float(weight @ totals) / n_items, 0.0), 1.0)
    return share, 1 / max(unit, 1 / n_items)


def _weigh(units: FloatArray) -> FloatArray:
    """Return weights that add up to 1: inverse to variances per unit; all for one that is exact."""
    inverse = (units <= 0).astype(np.float64) if (units <= 0).any() else 1 / units
    return np.asarray(inverse / inverse.sum())


def _bound(
    share: float, variance: float, unit: float, known: tuple[float, float], confidence: float
) -> Share:
    """Return the share inside what is known, with the interval of Korn and Graubard."""
    if np.isnan(share):
        return Share(np.nan, np.nan, *known)
    share = min(max(share, known[0]), known[1])
    spread = share * (1 - share)
    n = spread / variance if spread > 0 and variance > 0 else (1 / unit if unit > 0 else np.inf)
    if np.isinf(n) or known[0] == known[1]:
        return Share(share, 0.0, share, share)
    yes, tail = share * n, (1 - confidence) / 2
    lower = float(betaincinv(yes, n - yes + 1, tail)) if yes > 0 else 0.0
    upper = float(betaincinv(yes + 1, n - yes, 1 - tail)) if yes < n else 1.0
    return Share(share, float(variance**0.5), max(lower, known[0]), min(upper, known[1]))
