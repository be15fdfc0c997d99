"""The answers of a project as columns of numbers, of which only what is new is read.

A server keeps a `Ledger`, so that the page of the lead costs as much as the answers that came since
it was last shown. What is known is checked against counts of the database: if commits of several
servers come out of order, or something else changed, everything is read again.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, Select, func, select, text

from comes.annotate.project import Project
from comes.annotate.schema import (
    ACTIVE,
    CONTROL,
    DECISION,
    IMPORTED,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    people,
)
from comes.datasets.long import MODEL

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WORDS = ("no", "maybe", "yes", "skip")
NO, MAYBE, YES, SKIP = range(4)
SOURCES = (RANDOM, ACTIVE, MODEL, IMPORTED, CONTROL)
LATE = 5_000  # answers before the last one, where a commit that came late is looked for
ROWS_AT_ONCE = 20_000  # between which other threads go on

_CARD = [cards.c[name] for name in ("id", "item_id", "class_id", "turn", "source", "known")]
_ANSWER = [
    answers.c[name]
    for name in (
        "id",
        "card_id",
        "annotator",
        "answer",
        "seconds",
        "answered_at",
        "tab",
        "undone_at",
    )
]


@dataclass(frozen=True)
class Said:
    """All cards, and the answers that stand, in the order in which they were given.

    Each answer has a place in arrays of one length; so has each card. Items and classes are
    numbered from 0, as rows are.
    """

    n_cards_of: IntArray  # cards of each class, other than the lead's and control cards
    n_questions_of: IntArray  # (item, class) pairs of each class that have a card
    id: IntArray
    item: IntArray
    class_: IntArray
    question: IntArray  # number of the (item, class) pair
    source: IntArray  # place in SOURCES
    known: IntArray  # the right answer on a control card, a place in WORDS; else -1
    person: IntArray  # place in people
    word: IntArray  # place in WORDS
    seconds: npt.NDArray[np.float64]  # NaN where it is not known
    at: npt.NDArray[np.float64]
    is_decision: BoolArray  # by the lead, about a pair
    people: tuple[str, ...]
    left_out: BoolArray  # of people


class Ledger:
    """What was said in a project, as far as it is known.

    Parameters
    ----------
    project : Project

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     said = Ledger(project).read()
    >>> WORDS[said.word[0]], said.people
    ('no', ('(answers.csv)',))
    """

    def __init__(self, project: Project) -> None:
        self._project, self._lock = project, threading.Lock()
        self._cards, self._answers = _Cards(), _Answers()

    def read(self) -> Said:
        """Read what is new, and return everything that stands."""
        with self._lock, self._project.reading() as connection:
            if not self._cards.read_new(connection):
                self._cards = _Cards()
                self._cards.read_new(connection)
            if not self._answers.read_new(connection):
                self._answers = _Answers()
                self._answers.read_new(connection)
            gone = select(people.c.name).where(people.c.left_out_at.is_not(None))
            left_out = set(connection.execute(gone).scalars())
            return _combine(self._cards, self._answers, left_out)


class _Columns:
    """Arrays that grow, by number."""

    def __init__(self, **kinds: Any) -> None:
        self._arrays = {name: np.zeros(1024, kind) for name, kind in kinds.items()}
        self.last = 0  # the largest number

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self.last + 1]

    def put(self, numbers: Sequence[int], **values: Any) -> None:
        """Store values under their numbers."""
        place = np.asarray(numbers)
        self.last = max(self.last, int(place.max()))
        for name, array in self._arrays.items():
            if len(array) <= self.last:
                array = np.concatenate([array, np.zeros(self.last, array.dtype)])
                self._arrays[name] = array
            if name in values:
                array[place] = values[name]


class _Cards(_Columns):
    """The cards by their number; 0 is no card."""

    def __init__(self) -> None:
        kinds: dict[str, Any] = dict.fromkeys(("item", "class_", "turn"), np.int32)
        super().__init__(**kinds, source=np.int16, known=np.int16, is_there=np.bool_)
        self.n_cards = 0
        self._counted = (0, 0)  # all cards, and those that were not drawn at random
        self.question, self.n_questions = np.zeros(0, np.int64), 0

    def read_new(self, connection: Connection) -> bool:
        """Read new cards; return whether what is known is what there is."""
        n_cards = connection.execute(select(func.count()).select_from(cards)).scalar_one()
        others = select(func.count()).where(cards.c.source != text(f"'{RANDOM}'"))  # by its index
        counted = (n_cards, connection.execute(others).scalar_one())
        if n_cards == self.n_cards:
            return counted == self._counted
        for rows in _read_in_blocks(connection, select(*_CARD), cards.c.id, self.last):
            numbers, item, class_, turn, source, known = zip(*rows, strict=True)
            self.put(
                numbers,
                item=item,
                class_=class_,
                turn=turn,
                source=_encode(source, SOURCES),
                known=[WORDS.index(word) if word else -1 for word in known],
                is_there=True,
            )
            self.n_cards += len(rows)
        self._number_questions()
        is_other = self["is_there"] & (self["source"] != SOURCES.index(RANDOM))
        self._counted = (self.n_cards, int(np.count_nonzero(is_other)))
        return counted == self._counted

    def _number_questions(self) -> None:
        pair = self["item"].astype(np.int64) * (1 + int(self["class_"].max())) + self["class_"]
        known, self.question = np.unique(pair, return_inverse=True)
        self.n_questions = len(known)


class _Answers(_Columns):
    """The answers by their number."""

    def __init__(self) -> None:
        kinds: dict[str, Any] = {"card": np.int32, "person": np.int32, "word": np.int16}
        kinds |= {"seconds": np.float64, "at": np.float64}
        super().__init__(**kinds, is_decision=np.bool_, stands=np.bool_, is_there=np.bool_)
        self.people: dict[str, int] = {}

    def read_new(self, connection: Connection) -> bool:
        """Read new answers, and which are undone; return whether that is all there is."""
        counted = connection.execute(select(func.count()).select_from(answers)).scalar_one()
        for start in (self.last, max(self.last - LATE, 0)):
            if counted != np.count_nonzero(self["is_there"]):
                for rows in _read_in_blocks(connection, select(*_ANSWER), answers.c.id, start):
                    self._put_answers(rows)
        is_undone = answers.c.undone_at.is_not(None)
        undone = select(func.count()).select_from(answers).where(is_undone)
        n_known = np.count_nonzero(self["is_there"] & ~self["stands"])
        if connection.execute(undone).scalar_one() != n_known:
            numbers = _fetch_all(connection, select(answers.c.id).where(is_undone))
            self["stands"][[number for (number,) in numbers]] = False
        return bool(counted == np.count_nonzero(self["is_there"]))

    def _put_answers(self, rows: Sequence[Any]) -> None:
        numbers, card, person, word, seconds, at, tab, undone = zip(*rows, strict=True)
        for name in dict.fromkeys(person):
            self.people.setdefault(name, len(self.people))
        self.put(
            numbers,
            card=card,
            person=[self.people[name] for name in person],
            word=_encode(word, WORDS),
            seconds=np.array(seconds, dtype=float),
            at=at,
            is_decision=[name == LEADS_TAB for name in tab],
            stands=[moment is None for moment in undone],
            is_there=True,
        )


def _combine(known: _Cards, given: _Answers, left_out: set[str]) -> Said:
    """Return what stands, with the cards that it is about."""
    stands = np.flatnonzero(given["stands"])
    card = given["card"][stands]
    is_drawn = known["is_there"] & (known["turn"] < DECISION)
    is_first = known["is_there"] & (known["turn"] == 0)
    n_classes = int(known["class_"].max())
    names = sorted(given.people)
    place = np.zeros(len(names), np.int64)
    place[[given.people[name] for name in names]] = np.arange(len(names))
    count = {
        name: np.bincount(known["class_"][rows] - 1, minlength=n_classes)
        for name, rows in (("cards", is_drawn), ("questions", is_first))
    }
    return Said(
        n_cards_of=count["cards"],
        n_questions_of=count["questions"],
        id=stands,
        item=known["item"][card].astype(np.int64) - 1,
        class_=known["class_"][card].astype(np.int64) - 1,
        question=known.question[card] if len(card) else np.zeros(0, np.int64),
        source=known["source"][card].astype(np.int64),
        known=known["known"][card].astype(np.int64),
        person=place[given["person"][stands]],
        word=given["word"][stands].astype(np.int64),
        seconds=given["seconds"][stands],
        at=given["at"][stands],
        is_decision=given["is_decision"][stands],
        people=tuple(names),
        left_out=np.array([name in left_out for name in names], dtype=bool),
    )


def _encode(words: Iterable[str], known: Sequence[str]) -> list[int]:
    place = {word: number for number, word in enumerate(known)}
    return [place[word] for word in words]


def _read_in_blocks(
    connection: Connection, query: Select[Any], number: Any, after: int
) -> Iterator[list[Any]]:
    """Give the rows with a larger number, some at a time."""
    while True:
        block = query.where(number > after).order_by(number).limit(ROWS_AT_ONCE)
        rows = _fetch_all(connection, block)
        if rows:
            yield rows
            after = rows[-1][0]
        if len(rows) < ROWS_AT_ONCE:
            return


def _fetch_all(connection: Connection, query: Select[Any]) -> list[Any]:
    """Return all rows as plain tuples, in half of the time that named rows take."""
    found = connection.execute(query)
    try:
        return list(found.cursor.fetchall())
    finally:
        found.close()
