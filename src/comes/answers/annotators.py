"""Answers in long form, a row per answer: several people may answer about one pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.convert import IntArray
from comes.errors import ComesError

Codes = npt.NDArray[np.int8]


class State(IntEnum):
    """The answer about a pair of item and label; its number stands in `Answers.codes`.

    Examples
    --------
    >>> State.NO.word, State.NOT_ASKED.word
    ('no', 'not asked')
    >>> State.of_word("yes") == 2
    True
    """

    NOT_ASKED = 0  # or no answer: nothing is known
    NO = 1  # surely irrelevant
    YES = 2  # surely relevant
    MAYBE = 3  # asked, and could not tell

    @property
    def word(self) -> str:
        """The word for it in tables."""
        return self.name.lower().replace("_", " ")

    @classmethod
    def of_word(cls, word: str) -> "State":
        """Return the state for a word of a table."""
        return cls[word.upper().replace(" ", "_")]


@dataclass(frozen=True, eq=False)
class LongAnswers:
    """Who answered what about which pair; one element per answer.

    Attributes
    ----------
    row, label : int arrays of shape (n_answers,)
        Position of the pair in the matrix.
    person : int array of shape (n_answers,)
        Position in ``people``.
    code : int8 array of shape (n_answers,)
        A `State`: NO, YES or MAYBE.
    people : tuple of str

    Examples
    --------
    >>> annotations = LongAnswers.read([0, 0], [1, 1], ["no", "yes"], ["ann", "bob"])
    >>> annotations.people, annotations.code.tolist()
    (('ann', 'bob'), [1, 2])
    >>> annotations.combine((1, 2))  # they disagree about label 1
    array([[0, 3]], dtype=int8)
    """

    row: IntArray
    label: IntArray
    person: IntArray
    code: Codes
    people: tuple[str, ...]

    @classmethod
    def read(
        cls,
        rows: npt.ArrayLike,
        labels: npt.ArrayLike,
        words: Sequence[str],
        people: Sequence[str],
    ) -> "LongAnswers":
        """Return the answers of equally long columns; rows without an answer are left out."""
        row, label = _as_positions("rows", rows), _as_positions("labels", labels)
        lengths = [len(column) for column in (row, label, words, people)]
        if len(set(lengths)) != 1:
            raise ComesError(
                "rows, labels, answers and people must have one length; got "
                f"{', '.join(map(str, lengths))}."
            )
        states = {state.word: state for state in State}
        for number, word in enumerate(words):
            if word not in states:
                raise ComesError(
                    f"an answer must be no, yes, maybe or not asked; got {word!r} about row "
                    f"{row[number]}, label {label[number]}."
                )
        code = np.array([states[word] for word in words], dtype=np.int8)
        names, person = np.unique(np.asarray(people, dtype=str), return_inverse=True)
        every = cls(row, label, person, code, tuple(map(str, names)))
        return every.select(code != State.NOT_ASKED)

    def __len__(self) -> int:
        return len(self.code)

    def combine(self, shape: tuple[int, int]) -> Codes:
        """Return the matrix of states in which a disagreement is MAYBE, of this shape."""
        lowest = np.full(shape, np.iinfo(np.int8).max, dtype=np.int8)
        highest = np.zeros(shape, dtype=np.int8)
        np.minimum.at(lowest, (self.row, self.label), self.code)
        np.maximum.at(highest, (self.row, self.label), self.code)
        disagree = (highest != State.NOT_ASKED) & (lowest != highest)
        return np.where(disagree, np.int8(State.MAYBE), highest)

    def count_disagreements(self, shape: tuple[int, int]) -> int:
        """Return the number of pairs with both "yes" and "no"."""
        has = np.zeros((2, *shape), dtype=bool)
        for number, state in enumerate((State.NO, State.YES)):
            is_state = self.code == state
            has[number, self.row[is_state], self.label[is_state]] = True
        return int(has.all(axis=0).sum())

    def take(self, rows: IntArray, n: int) -> "LongAnswers":
        """Return the answers about some of n rows, which may repeat, numbered anew."""
        order = np.argsort(self.row, kind="stable")
        counts = np.bincount(self.row, minlength=n)
        starts = np.concatenate([[0], counts.cumsum()])
        times = counts[rows]
        new_row = np.repeat(np.arange(len(rows)), times)
        within = np.arange(len(new_row)) - np.repeat(times.cumsum() - times, times)
        return self.select(order[np.repeat(starts[rows], times) + within], row=new_row)

    def take_labels(self, labels: IntArray, q: int) -> "LongAnswers":
        """Return the answers about some of q labels, each once, numbered anew."""
        new_label = np.full(q, -1)
        new_label[labels] = np.arange(len(labels))
        kept = new_label[self.label] >= 0
        return self.select(kept, label=new_label[self.label[kept]])

    def select(self, which: npt.NDArray[Any], **changes: IntArray) -> "LongAnswers":
        """Return the answers at these positions, or where a mask is True."""
        columns = {name: getattr(self, name)[which] for name in ("row", "label", "person", "code")}
        return replace(self, **(columns | changes))


def _as_positions(name: str, values: npt.ArrayLike) -> IntArray:
    """Return the numbers of rows or labels; raise unless they are whole."""
    array = np.asarray(values)
    try:
        numbers = array.astype(np.int64)
        is_whole = bool((numbers == array).all())
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise ComesError(
            f"{name} must be whole numbers, from 0; got {array.ravel()[:3].tolist()}. Number names "
            "first, or read a table of them (comes.datasets.open_dataset)."
        )
    return numbers
