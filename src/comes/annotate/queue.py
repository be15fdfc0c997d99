"""What happens to cards: they are leased to the tab of a browser, answered, and taken back.

Each function is one command inside a transaction. It looks before it writes: one that is refused
(`RefusedError`) has changed nothing. A lease belongs to a tab, so that two people, or two tabs of
one, never get the same card; when a tab is not heard of for the time of a lease, its cards are free
again. Until somebody takes them, its late answers are welcome.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from comes.annotate.sampling import BLOCK
from comes.annotate.tables import answers, cards, classes, items

Answer = Literal["no", "maybe", "skip"]
MOST_HELD = 200  # cards that a tab is given back


class RefusedError(Exception):
    """A command that cannot be done, with the status of HTTP that says so."""

    def __init__(self, status: int, reason: str, card: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.card = status, reason, card


@dataclass(frozen=True)
class Given:
    """An answer as a browser sends it."""

    card: int
    answer: Answer
    key: str  # the browser's own, the same if it sends the answer again
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
    size: int = BLOCK,
) -> list[dict[str, Any]]:
    """Return the cards of a tab: those that it has, or else the next free ones, leased to it.

    They are of one class, or with ``by_item`` of one item. A card is never given to who answered,
    or has, the same question on another card.
    """
    held = (
        select(cards)
        .where(
            cards.c.tab == asker.tab,
            cards.c.annotator == asker.annotator,
            ~cards.c.is_done,
            ~_is_elsewhere(asker.annotator, now),
        )
        .with_for_update(of=cards)
    )  # looked at again if another server has just leased them
    # Sorted here: for ORDER BY, SQLite would walk through all open cards by their position.
    found = sorted(connection.execute(held), key=lambda card: card.position)[:MOST_HELD]
    free = _free(asker.annotator, now).with_for_update(skip_locked=True, of=cards)
    if not found:
        found = list(connection.execute(free.order_by(cards.c.position).limit(size)))
    if not found:
        return []
    if by_item:
        found += connection.execute(free.where(cards.c.item_id == found[0].item_id))
    shared = "item_id" if by_item else "class_id"
    once: dict[tuple[int, int], int] = {}  # the same may be asked of another person close by
    for card in found:
        if getattr(card, shared) == getattr(found[0], shared):
            once.setdefault((card.item_id, card.class_id), card.id)
    chosen = list(once.values())
    connection.execute(
        update(cards)
        .where(cards.c.id.in_(chosen))
        .values(tab=asker.tab, annotator=asker.annotator, leased_until=now + lease)
    )
    return show_cards(connection, chosen)


def _free(annotator: str, now: float) -> Any:
    """Return the query of cards that nobody has and this person may get."""
    is_free = or_(cards.c.leased_until.is_(None), cards.c.leased_until < now)
    return select(cards).where(~cards.c.is_done, is_free, ~_is_elsewhere(annotator, now))


_OTHER = cards.alias("other")


def _is_elsewhere(annotator: Any, now: float) -> Any:
    """Return the condition that a person answered, or has, the question of a card on another."""
    is_mine = and_(
        _OTHER.c.item_id == cards.c.item_id,
        _OTHER.c.class_id == cards.c.class_id,
        _OTHER.c.id != cards.c.id,
        _OTHER.c.annotator == annotator,
        or_(_OTHER.c.is_done, _OTHER.c.leased_until >= now),
    )
    return select(_OTHER.c.id).where(is_mine).exists()


# Built once: to put these together takes longer than to run them.
_WANTED = cards.c.id.in_(bindparam("wanted", expanding=True))
_KNOWN = select(answers).where(answers.c.key.in_(bindparam("keys", expanding=True)))
_ASKED = (
    select(cards, _is_elsewhere(bindparam("annotator"), math.inf).label("answered"))
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
            classes.c.description,
        )
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(cards.c.id.in_(chosen))
        .order_by(cards.c.position)
    )
    return [dict(row._mapping) for row in connection.execute(query)]


def store_answers(
    connection: Connection, asker: Asker, given: Sequence[Given], *, now: float, lease: float
) -> None:
    """Store all answers of a request, or none; what is stored already is left as it is."""
    keys, all_cards = [answer.key for answer in given], [answer.card for answer in given]
    asked = connection.execute(_ASKED, {"wanted": all_cards, "annotator": asker.annotator})
    there = {row.id: row for row in asked}  # locked, so that what follows is not outdated
    stored = {row.key: row for row in connection.execute(_KNOWN, {"keys": keys})}
    new = []
    for answer in given:
        known = stored.get(answer.key)
        if known is None:
            new.append(answer)
        elif (known.card_id, known.answer, known.tab) != (answer.card, answer.answer, asker.tab):
            raise RefusedError(409, "this key belongs to another answer", answer.card)
    if not new:
        return
    if len({answer.card for answer in new}) < len(new) or len(set(keys)) < len(keys):
        raise RefusedError(422, "a request has one answer for a card")
    wanted = [answer.card for answer in new]
    for number in wanted:
        card = there.get(number)
        if card is None:
            raise RefusedError(404, "there is no such card", number)
        if card.is_done:
            raise RefusedError(409, "this card has been answered", number)
        if (card.tab, card.annotator) != (asker.tab, asker.annotator):
            raise RefusedError(409, "this card is not, or no longer, yours", number)
        if card.answered:
            raise RefusedError(409, "this is for another person: you have answered it", number)
    connection.execute(
        insert(answers),
        [
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
        ],
    )
    connection.execute(_DONE, {"wanted": wanted})
    if min(there[number].leased_until for number in wanted) < now + lease / 2:
        connection.execute(
            update(cards)
            .where(cards.c.tab == asker.tab, ~cards.c.is_done)
            .values(leased_until=now + lease)
        )


def undo_answers(
    connection: Connection, asker: Asker, keys: Sequence[str], *, now: float, lease: float
) -> list[dict[str, Any]]:
    """Take one's own answers back, once or twice, and return their cards, leased again."""
    rows = connection.execute(
        select(answers)
        .where(answers.c.key.in_(keys), answers.c.annotator == asker.annotator)
        .with_for_update(of=answers)
    ).all()
    if len(rows) < len(set(keys)):
        raise RefusedError(404, "there is no such answer of yours")
    open_again = [row.card_id for row in rows if row.undone_at is None]
    if open_again:
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


def progress(connection: Connection, annotator: str) -> dict[str, int]:
    """Return how many cards there are, how many are done, and how many answers this person gave."""
    total, done = connection.execute(
        select(func.count(), func.count().filter(cards.c.is_done)).select_from(cards)
    ).one()
    mine = connection.execute(
        select(func.count())
        .select_from(answers)
        .where(answers.c.annotator == annotator, answers.c.undone_at.is_(None))
    ).scalar_one()
    return {"total": total, "done": done, "mine": mine}
