r"""How far the answers about a pair lean: the rates of answers, and what an answer says with them.

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

Of the two probabilities only the ratio counts. The *leaning* r of a pair, in [-1, 1], holds it:
P(answers | irrelevant) / P(answers | relevant) is 1 - r where r > 0, and 1 / (1 + r) where r < 0.
So 1 is surely relevant, -1 surely irrelevant, and 0 says nothing. A rate of 0 means that the answer
cannot be given, even by mistake, so that "maybe" says less; an answer that is given all the same is
taken at its word. Candidates are the case in which everybody was asked, a is the exclude rate, and
b is 0: what is still possible is "maybe". Ticked labels are the mirror image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from comes.answers.answer_matrix import Answers
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]
SMALLEST = 1e-6  # rates are kept this far from 0 and 1
MISTAKE_OF_PEOPLE = 0.01  # the least mistake rate where several people answer


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


def state_evidence(rates: AnswerRates) -> FloatArray:
    """Return how far every `State` leans, for each label.

    Parameters
    ----------
    rates : AnswerRates

    Returns
    -------
    leanings : array of shape (4, n_labels)
        Of not asked, no, yes and maybe; 1 is surely relevant, -1 surely irrelevant.

    Examples
    --------
    >>> state_evidence(AnswerRates(np.array([0.8]), np.array([0.6]))).round(2).tolist()
    [[0.0], [-1.0], [1.0], [0.5]]
    """
    return _lean(*_weigh_states(rates.no_rate, rates.yes_rate, rates.mistake_rate))


def answer_evidence(answers: Answers, rates: AnswerRates) -> npt.NDArray[np.float32]:
    """Return how far the answers about every pair lean.

    Parameters
    ----------
    answers : Answers
    rates : AnswerRates

    Returns
    -------
    leaning : float32 array of shape (n_samples, n_labels)
        Where several people answered about a pair, of all their answers together. There the
        mistake rate is at least 0.01, so that "no" and "yes" about one pair weigh against another.

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
    said, mistake = answers.annotations, max(rates.mistake_rate, MISTAKE_OF_PEOPLE)
    log_weight = np.zeros((2, *answers.shape))  # log P(answers | irrelevant), and | relevant
    for number, person in enumerate(said.people):
        mine = said.person == number
        row, label, code = said.row[mine], said.label[mine], said.code[mine]
        a, b = rates.people.get(person, (rates.no_rate, rates.yes_rate))
        for truth, weight in enumerate(_weigh_states(a, b, mistake)):
            np.add.at(log_weight[truth], (row, label), np.log(weight[code, label]))
    return _lean(*np.exp(log_weight - log_weight.max(axis=0))).astype(np.float32)


def posterior_probability(scores: npt.ArrayLike, leaning: npt.ArrayLike) -> FloatArray:
    """Return the probability that pairs are relevant, given their scores and what was said.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Log odds before anything was said.
    leaning : array of shape (n_samples, n_labels)
        From `answer_evidence`.

    Returns
    -------
    probability : array of shape (n_samples, n_labels)

    Examples
    --------
    >>> posterior_probability([[0.0, 0.0, 0.0, 0.0]], [[-1.0, 0.0, 0.5, 1.0]]).round(2)
    array([[0.  , 0.5 , 0.67, 1.  ]])
    """
    r = np.asarray(leaning, dtype=np.float64)
    if r.shape != np.shape(scores):
        raise ComesError(
            f"scores and leaning must have one shape (n, q); got {np.shape(scores)} and {r.shape}."
        )
    with np.errstate(divide="ignore"):  # log 0: what was said is sure
        log_odds = np.log1p(np.minimum(r, 0)) - np.log1p(-np.maximum(r, 0))
    return np.asarray(expit(np.asarray(scores) + log_odds))


def _weigh_states(a: FloatArray, b: FloatArray, f: float) -> tuple[FloatArray, FloatArray]:
    """Return P(state | irrelevant) and P(state | relevant), each (4, q), up to a common factor."""
    says_no, says_yes = a > 0, b > 0
    a = np.where(says_no, np.clip(a, SMALLEST, 1 - SMALLEST - f * says_yes), 0)
    b = np.where(says_yes, np.clip(b, SMALLEST, 1 - SMALLEST - f * says_no), 0)
    one = np.ones_like(a)
    irrelevant = np.stack([one, np.where(says_no, a, 1), f * one, 1 - a - f * says_yes])
    relevant = np.stack([one, f * one, np.where(says_yes, b, 1), 1 - b - f * says_no])
    return irrelevant, relevant


def _lean(irrelevant: FloatArray, relevant: FloatArray) -> FloatArray:
    """Return the leaning of two probabilities, of which one at least is above 0."""
    return np.asarray((relevant - irrelevant) / np.maximum(irrelevant, relevant))
