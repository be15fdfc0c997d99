"""What the answers of a project amount to: counts, agreement, pace, and what is missing.

Only questions that were drawn at random (or imported) count for the numbers that training depends
on; those that a model chose, and answers to cards that showed what a model thinks, are counted
apart, and control cards are not counted. Answers of people who are left out count for nothing but
these people. Where the lead has decided about a pair, that is what is known of it.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
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
    fetch_all,
    people,
)
from comes.datasets.long import HINT, MODEL

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Pair = tuple[int, int]  # numbers of an item and a class, from 1
Columns = dict[str, FloatArray]  # of a table, by name; the rows are in the order of their ids
WORDS = ("no", "maybe", "yes", "skip")
NO, MAYBE, YES, SKIP = range(4)
SOURCES = (RANDOM, ACTIVE, MODEL, IMPORTED, CONTROL, HINT)
_RANDOM, _CONTROL, _HINT = (SOURCES.index(source) for source in (RANDOM, CONTROL, HINT))
IS_CHOSEN = np.isin(SOURCES, [ACTIVE, MODEL, HINT])
LATE = 1000  # answers that are read again
ROWS_AT_ONCE = 20_000  # between which other threads go on


def _number(column: Any, words: Sequence[str]) -> Any:
    """Return the place of a column's word among others; -1 where there is none."""
    return case({word: k for k, word in enumerate(words)}, value=column, else_=-1)


_CARD = {
    "id": cards.c.id,
    "item": cards.c.item_id - 1,
    "class_": cards.c.class_id - 1,
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

    card_class: IntArray  # of each card that is neither the lead's nor a control card
    n_questions: int  # (item, class) pairs that have such a card
    pairs: IntArray  # item and class of each question; (2, questions)
    question: IntArray  # place in pairs
    source: IntArray  # place in SOURCES
    known: IntArray  # the right answer on a control card, a place in WORDS; else -1
    person: IntArray  # place in people
    word: IntArray  # place in WORDS
    seconds: FloatArray  # NaN where it is not known
    at: FloatArray
    is_decision: BoolArray  # by the lead, about a pair
    is_card: BoolArray  # to a card that is neither the lead's nor a control card
    counts: BoolArray  # by nobody who is left out, and not to a control card
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
        self._pairs = np.zeros((2, 0), np.int64)
        self._question = np.zeros(0, np.int64)  # of each card
        self._people: dict[str, int] = {}

    def read(self) -> AnswerColumns:
        """Read what is new, and return everything that stands."""
        with self._lock, self._project.reading() as connection:
            if not self._read_new(connection):
                self._forget()  # a card has changed, or a commit of another server came late
                self._read_new(connection)
            gone = select(people.c.name).where(people.c.left_out_at.is_not(None))
            left_out = list(connection.execute(gone).scalars())
            return self._combine(left_out)

    def _read_new(self, connection: Connection) -> bool:
        """Read what is new; return whether the cache has what there is."""
        is_undone = answers.c.undone_at.is_not(None)
        counts = (
            select(func.count()).select_from(cards),
            select(func.count()).where(cards.c.source != text(f"'{RANDOM}'")),  # by its index
            select(func.count()).select_from(answers),
            select(func.count()).where(is_undone),
        )
        n_cards, n_others, n_answers, n_undone = (
            connection.execute(count).scalar_one() for count in counts
        )
        if n_cards != len(self._cards["id"]):
            self._cards = _read_more(connection, _CARD, self._cards)
            item, class_ = (self._cards[name].astype(np.int64) for name in ("item", "class_"))
            most = 1 + class_.max(initial=0)
            pairs, self._question = np.unique(item * most + class_, return_inverse=True)
            self._pairs = np.array(np.divmod(pairs, most))
        if n_answers != len(self._answers["id"]):
            # Those that another server stored at the same moment may come late.
            n_sure = max(len(self._answers["id"]) - LATE, 0)
            sure = {name: column[:n_sure] for name, column in self._answers.items()}
            self._answers = _read_more(connection, _ANSWER, sure, self._people)
        stands = self._answers["stands"]
        if n_undone != np.count_nonzero(stands == 0):
            undone = fetch_all(connection, select(answers.c.id).where(is_undone))
            stands[np.isin(self._answers["id"], undone)] = 0
        is_other = self._cards["source"] != _RANDOM
        has_cards = n_cards == len(is_other) and n_others == np.count_nonzero(is_other)
        return bool(has_cards and n_answers == len(stands))

    def _combine(self, left_out: list[str]) -> AnswerColumns:
        """Return what stands, with the cards that it is about."""
        stands = self._answers["stands"] > 0
        given = {name: column[stands] for name, column in self._answers.items()}
        card = np.searchsorted(self._cards["id"], given["card"])
        source = self._cards["source"].astype(np.int64)[card]
        is_control, is_decision = source == _CONTROL, given["is_decision"] > 0
        question = self._question[card]
        is_hinted = np.zeros(self._pairs.shape[1], dtype=bool)  # somebody saw a hint
        is_hinted[question[(given["is_hinted"] > 0) & ~is_control]] = True
        person = given["person"].astype(np.int64)
        is_left_out = np.isin(list(self._people), left_out)
        turn = self._cards["turn"]
        return AnswerColumns(
            card_class=self._cards["class_"][turn < DECISION].astype(np.int64),
            n_questions=int(np.count_nonzero(turn == 0)),
            pairs=self._pairs,
            question=question,
            source=np.where(is_hinted[question] & ~is_control, _HINT, source),
            known=self._cards["known"].astype(np.int64)[card],
            person=person,
            word=given["word"].astype(np.int64),
            seconds=given["seconds"],
            at=given["at"],
            is_decision=is_decision,
            is_card=~is_control & ~is_decision,
            counts=~is_control & ~is_left_out[person],
            people=tuple(self._people),
            left_out=is_left_out,
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
    n_disagreements: int  # undecided, possible to somebody and not to somebody else
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
    has_enough: bool  # whether the risk of the class is stable
    n_unsure: int  # items asked about that are neither excluded nor confirmed
    n_open: int  # cards that wait for an answer


def count_words(said: AnswerColumns, rows: BoolArray) -> IntArray:
    """Return how many of some answers each question has: no, maybe and yes; (3, questions)."""
    n, rows = said.pairs.shape[1], rows & (said.word != SKIP)
    place = said.word[rows] * n + said.question[rows]
    return np.bincount(place, minlength=3 * n).reshape(3, n)


def find_disagreements(said: AnswerColumns, *, with_decided: bool = False) -> list[Pair]:
    """Return the pairs on which people disagree: no against yes first, then no against maybe."""
    no, maybe, yes = count_words(said, said.counts & said.is_card)
    disagree = (no > 0) & (maybe + yes > 0)
    if not with_decided:
        disagree[said.question[said.counts & said.is_decision]] = False
    numbers = np.flatnonzero(disagree)
    numbers = numbers[np.argsort(yes[numbers] == 0, kind="stable")]
    return [(item + 1, class_ + 1) for item, class_ in said.pairs[:, numbers].T.tolist()]


def summarise_classes(
    said: AnswerColumns, names: Sequence[str], n_items: int
) -> tuple[tuple[ClassSummary, ...], Agreement]:
    """Return what is known about each class, and the agreement over all of them."""
    n, is_chosen, is_skip = len(names), IS_CHOSEN[said.source], said.word == SKIP
    counts = said.counts & ~is_chosen
    by_people = count_words(said, counts & said.is_card)
    decided = count_words(said, counts & said.is_decision)
    is_decided = decided.sum(axis=0) > 0
    no, maybe, yes = np.where(is_decided, decided > 0, by_people > 0)
    excluded, confirmed = no & ~maybe & ~yes, yes & ~no & ~maybe
    is_drawn, is_given, class_ = np.zeros_like(no), np.zeros_like(no), said.pairs[1]
    is_drawn[said.question[counts & (said.source == _RANDOM) & ~is_skip]] = True
    is_given[said.question[counts & said.is_card]] = True  # skips too

    def count(questions: BoolArray) -> IntArray:
        return np.bincount(class_[questions], minlength=n)

    n_asked, n_excluded, n_confirmed = count(no | maybe | yes), count(excluded), count(confirmed)
    n_drawn, drawn_no = count(is_drawn), count(is_drawn & excluded)
    drawn_yes, drawn_possible = count(is_drawn & confirmed), count(is_drawn & (maybe | yes))
    n_no, n_possible = by_people[NO], by_people[MAYBE] + by_people[YES]
    both = n_no * (n_no - 1) // 2, n_no * n_possible, n_possible * (n_possible - 1) // 2
    pairs = np.array([np.bincount(class_, weights, minlength=n) for weights in both])

    own, of_class = said.counts & said.is_card, class_[said.question]
    n_cards = np.bincount(said.card_class, minlength=n)
    n_done = np.bincount(of_class[said.is_card], minlength=n)
    n_open = n_cards - n_done
    pace, mean_pace = measure_paces(said.seconds[own], of_class[own], n)
    missing, left = count_missing(n_excluded, n_asked), n_items - count(is_given)
    columns = {
        "name": np.array(names, dtype=object),
        "n_cards": n_cards,
        "n_done": n_done,
        "n_skipped": np.bincount(of_class[own & is_skip], minlength=n),
        "n_asked": n_asked,
        "n_excluded": n_excluded,
        "n_confirmed": n_confirmed,
        "n_disagreements": count(no & (maybe | yes)),
        "n_decided": count(is_decided),
        "n_chosen": np.bincount(of_class[own & is_chosen & ~is_skip], minlength=n),
        "seconds": pace,
        "seconds_left": np.where(n_open > 0, n_open * mean_pace, 0.0),
        "share_no": divide(drawn_no, n_drawn),
        "share_maybe": divide(n_drawn - drawn_no - drawn_yes, n_drawn),
        "share_yes": divide(drawn_yes, n_drawn),
        "prior_lower": 1 - bound_share(n_drawn - drawn_yes, n_drawn),
        "prior_bound": bound_share(drawn_possible, n_drawn),
        "more_cards": np.minimum(missing, left),
        "can_be_enough": missing <= left,
        "has_enough": n_excluded >= ENOUGH,
        "n_unsure": n_asked - n_excluded - n_confirmed,
        "n_open": n_open,
    }
    found = tuple(
        ClassSummary(agreement=measure_agreement(pairs_of_class), **row)
        for pairs_of_class, row in zip(pairs.T, list_rows(columns), strict=True)
    )
    return found, measure_agreement(pairs.sum(axis=1))


def list_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a dict for each row of arrays, with the values of Python."""
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def measure_paces(
    seconds: FloatArray, group: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray]:
    """Return the median and the mean of the seconds of each group; without any, the mean of all."""
    is_known = ~np.isnan(seconds)
    seconds, group = seconds[is_known], group[is_known]
    order = np.argsort(group.astype(np.min_scalar_type(n_groups)), kind="stable")  # 16 bits: fast
    n_known, capped = np.bincount(group, minlength=n_groups), np.minimum(seconds, LONGEST)
    parts = np.split(seconds[order], np.cumsum(n_known))[:n_groups]
    median = np.array([np.median(part) if len(part) else np.nan for part in parts])
    mean = divide(np.bincount(group, capped, minlength=n_groups), n_known)
    return median, np.where(n_known > 0, mean, divide(capped.sum(), capped.size))


def count_missing(n_excluded: IntArray, n_asked: IntArray) -> IntArray:
    """Return how many more answers would give classes enough exclusions, at their present rate.

    While answers are few, the rate is shrunk towards that of all classes.
    """
    of_all = n_excluded.sum() / n_asked.sum() if n_excluded.any() else 1.0
    rate = (n_excluded + 1) / (n_asked + 1 / of_all)
    return np.ceil(np.maximum(ENOUGH - n_excluded, 0) / rate).astype(np.int64)


def divide(part: Any, whole: Any) -> Any:
    """Return shares; NaN of nothing."""
    with np.errstate(invalid="ignore"):
        return np.divide(part, whole)


def bound_share(part: Any, whole: Any) -> Any:
    """Return upper bounds of Clopper and Pearson on shares; 1 if nothing is known."""
    return np.where(part == whole, 1.0, betaincinv(part + 1, whole - part, CONFIDENCE))


@dataclass(frozen=True)
class PersonSummary:
    """What one person did."""

    name: str
    n_answers: int  # other than skip, control cards not counted
    n_no: int
    n_maybe: int
    n_yes: int
    seconds: float  # median per answer
    last: float  # time of the last answer
    n_pairs: int  # answers of others to the same questions
    agreement: float  # share of those that are no where this person says no, and not elsewhere
    n_controls: int  # control cards that were answered
    n_right: int
    is_left_out: bool


def summarise_people(said: AnswerColumns) -> tuple[PersonSummary, ...]:
    """Return what each person did, by name; the lead's decisions are not among it."""
    n, own, is_said = len(said.people), ~said.is_decision, said.word != SKIP
    given, controls = said.is_card & is_said, (said.source == _CONTROL) & is_said

    def count(rows: BoolArray) -> IntArray:
        return np.bincount(said.person[rows], minlength=n)

    person, question, is_no = said.person[given], said.question[given], said.word[given] == NO
    asked = count_words(said, given)
    n_no, n_said = asked[NO], asked.sum(axis=0)
    same = np.where(is_no, n_no[question], (n_said - n_no)[question]) - 1
    n_pairs = np.bincount(person, n_said[question] - 1, minlength=n).astype(np.int64)
    last = np.zeros(n)
    np.maximum.at(last, said.person[own], said.at[own])
    columns = {
        "name": np.array(said.people, dtype=object),
        "n_answers": count(given),
        "n_no": count(given & (said.word == NO)),
        "n_maybe": count(given & (said.word == MAYBE)),
        "n_yes": count(given & (said.word == YES)),
        "seconds": measure_paces(said.seconds[own], said.person[own], n)[0],
        "last": last,
        "n_pairs": n_pairs,
        "agreement": divide(np.bincount(person, same, minlength=n), n_pairs),
        "n_controls": count(controls),
        "n_right": count(controls & (said.word == said.known)),
        "is_left_out": said.left_out,
    }
    rows = zip(count(own), list_rows(columns), strict=True)
    found = [PersonSummary(**row) for n_given, row in rows if n_given]
    return tuple(sorted(found, key=attrgetter("name")))


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
    disagreements: list[Pair]  # about which the lead has not decided
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
        """How many pairs people disagree on and the lead has not decided."""
        return len(self.disagreements)

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
    names, n_items, now = project.class_names, len(project.item_names), time.time()
    rows, agreement = summarise_classes(said, names, n_items)
    at = said.at[said.is_card]
    recent = at[at > now - RECENT]
    frozen = project.read_setting(FROZEN)
    return Summary(
        n_items=n_items,
        n_classes=len(names),
        n_cards=len(said.card_class),
        n_done=len(at),
        n_answers=int(np.count_nonzero(said.counts & said.is_card & (said.word != SKIP))),
        n_saved=n_items * len(names) - said.n_questions,
        agreement=agreement,
        classes=rows,
        people=summarise_people(said),
        disagreements=find_disagreements(said),
        seconds_left=sum(row.seconds_left for row in rows),
        per_hour=3600 * len(recent) / max(now - recent.min(), 60.0) if len(recent) else 0.0,
        made_at=now,
        frozen_at=float(frozen) if frozen else None,
    )
