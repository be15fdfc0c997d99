"""Answers out of a project, for training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from comes.annotate.project import Project
from comes.annotate.schema import CONTROL, LEADS_TAB, RANDOM, answers, cards, items, people
from comes.datasets import Dataset, combine_answers, write_dataset
from comes.datasets.labels import NO, NOT_ASKED
from comes.datasets.long import BY_MODEL, PERSON, SOURCE
from comes.datasets.table import is_table_name, write_table
from comes.errors import ComesError

TEXT = "text"  # the column of features of a project of texts
PROBABILITY = "probability"


def collect_answers(project: Project) -> Dataset:
    """Return everything that was said in a project.

    Where two people disagree, the pair counts as "maybe".

    Returns
    -------
    dataset : Dataset
        Without features. Every item of the project is a row and every class a label, asked or not.
        Its answers know which questions a model chose and, if several people answered, who said
        what. If all say "no", they are candidates, without the questions that a model chose.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     dataset = collect_answers(project)
    >>> dataset.candidates  # the first text is surely not about sport
    array([[False,  True],
           [ True,  True]])
    """
    return _combine(project, read_answers(project))


def collect_data(project: Project) -> Dataset:
    """Return everything that was said in a project, with what it was said about.

    Returns
    -------
    dataset : Dataset
        As `collect_answers` returns it. Its features are the images, or a table with the one
        column "text".

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     dataset = collect_data(project)
    >>> dataset.items[0], dataset.X["text"][0]
    ('rain', 'It rains.')
    """
    said = read_answers(project)
    if said.empty:
        raise _ask_for_answers(project)
    dataset = _combine(project, said)
    if project.images is not None:
        return replace(dataset, X=project.images)
    with project.reading() as connection:
        texts = connection.execute(select(items.c.text).order_by(items.c.id)).scalars()
        return replace(dataset, X=pd.DataFrame({TEXT: list(texts)}))


def export_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write the answers of a project; return how many there are of which kind.

    Parameters
    ----------
    project : Project
    path : path
        .csv or .parquet: a row per answer, with the columns item, label, answer, source (who chose
        the question: random, active, import or model), person (who answered) and probability (with
        which the question was drawn). .npz or .jsonl: the answers as `collect_answers` returns
        them.

    Returns
    -------
    counts : dict
        Under items, classes, answers, people, asked (pairs with an answer), surely_not (pairs about
        which all say no) and chosen_by_model (answers).

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     counts = export_answers(project, project.folder / "answers.csv")
    ...     print((project.folder / "answers.csv").read_text())
    item,label,answer,source,person,probability
    rain,sport,no,random,(answers.csv),1.0
    rain,weather,not asked,,,
    goal,sport,not asked,,,
    <BLANKLINE>
    >>> counts["asked"], counts["surely_not"]
    (1, 1)
    """
    said = read_answers(project)
    if said.empty:
        raise _ask_for_answers(project)
    if is_table_name(path):
        write_table(_list_answers(project, said), path)
    else:
        write_dataset(_combine(project, said), path)
    pair = said["item_id"].to_numpy() * (1 + len(project.class_names)) + said["class_id"].to_numpy()
    n_asked = len(np.unique(pair))
    n_doubted = len(np.unique(pair[said["answer"] != NO]))
    return {
        "items": len(project.item_names),
        "classes": len(project.class_names),
        "answers": len(said),
        "people": said[PERSON].nunique(),
        "asked": n_asked,
        "surely_not": n_asked - n_doubted,
        "chosen_by_model": int(said[SOURCE].isin(BY_MODEL).sum()),
    }


def _ask_for_answers(project: Project) -> ComesError:
    return ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")


def read_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that counts: item_id, class_id, answer, source, person, probability.

    Answers of people who are left out do not count, nor do those to control cards. Where the lead
    has decided about a pair, nothing else that was said about it counts.
    """
    columns = {
        "item_id": cards.c.item_id,
        "class_id": cards.c.class_id,
        "answer": answers.c.answer,
        SOURCE: cards.c.source,
        PERSON: answers.c.annotator,
        "turn": cards.c.turn,
        "tab": answers.c.tab,
        "round": cards.c.round,
        PROBABILITY: cards.c.probability,
    }
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .where(counts_for_training())
    )
    with project.reading() as connection:
        said = pd.DataFrame(fetch_all(connection, query), columns=list(columns))
        # Sorted here: a database would look the answers up one by one, in the order of the cards.
        order = np.lexsort([said[name] for name in ("turn", "class_id", "item_id")])
        said = said.iloc[order].reset_index(drop=True)
        first = read_first_rates(connection)
    is_decided = said["tab"] == LEADS_TAB
    if is_decided.any():
        keys = pd.MultiIndex.from_frame(said[["item_id", "class_id"]])
        said = said[is_decided | ~keys.isin(keys[is_decided])].reset_index(drop=True)
    is_first = said["round"].isna() & (said[SOURCE] == RANDOM)
    chance = said[PROBABILITY].astype(float)
    said[PROBABILITY] = chance.mask(is_first, said["class_id"].map(first).astype(float))
    return said.drop(columns=["turn", "tab", "round"])


def counts_for_training() -> ColumnElement[bool]:
    """Return the condition that an answer stands, says something, and is not left out."""
    left_out = select(people.c.name).where(people.c.left_out_at.is_not(None))
    return and_(
        answers.c.undone_at.is_(None),
        answers.c.answer != "skip",
        cards.c.source != CONTROL,
        answers.c.annotator.not_in(left_out),
    )


def fetch_all(connection: Connection, query: Select[Any]) -> list[Any]:
    """Return all rows of a query as plain tuples, in half of the time that named rows take."""
    found = connection.execute(query)
    try:
        return list(found.cursor.fetchall())
    finally:
        found.close()


def read_first_rates(connection: Connection) -> dict[int, float]:
    """Return the probability with which the first cards of each class were drawn."""
    n_items = connection.execute(select(func.max(items.c.id))).scalar_one() or 1
    drawn = (
        select(cards.c.class_id, func.count())
        .where(cards.c.source == RANDOM, cards.c.round.is_(None), cards.c.turn == 0)
        .group_by(cards.c.class_id)
    )
    return {number: count / n_items for number, count in connection.execute(drawn)}


def _combine(project: Project, said: pd.DataFrame) -> Dataset:
    """Return the answers with all items and classes."""
    item_names, class_names = project.item_names, project.class_names
    return combine_answers(
        np.asarray(item_names, dtype=object)[said["item_id"] - 1],
        np.asarray(class_names, dtype=object)[said["class_id"] - 1],
        said["answer"],
        class_names,
        item_names=item_names,
        people=said[PERSON] if said[PERSON].nunique() > 1 else None,
        chosen=said[SOURCE].isin(BY_MODEL),
        warn_of_disagreements=False,  # the overview counts them
    )


def _list_answers(project: Project, said: pd.DataFrame) -> pd.DataFrame:
    """Return a row per answer, and rows that say "not asked" so that all items and classes occur.

    They are in the order of the project, in which readers then find items and classes: the first
    item has a row for every class, and an item that nobody was asked about one for the first.
    """
    item_names, class_names = project.item_names, project.class_names
    row, column = said["item_id"].to_numpy() - 1, said["class_id"].to_numpy() - 1
    is_asked = np.zeros(len(item_names), dtype=bool)
    is_asked[row] = True
    silent = np.flatnonzero(~is_asked)
    of_first = np.setdiff1d(np.arange(len(class_names)), [0, *column[row == 0]])
    if is_asked[0] and 0 not in column[row == 0]:
        of_first = np.append(of_first, 0)
    row = np.concatenate([row, silent, np.zeros(len(of_first), dtype=np.int64)])
    column = np.concatenate([column, np.zeros(len(silent), dtype=np.int64), of_first])
    order = np.lexsort((column, row))
    n_silent = len(row) - len(said)
    columns = {
        "item": np.asarray(item_names, dtype=object)[row],
        "label": np.asarray(class_names, dtype=object)[column],
        "answer": _extend(said["answer"], NOT_ASKED, n_silent),
        SOURCE: _extend(said[SOURCE], "", n_silent),
        PERSON: _extend(said[PERSON], "", n_silent),
        PROBABILITY: np.append(said[PROBABILITY].to_numpy().round(6), np.full(n_silent, np.nan)),
    }
    return pd.DataFrame({name: values[order] for name, values in columns.items()})


def _extend(values: "pd.Series[Any]", word: str, count: int) -> npt.NDArray[Any]:
    return np.concatenate([values.to_numpy(dtype=object), np.full(count, word, dtype=object)])
