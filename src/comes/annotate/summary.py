"""What the answers of a project amount to: counts, agreement, pace, and what is missing.

Only questions that were drawn at random (or imported) count for the numbers that training depends
on; those that a model chose, and answers to cards that showed what a model thinks, are counted
apart, and control cards are not counted. Answers of people who are left out count for nothing but
these people. Where the lead has decided about a pair, that is what is known of it.
"""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv
from sqlalchemy import Connection, case, func, select, text

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
    classes,
    fetch_all,
    people,
)
from comes.datasets.long import HINT, MODEL

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Columns = dict[str, FloatArray]  # of a table, by name; the rows are in the order of their ids
WORDS = ("no", "maybe", "yes", "skip")
NO, MAYBE, YES, SKIP = range(4)
SOURCES = (RANDOM, ACTIVE, MODEL, IMPORTED, CONTROL, HINT)
_RANDOM, _CONTROL, _HINT = (SOURCES.index(source) for source in (RANDOM, CONTROL, HINT))
IS_CHOSEN = np.isin(SOURCES, [ACTIVE, MODEL, HINT])
LATE = 5_000  # answers before the last one, where a commit that came late is looked for
ROWS_AT_ONCE = 20_000  # between which other threads go on


def _number(column: Any, words: Sequence[str]) -> Any:
    """Return the place of a column's word among others; -1 where there is none."""
    return case({word: k for k, word in enumerate(words)}, value=column, else_=-1)


_CARD = {
    "id": cards.c.id,
    "item": cards.c.item_id,
    "class_": cards.c.class_id,
    "turn": cards.c.turn,
    "source": _number(cards.c.source, SOURCES),
    "known": _number(cards.c.known, WORDS),
}
_ANSWER = {
    "id": answers.c.id,
    "person": answers.c.annotator,
    "card": answers.c.card_id,
    "word": _number(answers.c.answer, WORDS),
    "seconds": answers.c.seconds,
    "at": answers.c.answered_at,
    "is_decision": answers.c.tab == LEADS_TAB,
    "stands": answers.c.undone_at.is_(None),
    "is_hinted": answers.c.hint.is_not(None),
}


@dataclass(frozen=True)
class AnswerColumns:
    """All cards, and the answers that stand, in the order in which they were given.

    Each answer has a place in arrays of one length. Items and classes are numbered from 0.
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
    seconds: FloatArray  # NaN where it is not known
    at: FloatArray
    is_decision: BoolArray  # by the lead, about a pair
    people: tuple[str, ...]
    left_out: BoolArray  # of people


class AnswerCache:
    """The answers of a project, of which only new ones are read each time."""

    def __init__(self, project: Project) -> None:
        self._project, self._lock = project, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._cards: Columns = {name: np.zeros(0) for name in _CARD}
        self._answers: Columns = {name: np.zeros(0) for name in _ANSWER}
        self._question = np.zeros(0, np.int64)  # of each card
        self._people: dict[str, int] = {}

    def read(self) -> AnswerColumns:
        """Read what is new, and return everything that stands."""
        with self._lock, self._project.reading() as connection:
            if not (self._read_cards(connection) and self._read_answers(connection)):
                self._forget()
                self._read_cards(connection)
                self._read_answers(connection)
            gone = select(people.c.name).where(people.c.left_out_at.is_not(None))
            left_out = set(connection.execute(gone).scalars())
            n_classes = connection.execute(select(func.max(classes.c.id))).scalar_one() or 0
            return self._combine(left_out, n_classes)

    def _read_cards(self, connection: Connection) -> bool:
        """Read new cards; return whether the cache has what there is."""
        n_cards = connection.execute(select(func.count()).select_from(cards)).scalar_one()
        others = select(func.count()).where(cards.c.source != text(f"'{RANDOM}'"))  # by its index
        n_others = connection.execute(others).scalar_one()
        if n_cards != len(self._cards["id"]):
            self._cards = _read_more(connection, _CARD, self._cards)
            item, class_ = self._cards["item"], self._cards["class_"]
            pair = item * (1 + class_.max(initial=0)) + class_
            self._question = np.unique(pair, return_inverse=True)[1]
        is_other = self._cards["source"] != _RANDOM
        return bool(n_cards == len(is_other) and n_others == np.count_nonzero(is_other))

    def _read_answers(self, connection: Connection) -> bool:
        """Read new answers, and which are undone; return whether the cache has what there is."""
        is_undone = answers.c.undone_at.is_not(None)
        n_answers = connection.execute(select(func.count()).select_from(answers)).scalar_one()
        undone = select(func.count()).select_from(answers).where(is_undone)
        for again in (0, LATE):
            n_known = len(self._answers["id"])
            if n_answers != n_known:
                kept = {
                    name: column[: max(n_known - again, 0)]
                    for name, column in self._answers.items()
                }
                self._answers = _read_more(connection, _ANSWER, kept, self._people)
        stands = self._answers["stands"]
        if connection.execute(undone).scalar_one() != np.count_nonzero(stands == 0):
            numbers = [
                number for (number,) in fetch_all(connection, select(answers.c.id).where(is_undone))
            ]
            stands[np.isin(self._answers["id"], numbers)] = 0
        return bool(n_answers == len(stands))

    def _combine(self, left_out: set[str], n_classes: int) -> AnswerColumns:
        """Return what stands, with the cards that it is about."""
        known, turn = self._cards, self._cards["turn"]
        given = {
            name: column[self._answers["stands"] > 0] for name, column in self._answers.items()
        }
        card = np.searchsorted(known["id"], given["card"])
        of_card = {name: column[card].astype(np.int64) for name, column in known.items()}
        is_hinted = (given["is_hinted"] > 0) & (of_card["source"] != _CONTROL)
        names = sorted(self._people)
        by_number = np.empty(len(names), np.int64)
        by_number[[self._people[name] for name in names]] = np.arange(len(names))
        class_ = known["class_"].astype(np.int64) - 1
        return AnswerColumns(
            n_cards_of=np.bincount(class_[turn < DECISION], minlength=n_classes),
            n_questions_of=np.bincount(class_[turn == 0], minlength=n_classes),
            id=given["id"].astype(np.int64),
            item=of_card["item"] - 1,
            class_=of_card["class_"] - 1,
            question=self._question[card],
            source=np.where(is_hinted, _HINT, of_card["source"]),
            known=of_card["known"],
            person=by_number[given["person"].astype(np.int64)],
            word=given["word"].astype(np.int64),
            seconds=given["seconds"],
            at=given["at"],
            is_decision=given["is_decision"] > 0,
            people=tuple(names),
            left_out=np.isin(names, list(left_out)),
        )


def _read_more(
    connection: Connection,
    columns: dict[str, Any],
    known: Columns,
    people: dict[str, int] | None = None,
) -> Columns:
    """Return columns with the rows that come after those that are known."""
    number, parts = columns["id"], [np.array(list(known.values()))]
    after = int(known["id"][-1]) if len(known["id"]) else 0
    while True:
        block = select(*columns.values()).where(number > after).order_by(number)
        rows = fetch_all(connection, block.limit(ROWS_AT_ONCE))
        if people is not None:  # who answered is the second column
            rows = [(row[0], people.setdefault(row[1], len(people)), *row[2:]) for row in rows]
        if rows:
            parts.append(np.array(rows, dtype=float).T)
            after = rows[-1][0]
        if len(rows) < ROWS_AT_ONCE:
            return dict(zip(columns, np.concatenate(parts, axis=1), strict=True))


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
        "n_cards": said.n_cards_of,
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
    pairs = np.array(
        [np.bincount(questions.class_, weights, minlength=n) for weights in questions.pairs]
    )
    rate = divide(int(questions.no_only.sum()), len(questions.class_))
    paces = measure_paces(said.seconds[counts], said.class_[counts], n)
    for k, name in enumerate(names):
        count = {key: int(column[k]) for key, column in columns.items()}
        n_drawn, no, yes, possible, left = (
            count.pop(key) for key in ("drawn", "drawn_no", "drawn_yes", "drawn_possible", "left")
        )
        missing = count_missing(count["n_excluded"], count["n_asked"], rate)
        n_open = count["n_cards"] - count["n_done"]
        yield ClassSummary(
            name=name,
            **count,
            agreement=measure_agreement(pairs[:, k]),
            seconds=paces[k][0],
            seconds_left=n_open * paces[k][1] if n_open else 0.0,
            share_no=divide(no, n_drawn),
            share_maybe=divide(n_drawn - no - yes, n_drawn),
            share_yes=divide(yes, n_drawn),
            prior_lower=1 - bound_share(n_drawn - yes, n_drawn),
            prior_bound=bound_share(possible, n_drawn),
            more_cards=min(missing, left),
            can_be_enough=missing <= left,
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


RECENT = 1800.0  # seconds by which the present pace is measured


@dataclass(frozen=True)
class Summary:
    """What is known about a project."""

    n_items: int
    n_classes: int
    n_cards: int
    n_done: int
    n_answers: int
    n_saved: int  # further questions, if every class of every item were asked
    agreement: Agreement
    classes: tuple[ClassSummary, ...]
    people: tuple[PersonSummary, ...]
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
    """Return what the answers of a project amount to.

    Parameters
    ----------
    project : Project

    Returns
    -------
    summary : Summary
        With counts, the agreement of people, and a summary for each of the ``classes`` and
        ``people``; ``table()`` has a row per class.

    Examples
    --------
    >>> summary = summarise(project)
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
        seconds_left=float(np.sum([row.seconds_left for row in rows])),
        per_hour=_measure_recent(said.at[is_card]),
        made_at=time.time(),
        frozen_at=float(frozen) if frozen else None,
    )


def _measure_recent(at: npt.NDArray[np.float64]) -> float:
    """Return the answers per hour at the pace of the last half hour; 0 if nobody is at work."""
    recent = at[at > time.time() - RECENT]
    return 3600 * len(recent) / max(time.time() - recent.min(), 60.0) if len(recent) else 0.0
