"""What happens to cards: they are leased to a browser tab, answered, undone, and given back.

Each function is one command inside a transaction. It looks before it writes: a command that is
refused (`RefusedError`) has changed nothing. A lease belongs to a tab, so that two people, or two
tabs of one person, never get the same card. The cards of a tab that is silent for the time of a
lease are free again, those of a tab that was closed at once. Until somebody else takes them, late
answers of the same person are still accepted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from comes.annotate.asking import add_questions, refuses_yes
from comes.annotate.control_cards import insert_controls
from comes.annotate.sampling import BLOCK
from comes.annotate.schema import answers, cards, classes, items, settings

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
