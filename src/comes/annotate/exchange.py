"""Answers out of a project, for training."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
from sqlalchemy import select

from comes.annotate.project import Project
from comes.annotate.schema import answers, cards, items
from comes.datasets import (
    LONG,
    MODEL,
    NO,
    NOT_ASKED,
    PERSON,
    SOURCE,
    Dataset,
    combine_answers,
    is_table_name,
    long_table,
    write_dataset,
    write_table,
)
from comes.errors import ComesError

TEXT = "text"  # the column of features of a project of texts
COLUMNS = [*LONG, SOURCE, PERSON]  # of a table of answers


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
    return _combine(project, _read_answers(project))


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
    said = _read_answers(project)
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
        the question: random, import or model) and person (who answered). .npz or .jsonl: the
        answers as `collect_answers` returns them.

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
    item,label,answer,source,person
    rain,sport,no,random,(answers.csv)
    rain,weather,not asked,,
    goal,sport,not asked,,
    <BLANKLINE>
    >>> counts["asked"], counts["surely_not"]
    (1, 1)
    """
    said = _read_answers(project)
    if said.empty:
        raise _ask_for_answers(project)
    if is_table_name(path):
        write_table(_list_answers(project, said), path)
    else:
        write_dataset(_combine(project, said), path)
    all_say_no = (said["answer"] == NO).groupby([said["item_id"], said["class_id"]]).all()
    return {
        "items": len(project.item_names),
        "classes": len(project.class_names),
        "answers": len(said),
        "people": said[PERSON].nunique(),
        "asked": len(all_say_no),
        "surely_not": int(all_say_no.sum()),
        "chosen_by_model": int((said[SOURCE] == MODEL).sum()),
    }


def _ask_for_answers(project: Project) -> ComesError:
    return ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")


def _read_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that stands: item, label, answer, source and person."""
    columns = {
        "item_id": cards.c.item_id,
        "class_id": cards.c.class_id,
        "answer": answers.c.answer,
        SOURCE: cards.c.source,
        PERSON: answers.c.annotator,
    }
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .where(answers.c.undone_at.is_(None), answers.c.answer != "skip")
        .order_by(cards.c.item_id, cards.c.class_id, cards.c.turn)
    )
    with project.reading() as connection:
        rows = connection.execute(query).all()
    said = pd.DataFrame(rows, columns=list(columns))
    said["item"] = [project.item_names[number - 1] for number in said["item_id"]]
    said["label"] = [project.class_names[number - 1] for number in said["class_id"]]
    return said


def _combine(project: Project, said: pd.DataFrame) -> Dataset:
    """Return the answers with all items and classes."""
    return combine_answers(
        said["item"],
        said["label"],
        said["answer"],
        project.class_names,
        item_names=project.item_names,
        people=said[PERSON] if said[PERSON].nunique() > 1 else None,
        chosen=said[SOURCE] == MODEL,
        warn_of_torn=False,  # the overview counts them
    )


def _list_answers(project: Project, said: pd.DataFrame) -> pd.DataFrame:
    """Return a row per answer, and rows that say "not asked" so that all items and classes occur.

    They are in the order of the project, in which readers then find items and classes.
    """
    table = long_table(_combine(project, said.assign(**{SOURCE: ""})))
    silent = table.loc[table["answer"] == NOT_ASKED, list(LONG)].assign(**{SOURCE: "", PERSON: ""})
    table = pd.concat([said[COLUMNS], silent], ignore_index=True)
    places = pd.DataFrame(
        {
            "item": pd.Index(project.item_names).get_indexer(pd.Index(table["item"])),
            "label": pd.Index(project.class_names).get_indexer(pd.Index(table["label"])),
        }
    )
    order = places.sort_values(["item", "label"], kind="stable").index
    return table.loc[order].reset_index(drop=True)
