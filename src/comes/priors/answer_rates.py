"""How often people say what is true, and how often labels are relevant, estimated from answers.

The model and its equations are in `comes.priors.rate_effects`. Where both "no" and "yes" are said,
classifiers of the sure answers say out of fold how probable it is that a pair is relevant, and the
equations give both rates. Where only one of them can be said, it is counted among the pairs that
look most like it, which are taken to be surely irrelevant (or relevant): the *best bin* of
`comes.priors.best_bin`.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from comes.answers import AnswerRates, Answers, LongAnswers, State
from comes.answers.convert import check_paired
from comes.answers.matrix import Kind
from comes.errors import ComesError, ComesWarning
from comes.priors.answer_priors import count_answers, estimate_priors
from comes.priors.answer_records import draw_rows, find_best_bins, find_leanings, read_records
from comes.priors.class_prior import ClassPriorEstimate, estimate_class_prior
from comes.priors.prior_flags import warn_of_flags
from comes.priors.rate_effects import RateEffects, Records, fit_rates
from comes.priors.small_models import check_rows

FloatArray = npt.NDArray[np.float64]

FEW_ASKED = 20
MOST_RECORDS = 1_000_000  # of more, the rates are estimated on some of the rows
UNCERTAIN = 0.1  # a standard error that deserves a warning
BIAS_OF_BINS = 0.2  # log odds that rates of best bins are off by, whatever the number of rows
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
    is_scaled: bool = False,
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
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.
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
    names = answers.label_names if label_names is None else label_names
    names = [str(j) for j in range(answers.shape[1])] if names is None else list(names)
    are_known = no_rate is not None and yes_rate is not None
    X = X if is_scaled or are_known else check_rows(X, answers.candidates)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if answers.kind == "candidates":
        prior = estimate_class_prior(
            X, answers.candidates, random_state=seed, label_names=names, is_scaled=is_scaled
        )
        return _from_exclude_rate(prior)
    drawn = answers.without_chosen()
    records = read_records(drawn)
    if not len(records) or (answers.kind == "positives" and not answers.confirmed.any()):
        raise ComesError(
            "answers must hold some that no model asked for, so that rates can be estimated; got "
            "none. Give no_rate, yes_rate and class_prior."
        )
    counts = count_answers(records, answers.shape[1])
    flags = choose_flags(counts, answers.kind)
    counts[[flag == "all maybe" for flag in flags]] = 0  # they could mean anything
    if no_rate is not None and yes_rate is not None:
        warn_of_flags("The answers about label", flags, FLAGS, names)
        return replace(_count_priors(counts, no_rate, yes_rate), flags=flags)
    rows = draw_rows(records, len(answers), MOST_RECORDS, seed)
    if len(rows) < len(answers):
        X, records = X[rows], records.take(rows, len(answers))
    if counts[:, :2].any():
        estimate = _estimate(X, records, counts, len(rows), seed, is_scaled)
    else:
        estimate = know_nothing(len(records), answers.shape[1])
    if (estimate.overall_error > UNCERTAIN).any():
        warnings.warn(
            "The rates of answers are uncertain (a standard error of "
            f"{estimate.overall_error.max():.2f}), as X and the answers do not tell them apart. "
            "Give no_rate and yes_rate if you know them.",
            ComesWarning,
            stacklevel=2,
        )
    warn_of_flags("The answers about label", flags, FLAGS, names)
    return replace(estimate, flags=flags)


def _estimate(
    X: Any, records: LongAnswers, counts: FloatArray, n: int, seed: int, is_scaled: bool
) -> RatesEstimate:
    """Return the rates and class priors from records and the counts of all answers."""
    shape, said = (n, len(counts)), np.asarray(counts[:, :2].any(axis=0))
    if said.all():
        lean = find_leanings(X, records, shape, seed, is_scaled=is_scaled)
        kept = np.isin(records.label, np.flatnonzero(counts.any(axis=1)))
    else:  # also where nobody is sure
        sure = State.YES if said[1] else State.NO
        kept = find_best_bins(X, records, sure, shape, seed, is_scaled=is_scaled)
        kept &= np.isin(records.label, np.flatnonzero(counts[:, :2].any(axis=1)))
        lean = np.full(len(records), np.inf if said[1] else -np.inf)
    by_label = _group(records, lean, kept, records.label, shape[1])
    share = (~(records.code == State.MAYBE)[kept]).sum() + 0.5
    start = np.full(2, logit(share / (kept.sum() + 1)))
    effects = fit_rates(by_label, start)
    if not said.all():
        effects = _raise_rates(effects)
    rates, covariance = _rates_of(effects, said)
    prior, prior_error = estimate_priors(counts, rates, covariance)
    asked = counts.sum(axis=1)[:, None] * np.stack([1 - prior, prior], axis=1)
    overall, overall_error = effects.average(asked / asked.sum(axis=0))
    error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    people = _rates_of_people(records, lean, kept, effects, said)
    return RatesEstimate(
        AnswerRates(rates[:, 0], rates[:, 1], 0.0, people, error[:, 0], error[:, 1]),
        prior,
        prior_error,
        overall * said,
        overall_error * said,
        (),
    )


def _count_priors(
    counts: FloatArray, no_rate: npt.ArrayLike, yes_rate: npt.ArrayLike
) -> RatesEstimate:
    """Return class priors from the counts of answers whose rates are known."""
    rates = np.stack([np.broadcast_to(r, len(counts)) for r in (no_rate, yes_rate)], axis=1)
    zero = np.zeros(len(counts))
    prior, error = estimate_priors(counts, rates, np.zeros((len(counts), 2, 2)))
    known = AnswerRates(rates[:, 0], rates[:, 1], no_error=zero, yes_error=zero)
    return RatesEstimate(known, prior, error, rates.mean(axis=0), np.zeros(2), ())


def know_nothing(n_answers: int, q: int) -> RatesEstimate:
    """Return an estimate where every answer is "maybe": sure answers are rare, truth is unknown."""
    half, few = np.full(q, 0.5), np.full(q, 0.5 / (n_answers + 1))
    rates = AnswerRates(few, few, no_error=few, yes_error=few)
    return RatesEstimate(rates, half, half, few[:1].repeat(2), few[:1].repeat(2), ())


def _raise_rates(effects: RateEffects) -> RateEffects:
    """Return rates of best bins, those below the highest moved half-way towards them.

    Relevant pairs in the bin of a label lower its rate, so part of the difference between labels is
    no difference of rates; and a rate that is too low costs more than one that is too high.
    """
    high = effects.mean + effects.spread
    logit = (effects.logit + np.maximum(effects.logit, high)) / 2
    bias = BIAS_OF_BINS**2 * np.eye(2)
    return replace(effects, logit=logit, mean_covariance=effects.mean_covariance + bias)


def _group(
    records: LongAnswers,
    lean: FloatArray,
    kept: npt.NDArray[np.bool_],
    group: npt.NDArray[np.int64],
    n_groups: int,
    offset: FloatArray | None = None,
) -> Records:
    """Return the records that are kept, grouped."""
    code = records.code[kept]
    offset = np.zeros((len(records), 2)) if offset is None else offset
    return Records(
        code == State.NO,
        code == State.YES,
        lean[kept],
        group[kept],
        records.row[kept],
        offset[kept],
        n_groups,
    )


def _rates_of(effects: RateEffects, said: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return a and b by label, (q, 2), 0 where that is never said, and their covariance."""
    rates = expit(effects.logit) * said
    scale = rates * (1 - rates)
    return rates, effects.covariance * scale[:, :, None] * scale[:, None, :]


def _rates_of_people(
    records: LongAnswers,
    lean: FloatArray,
    kept: npt.NDArray[np.bool_],
    effects: RateEffects,
    said: npt.NDArray[np.bool_],
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the rates of every person: those of the labels, moved by what is the person's own."""
    if len(records.people) < 2:
        return {}
    offset = effects.logit[records.label]
    own = _group(records, lean, kept, records.person, len(records.people), offset)
    moved = fit_rates(own, np.zeros(2)).logit
    rates = expit(effects.logit + moved[:, None, :]) * said  # (people, q, 2)
    return {
        name: (a, b) for name, (a, b) in zip(records.people, rates.transpose(0, 2, 1), strict=True)
    }


def _from_exclude_rate(prior: ClassPriorEstimate) -> RatesEstimate:
    """Return an estimate from candidates: the rate of "no" is the exclude rate."""
    rate, zero = prior.exclude_rate, np.zeros_like(prior.exclude_rate)
    error = zero if prior.exclude_rate_error is None else prior.exclude_rate_error
    weight = 1 - prior.class_prior
    weight = weight / max(weight.sum(), 1e-9)
    overall = np.array([weight @ rate, 0.0])
    overall_error = np.array([math.sqrt(weight**2 @ error**2), 0.0])
    rates = AnswerRates(rate, zero, no_error=error, yes_error=zero)
    return RatesEstimate(
        rates, prior.class_prior, prior.standard_error, overall, overall_error, prior.flags
    )


def choose_flags(counts: FloatArray, kind: Kind) -> tuple[str, ...]:
    """Return the flag of every label: the first condition that holds, else "ok"."""
    no, yes, maybe = counts.T > 0
    asked = counts.sum(axis=1)
    conditions = {
        "never asked": asked == 0,
        "never ticked": ~yes & (kind == "positives"),
        "all maybe": ~no & ~yes,
        "all no": ~yes & ~maybe,
        "all yes": ~no & ~maybe,
        "few asked": asked < FEW_ASKED,
    }
    chosen = np.select(list(conditions.values()), list(conditions), "ok")
    return tuple(str(flag) for flag in chosen)
