"""What the lead decides: about pairs on which people disagree, about notes, people, and the end.

A decision is an answer on a card of its own, which nobody else gets. Where there is one, it is what
is known of the pair: nothing else that was said about it counts in counts and exports.
"""

import secrets
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, Connection, func, insert, select, tuple_, update

from comes.annotate.cards import RefusedError
from comes.annotate.project import Project
from comes.annotate.schema import (
    CONTROL,
    DECISION,
    FROZEN,
    LEADS_TAB,
    answers,
    cards,
    classes,
    insert_here,
    items,
    notes,
    people,
    write_setting,
)
from comes.annotate.summary import AnswerColumns, count_words
from comes.errors import ComesError, listed

Verdict = Literal["no", "maybe", "yes"]
LEAD = "the lead"  # who decides, unless it is a person with a name


def decide_pair(
    connection: Connection, item: int, class_: int, verdict: Verdict | None, name: str, now: float
) -> None:
    """Store what the lead decides about a pair, in place of an earlier decision.

    None takes the decision back. Items and classes are numbered from 1.
    """
    own = cards.c.item_id == item, cards.c.class_id == class_
    first = connection.execute(select(cards).where(*own, cards.c.turn < DECISION)).first()
    if first is None:
        raise RefusedError(404, "nobody was asked about this item and class")
    query = select(cards.c.id).where(*own, cards.c.turn == DECISION)
    card = connection.execute(query).scalar_one_or_none()
    if card is None and verdict is None:
        return
    if card is None:
        row = {"item_id": item, "class_id": class_, "turn": DECISION, "source": first.source}
        row |= {"position": first.position, "is_done": True, "annotator": name, "tab": LEADS_TAB}
        card = connection.execute(insert(cards).values(row).returning(cards.c.id)).scalar_one()
    stands = answers.c.card_id == card, answers.c.undone_at.is_(None)
    connection.execute(update(answers).where(*stands).values(undone_at=now))
    if verdict is not None:
        said = {"card_id": card, "annotator": name, "tab": LEADS_TAB, "answer": verdict}
        said |= {"key": f"decision-{secrets.token_hex(8)}", "answered_at": now}
        connection.execute(insert(answers).values(said))


def find_disagreements(said: AnswerColumns, *, with_decided: bool = False) -> list[tuple[int, int]]:
    """Return the pairs on which people disagree: no against yes first, then no against maybe.

    Items and classes are numbered from 1.
    """
    no, maybe, yes, _ = count_words(said, said.counts & said.is_card)
    disagree = (no > 0) & (maybe + yes > 0)
    if not with_decided:
        disagree &= ~count_words(said, said.counts & said.is_decision).any(axis=0)
    numbers = np.flatnonzero(disagree)
    numbers = numbers[np.argsort(yes[numbers] == 0, kind="stable")]
    return [(item + 1, class_ + 1) for item, class_ in said.pairs[numbers].tolist()]


def show_disagreements(
    connection: Connection, pairs: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return who said what about pairs, with what they are about, their notes and decisions."""
    histories = read_histories(connection, pairs)
    gone = select(people.c.name).where(people.c.left_out_at.is_not(None))
    left_out = set(connection.execute(gone).scalars())
    shown = []
    for pair in pairs:
        about = _describe_pair(connection, *pair)
        about["said"] = [
            row
            for row in histories[pair]
            if row["undone_at"] is None
            and row["source"] != CONTROL
            and row["tab"] != LEADS_TAB
            and row["annotator"] not in left_out
        ]
        shown.append({**about, "decision": find_decision(histories[pair])})
    return shown


def _describe_pair(connection: Connection, item: int, class_: int) -> dict[str, Any]:
    """Return what a pair is about, and the notes on its cards."""
    about = connection.execute(
        select(items.c.name, items.c.text, classes.c.name.label("class"), classes.c.description)
        .select_from(items.join(classes, classes.c.id == class_))
        .where(items.c.id == item)
    ).one()
    own = cards.c.item_id == item, cards.c.class_id == class_, cards.c.source != CONTROL
    written = connection.execute(
        select(notes.c.annotator, notes.c.text)
        .join(cards, cards.c.id == notes.c.card_id)
        .where(*own)
        .order_by(notes.c.id)
    ).all()
    noted = [row._mapping for row in written]
    return {"item": item, "class_number": class_, **about._mapping, "notes": noted}


def find_decision(history: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the answer by which the lead decided about a pair, if it stands."""
    decided = (row for row in history if row["tab"] == LEADS_TAB and row["undone_at"] is None)
    return next(decided, None)


def read_histories(
    connection: Connection, pairs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Return all that was said about pairs, what was taken back too; the first answer first."""
    about = cards.c.item_id, cards.c.class_id
    said = [
        answers.c[name]
        for name in ("id", "annotator", "answer", "seconds", "answered_at", "undone_at", "tab")
    ]
    query = (
        select(*about, *said, cards.c.source)
        .join(cards, cards.c.id == answers.c.card_id)
        .where(tuple_(*about).in_(pairs))
        .order_by(answers.c.id)
    )
    found: dict[tuple[int, int], list[dict[str, Any]]] = {pair: [] for pair in pairs}
    for row in connection.execute(query):
        found[row.item_id, row.class_id].append(dict(row._mapping))
    return found


STATES = ("no", "maybe", "yes", "skip", "decided", "undone", "control", "hint")  # to look for
EXCERPT = 240  # characters of a text


def browse_answers(
    connection: Connection,
    *,
    item: str = "",
    class_: int | None = None,
    person: str = "",
    state: str = "",
    before: int | None = None,
    most: int = 50,
) -> list[dict[str, Any]]:
    """Return answers with what they are about, the newest first: those that stand, or of a state.

    ``item`` is a part of the item's name; ``before`` is the number of an answer that came later.
    Each row has the ``history`` of its pair and the ``decision`` about it.
    """
    stands, is_leads = answers.c.undone_at.is_(None), answers.c.tab == LEADS_TAB
    in_state: dict[str, tuple[ColumnElement[bool], ...]] = {
        "": (stands, ~is_leads),
        "decided": (stands, is_leads),
        "undone": (~stands,),
        "control": (stands, cards.c.source == CONTROL),
        "hint": (stands, answers.c.hint.is_not(None)),
    }
    wanted = [*in_state.get(state, (stands, ~is_leads, answers.c.answer == state))]
    if item:
        wanted.append(items.c.name.icontains(item, autoescape=True))
    if class_ is not None:
        wanted.append(cards.c.class_id == class_)
    if person:
        wanted.append(answers.c.annotator == person)
    if before is not None:
        wanted.append(answers.c.id < before)
    query = (
        select(
            answers,
            cards.c.item_id.label("item"),
            cards.c.class_id.label("class_number"),
            cards.c.source,
            cards.c.known,
            items.c.name,
            func.substr(items.c.text, 1, EXCERPT).label("text"),
            classes.c.name.label("class"),
        )
        .join(cards, cards.c.id == answers.c.card_id)
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(*wanted)
        .order_by(answers.c.id.desc())
        .limit(most)
    )
    rows = [dict(row._mapping) for row in connection.execute(query)]
    pairs = [(row["item"], row["class_number"]) for row in rows]
    histories = read_histories(connection, list(dict.fromkeys(pairs)))
    return [
        {**row, "history": histories[pair], "decision": find_decision(histories[pair])}
        for row, pair in zip(rows, pairs, strict=True)
    ]


def list_notes(connection: Connection, *, most: int = 200) -> list[dict[str, Any]]:
    """Return notes and flags, the open ones first, then the newest."""
    query = (
        select(
            notes.c.id,
            notes.c.annotator,
            notes.c.text,
            notes.c.written_at,
            notes.c.resolved_at,
            cards.c.item_id.label("item"),
            items.c.name,
            classes.c.name.label("class"),
        )
        .join(cards, cards.c.id == notes.c.card_id)
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .order_by(notes.c.resolved_at.is_not(None), notes.c.id.desc())
        .limit(most)
    )
    return [dict(row._mapping) for row in connection.execute(query)]


def resolve_note(connection: Connection, number: int, *, is_resolved: bool, now: float) -> None:
    """Mark a note as dealt with, or open it again."""
    moment = now if is_resolved else None
    changed = update(notes).where(notes.c.id == number).values(resolved_at=moment)
    if not connection.execute(changed).rowcount:
        raise RefusedError(404, "there is no such note")


def leave_out(connection: Connection, name: str, *, is_left_out: bool, now: float) -> None:
    """Let the answers of a person count for nothing, or count again; they stay stored."""
    own = answers.c.annotator == name
    known = connection.execute(select(func.count()).where(own)).scalar_one()
    moment = now if is_left_out else None
    changed = update(people).where(people.c.name == name).values(left_out_at=moment)
    if connection.execute(changed).rowcount:
        return
    if not known:
        raise RefusedError(404, f"nobody here is called {name}")
    row = {"name": name, "joined_at": now, "left_out_at": moment}
    connection.execute(insert(people).values(row))


def freeze(connection: Connection, *, is_frozen: bool, now: float) -> None:
    """End the collection of answers, or go on with it."""
    write_setting(connection, FROZEN, str(now) if is_frozen else None)


def set_left_out(project: Project, name: str, is_left_out: bool = True) -> None:
    """Leave the answers of a person out of counts and exports, or take them in again.

    Parameters
    ----------
    project : Project
    name : str
    is_left_out : bool

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     set_left_out(project, "(answers.csv)")
    ...     summarise(project).n_answers
    0
    """
    try:
        with project.writing() as connection:
            leave_out(connection, name, is_left_out=is_left_out, now=time.time())
    except RefusedError:
        with project.reading() as connection:
            known = connection.execute(select(answers.c.annotator).distinct()).scalars().all()
        raise ComesError(
            f"a person must be one who answered: {listed(sorted(known)) or 'nobody yet'}; "
            f"got {name!r}."
        ) from None


def decide_pairs(project: Project, decisions: str | Path | pd.DataFrame, name: str) -> int:
    """Store what the lead decides about pairs, a table of item, label and answer; return how many.

    A decision is what counts of a pair, in place of what people said about it.
    """
    rows = project.number_answers(decisions, ("no", "maybe", "yes"))
    try:
        with project.writing() as connection:
            for item, class_, verdict in rows:
                decide_pair(connection, item, class_, verdict, name, time.time())
    except RefusedError as refused:
        raise ComesError(
            f"a decision must be about an item and a class that somebody was asked about; got "
            f"{project.item_names[item - 1]}, {project.class_names[class_ - 1]}: "
            f"{refused.reason}. Nothing was stored."
        ) from None
    return len(rows)


class KnownNameError(RefusedError):
    """A name that differs from a known one in case or blanks only."""

    def __init__(self, known: str) -> None:
        super().__init__(
            409, f"{known} has answered before; say that you are the same, or choose another name"
        )
        self.known = known


def clean_name(given: str) -> str:
    """Return a name as it is kept: composed letters, single blanks; refuse what cannot be seen."""
    composed = unicodedata.normalize("NFC", given)
    if not composed.isprintable():
        raise RefusedError(422, "a name must consist of visible characters")
    if _fold(composed) == _fold(LEAD):
        raise RefusedError(422, "this name is the lead's; choose another")
    return " ".join(composed.split())


def join_person(connection: Connection, name: str, *, is_same: bool, now: float) -> str:
    """Keep who joins; return the name under which this person answers.

    A name that differs from a known one in case or blanks only is refused with `KnownNameError`,
    unless the person ``is_same``: then the known name is the answer.
    """
    if connection.execute(select(people.c.name).where(people.c.name == name)).first():
        return name
    named = connection.execute(select(people.c.name)).scalars()
    answered = connection.execute(select(answers.c.annotator).distinct()).scalars()
    known = {*named, *answered}
    alike = sorted(old for old in known if _fold(old) == _fold(name))
    if alike and name not in known:
        if not is_same:
            raise KnownNameError(alike[0])
        name = alike[0]
    new = insert_here(connection, people).values(name=name, joined_at=now)
    connection.execute(new.on_conflict_do_nothing())
    return name


def _fold(name: str) -> str:
    """Return what names have in common that look alike."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())
