"""Answers out of a project, for training, and answers of other tools into one."""

import time
from pathlib import Path

import pandas as pd
from sqlalchemy import Connection, select, update

from comes.annotate.adding import Pair, append_cards
from comes.annotate.project import Project
from comes.annotate.schema import IMPORTED, answers, cards, insert_rows
from comes.datasets import (
    LONG,
    MAYBE,
    MODEL,
    NO,
    SOURCE,
    Dataset,
    Reading,
    answers_of,
    combine_answers,
    long_table,
    read_dataset,
    write_dataset,
    write_table,
)
from comes.errors import ComesError, listed


def collect_answers(project: Project) -> tuple[Dataset, pd.DataFrame]:
    """Return the answers to questions drawn at random, and those to questions a model chose.

    Where two people disagree, the label stays a candidate.

    Returns
    -------
    dataset : Dataset
        Without features. Every item of the project is a row and every class a label, asked or not.
    chosen : DataFrame
        The answers to questions that a model chose, with the columns item, label, answer, source.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     dataset, chosen = collect_answers(project)
    >>> dataset.candidates  # the first text is surely not about sport
    array([[False,  True],
           [ True,  True]])
    >>> len(chosen)
    0
    """
    said = _read_answers(project)
    return _combine_drawn(project, said), _select_chosen(said)


def export_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write the answers of a project; return how many there are of which kind.

    Parameters
    ----------
    project : Project
    path : path
        .csv or .parquet: the columns item, label, answer and source (random, import or model).
        Readers keep the answers whose source is a model apart. .npz, .mat or .jsonl: without these.

    Returns
    -------
    counts : dict
        Under items, classes, asked, surely_not and chosen_by_model.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     counts = export_answers(project, project.folder / "answers.csv")
    ...     print((project.folder / "answers.csv").read_text())
    item,label,answer,source
    rain,sport,no,random
    rain,weather,not asked,
    goal,sport,not asked,
    <BLANKLINE>
    >>> counts["asked"], counts["surely_not"]
    (1, 1)
    """
    said = _read_answers(project)
    dataset, chosen = _combine_drawn(project, said), _select_chosen(said)
    candidates, asked = answers_of(dataset)
    if not asked.any():
        raise ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")
    if Path(path).suffix.lower() in (".csv", ".parquet"):
        drawn = said[said[SOURCE] != MODEL]
        sources = drawn.groupby(["item", "label"])[SOURCE].first()
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
    said = pd.DataFrame(rows, columns=["item_id", "class_id", SOURCE, "answer"])
    said["item"] = [project.item_names[number - 1] for number in said["item_id"]]
    said["label"] = [project.class_names[number - 1] for number in said["class_id"]]
    return said


def _combine_drawn(project: Project, said: pd.DataFrame) -> Dataset:
    """Return the answers to questions drawn at random, with all items and classes."""
    drawn = said[said[SOURCE] != MODEL]
    return combine_answers(
        drawn["item"],
        drawn["label"],
        drawn["answer"],
        project.class_names,
        item_names=project.item_names,
        warn_of_torn=False,  # the overview counts them
    )


def _select_chosen(said: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to questions that a model chose."""
    return said.loc[said[SOURCE] == MODEL, [*LONG, SOURCE]]


def import_answers(
    project: Project,
    path: str | Path,
    *,
    chosen_by_model: bool = False,
    item: str | None = None,
    complementary: bool = False,
) -> dict[str, int]:
    r"""Take the answers of a Label Studio or Prodigy export, or of a table, into a project.

    Parameters
    ----------
    project : Project
        Must have the items and classes that the answers are about.
    path : path
        .json (Label Studio), .jsonl (Prodigy), .csv or .parquet (item, label, answer).
    chosen_by_model : bool
        Whether a model chose all questions; a table may say so by answer (source). Their answers
        are kept out of the risk, except where the project has drawn the same question at random.
    item : str, optional
        The field that names the item.
    complementary : bool
        Whether a ticked label is one that is surely irrelevant.

    Returns
    -------
    counts : dict
        Answers that were ``taken``, and answers to questions that were ``already_answered``.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     file = project.folder / "more.csv"
    ...     _ = file.write_text("item,label,answer\nrain,sport,maybe\ngoal,weather,no\n")
    ...     import_answers(project, file)
    {'taken': 1, 'already_answered': 1}
    """
    path = Path(path)
    reading = Reading(
        label_names=project.class_names,
        item=item,
        labels_are="complementary" if complementary else None,
    )
    said, by_model = _read_import(project, path, reading)
    by_model = set(said) if chosen_by_model else by_model
    first = select(cards.c.id, cards.c.item_id, cards.c.class_id, cards.c.is_done)
    first = first.where(cards.c.turn == 0)
    with project.writing() as connection:
        is_done = {(c.item_id, c.class_id): c.is_done for c in connection.execute(first)}
        new = [pair for pair in said if pair not in is_done]
        append_cards(connection, [pair for pair in new if pair in by_model], MODEL)
        append_cards(connection, [pair for pair in new if pair not in by_model], IMPORTED)
        numbers = {(c.item_id, c.class_id): c.id for c in connection.execute(first)}
        taken = {numbers[pair]: said[pair] for pair in said if not is_done.get(pair)}
        _insert_imported(connection, taken, f"({path.name})")
    return {"taken": len(taken), "already_answered": len(said) - len(taken)}


def _read_import(
    project: Project, path: Path, reading: Reading
) -> tuple[dict[Pair, str], set[Pair]]:
    """Return the answers of a file, by the numbers of item and class, and what a model chose."""
    dataset = read_dataset(path, reading)
    rows = {name: number for number, name in enumerate(project.item_names, 1)}
    unknown = [name for name in dataset.items or [] if name not in rows]
    if unknown or dataset.items is None:
        raise ComesError(
            f"{path.name} has answers to {listed(unknown, 3) or 'nameless items'}, which the "
            "project does not have. Make the project with these items, or name the field (--item)."
        )
    candidates, asked = answers_of(dataset)
    chosen = dataset.known_answers().chosen
    said, by_model = {}, set()
    for row, column in zip(*asked.nonzero(), strict=True):
        pair = rows[dataset.items[row]], int(column) + 1
        said[pair] = MAYBE if candidates[row, column] else NO
        if chosen is not None and chosen[row, column]:
            by_model.add(pair)
    return said, by_model


def _insert_imported(connection: Connection, taken: dict[int, str], annotator: str) -> None:
    """Insert answers by card, and mark the cards as done."""
    now = time.time()
    rows = (
        {
            "card_id": number,
            "annotator": annotator,
            "tab": "import",
            "key": f"import-{number}-{now:.6f}",
            "answer": answer,
            "answered_at": now,
        }
        for number, answer in taken.items()
    )
    insert_rows(connection, answers, rows)
    inserted = select(answers.c.card_id).where(
        answers.c.tab == "import", answers.c.answered_at == now
    )
    done = update(cards).where(cards.c.id.in_(inserted), ~cards.c.is_done)
    connection.execute(done.values(is_done=True, annotator=annotator))
