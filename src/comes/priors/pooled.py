r"""Rates and class priors of very many labels, from counts of one pass over the rows.

With 10^5 labels nothing can be trained for each of them before training. One procedure usually
asked about all labels, so they are taken to share their rates, and moments of the counts give them.
Counts are of two halves of the rows: what one half suggests of a label, the other measures without
the chance that suggested it.

*Only "no"* (exclusions): label j has the share a (1 - pi_j), nearly a if it is rare. The quarter of
the labels with the largest shares in one half, rare or lucky, is counted in the other half, and the
other way round; that 1 in q + 1 of their pairs is relevant is a guess.

*"No" and "yes"*: the shares are a (1 - pi_j) and b pi_j, so that for all weights h_j

.. math:: \sum_j h_j (\mathrm{no}_j / a + \mathrm{yes}_j / b - \mathrm{asked}_j) = 0.

With h = 1 - eta and h = eta, eta_j the share of "yes" among sure answers in the other half, these
are two linear equations for 1 / a and 1 / b. A weak prior, by which both are the inverse share of
sure answers, decides where labels do not differ in how often they are relevant.

*Class priors* come from a beta distribution. Its mean is that of the labels (where the counts
cannot tell it, a row has three labels), its variance the mean product of a label's deviations in
the two halves, which has no noise of its own.

Counts cannot tell a label that is excluded rarely from one that is relevant often: that rates
differ shows only where some labels exceed the shared rate, or miss the equation in both halves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from comes.answers import AnswerRates, Answers, State
from comes.answers.matrix import Kind
from comes.errors import ComesError
from comes.priors import answer_rates, class_prior
from comes.priors.answer_rates import (
    RatesEstimate,
    estimate_priors,
    flag_counts,
    uninformative_estimate,
)
from comes.priors.class_prior import (
    FEW_EXCLUDED,
    bound_priors,
    choose_flags,
    prior_likelihood,
    warn_of_flags,
)

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

TOP, HIGHEST = 1 / 4, 1 / 16  # parts of the labels that tell the rate, and whether it is one
FEW_LABELS = 20  # of fewer, perhaps none is rare
DIFFERENT, BY_CHANCE = 0.02, 3.0  # how far rates differ to matter, and in standard errors
HIGHEST_MEAN = 0.7  # of class priors
BY_CHANCE_ALONE = 0.001  # of very many labels, so many have extreme counts
SMALLEST = 1e-6  # rate
FLAGS = {
    "rates differ": "labels have different rates, so one rate for all is wrong; estimate them "
    "with features (estimate_class_prior, estimate_answer_rates) or give them",
    "few labels": f"there are fewer than {FEW_LABELS} labels, of which perhaps none is rare, so "
    "counts do not tell the rate; use estimate_class_prior or give the rate",
    "rate unknown": 'nobody says "no", so counts do not tell how often a relevant label is '
    'called "yes"; it is taken to be always, and class priors are lower bounds. Give yes_rate',
    "uncertain": "its standard error is too large to trust it",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, so other labels decide",
}


@dataclass(frozen=True, eq=False)
class AnswerCounts:
    """How often each label was answered no, yes and maybe, (2, q), in even and in odd rows."""

    n_rows: Counts  # (2,)
    no: Counts
    yes: Counts
    maybe: Counts

    @classmethod
    def of(cls, answers: Answers) -> "AnswerCounts":
        """Return the counts of answers, sparse or not, without those that a model asked for."""
        states = answers.without_chosen().states
        n, q = states.shape
        is_odd = np.repeat(np.arange(n) % 2, np.diff(states.indptr))
        cell = (2 * states.data + is_odd) * q + states.indices  # (state, half, label)
        counts = np.bincount(cell, minlength=len(State) * 2 * q).reshape(len(State), 2, q)
        n_rows = np.array([n - n // 2, n // 2])
        return cls(n_rows, counts[State.NO], counts[State.YES], counts[State.MAYBE])

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.no.shape[1])

    def asked(self, kind: Kind) -> Counts:
        """Return how many pairs of each label could have an answer, (2, q).

        Of candidates and ticked labels that is every row; else the pairs that have one.
        """
        if kind == "answers":
            return np.asarray(self.no + self.yes + self.maybe)
        return np.repeat(self.n_rows[:, None], self.n_labels, axis=1)

    def __add__(self, other: "AnswerCounts") -> "AnswerCounts":
        if self.n_labels != other.n_labels:
            raise ComesError(
                f"Counts of the same labels can be added; got {self.n_labels} and "
                f"{other.n_labels} labels. Count all blocks with the same label names."
            )
        return AnswerCounts(
            self.n_rows + other.n_rows,
            self.no + other.no,
            self.yes + other.yes,
            self.maybe + other.maybe,
        )


def pool_rates(
    counts: AnswerCounts,
    kind: Kind,
    *,
    no_rate: FloatArray | None = None,
    yes_rate: FloatArray | None = None,
    label_names: Sequence[str] | None = None,
) -> RatesEstimate:
    """Estimate rates that all labels share, and the class prior of every label, from counts.

    The rate of "no" of candidates is their exclude rate. Rates that are known, (q,), are kept.
    """
    no, yes, asked, q = counts.no, counts.yes, counts.asked(kind), counts.n_labels
    if not asked.any() or (kind == "positives" and not yes.any()):
        raise ComesError(
            "counts must hold some answers, so that rates can be estimated; got none. Give "
            "no_rate, yes_rate and class_prior."
        )
    for name, rate, count in (("no_rate", no_rate, no), ("yes_rate", yes_rate, yes)):
        if rate is not None and (count.any(axis=0) & (rate == 0)).any():
            raise ComesError(
                f"{name} must be above 0 for labels with such answers; got 0. Leave it out to "
                "estimate it."
            )
    totals = np.stack([x.sum(axis=0) for x in (no, yes, asked - no - yes)], axis=1).astype(float)
    if kind == "candidates":
        flags = choose_flags({"few excluded": totals[:, 0] < FEW_EXCLUDED})
    else:
        flags = flag_counts(totals, kind)
    uses_no, uses_yes = no.any() or no_rate is not None, yes.any() or yes_rate is not None
    if not uses_no and not uses_yes:
        return uninformative_estimate(int(asked.sum()), flags)
    rates, covariance, doubts = np.zeros((2, q)), np.zeros((2, 2)), dict[str, bool]()
    if uses_no and uses_yes:
        rates, covariance, differ = _solve_rates(no, yes, asked, no_rate, yes_rate)
        doubts["rates differ"] = differ
    elif uses_no and no_rate is None:
        rates[0], covariance[0, 0], differ = _rate_of_rare_labels(no, asked)
        doubts |= {"rates differ": differ, "few labels": q < FEW_LABELS}
    elif uses_no:
        rates[0] = no_rate
    else:
        rates[1] = 1 if yes_rate is None else yes_rate
        if yes_rate is None and (yes < asked).any():
            doubts["rate unknown"] = True  # it may be as low as the largest shares
            covariance[1, 1] = (1 - _count_top(yes, asked, HIGHEST)[0]) ** 2 / 3
    if uses_yes:
        share = yes / np.maximum(asked * rates[1], SMALLEST)
        mean = (yes / np.maximum(rates[1], SMALLEST)).sum() / asked.sum()
        others = _fit_beta(share, asked, mean)
        each = np.broadcast_to(covariance, (q, 2, 2))
        prior, error = estimate_priors(totals, rates.T, each, others)
    else:
        prior, error = _priors_of_no(no, asked, rates[0], math.sqrt(covariance[0, 0]))
    overall, rate_error = rates.mean(axis=1), np.sqrt(np.diag(covariance))
    is_uncertain = error > class_prior.UNCERTAIN
    if is_uncertain.mean() < BY_CHANCE_ALONE:
        is_uncertain[:] = False
    is_vague = (rate_error > np.minimum(answer_rates.UNCERTAIN, overall / 4)).any()
    flags = choose_flags(
        {
            "never asked": np.array(flags) == "never asked",
            **{name: np.full(q, is_so) for name, is_so in doubts.items()},
            "uncertain": is_uncertain | is_vague,
        },
        flags,
    )
    warn_of_flags("The answers about label", flags, answer_rates.FLAGS | FLAGS, label_names)
    no_error, yes_error = np.repeat(rate_error[:, None], q, axis=1)
    pooled = AnswerRates(rates[0], rates[1], no_error=no_error, yes_error=yes_error)
    return RatesEstimate(pooled, prior, error, overall, rate_error, flags)


def _rate_of_rare_labels(no: Counts, asked: Counts) -> tuple[float, float, bool]:
    """Return the rate of "no" where nobody says "yes", its variance, and whether rates differ."""
    mean = no.sum() / asked.sum()
    share, n = max(_count_top(no, asked, TOP), (mean, int(asked.sum())))
    relevant = 1 / (int(asked.any(axis=0).sum()) + 1)
    rate = min(1.0, share / (1 - relevant))
    of_all = (1 - mean / rate) / 2  # a rarest label has less than half of the mean class prior
    sampling = share * (1 - share) / n / (1 - relevant) ** 2
    highest, n_highest = _count_top(no, asked, HIGHEST)
    chance = math.sqrt(rate * (1 - rate) / max(n_highest, 1))
    differ = highest - rate > max(DIFFERENT * rate, BY_CHANCE * chance)
    return rate, sampling + rate**2 * (relevant**2 + of_all**2), differ


def _count_top(count: Counts, asked: Counts, part: float) -> tuple[float, int]:
    """Return the share of an answer in the labels with the largest shares, and of how many pairs.

    A half of the rows chooses the labels, the other one counts, and the other way round.
    """
    n_answers = n_pairs = 0
    for chosen, counted in ((0, 1), (1, 0)):
        labels = np.flatnonzero(asked[chosen])
        if len(labels):
            n_top = math.ceil(part * len(labels))
            share = count[chosen, labels] / asked[chosen, labels]
            top = labels[np.argpartition(-share, n_top - 1)[:n_top]]
            n_answers += int(count[counted, top].sum())
            n_pairs += int(asked[counted, top].sum())
    return n_answers / max(n_pairs, 1), n_pairs


def _solve_rates(
    no: Counts, yes: Counts, asked: Counts, a: FloatArray | None, b: FloatArray | None
) -> tuple[FloatArray, FloatArray, bool]:
    """Return the rates of "no" and "yes", (2, q), their covariance, and whether rates differ.

    The unknowns are factors of 1 / a and 1 / b; that of a known rate is 1.
    """
    q, sure = no.shape[1], no + yes
    start = sure.sum() / asked.sum()
    rates = np.stack([np.full(q, start) if rate is None else rate for rate in (a, b)])
    is_free = np.array([rate is None for rate in (a, b)])
    eta = ((yes + 2 * yes.sum() / sure.sum()) / (sure + 2))[::-1]  # of the other half
    weight = np.stack([1 - eta, eta])  # h, (2, halves, q)
    scaled = np.stack([no, yes]) / np.maximum(rates, SMALLEST)[:, None]
    slope = np.einsum("ahq,bhq->ab", weight, scaled)
    moment = (weight * (scaled.sum(axis=0) - asked)).sum(axis=(1, 2))
    expected = np.einsum("ahq,bhq->ab", weight, weight * asked) * (1 / start - 1)
    prior = np.diag(np.where(is_free, 0.5 * start, 0.0) ** 2)  # 0.5 off for 1 / a and 1 / b
    gain = prior @ slope.T @ np.linalg.pinv(slope @ prior @ slope.T + expected)
    factor = 1 - gain @ moment
    factor = np.where(is_free, np.maximum(factor, start), 1.0)  # rates of at most 1
    residual = np.tensordot(factor, scaled, 1) - asked
    by_label = (weight * residual).sum(axis=1)
    noise = max((by_label @ by_label.T, expected), key=np.trace)
    rest = np.eye(2) - gain @ slope
    rates = rates / factor[:, None]
    covariance = (rest @ prior @ rest.T + gain @ noise @ gain.T) * np.outer(
        *[rates.mean(axis=1) / factor] * 2
    )
    product = residual.prod(axis=0)  # of a squared deviation, and none where rates are shared
    differ = product.sum() > max(
        DIFFERENT**2 * asked.prod(axis=0).sum(), BY_CHANCE * math.sqrt((product**2).sum())
    )
    return rates, covariance, bool(differ)


def _priors_of_no(
    no: Counts, asked: Counts, rate: FloatArray, rate_error: float
) -> tuple[FloatArray, FloatArray]:
    """Return class priors and their errors where only "no" is counted."""
    rate = np.maximum(rate, SMALLEST)
    share = 1 - no / np.maximum(asked * rate, SMALLEST)
    counted = 1 - no.sum() / (asked * rate).sum()
    counted_error = 1 / math.sqrt(TOP * (asked * rate).sum())  # by chance, of rare labels
    usual = min(3 / no.shape[1], HIGHEST_MEAN)
    precision = counted_error**-2, (2 * usual) ** -2
    mean = (counted * precision[0] + usual * precision[1]) / sum(precision)
    alpha, beta = _fit_beta(share, asked, mean)
    numbers = np.stack([no.sum(axis=0), np.maximum(asked.sum(axis=0), 1e-9), rate])
    (count, n, rate_of), index = np.unique(numbers, axis=1, return_inverse=True)
    low, high = bound_priors(count, n, rate_of)
    # Narrow at the low end: with a rare label most of the probability is next to 0.
    edges = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 61) ** 2
    centre = (edges[:, 1:] + edges[:, :-1]) / 2
    likelihood = prior_likelihood(centre, count, n, rate_of)
    below = betainc(alpha, beta, edges)
    weight = np.diff(below, axis=1) * likelihood
    weight = np.where(weight.any(axis=1, keepdims=True), weight, likelihood)
    weight /= weight.sum(axis=1, keepdims=True)
    first = alpha / (alpha + beta) * betainc(alpha + 1, beta, edges[:, 1])
    first /= np.maximum(below[:, 1], 1e-300)  # the mean of the first cell
    centre[:, 0] = np.where(low == 0, np.minimum(first, centre[:, 0]), centre[:, 0])
    prior = (weight * centre).sum(axis=1)
    error = np.sqrt((weight * (centre - prior[:, None]) ** 2).sum(axis=1))
    prior, error = prior[index.ravel()], error[index.ravel()]
    return prior, np.hypot(error, (1 - prior) * rate_error / rate)


def _fit_beta(share: FloatArray, asked: Counts, mean: float) -> FloatArray:
    """Return alpha and beta, given unbiased class priors of each half, (2, q)."""
    mean = float(np.clip(mean, 0.1 / share.shape[1], HIGHEST_MEAN))
    pairs = asked.prod(axis=0)
    product = pairs * (share - mean).prod(axis=0)
    between = max(product.sum(), math.sqrt((product**2).sum())) / max(pairs.sum(), 1)
    strength = np.clip(mean * (1 - mean) / max(between, 1e-12) - 1, 1, 1e6)
    return np.asarray(np.array([mean, 1 - mean]) * strength)
