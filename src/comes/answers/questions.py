r"""Which pairs to ask about next: those whose answer is expected to tell most.

A pair is relevant with probability eta. With Z the answer to it, in the rates of `AnswerRates`,

.. math:: I = H(Z) - (1 - \eta) H(Z \mid \text{irrelevant}) - \eta H(Z \mid \text{relevant})

is what the answer is expected to tell about the pair, in bits. Where everybody who is asked knows
the answer, that is the entropy of eta: largest, one bit, at one half.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers.answer_matrix import Answers
from comes.answers.leanings import AnswerRates
from comes.answers.states import State
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
BLOCK = 20  # questions about one label in a row: a new label every time is tiring


class Questions(NamedTuple):
    """Pairs to ask about, in the order in which to ask them.

    Attributes
    ----------
    row, label : int arrays of shape (n_questions,)
    bits : array of shape (n_questions,)
        What an answer is expected to tell about the pair.

    Examples
    --------
    >>> Questions(np.array([4]), np.array([0]), np.array([1.0])).row.tolist()
    [4]
    """

    row: Places
    label: Places
    bits: FloatArray


def expected_bits(probabilities: npt.ArrayLike, rates: AnswerRates | None = None) -> FloatArray:
    """Return how much an answer is expected to tell about every pair.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of relevance, as a model sees it now.
    rates : AnswerRates, optional
        How often people dare to say "no" and "yes"; by default they always know.

    Returns
    -------
    bits : array of shape (n_samples, n_labels)
        From 0, nothing, to 1.

    Examples
    --------
    >>> expected_bits([[0.5, 0.9, 1.0]]).round(2).tolist()
    [[1.0, 0.47, 0.0]]
    >>> half = np.full(3, 0.5)
    >>> expected_bits([[0.5, 0.9, 1.0]], AnswerRates(half, half)).round(2).tolist()
    [[0.5, 0.23, 0.0]]
    """
    eta = np.asarray(probabilities, dtype=np.float64)
    if not ((eta >= 0) & (eta <= 1)).all():
        raise ComesError("probabilities must be in [0, 1]. Pass what predict_proba returns.")
    one = np.ones(eta.shape[-1])
    if_irrelevant, if_relevant = _distribute(rates or AnswerRates(one, one))
    answered = (1 - eta) * if_irrelevant[:, None] + eta * if_relevant[:, None]  # (3, n, q)
    doubt = (1 - eta) * _entropy(if_irrelevant) + eta * _entropy(if_relevant)
    return np.asarray(np.maximum(_entropy(answered) - doubt, 0))


def _distribute(rates: AnswerRates) -> tuple[FloatArray, FloatArray]:
    """Return how likely no, yes and maybe are for an irrelevant and a relevant pair, (3, q)."""
    a, b, f = rates.no_rate, rates.yes_rate, rates.mistake_rate
    wrong_yes, wrong_no = f * (b > 0), f * (a > 0)  # what cannot be said is not said by mistake
    a, b = np.minimum(a, 1 - wrong_yes), np.minimum(b, 1 - wrong_no)
    irrelevant = np.stack([a, wrong_yes, 1 - a - wrong_yes])
    return irrelevant, np.stack([wrong_no, b, 1 - b - wrong_no])


def _entropy(shares: FloatArray) -> FloatArray:
    """Return the entropy of distributions along the first axis, in bits; 0 log 0 is 0."""
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=0))


def spread_over_labels(
    merits: npt.ArrayLike, count: int, allowed: npt.NDArray[np.bool_] | None = None
) -> tuple[Places, Places]:
    """Return the best pairs, in turn over the labels: the best of each label, then the second.

    Parameters
    ----------
    merits : array of shape (n_samples, n_labels)
    count : int
        How many pairs at most.
    allowed : bool array of shape (n_samples, n_labels), optional
        Which pairs may be taken; by default all.

    Returns
    -------
    row, label : int arrays of shape (n_pairs,)
        Within a turn the best first.

    Examples
    --------
    >>> row, label = spread_over_labels([[0.9, 0.2], [0.8, 0.1], [0.7, 0.3]], 3)
    >>> row.tolist(), label.tolist()
    ([0, 2, 1], [0, 1, 0])
    """
    values = np.asarray(merits, dtype=np.float64)
    if allowed is not None:
        values = np.where(allowed, values, -np.inf)
    order = _rank_rows(values, count)
    ranked = np.take_along_axis(values, order, axis=0)
    turn, label = np.nonzero(ranked > -np.inf)
    best = np.lexsort((-ranked[turn, label], turn))[:count]
    return order[turn[best], label[best]], label[best]


def _rank_rows(values: FloatArray, count: int) -> Places:
    """Return, for each label, the rows of the highest values, at most so many, (<= count, q)."""
    if count >= len(values):
        return np.argsort(-values, axis=0, kind="stable")
    best = np.argpartition(-values, count - 1, axis=0)[:count]  # sorting all would take long
    best.sort(axis=0)
    order = np.argsort(-np.take_along_axis(values, best, axis=0), axis=0, kind="stable")
    return np.take_along_axis(best, order, axis=0)


def choose_questions(
    probabilities: npt.ArrayLike,
    count: int,
    *,
    answers: Answers | None = None,
    rates: AnswerRates | None = None,
) -> Questions:
    """Return the pairs whose answers are expected to tell most, spread over the labels.

    Every label has its share of the questions, as long as it has pairs that nobody answered about.
    Questions about one label come together, 20 at a time.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of relevance, as a model sees it now.
    count : int
        How many questions at most.
    answers : Answers, optional
        What was said already: these pairs are left out.
    rates : AnswerRates, optional
        How often people dare to say "no" and "yes"; by default they always know.

    Returns
    -------
    questions : Questions

    Examples
    --------
    >>> said = Answers.from_codes([[State.NO, 0], [0, 0], [0, 0]])
    >>> asked = choose_questions([[0.5, 0.9], [0.4, 0.6], [0.1, 0.8]], 3, answers=said)
    >>> list(zip(asked.row.tolist(), asked.label.tolist()))
    [(1, 0), (1, 1), (2, 1)]
    """
    bits = expected_bits(probabilities, rates)
    if not isinstance(count, int | np.integer) or count < 1:
        raise ComesError(f"the number of questions must be 1 or more; got {count!r}.")
    if answers is not None and answers.shape != bits.shape:
        raise ComesError(
            f"probabilities of shape {bits.shape} need answers of that shape; got {answers.shape}."
        )
    unknown = None if answers is None else answers.codes == State.NOT_ASKED
    row, label = spread_over_labels(bits, count, unknown)
    turn = np.zeros(len(row), dtype=np.int64)
    for number in np.unique(label):
        turn[label == number] = np.arange((label == number).sum())
    order = np.lexsort((turn, label, turn // BLOCK))
    return Questions(row[order], label[order], bits[row, label][order])
