"""Answers out of a project, for training, and answers of other tools into one."""

import time
from pathlib import Path

import pandas as pd
from sqlalchemy import select, update

from comes.annotate.project import Project, append_cards, insert_rows
from comes.annotate.tables import answers, cards
from comes.datasets import Dataset, read_dataset, write_dataset, write_table
from comes.datasets.answers import (
    LONG,
    MAYBE,
    MODEL,
    NO,
    NOT_ASKED,
    SOURCE,
    answers_of,
    combine_answers,
    long_table,
)
from comes.errors import ComesError, listed


def collect_answers(project: Project) -> tuple[Dataset, pd.DataFrame]:
    """Return the answers on cards drawn at random, and a table of those on cards of a model.

    Every item of the project is a row, and every class a label, asked or not. Two answers to one
    question count as "maybe" if one of them is.
    """
    said, items, classes = _read_answers(project), project.item_names, project.class_names
    chosen = said[SOURCE] == MODEL
    counted = said[~chosen]
    torn = counted.groupby(["item", "label"])["answer"].transform("nunique") > 1
    states = counted["answer"].where(~torn, MAYBE)
    dataset = combine_answers(
        [*items, *counted["item"]],
        [*[classes[0]] * len(items), *counted["label"]],
        [*[NOT_ASKED] * len(items), *states],
        classes,
    )
    return dataset, said.loc[chosen, [*LONG, SOURCE]]


def _read_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that stands: item, label, answer and source."""
    query = (
        select(cards.c.item_id, cards.c.class_id, cards.c.source, answers.c.answer)
        .join(cards, cards.c.id == answers.c.card_id)
        .where(answers.c.undone_at.is_(None), answers.c.answer != "skip")
        .order_by(cards.c.item_id, cards.c.class_id)
    )
    with project.reading() as connection:
        rows = connection.execute(query).all()
    items, classes = project.item_names, project.class_names
    said = pd.DataFrame(rows, columns=["item_id", "class_id", SOURCE, "answer"])
    said["item"] = [items[number - 1] for number in said["item_id"]]
    said["label"] = [classes[number - 1] for number in said["class_id"]]
    return said


def export_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write the answers of a project; return how many there are of which kind.

    Parameters
    ----------
    project : Project
    path : path
        .csv or .parquet: the columns item, label, answer and source (random, import or model), of
        which readers leave out what a model chose. .npz, .mat or .jsonl: without those.
    """
    dataset, chosen = collect_answers(project)
    candidates, asked = answers_of(dataset)
    if not asked.any():
        raise ComesError(f"{project.name} has no answers yet: comes annotate serve.")
    if Path(path).suffix.lower() in (".csv", ".parquet"):
        said = _read_answers(project)
        sources = said[said[SOURCE] != MODEL].groupby(["item", "label"])[SOURCE].first()
        table = long_table(dataset).join(sources, on=["item", "label"]).fillna({SOURCE: ""})
        write_table(pd.concat([table, chosen], ignore_index=True), path)
    else:
        write_dataset(dataset, path)
    return {
        "items": len(dataset),
        "classes": len(dataset.label_names),
        "asked": int(asked.sum()),
        "surely_not": int((~candidates).sum()),
        "chosen_by_model": len(chosen),
    }


def import_answers(
    project: Project,
    path: str | Path,
    *,
    chosen_by_model: bool = False,
    item: str | None = None,
    complementary: bool = False,
) -> dict[str, int]:
    """Take the answers of a Label Studio or Prodigy export, or of a table, into a project.

    Parameters
    ----------
    project : Project
        Must have the items and classes that the answers are about.
    path : path
        .json (Label Studio), .jsonl (Prodigy), .csv or .parquet (long).
    chosen_by_model : bool
        Say that a model chose what was asked, so that the answers are kept out of the risk; those
        to questions that the project has drawn anyway are not.
    item : str, optional
        The field that names the item.
    complementary : bool
        What was ticked is surely not.

    Returns
    -------
    counts : dict
        How many answers were taken, and how many were left because the question has an answer.
    """
    path = Path(path)
    dataset = read_dataset(
        path, label_names=project.class_names, item=item, complementary=complementary
    )
    rows = {name: number for number, name in enumerate(project.item_names, 1)}
    unknown = [name for name in dataset.items or [] if name not in rows]
    if unknown or dataset.items is None:
        raise ComesError(
            f"{path.name} has answers to {listed(unknown, 3) or 'nameless items'}, which the "
            "project does not have. Make the project with these items, or name the field (--item)."
        )
    candidates, asked = answers_of(dataset)
    source, now, who = MODEL if chosen_by_model else "import", time.time(), f"({path.name})"
    said = {
        (rows[dataset.items[row]], int(column) + 1): MAYBE if candidates[row, column] else NO
        for row, column in zip(*asked.nonzero(), strict=True)
    }
    first = select(cards.c.id, cards.c.item_id, cards.c.class_id, cards.c.is_done)
    first = first.where(cards.c.turn == 0)
    with project.writing() as connection:
        is_done = {(c.item_id, c.class_id): c.is_done for c in connection.execute(first)}
        append_cards(connection, [pair for pair in said if pair not in is_done], source)
        numbers = {(c.item_id, c.class_id): c.id for c in connection.execute(first)}
        taken = [pair for pair in said if not is_done.get(pair)]
        given = (
            {
                "card_id": numbers[pair],
                "annotator": who,
                "tab": "import",
                "key": f"import-{numbers[pair]}-{now:.6f}",
                "answer": said[pair],
                "answered_at": now,
            }
            for pair in taken
        )
        insert_rows(connection, answers, given)
        mine = select(answers.c.card_id).where(
            answers.c.tab == "import", answers.c.answered_at == now
        )
        done = update(cards).where(cards.c.id.in_(mine), ~cards.c.is_done)
        connection.execute(done.values(is_done=True, annotator=who))
    return {"taken": len(taken), "already_answered": len(said) - len(taken)}
