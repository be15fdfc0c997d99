r"""Evidence: how much the answers about a pair say for or against its relevance.

An irrelevant pair that is asked about is answered "no" with probability a (`no_rate`), a relevant
one "yes" with probability b (`yes_rate`); else the answer is "maybe". With a small mistake rate f,
a relevant pair is called "no", or an irrelevant one "yes", with probability f:

============  ============  ============
answer        irrelevant    relevant
============  ============  ============
no            a             f
yes           f             b
maybe         1 - a - f     1 - b - f
============  ============  ============

Of the two probabilities only the ratio counts. The *evidence* r of a pair, in [-1, 1], holds it:
P(answers | irrelevant) / P(answers | relevant) is 1 - r where r > 0, and 1 / (1 + r) where r < 0.
So 1 is surely relevant, -1 surely irrelevant, and 0 is no evidence. A rate of 0 means that the
answer cannot be given, even by mistake, so that "maybe" means less; an answer that is given all the
same is taken to be true. Candidates are the case in which everybody was asked, a is the exclude
rate, and b is 0: what is still possible is "maybe". Ticked labels are the mirror image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from comes.answers.matrix import Answers
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]
SMALLEST = 1e-6  # rates are kept this far from 0 and 1
LEAST_MISTAKE_RATE = 0.01  # where several people answer


@dataclass(frozen=True, eq=False)
class AnswerRates:
    """How often a pair that is asked about gets the answer that is true.

    Attributes
    ----------
    no_rate, yes_rate : arrays of shape (n_labels,)
        a and b: how often an irrelevant pair is called "no", a relevant one "yes"; 0 where that
        cannot be said. For candidates ``no_rate`` is the exclude rate and ``yes_rate`` is 0.
    mistake_rate : float
        f: how often a relevant pair is called "no", or an irrelevant one "yes".
    people : mapping of str to pair of arrays of shape (n_labels,)
        The rates a and b of people who have their own.
    no_error, yes_error : arrays of shape (n_labels,), optional
        Standard errors, where the rates were estimated.

    Examples
    --------
    >>> AnswerRates(np.array([0.8]), np.array([0.6])).mistake_rate
    0.0
    """

    no_rate: FloatArray
    yes_rate: FloatArray
    mistake_rate: float = 0.0
    people: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    no_error: FloatArray | None = None
    yes_error: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("no_rate", "yes_rate"):
            values = np.asarray(getattr(self, name))
            if values.ndim != 1 or ((values < 0) | (values > 1)).any():  # NaN: not known
                raise ComesError(
                    f"{name} must hold one number in [0, 1] for each label; got {values.tolist()}."
                )


def answer_evidence(answers: Answers, rates: AnswerRates) -> npt.NDArray[np.float32]:
    """Return the evidence of the answers about every pair.

    Parameters
    ----------
    answers : Answers
    rates : AnswerRates

    Returns
    -------
    evidence : float32 array of shape (n_samples, n_labels)
        1 is surely relevant, -1 surely irrelevant. Where several people answered about a pair, that
        of all their answers together; there the mistake rate is at least 0.01, so that "no" and
        "yes" about one pair weigh against each other.

    Examples
    --------
    >>> answers = Answers(no=[[1, 0, 0]], maybe=[[0, 1, 0]])
    >>> answer_evidence(answers, AnswerRates(np.full(3, 0.8), np.zeros(3))).round(2)
    array([[-1. ,  0.8,  0. ]], dtype=float32)
    """
    if answers.shape[1] != len(rates.no_rate):
        raise ComesError(
            f"rates must be given for each of {answers.shape[1]} labels; got {len(rates.no_rate)}."
        )
    if answers.annotations is None:
        states = answers.filled_codes.astype(np.intp)
        return np.take_along_axis(state_evidence(rates), states, axis=0).astype(np.float32)
    annotations, mistake = answers.annotations, max(rates.mistake_rate, LEAST_MISTAKE_RATE)
    log_likelihood = np.zeros((2, *answers.shape))  # log P(answers | irrelevant), and | relevant
    for number, name in enumerate(annotations.people):
        by_person = annotations.person == number
        row, label = annotations.row[by_person], annotations.label[by_person]
        code = annotations.code[by_person]
        a, b = rates.people.get(name, (rates.no_rate, rates.yes_rate))
        for relevance, likelihood in enumerate(_state_likelihoods(a, b, mistake)):
            np.add.at(log_likelihood[relevance], (row, label), np.log(likelihood[code, label]))
    likelihoods = np.exp(log_likelihood - log_likelihood.max(axis=0))
    return _evidence(*likelihoods).astype(np.float32)


def mean_log_likelihood(
    probabilities: npt.ArrayLike, answers: Answers, rates: AnswerRates
) -> float:
    """Return the log-likelihood per answer, given the probabilities that pairs are relevant.

    In candidates and ticked labels every pair has an answer. Rates of 0 cannot be given, as in
    `answer_evidence`.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if answers.annotations is None:
        row, label = np.nonzero(answers.filled_codes)
        groups = [(answers.filled_codes[row, label], row, label, rates.no_rate, rates.yes_rate)]
        mistake = rates.mistake_rate
    else:
        long, mistake = answers.annotations, max(rates.mistake_rate, LEAST_MISTAKE_RATE)
        groups = []
        for number, name in enumerate(long.people):
            own = long.person == number
            a, b = rates.people.get(name, (rates.no_rate, rates.yes_rate))
            groups.append((long.code[own], long.row[own], long.label[own], a, b))
    total, count = 0.0, 0
    for code, row, label, a, b in groups:
        irrelevant, relevant = (
            likelihood[code, label] for likelihood in _state_likelihoods(a, b, mistake)
        )
        likelihood = (1 - p[row, label]) * irrelevant + p[row, label] * relevant
        total += float(np.log(np.maximum(likelihood, np.finfo(float).tiny)).sum())
        count += len(code)
    if not count:
        raise ComesError("the likelihood needs an answer; got none about these rows.")
    return total / count


def state_evidence(rates: AnswerRates) -> FloatArray:
    """Return the evidence of every `State` for each label, (4, n_labels)."""
    return _evidence(*_state_likelihoods(rates.no_rate, rates.yes_rate, rates.mistake_rate))


def posterior_probability(scores: npt.ArrayLike, evidence: npt.ArrayLike) -> FloatArray:
    """Return the probability that pairs are relevant, given their scores and their answers.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Log odds without the answers.
    evidence : array of shape (n_samples, n_labels)
        From `answer_evidence`.

    Returns
    -------
    probability : array of shape (n_samples, n_labels)

    Examples
    --------
    >>> posterior_probability([[0.0, 0.0, 0.0, 0.0]], [[-1.0, 0.0, 0.5, 1.0]]).round(2)
    array([[0.  , 0.5 , 0.67, 1.  ]])
    """
    from scipy.special import expit  # answers alone need no scipy, which takes long to import

    r = np.asarray(evidence, dtype=np.float64)
    if r.shape != np.shape(scores):
        raise ComesError(
            f"scores and evidence must have one shape (n, q); got {np.shape(scores)} and {r.shape}."
        )
    with np.errstate(divide="ignore"):  # log 0: the answer is sure
        log_odds = np.log1p(np.minimum(r, 0)) - np.log1p(-np.maximum(r, 0))
    return np.asarray(expit(np.asarray(scores) + log_odds))


def _state_likelihoods(a: FloatArray, b: FloatArray, f: float) -> tuple[FloatArray, FloatArray]:
    """Return P(state | irrelevant) and P(state | relevant), each (4, q), up to a common factor."""
    no_exists, yes_exists = a > 0, b > 0
    a = np.where(no_exists, np.clip(a, SMALLEST, 1 - SMALLEST - f * yes_exists), 0)
    b = np.where(yes_exists, np.clip(b, SMALLEST, 1 - SMALLEST - f * no_exists), 0)
    one = np.ones_like(a)
    irrelevant = np.stack([one, np.where(no_exists, a, 1), f * one, 1 - a - f * yes_exists])
    relevant = np.stack([one, f * one, np.where(yes_exists, b, 1), 1 - b - f * no_exists])
    return irrelevant, relevant


def _evidence(irrelevant: FloatArray, relevant: FloatArray) -> FloatArray:
    """Return the evidence r of two probabilities, of which one at least is above 0."""
    return np.asarray((relevant - irrelevant) / np.maximum(irrelevant, relevant))
