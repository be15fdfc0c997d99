r"""Questions drawn by chance, with known probabilities that follow what a model does not know.

Of the open pairs of a label, :math:`N_j` in all, :math:`c_j` are drawn. Pair i is drawn with

.. math:: p_i = \min\Big(1, \lambda_j \Big(\frac{f}{N_j} + (1 - f) \frac{I_i}{\sum_k I_k}\Big)\Big),
    \qquad \sum_i p_i = c_j

where :math:`I_i` is what its answer is expected to tell, in bits, and the floor f keeps a share of
the questions uniform: no pair is out of reach, and no weight :math:`1 / p_i` is huge.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers.leanings import AnswerRates
from comes.answers.questions import BLOCK, FloatArray, Places, expected_bits
from comes.errors import ComesError

FLOOR = 0.2  # share of the questions that is drawn as if there were no model


class Drawn(NamedTuple):
    """Pairs that were drawn, in the order in which to ask them, and how they were drawn.

    Attributes
    ----------
    row, label : int arrays of shape (n_questions,)
    inclusion : array of shape (n_samples, n_labels)
        With which each pair could be drawn; 0 where it could not.

    Examples
    --------
    >>> Drawn(np.array([4]), np.array([0]), np.full((5, 1), 0.2)).probability.tolist()
    [0.2]
    """

    row: Places
    label: Places
    inclusion: FloatArray

    @property
    def probability(self) -> FloatArray:
        """With which each pair was drawn, (n_questions,)."""
        return np.asarray(self.inclusion[self.row, self.label])

    @property
    def spread(self) -> FloatArray:
        """1 / p - 1 for all pairs that could be drawn, 0 for the others, (n_samples, n_labels).

        The sum over the items of a label says how unsure an estimate from this draw is.
        """
        inverse = np.ones_like(self.inclusion)
        return np.asarray(np.divide(1, self.inclusion, out=inverse, where=self.inclusion > 0) - 1)


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

    Every label has its share of the questions, as long as it has open pairs. The draw is systematic
    along a random order, so that the number of questions is met, and every label gets its share up
    to one question.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of relevance, as a model sees it now.
    count : int
        How many questions.
    is_open : bool array of shape (n_samples, n_labels), optional
        Which pairs may be drawn; by default all.
    rates : AnswerRates, optional
        How often people dare to say "no" and "yes"; by default they always know.
    floor : float
        Share of the questions that is uniform, in (0, 1].
    seed : int

    Returns
    -------
    drawn : Drawn
        What `comes.answers.estimate_share` needs to know about a round.

    Examples
    --------
    >>> drawn = draw_questions([[0.5], [0.98], [0.4], [0.99]], 2)
    >>> drawn.inclusion.round(2).ravel().tolist(), len(drawn.row)
    ([0.83, 0.2, 0.81, 0.16], 2)
    """
    eta = np.asarray(probabilities, dtype=np.float64)
    bits = expected_bits(eta, rates)
    allowed = np.ones(eta.shape, dtype=bool) if is_open is None else np.asarray(is_open)
    if allowed.shape != eta.shape:
        raise ComesError(f"is_open must have the shape {eta.shape}; got {allowed.shape}.")
    if not 0 < floor <= 1:
        raise ComesError(f"floor must be in (0, 1]; got {floor:g}. Without one, estimates fail.")
    if not isinstance(count, int | np.integer) or count < 1:
        raise ComesError(f"the number of questions must be 1 or more; got {count!r}.")
    shares = share_questions(int(count), allowed.sum(axis=0))
    rng = np.random.default_rng(seed)
    p = np.zeros(eta.shape)
    rows, labels = [], []
    for j in np.flatnonzero(shares):
        rows.append(rng.permutation(np.flatnonzero(allowed[:, j])))
        labels.append(np.full(len(rows[-1]), j))
        p[rows[-1], j] = find_inclusion(bits[rows[-1], j], shares[j], floor)
    if not rows:
        raise ComesError("nothing is left to ask: every pair has a question.")
    row, label = np.concatenate(rows), np.concatenate(labels)
    taken = _take_systematically(p[row, label], rng)
    row, label = row[taken], label[taken]
    order = _mix_blocks(label, rng)
    return Drawn(row[order], label[order], p)


def share_questions(count: int, n_open: npt.NDArray[np.integer]) -> FloatArray:
    """Return how many questions each label gets: the same, but no more than it has open pairs."""
    if n_open.sum() <= count:
        return n_open.astype(np.float64)
    low, high = 0.0, float(n_open.max())
    for _ in range(60):  # the level at which the labels together get as many as wanted
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(n_open, level).sum() < count else (low, level)
    return np.asarray(np.minimum(n_open, high), dtype=np.float64)


def find_inclusion(bits: npt.ArrayLike, count: float, floor: float = FLOOR) -> FloatArray:
    """Return the probabilities with which open pairs of one label are drawn, (n_open,).

    Parameters
    ----------
    bits : array of shape (n_open,)
        What the answers are expected to tell.
    count : float
        What the probabilities add up to; at most n_open.
    floor : float
        Share of the questions that is uniform.

    Examples
    --------
    >>> find_inclusion([1.0, 1.0, 0.0, 0.0], 1, floor=0.2).tolist()
    [0.45, 0.45, 0.05, 0.05]
    """
    told = np.asarray(bits, dtype=np.float64)
    n = len(told)
    if count >= n:
        return np.ones(n)
    total = told.sum()
    size = floor / n + (1 - floor) * (told / total if total > 0 else np.full(n, 1 / n))
    p, is_sure = count * size, np.zeros(n, dtype=bool)
    while (p > 1).any():  # those above 1 are certain, and the others share what is left
        is_sure |= p >= 1
        p = np.where(is_sure, 1.0, size * (count - is_sure.sum()) / size[~is_sure].sum())
    return p


def _take_systematically(p: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which are drawn: those whose step of the running sum crosses u, u + 1, u + 2 ..."""
    ends = np.cumsum(p) + rng.random()
    return np.diff(np.floor(ends), prepend=np.floor(ends[0] - p[0])) > 0


def _mix_blocks(label: Places, rng: np.random.Generator) -> Places:
    """Return an order with questions about one label together, 20 at a time, labels in turn."""
    turn = np.zeros(len(label), dtype=np.int64)
    for number in np.unique(label):
        turn[label == number] = np.arange((label == number).sum())
    place = rng.permutation(label.max(initial=0) + 1)
    return np.lexsort((turn, place[label], turn // BLOCK))
