r"""Which pairs to ask about next, and what the answers say about all items.

**Choose.** A pair is relevant with probability eta. With Z the answer about it, in the rates of
`AnswerRates`,

.. math:: I = H(Z) - (1 - \eta) H(Z \mid \text{irrelevant}) - \eta H(Z \mid \text{relevant})

is the expected information of the answer about the pair, in bits. Where everybody who is asked
knows the answer, that is the entropy of eta: largest, one bit, at one half.

**Draw.** Of the open pairs of a label, :math:`N_j` in all, :math:`c_j` are drawn, pair i with

.. math:: p_i = \min\Big(1, \lambda_j \Big(\frac{f}{N_j} + (1 - f) \frac{I_i}{\sum_k I_k}\Big)\Big),
    \qquad \sum_i p_i = c_j

The floor f keeps a share of the questions uniform: no pair is out of reach, and no weight
:math:`1 / p_i` is huge.

**Estimate.** A label has n items. Round k draws among the items :math:`O_k` that no earlier round
asked about, item i with probability :math:`p_i`, which may depend on all earlier answers. With
:math:`v_i` = 1 where the answer is the one that is counted, and :math:`m_i` any number that is
fixed before the round (what a model expects, or the share as estimated so far),

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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers.annotators import State
from comes.answers.convert import IntArray
from comes.answers.evidence import AnswerRates, FloatArray
from comes.answers.matrix import Answers
from comes.errors import ComesError

BLOCK = 20  # questions about one label in a row: a new label every time is tiring
CONFIDENCE = 0.95  # of the interval of a share
FLOOR = 0.2  # share of the questions that is drawn as if there were no model


class Questions(NamedTuple):
    """Pairs to ask about, in order, and the expected information of each answer, (n_questions,)."""

    row: IntArray
    label: IntArray
    bits: FloatArray


class Drawn(NamedTuple):
    """Pairs that were drawn, in the order in which to ask them, and how they were drawn."""

    row: IntArray
    label: IntArray
    inclusion: FloatArray  # (n, q): the probability of each pair to be drawn; 0 if it could not

    @property
    def probability(self) -> FloatArray:
        """The probability with which each pair was drawn, (n_questions,)."""
        return np.asarray(self.inclusion[self.row, self.label])

    @property
    def spread(self) -> FloatArray:
        """1 / p - 1 for all pairs that could be drawn, 0 for the others, (n, q)."""
        inverse = np.ones_like(self.inclusion)
        return np.asarray(np.divide(1, self.inclusion, out=inverse, where=self.inclusion > 0) - 1)


class Round(NamedTuple):
    """The questions of one round about one label."""

    values: FloatArray  # v: 1 for the answer that is counted, 0 for another, NaN without one so far
    p: FloatArray  # NaN if questions were not drawn by chance: chosen by a model, or imported
    expected: FloatArray | float = np.nan  # m, if a model expected something
    expected_total: float = np.nan  # the sum of m over all items that could be drawn
    spread: float = np.nan  # the sum of 1 / p - 1 over them; by default estimated from those drawn

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """Which questions have an answer."""
        return ~np.isnan(self.values)

    @property
    def is_drawn(self) -> bool:
        """Whether it was drawn by chance, and somebody answered."""
        return not np.isnan(self.p).any() and bool(self.answered.any())


class Share(NamedTuple):
    """An estimated share of the items, with a 95 % interval."""

    share: float
    standard_error: float
    lower: float
    upper: float


def choose_questions(
    probabilities: npt.ArrayLike,
    count: int,
    *,
    answers: Answers | None = None,
    rates: AnswerRates | None = None,
) -> Questions:
    """Return the pairs whose answers are expected to tell most, spread over the labels.

    Every label has its share of the questions, as long as it has pairs without an answer.
    Questions about one label come together, 20 at a time.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of relevance, as a model predicts it now.
    count : int
        How many questions at most.
    answers : Answers, optional
        Answers so far: these pairs are left out.
    rates : AnswerRates, optional
        How often people dare to say "no" and "yes"; by default they always know.

    Returns
    -------
    questions : named tuple
        Arrays of shape (n_questions,), in the order in which to ask: ``row``, ``label``, and
        ``bits``, the expected information of the answer.

    Examples
    --------
    >>> answers = Answers.from_codes([[State.NO, 0], [0, 0], [0, 0]])
    >>> questions = choose_questions([[0.5, 0.9], [0.4, 0.6], [0.1, 0.8]], 3, answers=answers)
    >>> list(zip(questions.row.tolist(), questions.label.tolist()))
    [(1, 0), (1, 1), (2, 1)]
    """
    bits = expected_bits(probabilities, rates)
    _check_count(count)
    if answers is not None and answers.shape != bits.shape:
        raise ComesError(
            f"probabilities of shape {bits.shape} need answers of that shape; got {answers.shape}."
        )
    is_open = None if answers is None else answers.codes == State.NOT_ASKED
    row, label = spread_over_labels(bits, count, is_open)
    order = _order_in_blocks(label, np.arange(bits.shape[1]))
    return Questions(row[order], label[order], bits[row, label][order])


def draw_questions(
    probabilities: npt.ArrayLike,
    count: int,
    *,
    is_open: npt.NDArray[np.bool_] | None = None,
    rates: AnswerRates | None = None,
    floor: float = FLOOR,
    seed: int = 0,
) -> Drawn:
    """Draw pairs to ask about, more of those whose answers are expected to tell much.

    The draw is systematic along a random order, so that the number of questions is met, and every
    label gets its share up to one question. ``is_open`` marks the pairs that may be drawn.
    """
    bits = expected_bits(probabilities, rates)
    allowed = np.ones(bits.shape, dtype=bool) if is_open is None else np.asarray(is_open)
    if allowed.shape != bits.shape:
        raise ComesError(f"is_open must have the shape {bits.shape}; got {allowed.shape}.")
    if not 0 < floor <= 1:
        raise ComesError(f"floor must be in (0, 1]; got {floor:g}. Without one, estimates fail.")
    _check_count(count)
    counts = share_questions(int(count), allowed.sum(axis=0))
    rng = np.random.default_rng(seed)
    p = np.zeros(bits.shape)
    rows, labels = [], []
    for j in np.flatnonzero(counts):
        rows.append(rng.permutation(np.flatnonzero(allowed[:, j])))
        labels.append(np.full(len(rows[-1]), j))
        p[rows[-1], j] = inclusion_probabilities(bits[rows[-1], j], counts[j], floor)
    if not rows:
        raise ComesError("nothing is left to ask: every pair has a question.")
    row, label = np.concatenate(rows), np.concatenate(labels)
    # Systematic: a pair is drawn if its step of the running sum crosses a whole number.
    ends = np.cumsum(p[row, label]) + rng.random()
    is_drawn = np.diff(np.floor(ends), prepend=np.floor(ends[0] - p[row[0], label[0]])) > 0
    row, label = row[is_drawn], label[is_drawn]
    order = _order_in_blocks(label, rng.permutation(label.max(initial=0) + 1))
    return Drawn(row[order], label[order], p)


def expected_bits(probabilities: npt.ArrayLike, rates: AnswerRates | None = None) -> FloatArray:
    """Return the expected information of an answer about every pair, 0 to 1, (n, q)."""
    eta = np.asarray(probabilities, dtype=np.float64)
    if not ((eta >= 0) & (eta <= 1)).all():
        raise ComesError("probabilities must be in [0, 1]. Pass what predict_proba returns.")
    a = b = np.ones(eta.shape[-1])
    f = 0.0
    if rates is not None:
        a, b, f = rates.no_rate, rates.yes_rate, rates.mistake_rate
    wrong_yes, wrong_no = f * (b > 0), f * (a > 0)  # a rate of 0 excludes mistakes, too
    a, b = np.minimum(a, 1 - wrong_yes), np.minimum(b, 1 - wrong_no)
    if_irrelevant = np.stack([a, wrong_yes, 1 - a - wrong_yes])  # of no, yes, maybe: (3, q)
    if_relevant = np.stack([wrong_no, b, 1 - b - wrong_no])
    overall = (1 - eta) * if_irrelevant[:, None] + eta * if_relevant[:, None]  # (3, n, q)
    remaining = (1 - eta) * _entropy(if_irrelevant) + eta * _entropy(if_relevant)
    return np.asarray(np.maximum(_entropy(overall) - remaining, 0))


def _entropy(distribution: FloatArray) -> FloatArray:
    """Return the entropy along the first axis, in bits; 0 log 0 is 0."""
    logs = np.log2(distribution, out=np.zeros_like(distribution), where=distribution > 0)
    return np.asarray(-(distribution * logs).sum(axis=0))


def spread_over_labels(
    merits: npt.ArrayLike, count: int, allowed: npt.NDArray[np.bool_] | None = None
) -> tuple[IntArray, IntArray]:
    """Return row and label of the best pairs: the best of each label, then the second, and so on.

    At most ``count``, of those that are allowed; within a turn the best first.
    """
    values = np.asarray(merits, dtype=np.float64)
    if allowed is not None:
        values = np.where(allowed, values, -np.inf)
    order = _best_rows(values, count)
    ranked = np.take_along_axis(values, order, axis=0)
    turn, label = np.nonzero(ranked > -np.inf)
    best = np.lexsort((-ranked[turn, label], turn))[:count]
    return order[turn[best], label[best]], label[best]


def _best_rows(values: FloatArray, count: int) -> IntArray:
    """Return the rows of the highest values of each label, best first, (<= count, q)."""
    if count >= len(values):
        return np.argsort(-values, axis=0, kind="stable")
    best = np.argpartition(-values, count - 1, axis=0)[:count]  # sorting all would take long
    best.sort(axis=0)
    order = np.argsort(-np.take_along_axis(values, best, axis=0), axis=0, kind="stable")
    return np.take_along_axis(best, order, axis=0)


def _order_in_blocks(label: IntArray, rank: IntArray) -> IntArray:
    """Return an order of questions: 20 about one label, then the label of the next rank."""
    turn = np.zeros(len(label), dtype=np.int64)
    for number in np.unique(label):
        turn[label == number] = np.arange((label == number).sum())
    return np.lexsort((turn, rank[label], turn // BLOCK))


def _check_count(count: int) -> None:
    """Raise an error unless count is a number of questions."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise ComesError(f"the number of questions must be 1 or more; got {count!r}.")


def share_questions(count: int, n_open: npt.NDArray[np.integer]) -> FloatArray:
    """Return how many questions each label gets: the same, but no more than it has open pairs."""
    if n_open.sum() <= count:
        return n_open.astype(np.float64)
    low, high = 0.0, float(n_open.max())
    for _ in range(60):  # the level at which the labels together get as many as wanted
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(n_open, level).sum() < count else (low, level)
    return np.asarray(np.minimum(n_open, high), dtype=np.float64)


def inclusion_probabilities(bits: npt.ArrayLike, count: float, floor: float = FLOOR) -> FloatArray:
    """Return the probabilities p of the open pairs of one label; they add up to count."""
    information = np.asarray(bits, dtype=np.float64)
    n, total = len(information), information.sum()
    if count >= n:
        return np.ones(n)
    size = floor / n + (1 - floor) * (information / total if total > 0 else np.full(n, 1 / n))
    p, is_sure = count * size, np.zeros(n, dtype=bool)
    while (p > 1).any():  # those above 1 are certain, and the others share what is left
        is_sure |= p >= 1
        p = np.where(is_sure, 1.0, size * (count - is_sure.sum()) / size[~is_sure].sum())
    return p


def estimate_share(rounds: Sequence[Round], n_items: int) -> Share:
    """Return the share of the items with the answer that is counted, from rounds in their order."""
    totals, units, expected = np.zeros(len(rounds)), np.full(len(rounds), np.inf), []
    before = before_unit = 0.0  # total of the items of earlier rounds
    share, n_answers = 0.5, 0.0  # as estimated so far, and how many answers it stands on
    n_open, n_yes, n_no = n_items, 0, 0
    for k, one in enumerate(rounds):
        v, p, part = one.values[one.answered], one.p[one.answered], one.answered.mean()
        if ((one.p <= 0) | (one.p > 1)).any():
            raise ComesError("probabilities must be in (0, 1], or NaN. Give those of the draw.")
        m, m_total = _expect(one, n_open, share, n_answers)
        expected.append(m)
        if one.is_drawn:
            spread = ((1 - one.p) / one.p**2).sum() if np.isnan(one.spread) else one.spread
            totals[k] = before + m_total + ((v - m[one.answered]) / p).sum() / part
            units[k] = before_unit + (spread + n_open) / part - n_open
        # What is not answered yet is as what is answered.
        before += v.sum() / part if part else share * len(one.values)
        before_unit += len(one.values) ** 2 * (1 - part) / max(len(v), 1)
        if np.isfinite(units).any():
            weight, unit = _weigh(units[: k + 1])
            share = min(max(float(weight @ totals[: k + 1]) / n_items, 0.0), 1.0)
            n_answers = 1 / max(unit / n_items**2, 1 / n_items)
        n_open, n_yes, n_no = n_open - len(one.values), n_yes + v.sum(), n_no + (1 - v).sum()
    bounds = n_yes / n_items, 1 - n_no / n_items
    if np.isinf(units).all():
        return Share(np.nan, np.nan, *bounds)
    later = weight[::-1].cumsum()[::-1] - weight  # of the rounds after each
    variance = float(sum(map(_round_variance, rounds, expected, weight, later))) / n_items**2
    return _with_interval(float(weight @ totals) / n_items, variance, unit / n_items**2, bounds)


def _expect(one: Round, n_open: int, share: float, n_answers: float) -> tuple[FloatArray, float]:
    """Return m of the items drawn, and its sum over all items that could be drawn."""
    if np.isfinite(one.expected).all() and np.isfinite(one.expected_total):
        return np.asarray(one.expected), one.expected_total
    v, p = one.values[one.answered], one.p[one.answered]
    if one.is_drawn and (n_answers == 0 or np.ptp(one.p) == 0):
        # A uniform round estimates the same, whatever is expected; its own mean is the best guess.
        share, n_answers = float((v / p).sum() / (1 / p).sum()), len(v)
    share = (share * n_answers + 0.5) / (n_answers + 1)
    return np.full(len(one.values), share), share * n_open


def _round_variance(one: Round, expected: FloatArray, weight: float, later: float) -> float:
    """Return what a round adds to the variance: by who was drawn, and by who has answered."""
    n_drawn, n_answered = len(one.values), int(one.answered.sum())
    if n_answered == 0:
        return 0.0
    v, m = one.values[one.answered], expected[one.answered]
    p = one.p[one.answered] if one.is_drawn else np.ones(n_answered)
    by_draw = weight**2 * ((1 - p) / p**2 * (v - m) ** 2).sum() * n_drawn / n_answered
    adds = weight * (v - m) / p + later * v  # what an answer adds to the total
    missing = n_drawn**2 * (1 / n_answered - 1 / n_drawn)
    by_answer = missing * (adds.var(ddof=1) if n_answered > 1 else adds @ adds)
    return float(by_draw + by_answer)


def _weigh(units: FloatArray) -> tuple[FloatArray, float]:
    """Return weights inverse to the variances per unit, and the variance per unit of their mean.

    The weights add up to 1; rounds that are exact have all of it.
    """
    inverse = (units <= 0).astype(np.float64) if (units <= 0).any() else 1 / units
    weight = np.asarray(inverse / inverse.sum())
    return weight, float((weight**2)[weight > 0] @ units[weight > 0])


def pool_shares(shares: Sequence[Share], sizes: Sequence[int]) -> Share:
    """Return the share over several groups of items of these sizes, each estimated by itself."""
    if len(shares) == 1:
        return shares[0]
    part = np.asarray(sizes) / sum(sizes)
    share, error, lower, upper = np.array(shares).T
    variance = float(part**2 @ error**2)
    # Where the variance is 0, the groups say how wide their intervals are.
    unit = float(part**2 @ ((upper - lower) / 4) ** 2) / 0.25
    return _with_interval(float(part @ share), variance, unit, (0.0, 1.0))


def _with_interval(
    share: float, variance: float, unit: float, bounds: tuple[float, float]
) -> Share:
    """Return the share inside its bounds, with the interval of Korn and Graubard.

    ``unit`` is the variance that it would have if every (v - m)^2 were 1. It counts where the share
    is 0 or 1, or the variance 0.
    """
    share = min(max(share, bounds[0]), bounds[1])
    spread = share * (1 - share)
    n = spread / variance if spread > 0 and variance > 0 else (1 / unit if unit > 0 else np.inf)
    if np.isinf(n) or bounds[0] == bounds[1]:
        return Share(share, 0.0, share, share)
    from scipy.special import betaincinv

    yes, tail = share * n, (1 - CONFIDENCE) / 2
    lower = float(betaincinv(yes, n - yes + 1, tail)) if yes > 0 else 0.0
    upper = float(betaincinv(yes + 1, n - yes, 1 - tail)) if yes < n else 1.0
    return Share(share, float(variance**0.5), max(lower, bounds[0]), min(upper, bounds[1]))
