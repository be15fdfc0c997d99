"""What the lead decides: about pairs on which people disagree, about notes, people, and the end.

A decision is an answer on a card of its own, which nobody else gets. Where there is one, it is what
is known of the pair: nothing else that was said about it counts in counts and exports.
"""

import secrets
import time
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from sqlalchemy import Connection, Select, Table, func, insert, select, tuple_, update

from comes.annotate.cards import SHOWS_HINTS, RefusedError
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
from comes.annotate.summary import Pair
from comes.errors import ComesError, listed

Verdict = Literal["no", "maybe", "yes"]
LEAD = "the lead"  # who decides, unless it is a person with a name


def decide_pair(
    connection: Connection, item: int, class_number: int, verdict: Verdict | None, name: str
) -> None:
    """Store what the lead decides about a pair, in place of an earlier decision.

    None takes the decision back.
    """
    about = cards.c.item_id == item, cards.c.class_id == class_number, cards.c.turn <= DECISION
    asked = connection.execute(select(cards).where(*about).order_by(cards.c.turn)).all()
    if not asked:
        raise RefusedError(404, "nobody was asked about this item and class")
    card, own, now = asked[-1].id, {"annotator": name, "tab": LEADS_TAB}, time.time()
    if asked[-1].turn < DECISION:
        if verdict is None:
            return
        new = insert(cards).values(
            item_id=item,
            class_id=class_number,
            turn=DECISION,
            source=asked[0].source,
            round=asked[0].round,
            probability=asked[0].probability,
            position=asked[0].position,
            is_done=True,
            **own,
        )
        card = connection.execute(new.returning(cards.c.id)).scalar_one()
    stands = answers.c.card_id == card, answers.c.undone_at.is_(None)
    connection.execute(update(answers).where(*stands).values(undone_at=now))
    if verdict is not None:
        key = f"decision-{secrets.token_hex(8)}"
        said = {"card_id": card, "key": key, "answer": verdict, "answered_at": now}
        connection.execute(insert(answers).values(**said, **own))


def show_disagreements(connection: Connection, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return who said what about pairs, with what they are about, their notes and decisions."""
    gone = select(people.c.name).where(people.c.left_out_at.is_not(None))
    counts = (answers.c.annotator.not_in(gone) & (cards.c.source != CONTROL)).label("counts")
    about = items.c.text, classes.c.description, counts
    histories = read_histories(connection, pairs, answers, *about)
    written = read_histories(connection, pairs, notes)
    shown = []
    for pair in pairs:
        stands = [row for row in histories[pair] if row["undone_at"] is None]
        said = [row for row in stands if row["counts"] and row["tab"] != LEADS_TAB]
        noted = [row for row in written[pair] if row["source"] != CONTROL]
        decision = find_decision(stands)
        shown.append({**histories[pair][0], "said": said, "notes": noted, "decision": decision})
    return shown


def find_decision(history: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the answer by which the lead decided about a pair, if it stands."""
    decided = (row for row in history if row["tab"] == LEADS_TAB and row["undone_at"] is None)
    return next(decided, None)


def read_histories(
    connection: Connection, pairs: Sequence[Pair], table: Table = answers, *more: Any
) -> dict[Pair, list[dict[str, Any]]]:
    """Return all answers or notes about pairs, what was taken back too; the first one first."""
    wanted = tuple_(cards.c.item_id, cards.c.class_id).in_(pairs)
    found: dict[Pair, list[dict[str, Any]]] = {pair: [] for pair in pairs}
    for row in connection.execute(_select(table, *more).where(wanted).order_by(table.c.id)):
        found[row.item, row.class_number].append(dict(row._mapping))
    return found


def _select(table: Table, *more: Any) -> Select[Any]:
    """Return a query of answers or notes, with what they are about."""
    about = (
        cards.c.item_id.label("item"),
        cards.c.class_id.label("class_number"),
        cards.c.source,
        cards.c.known,
        items.c.name,
        classes.c.name.label("class"),
    )
    query = select(table, *about, *more).select_from(table)
    return query.join(cards).join(items).join(classes)


EXCERPT = 240  # characters of a text


def browse_answers(
    connection: Connection, wanted: Mapping[str, str], before: int | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """Return answers with what they are about, the newest first: those that stand, or of a state.

    What is wanted is a part of the ``item``'s name, a ``class``, a ``person`` and a ``state``;
    ``before`` is the number of an answer that came later. Each row has the ``history`` of its pair
    and the ``decision`` about it.
    """
    stands, is_leads = answers.c.undone_at.is_(None), answers.c.tab == LEADS_TAB
    state = wanted.get("state", "")
    in_state: dict[str, Any] = {
        "": (stands, ~is_leads),
        "decided": (stands, is_leads),
        "undone": (~stands,),
        "control": (stands, cards.c.source == CONTROL),
        "hint": (stands, answers.c.hint.is_not(None)),
    }
    query = _select(answers, func.substr(items.c.text, 1, EXCERPT).label("text"))
    query = query.where(*in_state.get(state, (stands, ~is_leads, answers.c.answer == state)))
    if item := wanted.get("item"):
        query = query.where(items.c.name.icontains(item, autoescape=True))
    for name, column in (("class", classes.c.name), ("person", answers.c.annotator)):
        if wanted.get(name):
            query = query.where(column == wanted[name])
    if before is not None:
        query = query.where(answers.c.id < before)
    found = connection.execute(query.order_by(answers.c.id.desc()).limit(most)).all()
    histories = read_histories(connection, [(row.item, row.class_number) for row in found])
    rows = []
    for row in found:
        history = histories[row.item, row.class_number]
        rows.append({**row._mapping, "history": history, "decision": find_decision(history)})
    return rows


def list_notes(connection: Connection, *, most: int = 200) -> list[dict[str, Any]]:
    """Return notes and flags, the open ones first, then the newest."""
    query = _select(notes).order_by(notes.c.resolved_at.is_not(None), notes.c.id.desc())
    return [dict(row._mapping) for row in connection.execute(query.limit(most))]


def resolve_note(connection: Connection, note: int, is_resolved: bool) -> None:
    """Mark a note as dealt with, or open it again."""
    moment = time.time() if is_resolved else None
    changed = update(notes).where(notes.c.id == note).values(resolved_at=moment)
    if not connection.execute(changed).rowcount:
        raise RefusedError(404, "there is no such note")


def leave_out(connection: Connection, name: str, is_left_out: bool) -> None:
    """Let the answers of a person count for nothing, or count again; they stay stored."""
    known = _list_names(connection)
    if name not in known:
        named = listed(sorted(known)) or "nobody yet"
        raise RefusedError(404, f"a person must be one who answered: {named}; got {name!r}")
    now = time.time()
    moment = now if is_left_out else None
    new = insert_here(connection, people).values(name=name, joined_at=now, left_out_at=moment)
    changed = new.on_conflict_do_update(index_elements=["name"], set_={"left_out_at": moment})
    connection.execute(changed)


def _list_names(connection: Connection) -> set[str]:
    """Return the names of all who joined or answered."""
    names = select(people.c.name).union(select(answers.c.annotator))
    return set(connection.execute(names).scalars())


def freeze(connection: Connection, is_on: bool) -> None:
    """End the collection of answers, or go on with it."""
    write_setting(connection, FROZEN, str(time.time()) if is_on else None)


def show_hints(connection: Connection, is_on: bool) -> None:
    """Show what a model thinks on cards, or no longer."""
    write_setting(connection, SHOWS_HINTS, str(int(is_on)))


def decide_pairs(project: Project, decisions: str | Path | pd.DataFrame, name: str) -> int:
    """Store what the lead decides about pairs, a table of item, label and answer; return how many.

    A decision is what counts of a pair, in place of what people said about it.
    """
    rows = project.number_answers(decisions, ("no", "maybe", "yes"))
    try:
        with project.writing() as connection:
            for item, class_, verdict in rows:
                decide_pair(connection, item, class_, verdict, name)
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
    known = _list_names(connection)
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
