"""Every answer as it was given: who said it, when, in how many seconds, on which draw."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, and_, func, select

from comes.annotate.exchange import PROBABILITY, fetch_all, read_first_rates
from comes.annotate.project import Project
from comes.annotate.schema import (
    CONTROL,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    classes,
    items,
    notes,
    people,
)
from comes.datasets.long import PERSON, SOURCE
from comes.datasets.table import write_table
from comes.errors import ComesError


def read_raw_answers(
    project: Project, *, since: float = 0.0, after: int = 0, most: int | None = None
) -> pd.DataFrame:
    """Return a row per answer that stands, in the order in which they came.

    Answers to control cards, and of people who are left out, are not among them.

    Parameters
    ----------
    project : Project
    since : float
        Seconds since 1970: answers from then on.
    after : int
        Number of an answer: those after it, to read page by page.
    most : int, optional
        How many at most.

    Returns
    -------
    table : DataFrame
        With the columns number, item, label, answer (no, yes, maybe or skip), person, at (a time in
        UTC, ISO 8601), seconds, source, round and probability of the question, decision (whether
        the lead decided) and comment (what people wrote about the card, in one line each).

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     read_raw_answers(project)[["item", "label", "answer", "person", "source"]]
       item  label answer         person  source
    0  rain  sport     no  (answers.csv)  random
    """
    columns = {
        "number": answers.c.id,
        "item": items.c.name,
        "label": classes.c.name,
        "answer": answers.c.answer,
        PERSON: answers.c.annotator,
        "at": answers.c.answered_at,
        "seconds": answers.c.seconds,
        SOURCE: cards.c.source,
        "round": func.coalesce(cards.c.round, 0),
        PROBABILITY: cards.c.probability,
        "decision": answers.c.tab,
        "comment": cards.c.id,
    }
    left_out = select(people.c.name).where(people.c.left_out_at.is_not(None))
    counts = and_(
        answers.c.undone_at.is_(None),
        answers.c.answered_at >= since,
        answers.c.id > after,
        cards.c.source != CONTROL,
        answers.c.annotator.not_in(left_out),
    )
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(counts)
        .order_by(answers.c.id)
        .limit(most)
    )
    with project.reading() as connection:
        table = pd.DataFrame(fetch_all(connection, query), columns=list(columns))
        written, first = _read_notes(connection), read_first_rates(connection)
    names = dict(enumerate(project.class_names, 1))
    chance = table["label"].map({names[number]: rate for number, rate in first.items()})
    is_first = (table["round"] == 0) & (table[SOURCE] == RANDOM)
    return table.assign(
        at=[_tell_time(at) for at in table["at"]],
        seconds=table["seconds"].astype(float),
        probability=table[PROBABILITY].astype(float).mask(is_first, chance.astype(float)).round(6),
        decision=np.where(table["decision"] == LEADS_TAB, "lead", ""),
        comment=[written.get(card, "") for card in table["comment"]],
    )


def export_raw_answers(project: Project, path: str | Path) -> dict[str, Any]:
    """Write every answer as it was given; return how many there are.

    Parameters
    ----------
    project : Project
    path : path
        A .csv, .parquet or other table, with the columns of `read_raw_answers`.

    Returns
    -------
    counts : dict
        Under answers and people.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     export_raw_answers(project, project.folder / "raw.csv")
    {'answers': 1, 'people': 1}
    """
    table = read_raw_answers(project)
    if table.empty:
        raise ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")
    write_table(table, path)
    return {"answers": len(table), "people": int(table[PERSON].nunique())}


def _read_notes(connection: Connection) -> dict[int, str]:
    """Return what was written about each card; "(flagged)" where there are no words."""
    query = select(notes.c.card_id, notes.c.annotator, notes.c.text).order_by(notes.c.id)
    written: dict[int, list[str]] = {}
    for card, person, text in connection.execute(query):
        written.setdefault(card, []).append(f"{person}: {text or '(flagged)'}")
    return {card: "\n".join(lines) for card, lines in written.items()}


def _tell_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
