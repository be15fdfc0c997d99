"""Which (item, class) pairs are asked and in what order; how cards are given out and answered.

Every item has the same chance of being asked about a class. This makes the exclusion rate of a
class constant (Lemma 1 of the paper), as the risks assume. A card is leased to a tab of a browser;
an answer has a key of the browser's, so that a copy of a request changes nothing.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, repeat
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from comes.annotate.asking import ASKS_YES, add_questions
from comes.annotate.schema import (
    CONTROL,
    CONTROLS,
    DECISION,
    FROZEN,
    IMPORT_TAB,
    LEADS_TAB,
    answers,
    cards,
    classes,
    controls,
    hints,
    insert_columns,
    items,
    notes,
    read_setting,
)
from comes.errors import ComesError

IntArray = npt.NDArray[np.int64]
By = Literal["class", "item"]
Place = tuple[int, int, int]  # numbers of an item and a class, and the turn of the card

BLOCK = 20  # cards of one class in a row: a new class on every card is tiring
CONTROL_SHARE, SHOWS_HINTS = "control_share", "shows_hints"  # settings of the project


class Cards(NamedTuple):
    """Cards in the order in which they are asked; arrays of one length."""

    item: IntArray
    class_: IntArray
    turn: IntArray  # 1 on the card for a second person, 2 for a third

    def places(self, n_classes: int = 0) -> list[Place]:
        """Return the places of the cards, whose classes come after so many others."""
        columns = self.item + 1, self.class_ + n_classes + 1, self.turn
        return list(zip(*(column.tolist() for column in columns), strict=True))


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
    """Draw the (item, class) pairs that are asked, as `create_project` describes."""
    n_asked = _count_asked(n_items, rate)
    if not 0 <= overlap <= 1:
        raise ComesError(f"overlap must be in [0, 1]; got {overlap:g}.")
    if opinions < 2:
        raise ComesError(
            f"opinions must be at least 2; got {opinions}. Leave overlap at 0 for one."
        )
    rng = np.random.default_rng(seed)
    if by == "class":
        chosen = [rng.choice(n_items, n_asked, replace=False) for _ in range(n_classes)]
        item, class_ = np.concatenate(chosen), np.repeat(np.arange(n_classes), n_asked)
        again = np.sort(rng.choice(len(item), round(overlap * len(item)), replace=False))
    else:
        asked = rng.choice(n_items, n_asked, replace=False)
        item, class_ = np.repeat(asked, n_classes), np.tile(np.arange(n_classes), n_asked)
        rows = np.sort(rng.choice(n_asked, round(overlap * n_asked), replace=False))
        again = (rows[:, None] * n_classes + np.arange(n_classes)).ravel()
    turn = np.repeat(np.arange(opinions), [len(item)] + [len(again)] * (opinions - 1))
    item = np.concatenate([item, *[item[again]] * (opinions - 1)])
    class_ = np.concatenate([class_, *[class_[again]] * (opinions - 1)])
    # A block is an item of a turn, or `BLOCK` cards of a class of a turn.
    drawn = pd.DataFrame({"turn": turn, "class": class_, "item": item})
    within = drawn.groupby(["turn", "class"]).cumcount() // BLOCK
    blocks = drawn.groupby(["turn", "item"] if by == "item" else ["turn", "class", within])
    number = blocks.ngroup().to_numpy()
    order = np.argsort(rng.permutation(number.max() + 1)[number], kind="stable")
    return Cards(item[order], class_[order], turn[order])


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
    n_asked = round(rate * n_items)
    if not n_asked:
        raise ComesError(
            f"a rate of {rate:g} asks about none of {n_items} items. Raise it, or add items."
        )
    return n_asked


def append_cards(
    connection: Connection,
    places: Sequence[Place],
    source: str,
    drawn_with: Mapping[str, Iterable[Any]] | None = None,
    *,
    first: bool = False,
) -> int:
    """Add cards behind all others, or before them; return how many.

    ``drawn_with`` has further columns: their round, probability and so on.
    """
    if not places:
        return 0
    end = func.min(cards.c.position) if first else func.max(cards.c.position)
    last = connection.execute(select(end)).scalar_one() or 0
    start = last - len(places) if first else last + 1
    item, class_, turn = (map(itemgetter(k), places) for k in range(3))
    columns: dict[str, Iterable[Any]] = {"item_id": item, "class_id": class_, "turn": turn}
    columns |= {"source": repeat(source), "position": count(start), **(drawn_with or {})}
    insert_columns(connection, cards, columns)
    return len(places)


def next_round(connection: Connection) -> int:
    """Return the number of the next round of questions; the first cards are of none."""
    return (connection.execute(select(func.max(cards.c.round))).scalar_one() or 0) + 1


Answer = Literal["no", "yes", "maybe", "skip"]
Number = Annotated[int, Field(ge=1, lt=2**31, strict=True)]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
MOST_HELD = 1000  # cards that a tab gets back after a reload
ITEMS_AT_ONCE = 4  # of the grid
CARDS_AT_ONCE = 120  # of the grid, unless one item has more


class RefusedError(Exception):
    """A command that cannot be done, with the HTTP status that says so."""

    def __init__(self, status: int, reason: str, card: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.card = status, reason, card


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SentAnswer:
    """An answer as a browser sends it."""

    card: Number
    answer: Answer
    key: Id  # made by the browser, the same when it sends the answer again
    seconds: Annotated[float, Field(ge=0, le=86400, strict=True)] | None = None
    hint: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None  # that the card showed


class Asker(NamedTuple):
    """Who asks for cards and answers them; columns of both tables have these names."""

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
    if read_setting(connection, FROZEN):
        return []
    known = set(has)
    found = [card for card in _find_held_cards(connection, asker, now) if card.id not in known]
    is_free = or_(cards.c.leased_until.is_(None), cards.c.leased_until < now)
    is_asked = _asked_elsewhere(asker.annotator, now)
    free = select(cards).where(~cards.c.is_done, is_free, ~is_asked, cards.c.turn != DECISION)
    free = free.with_for_update(skip_locked=True, of=cards)  # nobody holds these
    is_new = not found
    if is_new:
        found = _find_next_cards(connection, free, size)
    if not found:
        return []
    chosen = _choose_items(connection, found, free) if by_item else _choose_class(found)
    held = {**asker._asdict(), "leased_until": now + lease}
    connection.execute(update(cards).where(cards.c.id.in_(chosen)).values(held))
    if is_new:
        chosen += _insert_controls(connection, chosen, held, by_item)
    shown = show_cards(connection, chosen)
    if by_item:  # item by item, and the classes of each in the order of the project
        turns = {item: k for k, item in enumerate(dict.fromkeys(card["item"] for card in shown))}
        shown.sort(key=lambda card: (turns[card["item"]], card["class_number"]))
    return shown


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
            cards.c.turn != DECISION,
            ~_asked_elsewhere(asker.annotator, now),
        )
        .with_for_update(of=cards)  # evaluated again if another server has just leased them
    )
    # Sorted here: for ORDER BY, SQLite would walk through all open cards by their position.
    return sorted(connection.execute(held), key=attrgetter("position"))[:MOST_HELD]


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


def _insert_controls(
    connection: Connection, chosen: Sequence[int], held: Mapping[str, Any], by_item: bool
) -> list[int]:
    """Make control cards for a block of cards that a person holds; return their numbers.

    They are of the class of the block, or with ``by_item`` of its items, and of questions that this
    person was never asked.
    """
    share = float(read_setting(connection, CONTROL_SHARE) or 0)
    wanted = sum(random.random() < share for _ in chosen)
    if not wanted:
        return []
    block = connection.execute(select(cards).where(cards.c.id.in_(chosen))).all()
    same = cards.c.item_id == controls.c.item_id, cards.c.class_id == controls.c.class_id
    own = select(cards.c.id).where(*same, cards.c.annotator == held["annotator"])
    # Who answered a control card would never get an open card about the same.
    open_ = select(cards.c.id).where(*same, ~cards.c.is_done, cards.c.turn < CONTROLS)
    here = (
        controls.c.item_id.in_({card.item_id for card in block})
        if by_item
        else controls.c.class_id == block[0].class_id
    )
    query = select(controls).where(here, ~own.exists(), ~open_.exists())
    free = connection.execute(query).all()
    made = []
    for control in random.sample(free, min(wanted, len(free))):
        row = {
            **held,
            "item_id": control.item_id,
            "class_id": control.class_id,
            # Not the next one, which another server may be giving to somebody else.
            "turn": CONTROLS + random.randrange(2**30),
            "source": CONTROL,
            "known": control.known,
            "position": random.choice(block).position,
        }
        new = insert(cards).values(row).returning(cards.c.id)
        made.append(int(connection.execute(new).scalar_one()))
    return made


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


def show_cards(connection: Connection, chosen: Sequence[int]) -> list[dict[str, Any]]:
    """Return what a browser needs to show cards, with the model's guess where that is wanted."""
    wants_hints = read_setting(connection, SHOWS_HINTS) == "1"
    of_card = and_(hints.c.item_id == cards.c.item_id, hints.c.class_id == cards.c.class_id)
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
            *([hints.c.probability.label("hint")] if wants_hints else []),
        )
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(cards.c.id.in_(chosen))
        .order_by(cards.c.position)
    )
    if wants_hints:
        query = query.join(hints, of_card, isouter=True)
    return add_questions(connection, [dict(row._mapping) for row in connection.execute(query)])


# Built once: building these statements takes longer than running them.
_WANTED = cards.c.id.in_(bindparam("wanted", expanding=True))
_KNOWN = select(answers).where(answers.c.key.in_(bindparam("keys", expanding=True)))
_ASKED = (
    select(cards, _asked_elsewhere(bindparam("annotator"), math.inf).label("answered"))
    .where(_WANTED)
    .with_for_update(of=cards)
)
_DONE = update(cards).where(_WANTED).values(is_done=True)


def store_answers(
    connection: Connection, asker: Asker, sent: Sequence[SentAnswer], *, now: float, lease: float
) -> int:
    """Store all answers of a request or none; return how many were not stored already."""
    numbers, keys = [answer.card for answer in sent], [answer.key for answer in sent]
    asked = connection.execute(_ASKED, {"wanted": numbers, "annotator": asker.annotator})
    found = {row.id: row for row in asked}  # locked, so that what follows is up to date
    stored = {row.key: row for row in connection.execute(_KNOWN, {"keys": keys})}
    new = []
    for answer in sent:
        row = stored.get(answer.key)
        if row is None:
            new.append(answer)
        elif (row.card_id, row.answer, row.tab) != (answer.card, answer.answer, asker.tab):
            raise RefusedError(409, "this key belongs to another answer", answer.card)
    if not new:
        return 0
    if len({answer.card for answer in new}) < len(new) or len(set(keys)) < len(keys):
        raise RefusedError(422, "a request must have one answer per card")
    said_yes = next((answer for answer in new if answer.answer == "yes"), None)
    if said_yes and read_setting(connection, ASKS_YES) == "0":
        reason = "this project does not take yes: say no, or maybe (cannot tell)"
        raise RefusedError(422, reason, said_yes.card)
    for answer in new:
        _check_answerable(found.get(answer.card), answer.card, asker)
    rows = [
        {
            **asker._asdict(),
            "card_id": answer.card,
            "key": answer.key,
            "answer": answer.answer,
            "seconds": answer.seconds,
            "hint": answer.hint,
            "answered_at": now,
        }
        for answer in new
    ]
    connection.execute(insert(answers), rows)
    connection.execute(_DONE, {"wanted": [answer.card for answer in new]})
    if min(found[answer.card].leased_until or 0.0 for answer in new) < now + lease / 2:
        is_open = and_(cards.c.tab == asker.tab, ~cards.c.is_done)
        connection.execute(update(cards).where(is_open).values(leased_until=now + lease))
    return len(new)


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


def undo_answers(
    connection: Connection, asker: Asker, keys: Sequence[str], *, now: float, lease: float
) -> list[dict[str, Any]]:
    """Undo answers of this person; return their cards, leased again. Undoing twice is the same."""
    own = answers.c.key.in_(keys), *answers_of(asker.annotator)
    rows = connection.execute(select(answers).where(*own).with_for_update(of=answers)).all()
    if len(rows) < len(set(keys)):
        raise RefusedError(404, "there is no such answer of yours")
    open_again = [row.card_id for row in rows if row.undone_at is None]
    if open_again:
        if read_setting(connection, FROZEN):
            raise RefusedError(409, "the project is frozen, so its answers stay as they are")
        stands = answers.c.key.in_(keys), answers.c.undone_at.is_(None)
        connection.execute(update(answers).where(*stands).values(undone_at=now))
        held = {**asker._asdict(), "leased_until": now + lease, "is_done": False}
        connection.execute(update(cards).where(cards.c.id.in_(open_again)).values(held))
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


def answers_of(annotator: str) -> tuple[Any, Any]:
    """Return the conditions on what a person answered on a card: no decision, and no import."""
    return answers.c.annotator == annotator, answers.c.tab.not_in((LEADS_TAB, IMPORT_TAB))


MOST_ANSWERS = 60  # that a page is told of


def find_history(connection: Connection, annotator: str) -> list[dict[str, Any]]:
    """Return the last answers of a person that stand, the newest last, with their cards.

    The ``key`` of an answer undoes it; the answers of a request share the time ``at``.
    """
    stands = *answers_of(annotator), answers.c.undone_at.is_(None)
    query = select(answers).where(*stands).order_by(answers.c.id.desc()).limit(MOST_ANSWERS)
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
    """Store a note on a card that the tab holds; an empty one is a flag. Return whether it is new.

    The same note sent again is one.
    """
    found = connection.execute(select(cards).where(cards.c.id == card)).one_or_none()
    if found is None:
        raise RefusedError(404, "there is no such card", card)
    if found.is_done or found.annotator != asker.annotator or found.tab != asker.tab:
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
