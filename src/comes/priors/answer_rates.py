r"""How often people say what is true, by label and by person, and class priors, from answers.

About a pair that is relevant with probability eta, an answer is

.. math:: P(\mathrm{no}) = a (1 - \eta), \qquad P(\mathrm{yes}) = b \eta, \qquad
          P(\mathrm{maybe}) = (1 - a)(1 - \eta) + (1 - b) \eta,

so that, whatever the truth is, the residual

.. math:: \rho = \mathrm{no} / a + \mathrm{yes} / b - 1

has mean 0, and every weight that depends only on x gives an equation for the rates a and b. The
best weights are :math:`D / V`, where :math:`D = ((1 - \eta)(1 - a), \eta (1 - b))` is how fast the
mean of rho moves with the logits of a and b, and :math:`V = (1 - \eta) (1 / a - 1) + \eta (1 / b -
1)` is its variance. An eta that is off costs precision, and does not bias. Where it is 0 or 1, the
truth is known, and the equation is that of a share.

Where both "no" and "yes" are said, classifiers of the sure answers give eta out of fold. Where only
one of them can be said, it is counted among the pairs that look most like it, which are taken to be
surely irrelevant (or relevant): the best bin of `comes.priors.rate_model`.

The logits of a group (a label, a person) are drawn around a mean with a variance that is itself
estimated (REML). So groups that agree share one rate, groups that do not have their own, and one
with few answers gets the mean. Where eta says nothing, only the share of sure answers is known; a
weak prior then makes a and b one, with a large error: the logits of a and b differ by about 2, and
half an answer is sure, half is not (so that a rate of 1 is not reached with few answers).

With n_0 times "no", n_1 times "yes" and m times "maybe" about a label, its class prior pi is where

.. math:: (n_0 + \beta) \log (1 - \pi) + (n_1 + \alpha) \log \pi
          + m \log ((1 - a)(1 - \pi) + (1 - b) \pi)

is highest. Alpha and beta are counts that stand for the other labels: a beta distribution of the
class priors, with the mean and the spread that the labels have.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from comes.answers import AnswerRates, Answers, LongAnswers, State
from comes.answers.convert import check_paired
from comes.answers.matrix import Kind
from comes.errors import ComesError, ComesWarning
from comes.priors.class_prior import choose_flags, estimate_class_prior, warn_of_flags
from comes.priors.rate_model import (
    best_bin_rate,
    check_features,
    draw_seed,
    scale_features,
    score_out_of_fold,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MIN_ROWS = 20  # with fewer, no classifier is trained
FEW_ASKED = 20
MOST_RECORDS = 1_000_000  # of more answers, the rates are estimated on some of the rows
UNCERTAIN = 0.1  # a standard error that deserves a warning
OTHER_PERSON = 4.4  # the logit that a sure answer of another person adds: log(0.8 / 0.01)
SPREADS = np.concatenate([[0.0], np.geomspace(0.05, 3, 12)])  # of logits over groups, tried in turn
FLAGS = {
    "never asked": "nobody was asked about it, so it gets what is usual for the other labels",
    "never ticked": "no row has it, so its class prior is nearly 0",
    "all maybe": "every answer is maybe, so it gets what is usual for the other labels",
    "all no": "every answer is no, so its class prior is nearly 0",
    "all yes": "every answer is yes, so its class prior is nearly 1",
    "few asked": f"there are fewer than {FEW_ASKED} answers, so other labels decide its rates",
}


@dataclass(frozen=True, eq=False)
class RatesEstimate:
    """Rates of answers and class priors that were estimated.

    Attributes
    ----------
    rates : AnswerRates
        How often an irrelevant pair is called "no", a relevant one "yes", by label, with standard
        errors; and by person, where the answers carry names.
    class_prior, class_prior_error : arrays of shape (n_labels,)
        How often each label is relevant among the rows that were asked about, and standard errors.
    overall, overall_error : arrays of shape (2,)
        The rates of "no" and "yes" over all irrelevant, or relevant, pairs that were asked about.
    flags : tuple of str
        "ok", "never asked", "never ticked", "all maybe", "all no", "all yes" or "few asked", per
        label; for candidates, those of `ClassPriorEstimate`.

    Examples
    --------
    >>> half = np.array([0.5])
    >>> pair = np.array([0.8, 0.6])
    >>> RatesEstimate(AnswerRates(half, half), half, half, pair, pair, ("ok",)).flags
    ('ok',)
    """

    rates: AnswerRates
    class_prior: FloatArray
    class_prior_error: FloatArray
    overall: FloatArray
    overall_error: FloatArray
    flags: tuple[str, ...]


def estimate_answer_rates(
    X: Any,
    answers: Answers,
    *,
    random_state: int | np.random.RandomState | None = 0,
    label_names: Sequence[str] | None = None,
    no_rate: npt.ArrayLike | None = None,
    yes_rate: npt.ArrayLike | None = None,
) -> RatesEstimate:
    """Estimate how often answers are sure, and how often each label is relevant.

    Rates are shared over labels as far as the labels agree, and so are the rates of people. Answers
    to questions that a model chose are left out.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    answers : Answers
        With "no" and "yes", both rates are estimated. Where nobody says "yes" its rate is 0, and
        that of "no" is counted among the pairs that look most like it; it is rather too high than
        too low, which costs less. Where nobody says "no", the other way round. Candidates go to
        `estimate_class_prior`, whose exclude rate is the rate of "no".
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default those of the answers, or numbers.
    no_rate, yes_rate : float or array of shape (n_labels,), optional
        If both are known, only class priors are estimated, from counts; X may be None.

    Returns
    -------
    estimate : RatesEstimate
        A warning names the labels whose flag is not "ok".

    References
    ----------
    Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    1979, for rates by person; the equations are our own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> relevant, is_sure = X > 0.5, rng.random(X.shape) < 0.8
    >>> answers = Answers(no=~relevant & is_sure, yes=relevant & is_sure, maybe=~is_sure)
    >>> estimate = estimate_answer_rates(X, answers)
    >>> bool(abs(estimate.overall - 0.8).max() < 0.05)
    True
    >>> bool(abs(estimate.class_prior - relevant.mean(axis=0)).max() < 0.05)
    True
    """
    if not isinstance(answers, Answers):
        raise ComesError(
            f"estimate_answer_rates takes comes.Answers; got {type(answers).__name__}. For "
            "candidates use estimate_class_prior, or Answers(no=, yes=, maybe=)."
        )
    check_paired(X=X, answers=answers)
    n, q = answers.shape
    names = answers.label_names if label_names is None else label_names
    known = None
    if no_rate is not None and yes_rate is not None:
        known = np.stack([np.broadcast_to(rate, q) for rate in (no_rate, yes_rate)], axis=1)
    X = X if known is not None else check_features(X, n)
    seed = draw_seed(random_state)
    if answers.kind == "candidates":
        return _estimate_from_candidates(X, answers, seed, names)
    records = read_records(answers.without_chosen())
    if not len(records) or (answers.kind == "positives" and not answers.confirmed.any()):
        raise ComesError(
            "answers must hold some that no model asked for, so that rates can be estimated; got "
            "none. Give no_rate, yes_rate and class_prior."
        )
    counts = count_answers(records, q)
    flags = flag_counts(counts, answers.kind)
    counts[[flag == "all maybe" for flag in flags]] = 0  # they could mean anything
    if known is not None:
        prior, error = estimate_priors(counts, known, np.zeros((q, 2, 2)))
        zero = np.zeros(q)
        exact = AnswerRates(known[:, 0], known[:, 1], no_error=zero, yes_error=zero)
        estimate = RatesEstimate(exact, prior, error, known.mean(axis=0), np.zeros(2), flags)
    elif not counts[:, :2].any():
        estimate = uninformative_estimate(len(records), flags)
    else:
        if len(records) > MOST_RECORDS:
            n_drawn = math.ceil(MOST_RECORDS / len(records) * n)
            rows = np.sort(np.random.default_rng(seed).permutation(n)[:n_drawn])
            X, records = X[rows], records.take(rows, n)
        X = scale_features(X)
        estimate = _estimate_rates(X, records, counts, seed, flags)
    if (estimate.overall_error > UNCERTAIN).any():
        warnings.warn(
            "The rates of answers are uncertain (a standard error of "
            f"{estimate.overall_error.max():.2f}), as X and the answers do not tell them apart. "
            "Give no_rate and yes_rate if you know them.",
            ComesWarning,
            stacklevel=2,
        )
    warn_of_flags("The answers about label", flags, FLAGS, names)
    return estimate


def _estimate_from_candidates(
    X: Any, answers: Answers, seed: int, names: Sequence[str] | None
) -> RatesEstimate:
    """Return an estimate from candidates: the rate of "no" is the exclude rate."""
    prior = estimate_class_prior(X, answers, random_state=seed, label_names=names)
    rate, error = prior.exclude_rate, prior.exclude_rate_error
    assert error is not None
    weight = 1 - prior.class_prior
    weight = weight / max(weight.sum(), 1e-9)
    zero = np.zeros_like(rate)
    return RatesEstimate(
        AnswerRates(rate, zero, no_error=error, yes_error=zero),
        prior.class_prior,
        prior.standard_error,
        np.array([weight @ rate, 0.0]),
        np.array([math.sqrt(weight**2 @ error**2), 0.0]),
        prior.flags,
    )


def _estimate_rates(
    X: Any, records: LongAnswers, counts: FloatArray, seed: int, flags: tuple[str, ...]
) -> RatesEstimate:
    """Return rates by label and by person from records, and class priors from all counts."""
    q, is_used = len(counts), np.asarray(counts[:, :2].any(axis=0))  # "no" and "yes"
    kept = np.isin(records.label, np.flatnonzero(counts[:, :2].any(axis=1)))
    if is_used.all():
        evidence = yes_evidence(X, records, q, seed)
    else:
        kept &= in_best_bins(X, records, State.YES if is_used[1] else State.NO, q, seed)
        evidence = np.full(len(records), np.inf if is_used[1] else -np.inf)
    code = records.code[kept]
    by_label = Records(
        code == State.NO,
        code == State.YES,
        evidence[kept],
        records.label[kept],
        records.row[kept],
        np.zeros((len(code), 2)),
        q,
    )
    n_sure = (code != State.MAYBE).sum() + 0.5
    effects = fit_rate_effects(by_label, np.full(2, logit(n_sure / (len(code) + 1))))
    if not is_used.all():
        # Relevant pairs in the bin of a label lower its rate, so part of the difference between
        # labels is no difference of rates, and a rate that is too low costs more than one that is
        # too high: those below the highest are moved half-way towards it. Whatever the number of
        # rows, the log odds of rates of best bins are off by 0.2.
        high = np.maximum(effects.logit, effects.mean + effects.spread)
        effects = replace(
            effects,
            logit=(effects.logit + high) / 2,
            mean_covariance=effects.mean_covariance + 0.2**2 * np.eye(2),
        )
    rates = expit(effects.logit) * is_used  # (q, 2), 0 for an answer that is never given
    scale = rates * (1 - rates)
    covariance = effects.covariance * scale[:, :, None] * scale[:, None, :]
    prior, prior_error = estimate_priors(counts, rates, covariance)
    asked = counts.sum(axis=1)[:, None] * np.stack([1 - prior, prior], axis=1)
    overall, overall_error = effects.average(asked / asked.sum(axis=0))
    no_error, yes_error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T
    people: dict[str, tuple[FloatArray, FloatArray]] = {}
    if len(records.people) > 1:  # the rates of labels, moved by what is the person's own
        by_person = replace(
            by_label,
            group=records.person[kept],
            offset=effects.logit[by_label.group],
            n_groups=len(records.people),
        )
        moved = fit_rate_effects(by_person, np.zeros(2)).logit
        by_both = expit(effects.logit + moved[:, None, :]) * is_used  # (people, q, 2)
        people = {
            name: (rate[:, 0], rate[:, 1])
            for name, rate in zip(records.people, by_both, strict=True)
        }
    return RatesEstimate(
        AnswerRates(rates[:, 0], rates[:, 1], 0.0, people, no_error, yes_error),
        prior,
        prior_error,
        overall * is_used,
        overall_error * is_used,
        flags,
    )


def uninformative_estimate(n_answers: int, flags: tuple[str, ...]) -> RatesEstimate:
    """Return an estimate where every answer is "maybe": sure answers are rare, truth is unknown."""
    half, few = np.full(len(flags), 0.5), np.full(len(flags), 0.5 / (n_answers + 1))
    rates = AnswerRates(few, few, no_error=few, yes_error=few)
    return RatesEstimate(rates, half, half, few[:1].repeat(2), few[:1].repeat(2), flags)


def flag_counts(counts: FloatArray, kind: Kind) -> tuple[str, ...]:
    """Return the flag of every label, given its counts of no, yes and maybe, (q, 3)."""
    no, yes, maybe = counts.T > 0
    asked = counts.sum(axis=1)
    return choose_flags(
        {
            "never asked": asked == 0,
            "never ticked": ~yes & (kind == "positives"),
            "all maybe": ~no & ~yes,
            "all no": ~yes & ~maybe,
            "all yes": ~no & ~maybe,
            "few asked": asked < FEW_ASKED,
        }
    )


# Answers one by one


def read_records(answers: Answers) -> LongAnswers:
    """Return every answer; labels that are not ticked count as "maybe"."""
    if answers.annotations is not None:
        return answers.annotations
    codes = answers.filled_codes
    row, label = np.nonzero(codes)
    return LongAnswers(row, label, np.zeros_like(row), codes[row, label], ())


def yes_evidence(X: Any, records: LongAnswers, q: int, seed: int) -> FloatArray:
    """Return the logit of "yes" among sure answers for every record, where both are said.

    It does not depend on the answer itself, but on X, by classifiers that were not trained on the
    row, and on the answers of other people about the pair.
    """
    is_yes, is_no = (records.code == state for state in (State.YES, State.NO))
    is_sure = is_yes | is_no
    evidence = np.full(len(records), logit((is_yes.sum() + 0.5) / (is_sure.sum() + 1)))
    n = X.shape[0]
    if n >= MIN_ROWS:
        states = np.zeros((n, q), dtype=np.int8)
        for is_it, state in ((is_no, State.NO), (is_yes, State.YES)):
            states[records.row[is_it], records.label[is_it]] |= state
        states[states == (State.NO | State.YES)] = State.NOT_ASKED  # people disagree
        scores = score_out_of_fold(X, states, seed)
        score = scores[records.row, records.label].astype(np.float64)
        line = LogisticRegression(C=1e4).fit(score[is_sure, None], is_yes[is_sure])
        slope = float(line.coef_[0, 0])
        if slope > 0:  # else the scores say nothing
            evidence = line.intercept_[0] + slope * score
    sign = is_yes - 1.0 * is_no
    pair = records.row * q + records.label
    person_and_pair = pair * max(len(records.people), 1) + records.person
    others = _sum_of_equals(pair, sign) - _sum_of_equals(person_and_pair, sign)
    return evidence + OTHER_PERSON * others


def _sum_of_equals(key: IntArray, values: FloatArray) -> FloatArray:
    """Return, for every element, the sum of the values of all elements with the same key."""
    number = np.unique(key, return_inverse=True)[1]
    return np.asarray(np.bincount(number, values)[number], dtype=np.float64)


def in_best_bins(X: Any, records: LongAnswers, sure: State, q: int, seed: int) -> BoolArray:
    """Return which records look most like the one sure answer that is given.

    Their pairs are taken to be surely irrelevant where that is "no", relevant where it is "yes".
    """
    n, is_sure = X.shape[0], records.code == sure
    if n < MIN_ROWS or is_sure.all() or not is_sure.any():
        return np.ones(len(records), dtype=bool)
    states = np.zeros((n, q), dtype=np.int8)
    states[records.row, records.label] = State.NO
    states[records.row[is_sure], records.label[is_sure]] = State.YES  # what classifiers predict
    score = score_out_of_fold(X, states, seed)[records.row, records.label]
    inside = np.zeros(len(records), dtype=bool)
    order = np.lexsort((-score, records.label))
    starts = np.searchsorted(records.label[order], np.arange(q + 1))
    for first, last in pairwise(starts):
        of_label = order[first:last]
        if len(of_label):
            _, n_bin = best_bin_rate(is_sure[of_label, None], score[of_label, None])
            inside[of_label[: int(n_bin[0])]] = True
    return inside


# Rates by group


@dataclass(frozen=True, eq=False)
class Records:
    """Answers one by one, arrays of shape (n_records,); an answer neither no nor yes is maybe."""

    is_no: BoolArray
    is_yes: BoolArray
    evidence: FloatArray  # logit of "yes" among sure answers; that of eta is + log a - log b
    group: IntArray  # the label or person whose rates count
    row: IntArray  # answers about one row may depend on each other
    offset: FloatArray  # (n_records, 2), added to the logits of a and b of the group
    n_groups: int


@dataclass(frozen=True, eq=False)
class RateEffects:
    """The logits of a and b by group."""

    logit: FloatArray  # (n_groups, 2)
    mean: FloatArray  # (2,), of the groups
    spread: FloatArray  # (2,), standard deviations between groups
    conditional: FloatArray  # (n_groups, 2, 2), covariance of a group's logits given the mean
    share_of_mean: FloatArray  # (n_groups, 2, 2), how a group's logits follow the mean
    mean_covariance: FloatArray  # (2, 2)

    @property
    def covariance(self) -> FloatArray:
        """Of the logits of each group, (n_groups, 2, 2)."""
        follow = self.share_of_mean
        return self.conditional + follow @ self.mean_covariance @ follow.transpose(0, 2, 1)

    def average(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means of the rates a and b over groups, (2,), and their standard errors.

        The weights, (n_groups, 2), add up to 1 over the groups.
        """
        rates = expit(self.logit)
        moves = weights * rates * (1 - rates)
        conditional = (moves**2 * np.diagonal(self.conditional, axis1=1, axis2=2)).sum(axis=0)
        common = np.einsum("ga,gab->ab", moves, self.share_of_mean)
        shared = np.einsum("ab,bc,ac->a", common, self.mean_covariance, common)
        return (weights * rates).sum(axis=0), np.sqrt(conditional + shared)


def fit_rate_effects(records: Records, start: FloatArray) -> RateEffects:
    """Return the logits of a and b of every group, from ``start``, of shape (2,).

    Each step solves the equations that are linear at the current logits: with the slopes P_g and
    moments s_g of a group, its logits theta_g and their mean mu,
    (T^-1 + P_g) (theta_g - mu) = P_g (theta_g - mu) + s_g at the old theta_g.
    """
    mean = np.asarray(start, dtype=float)
    logits = np.tile(mean, (records.n_groups, 1))
    for step in range(25):
        # The mean is fitted with slopes at the mean: slopes at a group's own logits are smaller
        # where chance made these large, which would lower the mean and take skewness for a spread.
        moment, slope = sum_moments(records, np.tile(mean, (records.n_groups, 1)))
        if step % 4 == 0:
            spread = choose_spread(slope, moment, mean)
        follow, weight = _weigh_groups(slope, spread)
        prior_moment, prior_slope = prior_of_mean(mean)
        towards = np.einsum("gba,gb->a", follow, moment) + prior_moment
        move = np.linalg.solve(weight.sum(axis=0) + prior_slope, towards)
        mean = _move(mean, mean + move)
        moment, slope = sum_moments(records, logits)
        follow, _ = _weigh_groups(slope, spread)
        conditional = follow * spread**2  # B T, where T is diagonal
        pull = np.einsum("gab,gb->ga", slope, logits - mean) + moment
        before, logits = logits, _move(logits, mean + np.einsum("gab,gb->ga", conditional, pull))
        if step % 4 and abs(logits - before).max() < 1e-6:
            break
    covariance = _mean_covariance(records, logits, follow, spread, prior_of_mean(mean)[1])
    return RateEffects(logits, mean, spread, conditional, follow, covariance)


def _move(logits: FloatArray, target: FloatArray) -> FloatArray:
    """Return logits moved towards a target, by at most 1, and to rates of at most 0.999."""
    return np.clip(logits + np.clip(target - logits, -1, 1), -7, 7)


def sum_moments(records: Records, logits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, by group, the sum of D rho / V, (g, 2), and of its slope D D' / V, (g, 2, 2)."""
    _, direction, variance, residual = _weigh_records(records, logits)
    moments = direction * (residual / variance)[:, None]
    scaled = direction / np.sqrt(variance)[:, None]
    slopes = scaled[:, :, None] * scaled[:, None, :]
    moment, slope = (_sum_by(records.group, x, records.n_groups) for x in (moments, slopes))
    return moment, slope


def _weigh_records(
    records: Records, logits: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the rates a and b of every record, (n, 2), and its D, (n, 2), V and rho."""
    rates = expit(logits[records.group] + records.offset)
    a, b = rates.T
    eta = expit(records.evidence + np.log(a) - np.log(b))
    direction = np.stack([(1 - eta) * (1 - a), eta * (1 - b)], axis=1)
    variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
    residual = records.is_no / a + records.is_yes / b - 1
    return rates, direction, variance, residual


def choose_spread(slope: FloatArray, pull: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the standard deviations of a's and b's logits between groups, by REML on a grid.

    The prior of the mean counts only as much as a mean that is not known needs: a mean that differs
    from it is no sign that groups differ.
    """
    grid = np.stack(np.meshgrid(SPREADS, SPREADS), axis=-1).reshape(-1, 2)
    follow, weight = _weigh_groups(slope, grid[:, None])  # (grid, g, 2, 2)
    prior_moment, prior_slope = (0.01 * part for part in prior_of_mean(mean))
    precision = weight.sum(axis=1) + prior_slope
    towards = np.einsum("sgba,gb->sa", follow, pull) + prior_moment
    shift = np.linalg.solve(precision, towards[:, :, None])[:, :, 0]
    conditional = follow * (grid**2)[:, None, None, :]
    deviance = (
        -np.linalg.slogdet(follow)[1].sum(axis=1)
        - np.einsum("ga,sgab,gb->s", pull, conditional, pull, optimize=True)
        - (towards * shift).sum(axis=1)
        + np.linalg.slogdet(precision)[1]
        + grid.sum(axis=1)  # a weak preference for groups that agree
    )
    return np.asarray(grid[deviance.argmin()])


def prior_of_mean(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the moment of the prior of the mean, (2,), and its slope, (2, 2)."""
    alike = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 4  # logit a - logit b ~ N(0, 4)
    rate = expit(mean.mean())
    return (0.5 - rate) / 2 - alike @ mean, alike + rate * (1 - rate) / 4


def _weigh_groups(slope: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return B = (1 + T P)^-1, how a group follows the mean, and P B, its weight for it."""
    follow = np.asarray(np.linalg.inv(np.eye(2) + (spread**2)[..., None] * slope), dtype=np.float64)
    return follow, slope @ follow


def _mean_covariance(
    records: Records,
    logits: FloatArray,
    follow: FloatArray,
    spread: FloatArray,
    prior_slope: FloatArray,
) -> FloatArray:
    """Return the covariance of the mean: a sandwich over rows, groups and the prior."""
    rates, direction, variance, residual = _weigh_records(records, logits)
    weights = np.einsum("nba,nb->na", follow[records.group], direction / variance[:, None])
    is_sure = np.stack([records.is_no, records.is_yes], axis=1)
    bread = weights.T @ (is_sure * (1 - rates) / rates) + prior_slope
    by_row = _sum_by(records.row, weights * residual[:, None], int(records.row.max()) + 1)
    slope = sum_moments(records, logits)[1]
    between = (slope @ follow).transpose(0, 2, 1) * spread**2 @ (slope @ follow)
    meat = by_row.T @ by_row + between.sum(axis=0) + prior_slope
    inverse = np.linalg.inv(bread)
    return np.asarray(inverse @ meat @ inverse.T)


def _sum_by(key: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Return the sums of values, (n_records, ...), over the records of each key, (n, ...)."""
    flat = values.reshape(len(values), -1)
    sums = [np.bincount(key, column, minlength=n) for column in flat.T]
    return np.stack(sums, axis=1, dtype=np.float64).reshape(n, *values.shape[1:])


# Class priors


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
    counts: FloatArray, rates: FloatArray, covariance: FloatArray, others: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the class prior of every label, where its likelihood is highest, and its error.

    Counts of no, yes and maybe are (q, 3), the rates a and b (q, 2), their covariance (q, 2, 2).
    ``others``, alpha and beta, are by default fitted to the class priors that labels have alone.
    """
    if others is None:
        is_asked = counts.any(axis=1)
        alone, error = estimate_priors(counts, rates, covariance, np.full(2, 0.5))
        others = fit_beta(alone[is_asked], error[is_asked])
    (no, yes, maybe), (a, b) = counts.T, rates.T
    no, yes = no + others[1], yes + others[0]
    low, high = np.zeros(len(counts)), np.ones(len(counts))
    for _ in range(50):  # bisection of the slope of the log likelihood
        prior = (low + high) / 2
        doubt = np.maximum((1 - a) * (1 - prior) + (1 - b) * prior, 1e-12)
        slope = yes / prior - no / (1 - prior) + maybe * (a - b) / doubt
        low, high = np.where(slope > 0, prior, low), np.where(slope > 0, high, prior)
    prior = (low + high) / 2
    doubt = np.maximum((1 - a) * (1 - prior) + (1 - b) * prior, 1e-12)
    curvature = yes / prior**2 + no / (1 - prior) ** 2 + maybe * ((a - b) / doubt) ** 2
    moves = np.stack([maybe * (1 - b), -maybe * (1 - a)], axis=1)  # of the prior, with a and b
    moves /= (doubt**2 * curvature)[:, None]
    of_rates = np.einsum("qa,qab,qb->q", moves, covariance, moves)
    return prior, np.sqrt(1 / curvature + of_rates)


def fit_beta(prior: FloatArray, error: FloatArray) -> FloatArray:
    """Return alpha and beta of the beta distribution that the class priors come from.

    Its variance is that of the estimates less that of their errors, but at least as much as the
    difference of the two is uncertain: few labels do not know how much labels differ.
    """
    mean, noise, n_other = prior.mean(), (error**2).mean(), len(prior) - 1
    if n_other == 0:
        return np.array([mean, 1 - mean])
    between = max(prior.var(ddof=1) - noise, noise * np.sqrt(2 / n_other))
    strength = np.clip(mean * (1 - mean) / between - 1, 1, 1000)
    return np.asarray(np.array([mean, 1 - mean]) * strength)
