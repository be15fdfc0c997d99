"""What happens to cards: they are leased to a browser tab, answered, and undone.

Each function is one command inside a transaction. It looks before it writes: a command that is
refused (`RefusedError`) has changed nothing. A lease belongs to a tab, so that two people, or two
tabs of one person, never get the same card. The cards of a tab that is silent for the time of a
lease are free again. Until somebody else takes them, its late answers are still accepted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from comes.annotate.asking import add_questions, refuses_yes
from comes.annotate.sampling import BLOCK
from comes.annotate.schema import answers, cards, classes, items

Answer = Literal["no", "yes", "maybe", "skip"]
MOST_HELD = 200  # cards that a tab gets back after a reload


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
    size: int = BLOCK,
) -> list[dict[str, Any]]:
    """Return the cards of a tab: those that it holds, or else the next free ones, leased to it.

    They are of one class, or with ``by_item`` of one item. Nobody gets a card whose question they
    answered, or hold, on another card.
    """
    found = _find_held_cards(connection, asker, now)
    free = _select_free_cards(asker.annotator, now)
    if not found:
        found = list(connection.execute(free.order_by(cards.c.position).limit(size)))
    if not found:
        return []
    if by_item:
        found += connection.execute(free.where(cards.c.item_id == found[0].item_id))
    chosen = _choose_block(found, "item_id" if by_item else "class_id")
    connection.execute(
        update(cards)
        .where(cards.c.id.in_(chosen))
        .values(tab=asker.tab, annotator=asker.annotator, leased_until=now + lease)
    )
    return show_cards(connection, chosen)


def _find_held_cards(connection: Connection, asker: Asker, now: float) -> list[Any]:
    """Return the open cards of a tab, in their order."""
    held = (
        select(cards)
        .where(
            cards.c.tab == asker.tab,
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


def _choose_block(found: Sequence[Any], shared: str) -> list[int]:
    """Return the cards of the first card's class or item, one for each question."""
    by_question: dict[tuple[int, int], int] = {}  # a second person's card may be close by
    for card in found:
        if getattr(card, shared) == getattr(found[0], shared):
            by_question.setdefault((card.item_id, card.class_id), card.id)
    return list(by_question.values())


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
            classes.c.description,
            classes.c.question,
            classes.c.id.label("class_number"),
        )
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(cards.c.id.in_(chosen))
        .order_by(cards.c.position)
    )
    return add_questions(connection, [dict(row._mapping) for row in connection.execute(query)])


def store_answers(
    connection: Connection, asker: Asker, sent: Sequence[SentAnswer], *, now: float, lease: float
) -> None:
    """Store all answers of a request or none; those that are stored already stay as they are."""
    numbers, keys = [answer.card for answer in sent], [answer.key for answer in sent]
    asked = connection.execute(_ASKED, {"wanted": numbers, "annotator": asker.annotator})
    found = {row.id: row for row in asked}  # locked, so that what follows is up to date
    known = {row.key: row for row in connection.execute(_KNOWN, {"keys": keys})}
    new = _select_new(sent, known, asker)
    if not new:
        return
    if len({answer.card for answer in new}) < len(new) or len(set(keys)) < len(keys):
        raise RefusedError(422, "a request must have one answer per card")
    _check_words(connection, new)
    for answer in new:
        _check_answerable(found.get(answer.card), answer.card, asker)
    _insert_answers(connection, asker, new, now)
    if min(found[answer.card].leased_until for answer in new) < now + lease / 2:
        _renew_leases(connection, asker, now + lease)


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
    if (card.tab, card.annotator) != (asker.tab, asker.annotator):
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


def count_progress(connection: Connection, annotator: str) -> dict[str, int]:
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
