"""Which (item, class) pairs are asked, and in what order.

Every item has the same chance of being asked about a class. This makes the exclusion rate of a
class constant (Lemma 1 of the paper), as the risks assume.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, or_, select, update

from comes.annotate.asking import add_questions, refuses_yes
from comes.annotate.schema import (
    CONTROL,
    CONTROLS,
    RANDOM,
    answers,
    cards,
    classes,
    controls,
    insert_rows,
    items,
    notes,
    settings,
)
from comes.datasets.long import BY_MODEL, MODEL
from comes.datasets.table import read_table
from comes.errors import ComesError, listed

if TYPE_CHECKING:
    from comes.annotate.project import Project

IntArray = npt.NDArray[np.int64]
By = Literal["class", "item"]

BLOCK = 20  # cards of one class in a row: a new class on every card is tiring


class Cards(NamedTuple):
    """Cards in the order in which they are asked; arrays of one length."""

    item: IntArray
    class_: IntArray
    turn: IntArray  # 1 on the card for a second person, 2 for a third


def sample_cards(
    n_items: int,
    n_classes: int,
    rate: float,
    *,
    seed: int = 0,
    overlap: float = 0.0,
    opinions: int = 2,
    by: By = "class",
) -> Cards:
    """Draw the (item, class) pairs that are asked.

    Parameters
    ----------
    n_items, n_classes : int
    rate : float
        Share of the items that are asked about each class, in (0, 1].
    seed : int
    overlap : float
        Share of the cards that further people get, too; with ``by="item"`` share of the items,
        about which the others are asked whole.
    opinions : int
        How many people answer a card of the overlap.
    by : {"class", "item"}
        ``class`` draws items for each class, and asks about one class for a block of cards.
        ``item`` draws items once and asks about all their classes, for the grid.

    Returns
    -------
    cards : Cards

    Examples
    --------
    >>> cards = sample_cards(1000, 3, 0.1, overlap=0.05)
    >>> np.bincount(cards.class_[cards.turn == 0])
    array([100, 100, 100])
    >>> int(cards.turn.sum())
    15
    """
    n_asked = _count_asked(n_items, rate)
    if not 0 <= overlap <= 1:
        raise ComesError(f"overlap must be in [0, 1]; got {overlap:g}.")
    if opinions < 2:
        raise ComesError(
            f"opinions must be at least 2; got {opinions}. Leave overlap at 0 for one."
        )
    rng = np.random.default_rng(seed)
    if by == "class":
        drawn = [rng.choice(n_items, n_asked, replace=False) for _ in range(n_classes)]
        item, class_ = np.concatenate(drawn), np.repeat(np.arange(n_classes), n_asked)
        again = np.sort(rng.choice(len(item), round(overlap * len(item)), replace=False))
    else:
        chosen = rng.choice(n_items, n_asked, replace=False)
        item, class_ = np.repeat(chosen, n_classes), np.tile(np.arange(n_classes), n_asked)
        rows = np.sort(rng.choice(n_asked, round(overlap * n_asked), replace=False))
        again = (rows[:, None] * n_classes + np.arange(n_classes)).ravel()
    turn = np.repeat(np.arange(opinions), [len(item)] + [len(again)] * (opinions - 1))
    item = np.concatenate([item, *[item[again]] * (opinions - 1)])
    class_ = np.concatenate([class_, *[class_[again]] * (opinions - 1)])
    number = _number_blocks(item, class_, turn, by)
    order = np.argsort(rng.permutation(number.max() + 1)[number], kind="stable")
    return Cards(item[order], class_[order], turn[order])


def _number_blocks(item: IntArray, class_: IntArray, turn: IntArray, by: By) -> IntArray:
    """Return the block of each card: an item of a turn, or `BLOCK` cards of a class of a turn.

    The cards of a turn come class by class, or item by item.
    """
    if by == "item":
        within = item
    else:
        starts = np.flatnonzero(np.diff(class_, prepend=-1) | np.diff(turn, prepend=-1))
        lengths = np.diff(np.append(starts, len(class_)))
        within = (np.arange(len(class_)) - np.repeat(starts, lengths)) // BLOCK
        within += class_ * (within.max(initial=0) + 1)
    number: IntArray = np.unique(turn * (within.max() + 1) + within, return_inverse=True)[1]
    return number


def sample_more(asked: npt.NDArray[np.bool_], rate: float, seed: int) -> list[int]:
    """Draw further items for one class among those not asked yet; the rate is of all items."""
    left = np.flatnonzero(~asked)
    n_more = _count_asked(len(asked), rate)
    if n_more > len(left):
        raise ComesError(
            f"a rate of {rate:g} asks about {n_more} more items, but only {len(left)} are left. "
            "Lower it."
        )
    return [int(row) for row in np.random.default_rng(seed).choice(left, n_more, replace=False)]


def _count_asked(n_items: int, rate: float) -> int:
    if not 0 < rate <= 1:
        raise ComesError(f"rate must be in (0, 1]; got {rate:g}.")
    count = round(rate * n_items)
    if not count:
        raise ComesError(
            f"a rate of {rate:g} asks about none of {n_items} items. Raise it, or add items."
        )
    return count


SHARE = "control_share"  # a setting of the project


def set_controls(project: "Project", known: str | Path | pd.DataFrame, share: float = 0.05) -> int:
    r"""Say which answers are known, in place of what was said before; return how many.

    Parameters
    ----------
    project : Project
    known : path, or DataFrame
        With the columns item, label and answer: no or yes.
    share : float
        About this share of the cards that people get are control cards, in [0, 0.5].

    Returns
    -------
    n_controls : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> known = pd.DataFrame({"item": ["rain"], "label": ["weather"], "answer": ["yes"]})
    >>> with trial_project() as project:
    ...     set_controls(project, known, share=0.1)
    1
    """
    if not 0 <= share <= 0.5:
        raise ComesError(f"the share of control cards must be in [0, 0.5]; got {share:g}.")
    numbered = number_rows(project, known, ("no", "yes"))
    rows = [
        {"item_id": item, "class_id": class_, "known": answer} for item, class_, answer in numbered
    ]
    with project.writing() as connection:
        connection.execute(delete(controls))
        insert_rows(connection, controls, rows)
        connection.execute(delete(settings).where(settings.c.name == SHARE))
        connection.execute(insert(settings).values(name=SHARE, value=str(share)))
    return len(rows)


def number_rows(
    project: "Project", given: str | Path | pd.DataFrame, words: Sequence[str]
) -> list[tuple[int, int, Any]]:
    """Return the number of the item, that of the class, and the answer, of each row of a table."""
    needed = ("item", "label", "answer")
    table = given if isinstance(given, pd.DataFrame) else read_table(Path(given), needed)
    if missing := [name for name in needed if name not in table]:
        raise ComesError(
            f"the table must have the columns item, label and answer; {listed(missing)} is "
            "missing. Add it."
        )
    item_of = {name: number for number, name in enumerate(project.item_names, 1)}
    class_of = {name: number for number, name in enumerate(project.class_names, 1)}
    columns = [table[name].astype(str).str.strip() for name in needed]
    for what, column, there in zip(needed, columns, (item_of, class_of, words), strict=True):
        if unknown := [value for value in column.unique() if value not in there]:
            wanted = " or ".join(words) if what == "answer" else "one of the project"
            raise ComesError(
                f"the {what} of a row must be {wanted}; got {listed(unknown, 3)}. "
                "Correct the table."
            )
    pairs = Counter(zip(*columns[:2], strict=True))
    if twice := [pair for pair, count in pairs.items() if count > 1]:
        raise ComesError(
            f"an item and a label must be there once; {', '.join(twice[0])} is there more often. "
            "Leave one of them."
        )
    return [
        (item_of[item], class_of[label], answer)
        for item, label, answer in zip(*columns, strict=True)
    ]


def insert_controls(
    connection: Connection, chosen: Sequence[int], annotator: str, *, by_item: bool = False
) -> list[int]:
    """Make control cards for a block of cards that a person gets; return their numbers.

    They are of the class of the block, or with ``by_item`` of its items, and of questions that this
    person was never asked.
    """
    share = connection.execute(select(settings.c.value).where(settings.c.name == SHARE)).scalar()
    if not share or not chosen or not float(share):
        return []
    block = connection.execute(
        select(cards.c.item_id, cards.c.class_id, cards.c.position).where(cards.c.id.in_(chosen))
    ).all()
    wanted = sum(random.random() < float(share) for _ in block)
    if not wanted:
        return []
    same = cards.c.item_id == controls.c.item_id, cards.c.class_id == controls.c.class_id
    own = select(cards.c.id).where(*same, cards.c.annotator == annotator)
    # Who answered a control card would never get an open card about the same.
    open_ = select(cards.c.id).where(*same, ~cards.c.is_done, cards.c.turn < CONTROLS)
    here = (
        controls.c.item_id.in_({card.item_id for card in block})
        if by_item
        else controls.c.class_id == block[0].class_id
    )
    asked = {(card.item_id, card.class_id) for card in block}
    free = [
        row
        for row in connection.execute(select(controls).where(here, ~own.exists(), ~open_.exists()))
        if (row.item_id, row.class_id) not in asked
    ]
    return [
        _insert_card(connection, row, random.choice(block).position)
        for row in random.sample(free, min(wanted, len(free)))
    ]


def _insert_card(connection: Connection, control: Row[Any], position: int) -> int:
    """Insert a card for one person, beside those that others had."""
    row = {
        "item_id": control.item_id,
        "class_id": control.class_id,
        # Not the next one, which another server may be giving to somebody else.
        "turn": CONTROLS + random.randrange(2**30),
        "source": CONTROL,
        "known": control.known,
        "position": position,
    }
    made = insert(cards).values(row).returning(cards.c.id)
    return int(connection.execute(made).scalar_one())


Answer = Literal["no", "yes", "maybe", "skip"]
FROZEN = "frozen_at"  # a setting of a project
MOST_HELD = 1000  # cards that a tab gets back after a reload
ITEMS_AT_ONCE = 4  # of the grid
CARDS_AT_ONCE = 120  # of the grid, unless one item has more


class RefusedError(Exception):
    """A command that cannot be done, with the HTTP status that says so."""

    def __init__(self, status: int, reason: str, card: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.card = status, reason, card


@dataclass(frozen=True)
class SentAnswer:
    """An answer as a browser sends it."""

    card: int
    answer: Answer
    key: str  # made by the browser, the same when it sends the answer again
    seconds: float | None = None  # from seeing the card to answering
    hint: float | None = None  # the model's probability that the card showed


@dataclass(frozen=True)
class Asker:
    """Who asks for cards and answers them."""

    annotator: str
    tab: str


def lease_cards(
    connection: Connection,
    asker: Asker,
    *,
    now: float,
    lease: float,
    by_item: bool = False,
    has: Sequence[int] = (),
    size: int = BLOCK,
) -> list[dict[str, Any]]:
    """Return cards for a tab: those that it holds and its page lacks, or else the next free ones.

    A page says which cards it ``has`` when it asks ahead. What this person left in a closed tab
    comes before other free cards. The cards are of one class, or with ``by_item`` all those of a
    few items. Nobody gets a card whose question they answered, or hold, on another card. A frozen
    project gives no cards.
    """
    if _read_setting(connection, FROZEN):
        return []
    known = set(has)
    found = [card for card in _find_held_cards(connection, asker, now) if card.id not in known]
    free = _select_free_cards(asker.annotator, now)
    is_new = not found
    if is_new:
        found = _find_next_cards(connection, free, size)
    if not found:
        return []
    chosen = _choose_items(connection, found, free) if by_item else _choose_class(found)
    if is_new:
        chosen += insert_controls(connection, chosen, asker.annotator, by_item=by_item)
    connection.execute(
        update(cards)
        .where(cards.c.id.in_(chosen))
        .values(tab=asker.tab, annotator=asker.annotator, leased_until=now + lease)
    )
    shown = show_cards(connection, chosen)
    return sort_by_item(shown) if by_item else shown


def _read_setting(connection: Connection, name: str) -> str | None:
    query = select(settings.c.value).where(settings.c.name == name)
    return connection.execute(query).scalar_one_or_none()


def _name_closed_tab(annotator: str) -> str:
    """Return what stands for the closed tabs of a person; no tab has this name."""
    return f"closed by {annotator}"


def _find_held_cards(connection: Connection, asker: Asker, now: float) -> list[Any]:
    """Return the open cards of a tab, and what this person left in closed ones, in their order."""
    held = (
        select(cards)
        .where(
            cards.c.tab.in_([asker.tab, _name_closed_tab(asker.annotator)]),
            cards.c.annotator == asker.annotator,
            ~cards.c.is_done,
            ~_asked_elsewhere(asker.annotator, now),
        )
        .with_for_update(of=cards)  # evaluated again if another server has just leased them
    )
    # Sorted here: for ORDER BY, SQLite would walk through all open cards by their position.
    return sorted(connection.execute(held), key=lambda card: card.position)[:MOST_HELD]


def _select_free_cards(annotator: str, now: float) -> Any:
    """Return the query for cards that nobody holds and this person may get."""
    is_free = or_(cards.c.leased_until.is_(None), cards.c.leased_until < now)
    query = select(cards).where(~cards.c.is_done, is_free, ~_asked_elsewhere(annotator, now))
    return query.with_for_update(skip_locked=True, of=cards)


def _find_next_cards(connection: Connection, free: Any, size: int) -> list[Any]:
    """Return the next free cards; further ones of the first class where it soon changes.

    Where cards go item by item, the cards of one class lie as far apart as there are classes.
    """
    found = list(connection.execute(free.order_by(cards.c.position).limit(size)))
    if not found or 2 * len(_choose_class(found)) >= size:
        return found
    n_classes = connection.execute(select(func.max(classes.c.id))).scalar_one()
    end = found[0].position + size * n_classes
    same = cards.c.class_id == found[0].class_id, cards.c.position < end
    return found + list(
        connection.execute(free.where(*same).order_by(cards.c.position).limit(size))
    )


def _choose_class(found: Sequence[Any]) -> list[int]:
    """Return the cards of the first card's class, one for each item."""
    by_item: dict[int, int] = {}  # a second person's card may be close by
    for card in found:
        if card.class_id == found[0].class_id:
            by_item.setdefault(card.item_id, card.id)
    return list(by_item.values())


def _choose_items(connection: Connection, found: Sequence[Any], free: Any) -> list[int]:
    """Return all cards of the first few items that this person holds or may get."""
    wanted = list(dict.fromkeys(card.item_id for card in found))[:ITEMS_AT_ONCE]
    more = connection.execute(free.where(cards.c.item_id.in_(wanted)).order_by(cards.c.position))
    by_item: dict[int, dict[int, int]] = {item: {} for item in wanted}
    for card in (*found, *more):
        if card.item_id in by_item:
            by_item[card.item_id].setdefault(card.class_id, card.id)
    chosen: list[int] = []
    for numbers in by_item.values():
        if not chosen or len(chosen) + len(numbers) <= CARDS_AT_ONCE:
            chosen += numbers.values()
    return chosen


_OTHER = cards.alias("other")


def _asked_elsewhere(annotator: Any, now: float) -> Any:
    """Return the condition that a person answered, or holds, a card's question on another card."""
    is_mine = and_(
        _OTHER.c.item_id == cards.c.item_id,
        _OTHER.c.class_id == cards.c.class_id,
        _OTHER.c.id != cards.c.id,
        _OTHER.c.annotator == annotator,
        or_(_OTHER.c.is_done, _OTHER.c.leased_until >= now),
    )
    return select(_OTHER.c.id).where(is_mine).exists()


# Built once: building these statements takes longer than running them.
_WANTED = cards.c.id.in_(bindparam("wanted", expanding=True))
_KNOWN = select(answers).where(answers.c.key.in_(bindparam("keys", expanding=True)))
_ASKED = (
    select(cards, _asked_elsewhere(bindparam("annotator"), math.inf).label("answered"))
    .where(_WANTED)
    .with_for_update(of=cards)
)
_DONE = update(cards).where(_WANTED).values(is_done=True)


def show_cards(connection: Connection, chosen: Sequence[int]) -> list[dict[str, Any]]:
    """Return what a browser needs to show cards."""
    query = (
        select(
            cards.c.id.label("card"),
            cards.c.item_id.label("item"),
            items.c.name,
            items.c.text,
            classes.c.name.label("class"),
            classes.c.id.label("class_number"),
            classes.c.description,
            classes.c.question,
        )
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(cards.c.id.in_(chosen))
        .order_by(cards.c.position)
    )
    return add_questions(connection, [dict(row._mapping) for row in connection.execute(query)])


def sort_by_item(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cards item by item, and the classes of each in the order of the project."""
    turn = {item: k for k, item in enumerate(dict.fromkeys(card["item"] for card in shown))}
    return sorted(shown, key=lambda card: (turn[card["item"]], card["class_number"]))


def store_answers(
    connection: Connection, asker: Asker, sent: Sequence[SentAnswer], *, now: float, lease: float
) -> int:
    """Store all answers of a request or none; return how many were not stored already."""
    numbers, keys = [answer.card for answer in sent], [answer.key for answer in sent]
    asked = connection.execute(_ASKED, {"wanted": numbers, "annotator": asker.annotator})
    found = {row.id: row for row in asked}  # locked, so that what follows is up to date
    known = {row.key: row for row in connection.execute(_KNOWN, {"keys": keys})}
    new = _select_new(sent, known, asker)
    if not new:
        return 0
    if len({answer.card for answer in new}) < len(new) or len(set(keys)) < len(keys):
        raise RefusedError(422, "a request must have one answer per card")
    _check_words(connection, new)
    for answer in new:
        _check_answerable(found.get(answer.card), answer.card, asker)
    _insert_answers(connection, asker, new, now)
    if min(found[answer.card].leased_until or 0.0 for answer in new) < now + lease / 2:
        _renew_leases(connection, asker, now + lease)
    return len(new)


def _select_new(
    sent: Sequence[SentAnswer], known: Mapping[str, Any], asker: Asker
) -> list[SentAnswer]:
    """Return the answers that are not stored yet; refuse a key that is used for something else."""
    for answer in sent:
        row = known.get(answer.key)
        if row is None:
            continue
        if (row.card_id, row.answer, row.tab) != (answer.card, answer.answer, asker.tab):
            raise RefusedError(409, "this key belongs to another answer", answer.card)
    return [answer for answer in sent if answer.key not in known]


def _check_words(connection: Connection, new: Sequence[SentAnswer]) -> None:
    """Refuse yes where a project does not ask for it."""
    said_yes = next((answer for answer in new if answer.answer == "yes"), None)
    if said_yes and refuses_yes(connection):
        reason = "this project does not take yes: say no, or maybe (cannot tell)"
        raise RefusedError(422, reason, said_yes.card)


def _check_answerable(card: Any | None, number: int, asker: Asker) -> None:
    """Refuse an answer to a card that this tab does not hold, or that has an answer."""
    if card is None:
        raise RefusedError(404, "there is no such card", number)
    if card.is_done:
        raise RefusedError(409, "this card has already been answered", number)
    own = asker.tab, _name_closed_tab(asker.annotator)
    if card.tab not in own or card.annotator != asker.annotator:
        raise RefusedError(409, "this card is not yours, or no longer", number)
    if card.answered:
        raise RefusedError(409, "you have answered this question; another person must", number)


def _insert_answers(
    connection: Connection, asker: Asker, new: Sequence[SentAnswer], now: float
) -> None:
    """Insert answers, and mark their cards as done."""
    rows = [
        {
            "card_id": answer.card,
            "annotator": asker.annotator,
            "tab": asker.tab,
            "key": answer.key,
            "answer": answer.answer,
            "seconds": answer.seconds,
            "answered_at": now,
            "hint": answer.hint,
        }
        for answer in new
    ]
    connection.execute(insert(answers), rows)
    connection.execute(_DONE, {"wanted": [answer.card for answer in new]})


def _renew_leases(connection: Connection, asker: Asker, until: float) -> None:
    """Extend the leases on all open cards of a tab."""
    is_open = and_(cards.c.tab == asker.tab, ~cards.c.is_done)
    connection.execute(update(cards).where(is_open).values(leased_until=until))


def undo_answers(
    connection: Connection, asker: Asker, keys: Sequence[str], *, now: float, lease: float
) -> list[dict[str, Any]]:
    """Undo answers of this person; return their cards, leased again. Undoing twice is the same."""
    rows = connection.execute(
        select(answers)
        .where(answers.c.key.in_(keys), answers.c.annotator == asker.annotator)
        .with_for_update(of=answers)
    ).all()
    if len(rows) < len(set(keys)):
        raise RefusedError(404, "there is no such answer of yours")
    open_again = [row.card_id for row in rows if row.undone_at is None]
    if open_again:
        if _read_setting(connection, FROZEN):
            raise RefusedError(409, "the project is frozen, so its answers stay as they are")
        is_open = and_(answers.c.key.in_(keys), answers.c.undone_at.is_(None))
        connection.execute(update(answers).where(is_open).values(undone_at=now))
        connection.execute(
            update(cards)
            .where(cards.c.id.in_(open_again))
            .values(
                is_done=False,
                tab=asker.tab,
                annotator=asker.annotator,
                leased_until=now + lease,
            )
        )
    return show_cards(connection, [row.card_id for row in rows])


def release_cards(connection: Connection, asker: Asker, keep: Sequence[int] = ()) -> int:
    """Give the open cards of a closed tab back, at once; return how many.

    It keeps those whose answers are on their way. Anybody may get the others, and this person gets
    them first.
    """
    is_held = and_(cards.c.tab == asker.tab, cards.c.annotator == asker.annotator, ~cards.c.is_done)
    given = connection.execute(
        update(cards)
        .where(is_held, cards.c.id.not_in(keep))
        .values(tab=_name_closed_tab(asker.annotator), leased_until=None)
    )
    return given.rowcount


MOST_ANSWERS = 60  # that a page is told of


def find_history(
    connection: Connection, annotator: str, most: int = MOST_ANSWERS
) -> list[dict[str, Any]]:
    """Return the last answers of a person that stand, the newest last.

    Returns
    -------
    history : list of dict
        Each has the ``card`` as a page shows it, the ``answer``, its ``key``, which undoes it, its
        ``seconds``, and the time ``at`` which it was stored: answers of a request share it.
    """
    stands = answers.c.annotator == annotator, answers.c.undone_at.is_(None)
    query = select(answers).where(*stands).order_by(answers.c.id.desc()).limit(most)
    rows = connection.execute(query).all()[::-1]
    shown = {card["card"]: card for card in show_cards(connection, [row.card_id for row in rows])}
    return [
        {
            "card": shown[row.card_id],
            "answer": row.answer,
            "key": row.key,
            "seconds": row.seconds or 0.0,
            "at": row.answered_at,
        }
        for row in rows
    ]


MOST_CHARACTERS = 2000  # of a note
MOST_A_MINUTE = 20_000  # characters of a person; a flag counts as FLAG of them
FLAG = 100


def write_note(connection: Connection, asker: Asker, card: int, text: str, *, now: float) -> bool:
    """Store a note on a card; an empty one is a flag. Return whether it is new.

    People write about cards that they hold, or have answered. The same note sent again is one.
    """
    found = connection.execute(select(cards).where(cards.c.id == card)).one_or_none()
    if found is None:
        raise RefusedError(404, "there is no such card", card)
    own = answers.c.card_id == card, answers.c.annotator == asker.annotator
    if (
        found.annotator != asker.annotator
        and not connection.execute(select(answers.c.id).where(*own).limit(1)).first()
    ):
        raise RefusedError(409, "this card is not yours, so you cannot write about it", card)
    of_person = notes.c.annotator == asker.annotator
    same = notes.c.card_id == card, notes.c.text == text, notes.c.resolved_at.is_(None)
    if connection.execute(select(notes.c.id).where(of_person, *same).limit(1)).first():
        return False
    lately = select(func.coalesce(func.sum(func.length(notes.c.text) + FLAG), 0))
    lately = lately.where(of_person, notes.c.written_at > now - 60)
    if connection.execute(lately).scalar_one() + len(text) + FLAG > MOST_A_MINUTE:
        raise RefusedError(429, "these are many notes for one minute; send this one later", card)
    row = {"card_id": card, "annotator": asker.annotator, "text": text, "written_at": now}
    connection.execute(insert(notes).values(row))
    return True


Pair = tuple[int, int]  # numbers of an item and a class
Place = tuple[int, int, int]  # the same, and the turn of the card


def add_random_cards(project: "Project", wanted: Sequence[str], rate: float, seed: int) -> int:
    """Ask about more items of some classes, drawn among those not drawn yet.

    A card that a model chose before and that is drawn now counts as drawn.

    Parameters
    ----------
    project : Project
    wanted : sequence of str
        Names of classes.
    rate : float
        Share of all items that is drawn for each class, in (0, 1].
    seed : int

    Returns
    -------
    n_drawn : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     add_random_cards(project, ["weather"], rate=0.5, seed=0)
    1
    """
    numbers = _number_classes(project, list(dict.fromkeys(wanted)))
    n_items = len(project.item_names)
    with project.writing() as connection:
        n_drawn, number_of_round, rates = 0, next_round(connection), read_rates(connection)
        for number in numbers:
            is_own = cards.c.class_id == number, cards.c.source != CONTROL
            own = select(cards.c.item_id, cards.c.source).where(*is_own)
            source_of = {row.item_id: row.source for row in connection.execute(own)}
            drawn = np.zeros(n_items, dtype=bool)
            drawn[[item - 1 for item, source in source_of.items() if source not in BY_MODEL]] = True
            more = [row + 1 for row in sample_more(drawn, rate, seed + number)]
            is_chosen = cards.c.item_id.in_([item for item in more if item in source_of])
            connection.execute(update(cards).where(*is_own, is_chosen).values(source=RANDOM))
            new = [(item, number, 0) for item in more if item not in source_of]
            n_open = max(n_items - len(source_of), 1)
            drawn_with = [{"round": number_of_round, "probability": len(new) / n_open}] * len(new)
            append_cards(connection, new, RANDOM, drawn_with)
            connection.execute(
                update(classes)
                .where(classes.c.id == number)
                .values(rate=min(1.0, rates[number] + rate))
            )
            n_drawn += len(more)
    return n_drawn


def add_chosen_cards(project: "Project", pairs: pd.DataFrame) -> int:
    """Ask about pairs that a model chose.

    Their answers count in the likelihood, but not in estimated rates and priors, nor in the sums of
    COMES, which need pairs that were drawn at random.

    Parameters
    ----------
    project : Project
    pairs : DataFrame
        With the columns item and label. Pairs that have a card already are left out.

    Returns
    -------
    n_added : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     pairs = pd.DataFrame({"item": ["rain", "goal"], "label": "weather"})
    ...     add_chosen_cards(project, pairs)
    1
    """
    for column in ("item", "label"):
        if column not in pairs:
            raise ComesError(f"cards need the columns item and label; {column} is missing.")
    items = _number_items(project, list(pairs["item"].astype(str)))
    labels = _number_classes(project, list(pairs["label"].astype(str)))
    chosen = list(dict.fromkeys(zip(items, labels, strict=True)))
    with project.writing() as connection:
        is_asked = cards.c.source != CONTROL  # which may also be asked for its answer
        asked = connection.execute(select(cards.c.item_id, cards.c.class_id).where(is_asked))
        known = {(row.item_id, row.class_id) for row in asked}
        new = [(*pair, 0) for pair in chosen if pair not in known]
        return append_cards(connection, new, MODEL, [{"round": next_round(connection)}] * len(new))


def reopen_skipped_cards(project: "Project") -> int:
    """Ask again what people skipped; return how many cards that are.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:  # where nobody has skipped a card
    ...     reopen_skipped_cards(project)
    0
    """
    skips = answers.c.answer == "skip", answers.c.undone_at.is_(None)
    free = {"is_done": False, "tab": None, "annotator": None, "leased_until": None}
    with project.writing() as connection:
        skipped = cards.c.id.in_(select(answers.c.card_id).where(*skips))
        connection.execute(update(cards).where(skipped).values(**free))
        undone = update(answers).where(*skips).values(undone_at=time.time())
        return connection.execute(undone).rowcount


def append_cards(
    connection: Connection,
    places: Sequence[Place],
    source: str,
    drawn_with: Sequence[Mapping[str, Any]] | None = None,
    *,
    first: bool = False,
) -> int:
    """Add cards behind all others, or before them; return how many.

    ``drawn_with`` holds further columns of each card: its round, probability and so on.
    """
    end = func.min(cards.c.position) if first else func.max(cards.c.position)
    last = connection.execute(select(end)).scalar_one() or 0
    start = last - len(places) if first else last + 1
    rows = (
        {
            "item_id": item,
            "class_id": class_,
            "turn": turn,
            "source": source,
            "position": start + k,
            **(drawn_with[k] if drawn_with else {}),
        }
        for k, (item, class_, turn) in enumerate(places)
    )
    insert_rows(connection, cards, rows)
    return len(places)


def next_round(connection: Connection) -> int:
    """Return the number of the next round of questions; the first cards are of none."""
    return (connection.execute(select(func.max(cards.c.round))).scalar_one() or 0) + 1


def read_rates(connection: Connection) -> dict[int, float]:
    """Return the share of the items that was drawn at random for each class, by its number."""
    usual = float(read_setting_of(connection, "rate") or 0.1)
    found = connection.execute(select(classes.c.id, classes.c.rate).order_by(classes.c.id))
    return {number: usual if rate is None else rate for number, rate in found}


def read_setting_of(connection: Connection, name: str) -> str | None:
    """Return a setting inside a transaction."""
    query = select(settings.c.value).where(settings.c.name == name)
    return connection.execute(query).scalar_one_or_none()


def _number_items(project: "Project", wanted: Sequence[str]) -> list[int]:
    known = {name: number for number, name in enumerate(project.item_names, 1)}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ComesError(f"the project has no item {listed(unknown, 3)}. Correct the names.")
    return [known[name] for name in wanted]


def _number_classes(project: "Project", wanted: Sequence[str]) -> list[int]:
    names = project.class_names
    known = {name: number for number, name in enumerate(names, 1)}
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        raise ComesError(
            f"the project has no class {listed(unknown, 3)}; it has {listed(names)}. A new class "
            "goes into a file, a name on each line: comes annotate add PROJECT --new-classes FILE."
        )
    return [known[name] for name in wanted]
