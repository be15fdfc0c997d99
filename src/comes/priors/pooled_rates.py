"""Rates of answers and class priors of very many labels, from counts of one pass over the rows.

With 10^5 labels nothing can be trained for each of them before training. One procedure usually
asked about all labels, so they share their rates (`comes.priors.shared_rates`), and with the rates
the counts of each label tell its class prior (`comes.priors.pooled_priors`). docs/guide/priors.md
says when that is wrong.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from comes.answers import AnswerRates
from comes.answers.matrix import Kind
from comes.errors import ComesError
from comes.priors.answer_counts import AnswerCounts
from comes.priors.answer_priors import find_priors
from comes.priors.answer_rates import FLAGS as ANSWER_FLAGS
from comes.priors.answer_rates import (
    UNCERTAIN,
    RatesEstimate,
    choose_flags,
    know_nothing,
)
from comes.priors.best_bin import share_bounds
from comes.priors.class_prior import FEW_EXCLUDED, NOTHING_KNOWN, ClassPriorEstimate
from comes.priors.class_prior import UNCERTAIN as UNCERTAIN_PRIOR
from comes.priors.known_rates import exceeds_rate
from comes.priors.pooled_priors import fit_many, shrink_many
from comes.priors.prior_flags import warn_of_flags
from comes.priors.shared_rates import (
    FEW_LABELS,
    HIGHEST,
    SharedRate,
    count_top,
    find_shared_rate,
    fit_line,
)

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Given = tuple[FloatArray | None, FloatArray | None]

SMALLEST_RATE = 1e-6
CHANCE = 0.001  # that any label exceeds the rate by so much
FLAGS = {
    "never excluded": "no row excludes any label, so nothing can be estimated and it is set to 1",
    "rates differ": "labels have different rates, so one rate for all is wrong; estimate them "
    "with features (estimate_class_prior, estimate_answer_rates) or give them",
    "few labels": f"there are fewer than {FEW_LABELS} labels, of which perhaps none is rare, so "
    "counts do not tell the rate; use estimate_class_prior or give the rate",
    "rate unknown": 'nobody says "no", so counts do not tell how often a relevant label is '
    'called "yes"; it is taken to be always, and class priors are lower bounds. Give yes_rate',
    "rate too low": "more rows exclude it than the rate allows, so it is set to 0 or near",
    "uncertain": "its standard error is too large to trust it",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, so other labels decide",
}


def pool_rates(
    counts: AnswerCounts,
    kind: Kind,
    *,
    no_rate: npt.ArrayLike | None = None,
    yes_rate: npt.ArrayLike | None = None,
    label_names: Sequence[str] | None = None,
) -> ClassPriorEstimate | RatesEstimate:
    """Estimate rates that all labels share, and the class prior of every label, from counts.

    Parameters
    ----------
    counts : AnswerCounts
    kind : {"candidates", "positives", "answers"}
        What a pair without an answer means, as in `comes.Answers`. From candidates the exclude
        rate is what the rarest labels show. From answers both rates are those of a line that all
        labels lie on; without "yes", the rate of "no" is found as from candidates. From ticked
        labels, or without "no", the rate of "yes" cannot be told: it is 1 unless it is given.
    no_rate, yes_rate : float or array of shape (n_labels,), optional
        Rates that are known; ``no_rate`` of candidates is the exclude rate.
    label_names : sequence of str, optional
        For warnings; by default numbers.

    Returns
    -------
    estimate : ClassPriorEstimate for candidates, RatesEstimate for answers and ticked labels
        With standard errors. "rates differ" flags all labels whose shared rate is contradicted by
        the counts, "few labels" those of a set with fewer than 20, "rate unknown" all labels of
        which nobody says "no".

    Examples
    --------
    >>> from comes.answers import Answers
    >>> rng = np.random.default_rng(0)
    >>> relevant = rng.random((2000, 100)) < rng.beta(0.3, 10, size=100)
    >>> answers = Answers(no=~relevant & (rng.random(relevant.shape) < 0.1))
    >>> found = pool_rates(AnswerCounts.of(answers), answers.kind)
    >>> bool(abs(found.exclude_rate - 0.1).max() < 0.003)
    True
    >>> bool(abs(found.class_prior - relevant.mean(axis=0)).mean() < 0.04)
    True
    """
    given = (
        _read_rate(no_rate, "no_rate", counts.no),
        _read_rate(yes_rate, "yes_rate", counts.yes),
    )
    if kind == "candidates":
        _refuse(given[1], "yes_rate", kind)
        found: ClassPriorEstimate | RatesEstimate = _pool_candidates(counts, given[0])
        warn_of_flags("The class prior of label", found.flags, FLAGS, label_names)
        return found
    if kind == "positives":
        _refuse(given[0], "no_rate", kind)
    found = _pool_answers(counts, kind, given)
    warn_of_flags("The answers about label", found.flags, ANSWER_FLAGS | FLAGS, label_names)
    return found


def _read_rate(rate: npt.ArrayLike | None, name: str, said: Counts) -> FloatArray | None:
    """Return a rate that is given as one number for each label, or raise an error."""
    if rate is None:
        return None
    q, values = said.shape[1], np.asarray(rate, dtype=np.float64)
    if values.shape not in ((), (q,)) or not ((values >= 0) & (values <= 1)).all():
        raise ComesError(
            f"{name} must be a number in [0, 1], or one for each of {q} labels; got {rate!r}. "
            "Leave it out to estimate it."
        )
    if ((values == 0) & said.any(axis=0)).any():
        raise ComesError(
            f"{name} must be above 0 where somebody said so; got 0. Leave it out to estimate it."
        )
    return np.broadcast_to(values, (q,)).copy()


def _refuse(rate: FloatArray | None, name: str, kind: Kind) -> None:
    """Raise an error if a rate is given of what cannot be said."""
    if rate is not None:
        raise ComesError(f"{name} does not apply to {kind}, which never say so. Leave it out.")


def _pool_candidates(counts: AnswerCounts, given: FloatArray | None) -> ClassPriorEstimate:
    """Return exclude rates and class priors."""
    q, n, count = counts.n_labels, int(counts.n_rows.sum()), counts.no.sum(axis=0)
    if given is None and not count.any():
        none, unknown = np.zeros(q), np.full(q, NOTHING_KNOWN)
        flags = ("never excluded",) * q
        return ClassPriorEstimate(none + 1, none, none, none + 1, unknown, flags, unknown)
    asked = counts.asked("candidates")
    shared, of_all = _share(counts.no, asked, given)
    prior, error = _find_priors_of_no(count, asked.sum(axis=0), shared)
    smallest, largest = share_bounds(count, n)
    # Of very many labels some are outside by chance; what the others have counts more.
    lower = np.clip(1 - largest / shared.lowest, 0, prior)
    upper = np.clip(1 - smallest / (1 if given is None else shared.lowest), prior, 1)
    doubts = {
        "rate too low": exceeds_rate(count / n, n, shared.rate, -float(ndtri(CHANCE / q))),
        **of_all,
        "uncertain": error > UNCERTAIN_PRIOR,
        "few excluded": count < FEW_EXCLUDED,
    }
    return ClassPriorEstimate(
        prior,
        shared.rate,
        lower,
        upper,
        error,
        _flag(doubts, ("ok",) * q),
        np.full(q, shared.error),
    )


def _find_priors_of_no(
    count: Counts, asked: Counts, shared: SharedRate
) -> tuple[FloatArray, FloatArray]:
    """Return class priors and their errors, of which that of the rate is a part."""
    rate = np.maximum(shared.rate, SMALLEST_RATE)
    prior, error = shrink_many(count, asked, rate)
    return prior, np.hypot(error, (1 - prior) * shared.error / rate)


def _pool_answers(counts: AnswerCounts, kind: Kind, given: Given) -> RatesEstimate:
    """Return rates and class priors from answers, or from labels that are ticked."""
    q, asked = counts.n_labels, counts.asked(kind)
    maybe = asked - counts.no - counts.yes
    numbers = np.stack([part.sum(axis=0) for part in (counts.no, counts.yes, maybe)], axis=1)
    if not asked.any() or (kind == "positives" and not counts.yes.any()):
        raise ComesError(
            "counts must hold some answers, so that rates can be estimated; got none. Give "
            "no_rate, yes_rate and class_prior."
        )
    flags = choose_flags(numbers, kind)
    says_no, says_yes = (
        said.any() if rate is None else rate.any()
        for said, rate in zip((counts.no, counts.yes), given, strict=True)
    )
    if not says_yes and not says_no:
        return replace(know_nothing(int(asked.sum()), q), flags=flags)
    if not says_yes:
        shared, doubts = _share(counts.no, asked, given[0])
        rates, covariance = np.stack([shared.rate, np.zeros(q)]), np.diag([shared.error**2, 0])
        priors = _find_priors_of_no(numbers[:, 0], asked.sum(axis=0), shared)
    else:
        if says_no:
            line = fit_line(counts.no, counts.yes, maybe, given)
            rates, covariance, doubts = line.rates, line.covariance, {"rates differ": line.differs}
        else:
            rates, covariance, doubts = _take_yes(counts.yes, asked, given[1])
        others = fit_many(counts.yes, asked, np.maximum(rates[1], SMALLEST_RATE))
        spread = np.broadcast_to(covariance, (q, 2, 2))
        priors = find_priors(numbers.astype(float), rates.T, spread, others)
    return _describe(rates, np.sqrt(np.diag(covariance)), priors, doubts, flags)


def _describe(
    rates: FloatArray,
    errors: FloatArray,
    priors: tuple[FloatArray, FloatArray],
    doubts: dict[str, bool],
    own: Sequence[str],
) -> RatesEstimate:
    """Return an estimate of rates, (2, n_labels), whose errors, (2,), all labels share."""
    overall = rates.mean(axis=1)
    is_uncertain = errors > np.minimum(UNCERTAIN, overall / 4)
    no_error, yes_error = (np.full(rates.shape[1], error) for error in errors)
    known = AnswerRates(rates[0], rates[1], no_error=no_error, yes_error=yes_error)
    flags = _flag({**doubts, "uncertain": bool(is_uncertain.any())}, own)
    return RatesEstimate(known, *priors, overall, errors, flags)


def _take_yes(
    yes: Counts, asked: Counts, given: FloatArray | None
) -> tuple[FloatArray, FloatArray, dict[str, bool]]:
    """Return rates where nobody says "no": whatever is relevant is called "yes", unless given.

    The rate may be as low as the largest shares of "yes".
    """
    q = yes.shape[1]
    is_unknown = given is None and bool((yes < asked).any())
    above, n_above = count_top(yes, asked, HIGHEST)
    error = (1 - above / max(n_above, 1)) / math.sqrt(3) if is_unknown else 0.0
    b = np.ones(q) if given is None else given
    return np.stack([np.zeros(q), b]), np.diag([0, error**2]), {"rate unknown": is_unknown}


def _share(
    count: Counts, asked: Counts, given: FloatArray | None
) -> tuple[SharedRate, dict[str, bool]]:
    """Return the rate of the one answer that is counted, and what makes it doubtful."""
    if given is not None:
        return SharedRate(given, np.maximum(given, SMALLEST_RATE)), {}
    shared = find_shared_rate(count, asked)
    return shared, {"rates differ": shared.differs, "few labels": count.shape[1] < FEW_LABELS}


def _flag(doubts: Mapping[str, BoolArray | bool], own: Sequence[str]) -> tuple[str, ...]:
    """Return the flag of every label: that nobody was asked, the first doubt, else its own."""
    flags = np.array(own)
    of_all = [np.broadcast_to(is_so, flags.shape) for is_so in doubts.values()]
    chosen = np.select([flags == "never asked", *of_all], ["never asked", *doubts], flags)
    return tuple(map(str, chosen))
