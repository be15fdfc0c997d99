"""What one pass over the rows counts for each label, in two halves of the rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State
from comes.answers.matrix import Kind
from comes.errors import ComesError

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AnswerCounts:
    """How often each label was answered no, yes and maybe, in even and in odd rows.

    Counts of the blocks of a stream are added. The halves are independent: what one suggests (that
    a label is rare), the other can measure without the chance that suggested it.

    Attributes
    ----------
    n_rows : int array of shape (2,)
        How many rows each half has.
    no, yes, maybe : int arrays of shape (2, n_labels)

    Examples
    --------
    >>> counts = AnswerCounts.of(Answers(no=[[1, 0], [1, 0], [0, 1]]))
    >>> counts.no
    array([[1, 1],
           [1, 0]])
    >>> (counts + counts).n_rows
    array([4, 2])
    """

    n_rows: Counts
    no: Counts
    yes: Counts
    maybe: Counts

    @classmethod
    def of(cls, answers: Answers) -> "AnswerCounts":
        """Return the counts of answers, sparse or not, without those that a model asked for."""
        states = answers.without_chosen().states
        n, q = states.shape
        is_odd = np.repeat(np.arange(n) % 2 == 1, np.diff(states.indptr))
        no, yes, maybe = (
            np.stack(
                [
                    np.bincount(states.indices[(states.data == state) & half], minlength=q)
                    for half in (~is_odd, is_odd)
                ]
            )
            for state in (State.NO, State.YES, State.MAYBE)
        )
        return cls(np.array([n - n // 2, n // 2]), no, yes, maybe)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.no.shape[1])

    def asked(self, kind: Kind) -> Counts:
        """Return how many pairs of each label could have an answer, (2, n_labels).

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
