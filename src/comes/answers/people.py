"""Answers in long form, a row per answer: several people may answer about one pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from comes.answers.states import State
from comes.errors import ComesError

Codes = npt.NDArray[np.int8]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LongAnswers:
    """Who said what about which pair; one element per answer.

    Attributes
    ----------
    row, label : int arrays of shape (n_answers,)
        Places of the pair in the matrix.
    person : int array of shape (n_answers,)
        Place in ``people``.
    code : int8 array of shape (n_answers,)
        A `State`: NO, YES or MAYBE.
    people : tuple of str

    Examples
    --------
    >>> said = LongAnswers.read([0, 0], [1, 1], ["no", "yes"], ["ann", "bob"])
    >>> said.people, said.code.tolist()
    (('ann', 'bob'), [1, 2])
    >>> said.combine((1, 2))  # they disagree about label 1
    array([[0, 3]], dtype=int8)
    """

    row: Places
    label: Places
    person: Places
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
        row, label = _read_places("rows", rows), _read_places("labels", labels)
        lengths = [len(column) for column in (row, label, words, people)]
        if len(set(lengths)) != 1:
            raise ComesError(
                "rows, labels, answers and people must have one length; got "
                f"{', '.join(map(str, lengths))}."
            )
        known = {state.word: state for state in State}
        for place, word in enumerate(words):
            if word not in known:
                raise ComesError(
                    f"an answer must be no, yes, maybe or not asked; got {word!r} about row "
                    f"{row[place]}, label {label[place]}."
                )
        code = np.array([known[word] for word in words], dtype=np.int8)
        names, number = np.unique(np.asarray(people, dtype=str), return_inverse=True)
        said = code != State.NOT_ASKED
        return cls(row[said], label[said], number[said], code[said], tuple(map(str, names)))

    def __len__(self) -> int:
        return len(self.code)

    def combine(self, shape: tuple[int, int]) -> Codes:
        """Return the matrix of states in which a disagreement is MAYBE, of this shape."""
        lowest = np.full(shape, np.iinfo(np.int8).max, dtype=np.int8)
        highest = np.zeros(shape, dtype=np.int8)
        np.minimum.at(lowest, (self.row, self.label), self.code)
        np.maximum.at(highest, (self.row, self.label), self.code)
        torn = (highest != State.NOT_ASKED) & (lowest != highest)
        return np.where(torn, np.int8(State.MAYBE), highest)

    def count_torn(self, shape: tuple[int, int]) -> int:
        """Return about how many pairs somebody said yes and somebody no."""
        said = np.zeros((2, *shape), dtype=bool)
        for place, state in enumerate((State.NO, State.YES)):
            is_it = self.code == state
            said[place, self.row[is_it], self.label[is_it]] = True
        return int(said.all(axis=0).sum())

    def take(self, rows: Places, n: int) -> "LongAnswers":
        """Return the answers about some of n rows, which may repeat, numbered anew."""
        order = np.argsort(self.row, kind="stable")
        counts = np.bincount(self.row, minlength=n)
        starts = np.concatenate([[0], counts.cumsum()])
        times = counts[rows]
        new_row = np.repeat(np.arange(len(rows)), times)
        within = np.arange(len(new_row)) - np.repeat(times.cumsum() - times, times)
        which = order[np.repeat(starts[rows], times) + within]
        return replace(
            self,
            row=new_row,
            label=self.label[which],
            person=self.person[which],
            code=self.code[which],
        )

    def take_labels(self, labels: Places, q: int) -> "LongAnswers":
        """Return the answers about some of q labels, each once, numbered anew."""
        place = np.full(q, -1)
        place[labels] = np.arange(len(labels))
        kept = place[self.label] >= 0
        return replace(
            self,
            row=self.row[kept],
            label=place[self.label[kept]],
            person=self.person[kept],
            code=self.code[kept],
        )

    def keep(self, pairs: npt.NDArray[np.bool_]) -> "LongAnswers":
        """Return the answers about the pairs that a matrix marks."""
        return self._select(pairs[self.row, self.label])

    def without_maybe(self) -> "LongAnswers":
        """Return the answers that are sure."""
        return self._select(self.code != State.MAYBE)

    def _select(self, kept: npt.NDArray[np.bool_]) -> "LongAnswers":
        """Return some of the answers."""
        return replace(
            self,
            row=self.row[kept],
            label=self.label[kept],
            person=self.person[kept],
            code=self.code[kept],
        )


def _read_places(name: str, places: npt.ArrayLike) -> Places:
    """Return the numbers of rows or labels; raise unless they are whole."""
    given = np.asarray(places)
    try:
        numbers = given.astype(np.int64)
        is_whole = bool((numbers == given).all())
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise ComesError(
            f"{name} must be whole numbers, from 0; got {given.ravel()[:3].tolist()}. Number names "
            "first, or read a table of them (comes.datasets.open_dataset)."
        )
    return numbers
