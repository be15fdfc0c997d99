"""What the answers of a project amount to: counts, agreement, pace, and what is missing.

Only questions that were drawn at random (or imported) count for the numbers that training depends
on; those that a model chose, and answers to cards that showed what a model thinks, are counted
apart, and control cards are not counted. Answers of people who are left out count for nothing but
these people. Where the lead has decided about a pair, that is what is known of it.
"""

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv
from sqlalchemy import Connection, Select, func, select, text

from comes.annotate.project import Project
from comes.annotate.schema import (
    ACTIVE,
    CONTROL,
    DECISION,
    FROZEN,
    IMPORTED,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    fetch_all,
    people,
)
from comes.datasets.long import HINT, MODEL

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WORDS = ("no", "maybe", "yes", "skip")
NO, MAYBE, YES, SKIP = range(4)
SOURCES = (RANDOM, ACTIVE, MODEL, IMPORTED, CONTROL, HINT)
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
        "hint",
    )
]


@dataclass(frozen=True)
class AnswerColumns:
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


class AnswerCache:
    """The answers of a project, of which only new ones are read each time."""

    def __init__(self, project: Project) -> None:
        self._project, self._lock = project, threading.Lock()
        self._cards, self._answers = _Cards(), _Answers()

    def read(self) -> AnswerColumns:
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
        super().__init__(
            **kinds, is_decision=np.bool_, stands=np.bool_, is_there=np.bool_, is_hinted=np.bool_
        )
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
            numbers = fetch_all(connection, select(answers.c.id).where(is_undone))
            self["stands"][[number for (number,) in numbers]] = False
        return bool(counted == np.count_nonzero(self["is_there"]))

    def _put_answers(self, rows: Sequence[Any]) -> None:
        numbers, card, person, word, seconds, at, tab, undone, hint = zip(*rows, strict=True)
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
            is_hinted=[probability is not None for probability in hint],
        )


def _combine(known: _Cards, given: _Answers, left_out: set[str]) -> AnswerColumns:
    """Return what stands, with the cards that it is about."""
    stands = np.flatnonzero(given["stands"])
    card = given["card"][stands]
    is_hinted = given["is_hinted"][stands] & (known["source"][card] != SOURCES.index(CONTROL))
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
    return AnswerColumns(
        n_cards_of=count["cards"],
        n_questions_of=count["questions"],
        id=stands,
        item=known["item"][card].astype(np.int64) - 1,
        class_=known["class_"][card].astype(np.int64) - 1,
        question=known.question[card] if len(card) else np.zeros(0, np.int64),
        source=np.where(is_hinted, SOURCES.index(HINT), known["source"][card]),
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
        rows = fetch_all(connection, block)
        if rows:
            yield rows
            after = rows[-1][0]
        if len(rows) < ROWS_AT_ONCE:
            return


DRAWS = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Agreement:
    """Agreement over pairs of answers; kappa is Fleiss', which does not order the two people."""

    n_pairs: int
    share: float  # of pairs that agree; NaN without pairs
    kappa: float  # NaN where all answers are the same
    lower: float  # bounds of kappa
    upper: float


def measure_agreement(counts: npt.ArrayLike) -> Agreement:
    """Return the agreement, from how many pairs are both no, different, and both possible.

    The interval is that of the posterior under Jeffreys' prior, which also holds for few pairs.
    """
    table = np.asarray(counts, dtype=float)
    n = int(table.sum())
    if not n:
        return Agreement(0, np.nan, np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(0).dirichlet(table + 0.5, DRAWS)
    tail = (1 - CONFIDENCE) / 2
    lower, upper = np.quantile(_compute_kappa(drawn), [tail, 1 - tail])
    share, kappa = (table[0] + table[2]) / n, _compute_kappa(table / n)
    return Agreement(n, float(share), float(kappa), float(lower), float(upper))


def _compute_kappa(shares: npt.NDArray[np.float64]) -> Any:
    """Return Fleiss' kappa of shares of pairs (both no, different, both possible)."""
    observed = shares[..., 0] + shares[..., 2]
    no = shares[..., 0] + shares[..., 1] / 2
    expected = no**2 + (1 - no) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


ENOUGH = 100  # exclusions of a class: the standard error of a mean is a tenth of the spread
LONGEST = 60.0  # seconds that an answer counts for at most: people go for coffee
IS_CHOSEN = np.isin(SOURCES, [ACTIVE, MODEL, HINT])
_RANDOM, _CONTROL = SOURCES.index(RANDOM), SOURCES.index(CONTROL)


@dataclass(frozen=True)
class ClassSummary:
    """What is known about one class."""

    name: str
    n_cards: int
    n_done: int
    n_skipped: int
    n_asked: int  # items with an answer, other than skip
    n_excluded: int  # n_j: items that nobody thought possible
    n_confirmed: int  # items that all said yes about
    n_disagreements: (
        int  # items that somebody thought possible and somebody not, and nobody decided
    )
    n_decided: int  # items that the lead decided about
    n_chosen: int  # answers to questions that a model chose, which do not count
    agreement: Agreement
    seconds: float  # median per answer
    seconds_left: float  # for the open cards, of one person's work
    share_no: float  # of the items that were drawn and asked, those that all said no about
    share_maybe: float  # and those that nobody is sure of, or people disagree on
    share_yes: float  # and those that all said yes about
    prior_lower: float  # bounds of the class prior, each at 95 % confidence
    prior_bound: float
    more_cards: int  # answers still needed for enough exclusions, on open or new cards
    can_be_enough: bool  # whether enough items are left for that

    @property
    def has_enough(self) -> bool:
        """Whether the risk of the class is stable."""
        return self.n_excluded >= ENOUGH

    @property
    def n_unsure(self) -> int:
        """Items asked about that are neither excluded nor confirmed."""
        return self.n_asked - self.n_excluded - self.n_confirmed

    @property
    def n_open(self) -> int:
        """Cards that wait for an answer."""
        return self.n_cards - self.n_done


@dataclass(frozen=True)
class Questions:
    """The (item, class) pairs with an answer other than skip, that no model chose."""

    class_: IntArray
    is_drawn: BoolArray  # at random, not imported
    no_only: BoolArray
    yes_only: BoolArray
    possible: BoolArray  # to somebody
    disagree: BoolArray  # undecided, and possible to somebody and not to somebody else
    is_decided: BoolArray  # by the lead
    pairs: npt.NDArray[np.int64]  # of people: both no, different, both possible; (3, n)

    def count(self, rows: BoolArray, n_classes: int) -> IntArray:
        """Return how many of some questions each class has."""
        return np.bincount(self.class_[rows], minlength=n_classes)


def count_questions(said: AnswerColumns, counts: BoolArray) -> Questions:
    """Return what is known of each question, from the answers that count."""
    counts = counts & (said.word != SKIP) & ~IS_CHOSEN[said.source]
    question, word = said.question[counts], said.word[counts]
    size = int(question.max()) + 1 if len(question) else 0
    is_decision = said.is_decision[counts]
    by_people = _count_words(question[~is_decision], word[~is_decision], size)
    decided = _count_words(question[is_decision], word[is_decision], size)
    asked = np.flatnonzero((by_people + decided).sum(axis=0))
    class_ = np.zeros(size, np.int64)
    class_[question] = said.class_[counts]
    n_drawn = np.bincount(question, said.source[counts] == _RANDOM, minlength=size)
    by_people, decided = by_people[:, asked], decided[:, asked]
    is_decided = decided.sum(axis=0) > 0
    counted = np.where(is_decided, decided, by_people)
    n_no, n_possible = counted[NO], counted[MAYBE] + counted[YES]
    no, possible = by_people[NO], by_people[MAYBE] + by_people[YES]
    return Questions(
        class_=class_[asked],
        is_drawn=n_drawn[asked] > 0,
        no_only=(n_no > 0) & (n_possible == 0),
        yes_only=(n_no == 0) & (counted[MAYBE] == 0),
        possible=n_possible > 0,
        disagree=(n_no > 0) & (n_possible > 0),
        is_decided=is_decided,
        pairs=np.stack([no * (no - 1) // 2, no * possible, possible * (possible - 1) // 2]),
    )


def _count_words(question: IntArray, word: IntArray, size: int) -> IntArray:
    """Return how many answers of each word each question has; (3, questions)."""
    return np.bincount(word * size + question, minlength=3 * size).reshape(3, size)


def summarise_classes(
    said: AnswerColumns,
    counts: BoolArray,
    questions: Questions,
    names: Sequence[str],
    n_items: int,
) -> Iterator[ClassSummary]:
    """Give what is known about each class, from the answers that count and from its questions."""
    n = len(names)
    is_chosen, is_skip = IS_CHOSEN[said.source], said.word == SKIP
    is_card = (said.source != _CONTROL) & ~said.is_decision
    drawn, every = questions.is_drawn, np.ones(len(questions.class_), dtype=bool)
    columns = {
        "n_cards": _pad(said.n_cards_of, n),
        "n_done": np.bincount(said.class_[is_card], minlength=n),
        "n_skipped": np.bincount(said.class_[counts & is_skip], minlength=n),
        "n_asked": questions.count(every, n),
        "n_excluded": questions.count(questions.no_only, n),
        "n_confirmed": questions.count(questions.yes_only, n),
        "n_disagreements": questions.count(questions.disagree, n),
        "n_decided": questions.count(questions.is_decided, n),
        "n_chosen": np.bincount(said.class_[counts & is_chosen & ~is_skip], minlength=n),
        "drawn": questions.count(drawn, n),
        "drawn_no": questions.count(drawn & questions.no_only, n),
        "drawn_yes": questions.count(drawn & questions.yes_only, n),
        "drawn_possible": questions.count(drawn & questions.possible, n),
        "left": n_items - _count_items(said, counts & ~is_chosen, n),
    }
    pairs = [
        np.bincount(questions.class_, questions.pairs[k], minlength=n).astype(int) for k in range(3)
    ]
    rate = divide(int(questions.no_only.sum()), len(questions.class_))
    paces = measure_paces(said.seconds[counts], said.class_[counts], n)
    for k, name in enumerate(names):
        of_class = {key: int(column[k]) for key, column in columns.items()}
        agreement = measure_agreement([column[k] for column in pairs])
        yield _describe_class(name, of_class, agreement, rate, paces[k])


def _describe_class(
    name: str,
    count: dict[str, int],
    agreement: Agreement,
    rate: float,
    pace: tuple[float, float],
) -> ClassSummary:
    """Return what is known about a class, from what was counted."""
    drawn, no, yes = count["drawn"], count["drawn_no"], count["drawn_yes"]
    missing = count_missing(count["n_excluded"], count["n_asked"], rate)
    n_open = count["n_cards"] - count["n_done"]
    kept = {key: value for key, value in count.items() if key.startswith("n_")}
    return ClassSummary(
        name=name,
        **kept,
        agreement=agreement,
        seconds=pace[0],
        seconds_left=n_open * pace[1] if n_open else 0.0,
        share_no=divide(no, drawn),
        share_maybe=divide(drawn - no - yes, drawn),
        share_yes=divide(yes, drawn),
        prior_lower=1 - bound_share(drawn - yes, drawn),
        prior_bound=bound_share(count["drawn_possible"], drawn),
        more_cards=min(missing, count["left"]),
        can_be_enough=missing <= count["left"],
    )


def measure_paces(
    seconds: npt.NDArray[np.float64], group: IntArray, n_groups: int
) -> list[tuple[float, float]]:
    """Return the median and the mean of the seconds of each group; one without has that of all."""
    is_known = ~np.isnan(seconds)
    seconds, group = seconds[is_known], group[is_known]
    order = np.argsort(group.astype(np.int16 if n_groups < 2**15 else np.int64), kind="stable")
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    capped = np.minimum(seconds, LONGEST)
    mean = float(capped.mean()) if len(capped) else math.nan
    parts = [order[ends[k] : ends[k + 1]] for k in range(n_groups)]
    return [
        (float(np.median(seconds[part])), float(capped[part].mean()))
        if len(part)
        else (math.nan, mean)
        for part in parts
    ]


def _count_items(said: AnswerColumns, rows: BoolArray, n_classes: int) -> IntArray:
    """Return how many items each class has an answer about, skips included."""
    is_asked = np.zeros(int(said.question.max()) + 1 if len(said.question) else 0, dtype=bool)
    class_ = np.zeros(len(is_asked), np.int64)
    is_asked[said.question[rows]] = True
    class_[said.question[rows]] = said.class_[rows]
    return np.bincount(class_[is_asked], minlength=n_classes)


def count_missing(n_excluded: int, n_asked: int, exclusion_rate: float) -> int:
    """Return how many more answers would give a class enough exclusions, at its present rate.

    While answers are few, the rate is shrunk towards that of all classes (NaN or 0 without any).
    """
    if exclusion_rate > 0:
        rate = (n_excluded + 1) / (n_asked + 1 / exclusion_rate)
    else:
        rate = 1 / (n_asked + 1)
    return math.ceil(max(0, ENOUGH - n_excluded) / rate)


def divide(part: float, whole: float) -> float:
    """Return a share; NaN of nothing."""
    return part / whole if whole else math.nan


def bound_share(part: int, whole: int) -> float:
    """Return the upper bound of Clopper and Pearson on a share; 1 if nothing is known."""
    if part == whole:
        return 1.0
    return float(betaincinv(part + 1, whole - part, CONFIDENCE))


def _pad(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a column with zeros for classes that have no card yet."""
    return np.concatenate([column, np.zeros(max(size - len(column), 0), column.dtype)])


@dataclass(frozen=True)
class PersonSummary:
    """What one person did."""

    name: str
    n_no: int
    n_maybe: int
    n_yes: int
    seconds: float  # median per answer
    last: float  # time of the last answer
    n_pairs: int  # answers of others to the same questions
    agreement: float  # share of those that are no where this person says no, and not elsewhere
    n_controls: int  # control cards that were answered
    n_right: int
    right_lower: float  # interval of the share of right answers
    right_upper: float
    is_left_out: bool

    @property
    def n_answers(self) -> int:
        """Answers other than skip, control cards not counted."""
        return self.n_no + self.n_maybe + self.n_yes


def summarise_people(said: AnswerColumns) -> tuple[PersonSummary, ...]:
    """Return what each person did; the lead's decisions are not among it."""
    n = len(said.people)
    is_card = ~said.is_decision
    given = is_card & (said.word != SKIP) & (said.source != _CONTROL)
    words = np.bincount(3 * said.person[given] + said.word[given], minlength=3 * n).reshape(n, 3)
    paces = measure_paces(said.seconds[is_card], said.person[is_card], n)
    agreed = _count_agreement(said, given, n)
    is_control = is_card & (said.source == _CONTROL) & (said.word != SKIP)
    is_right = is_control & (said.word == said.known)
    n_controls, n_right = (
        np.bincount(said.person[rows], minlength=n) for rows in (is_control, is_right)
    )
    last = np.zeros(n)
    np.maximum.at(last, said.person[is_card], said.at[is_card])
    active = np.bincount(said.person[is_card], minlength=n)
    found = []
    for k in np.flatnonzero(active):
        lower, upper = bound_both_sides(int(n_right[k]), int(n_controls[k]))
        found.append(
            PersonSummary(
                name=said.people[k],
                n_no=int(words[k, NO]),
                n_maybe=int(words[k, MAYBE]),
                n_yes=int(words[k, YES]),
                seconds=paces[k][0],
                last=float(last[k]),
                n_pairs=int(agreed[k, 1]),
                agreement=divide(int(agreed[k, 0]), int(agreed[k, 1])),
                n_controls=int(n_controls[k]),
                n_right=int(n_right[k]),
                right_lower=lower,
                right_upper=upper,
                is_left_out=bool(said.left_out[k]),
            )
        )
    return tuple(found)


def bound_both_sides(part: int, whole: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share; 0 and 1 if nothing is known."""
    tail = (1 - CONFIDENCE) / 2
    lower = float(betaincinv(part, whole - part + 1, tail)) if part else 0.0
    upper = float(betaincinv(part + 1, whole - part, 1 - tail)) if part < whole else 1.0
    return lower, upper


def _count_agreement(said: AnswerColumns, given: BoolArray, n: int) -> IntArray:
    """Return how many answers of others agree with a person, and how many there are; (n, 2)."""
    question, person = said.question[given], said.person[given]
    is_no = said.word[given] == NO
    size = int(question.max()) + 1 if len(question) else 0
    every = np.bincount(question, minlength=size)
    twice = every[question] > 1
    question, person, is_no = question[twice], person[twice], is_no[twice]
    n_no = np.bincount(question, is_no, minlength=size).astype(int)
    same = np.where(is_no, n_no[question], every[question] - n_no[question]) - 1
    agreed = np.bincount(person, same, minlength=n)
    return np.stack([agreed, np.bincount(person, every[question] - 1, minlength=n)], 1).astype(int)


LATEST = 12  # answers that a page shows
RECENT = 1800.0  # seconds by which the present pace is measured


@dataclass(frozen=True)
class Summary:
    """What is known about a project.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> [row.name for row in summary.to_ask]  # no class has a hundred exclusions
    ['weather', 'sport']
    """

    n_items: int
    n_classes: int
    n_cards: int
    n_done: int
    n_answers: int
    n_saved: int  # further questions, if every class of every item were asked
    agreement: Agreement
    classes: tuple[ClassSummary, ...]
    people: tuple[PersonSummary, ...]
    latest: tuple[dict[str, Any], ...]
    seconds_left: float  # of one person's work; NaN while nobody has answered
    per_hour: float  # answers of all people, at the pace of the last half hour
    made_at: float
    frozen_at: float | None = None

    @property
    def to_ask(self) -> list[ClassSummary]:
        """Classes that need more exclusions; the class with the fewest comes first."""
        lacking = [row for row in self.classes if not row.has_enough]
        return sorted(lacking, key=lambda row: row.n_excluded)

    @property
    def n_disagreements(self) -> int:
        """Pairs on which people disagree and the lead has not decided."""
        return sum(row.n_disagreements for row in self.classes)

    def table(self) -> pd.DataFrame:
        """Return a row per class."""
        return pd.DataFrame(
            {
                "class": row.name,
                "cards": row.n_cards,
                "answered": row.n_done - row.n_skipped,
                "skipped": row.n_skipped,
                "asked": row.n_asked,
                "excluded": row.n_excluded,
                "confirmed": row.n_confirmed,
                "disagreements": row.n_disagreements,
                "decided": row.n_decided,
                "chosen_by_model": row.n_chosen,
                "pairs": row.agreement.n_pairs,
                "agreement": row.agreement.share,
                "kappa": row.agreement.kappa,
                "kappa_lower": row.agreement.lower,
                "kappa_upper": row.agreement.upper,
                "seconds": row.seconds,
                "seconds_left": row.seconds_left,
                "share_no": row.share_no,
                "share_maybe": row.share_maybe,
                "share_yes": row.share_yes,
                "prior_at_least": row.prior_lower,
                "prior_at_most": row.prior_bound,
                "more_cards": row.more_cards,
            }
            for row in self.classes
        )


def summarise(project: Project) -> Summary:
    """Return what is known about a project.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> summary.n_cards, summary.n_done, summary.classes[0].n_excluded
    (4, 1, 1)
    """
    return summarise_said(project, AnswerCache(project).read())


def summarise_said(project: Project, said: AnswerColumns) -> Summary:
    """Return what is known about a project, from what was said."""
    names, n_items = project.class_names, len(project.item_names)
    is_left_out = said.left_out[said.person]
    is_card = (said.source != _CONTROL) & ~said.is_decision
    counts = is_card & ~is_left_out
    questions = count_questions(said, (said.source != _CONTROL) & ~is_left_out)
    rows = tuple(summarise_classes(said, counts, questions, names, n_items))
    frozen = project.read_setting(FROZEN)
    return Summary(
        n_items=n_items,
        n_classes=len(names),
        n_cards=int(said.n_cards_of.sum()),
        n_done=int(np.count_nonzero(is_card)),
        n_answers=int(np.count_nonzero(said.word[counts] != SKIP)),
        n_saved=n_items * len(names) - int(said.n_questions_of.sum()),
        agreement=measure_agreement(questions.pairs.sum(axis=1)),
        classes=rows,
        people=summarise_people(said),
        latest=tuple(_list_latest(said, is_card, project)),
        seconds_left=float(np.sum([row.seconds_left for row in rows])),
        per_hour=_measure_recent(said.at[is_card]),
        made_at=time.time(),
        frozen_at=float(frozen) if frozen else None,
    )


def _measure_recent(at: npt.NDArray[np.float64]) -> float:
    """Return the answers per hour at the pace of the last half hour; 0 if nobody is at work."""
    recent = at[at > time.time() - RECENT]
    return 3600 * len(recent) / max(time.time() - recent.min(), 60.0) if len(recent) else 0.0


def _list_latest(
    said: AnswerColumns, rows: npt.NDArray[np.bool_], project: Project
) -> Iterator[dict[str, Any]]:
    found = np.flatnonzero(rows)
    newest = found[np.lexsort([-said.id[found], -said.at[found]])[:LATEST]]
    item_names, class_names = project.item_names, project.class_names
    for k in newest:
        yield {
            "item": item_names[said.item[k]],
            "number": int(said.item[k]) + 1,
            "class": class_names[said.class_[k]],
            "answer": WORDS[said.word[k]],
            "annotator": said.people[said.person[k]],
            "at": float(said.at[k]),
        }
