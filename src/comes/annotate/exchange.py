"""Answers out of a project, for training, and into it from other tools."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from comes.annotate.cards import Place, append_cards, next_round
from comes.annotate.project import Project
from comes.annotate.schema import (
    CONTROL,
    IMPORTED,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    classes,
    fetch_all,
    insert_rows,
    items,
    notes,
    people,
)
from comes.answers import LongAnswers, State
from comes.datasets import Dataset, ReadOptions, open_dataset, write_dataset
from comes.datasets.labels import MAYBE, NO, NOT_ASKED
from comes.datasets.long import BY_MODEL, HINT, MODEL, PERSON, SOURCE, combine_long
from comes.datasets.table import is_table_name, write_table
from comes.errors import ComesError, listed

TEXT = "text"  # the column of features of a project of texts
PROBABILITY = "probability"
CODES = {state.word: int(state) for state in State}


def collect_answers(project: Project) -> Dataset:
    """Return all answers of a project.

    Where two people disagree, the pair counts as "maybe".

    Parameters
    ----------
    project : Project

    Returns
    -------
    dataset : Dataset
        Without features. Every item of the project is a row and every class a label, asked or not.
        Its answers know which questions a model chose, or showed what it thinks, and, if several
        people answered, who said what. If all say "no", they are candidates, without the questions
        of a model.

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
    """Return all answers of a project, with the items that they are about.

    Parameters
    ----------
    project : Project

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
    dataset = _combine(project, _read_some(project))
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
        .csv, .parquet, .xlsx: a row per answer, with the columns item, label, answer, source (who
        chose the question: random, active, import or model; hint where the card showed what a model
        thinks), person (who answered) and probability (with which the question was drawn).
        .npz or .jsonl: the answers as `collect_answers` returns them.

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
    said = _read_some(project)
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


def _read_some(project: Project) -> pd.DataFrame:
    """Return the answers; raise if there are none."""
    said = read_answers(project)
    if said.empty:
        raise ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")
    return said


def read_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that counts: item_id, class_id, answer, source, person, probability.

    Answers of people who are left out do not count, nor do those to control cards. Where the lead
    has decided about a pair, no other answer about it counts. Where a card has shown what a model
    thinks, the source of all answers about its pair is "hint".
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
        HINT: answers.c.hint,
    }
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .where(_stands(), answers.c.answer != "skip")
    )
    with project.reading() as connection:
        said = pd.DataFrame(fetch_all(connection, query), columns=list(columns))
        # Sorted here: a database would look the answers up one by one, in the order of the cards.
        order = np.lexsort([said[name] for name in ("turn", "class_id", "item_id")])
        said = said.iloc[order].reset_index(drop=True)
        first = _read_first_rates(connection)
    is_first = said["round"].isna() & (said[SOURCE] == RANDOM)
    chance = said[PROBABILITY].astype(float)
    said[PROBABILITY] = chance.mask(is_first, said["class_id"].map(first).astype(float))
    is_decided = said["tab"] == LEADS_TAB
    said = said[is_decided | ~_share_pair(said, is_decided)].reset_index(drop=True)
    said[SOURCE] = said[SOURCE].mask(_share_pair(said, said[HINT].notna()), HINT)
    return said.drop(columns=["turn", "tab", "round", HINT])


def _share_pair(said: pd.DataFrame, rows: "pd.Series[bool]") -> "pd.Series[bool]":
    """Return which answers are about the pair of one of some rows."""
    if not rows.any():
        return rows
    return rows.groupby([said["item_id"], said["class_id"]]).transform("any")


def _stands() -> ColumnElement[bool]:
    """Return the condition that an answer was not undone, and counts."""
    left_out = select(people.c.name).where(people.c.left_out_at.is_not(None))
    return and_(
        answers.c.undone_at.is_(None),
        cards.c.source != CONTROL,
        answers.c.annotator.not_in(left_out),
    )


def _read_first_rates(connection: Connection) -> dict[int, float]:
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
    person, people_names = pd.factorize(said[PERSON], sort=True)
    is_one = len(people_names) < 2
    codes = np.asarray(said["answer"].map(CODES), dtype=np.int8)
    given = LongAnswers(
        said["item_id"].to_numpy(np.int64) - 1,
        said["class_id"].to_numpy(np.int64) - 1,
        0 * person if is_one else person,
        codes,
        ("",) if is_one else tuple(people_names),
    )
    by_model = said[SOURCE].isin(BY_MODEL).to_numpy()
    # The overview counts disagreements.
    return combine_long(
        given, by_model, project.item_names, project.class_names, warn_of_disagreements=False
    )


def _list_answers(project: Project, said: pd.DataFrame) -> pd.DataFrame:
    """Return a row per answer, and rows that say "not asked" so that all items and classes occur.

    They are in the order of the project, in which readers then find items and classes: the first
    item has a row for every class, and an item that nobody was asked about one for the first.
    """
    item_names, class_names = project.item_names, project.class_names
    row, column = said["item_id"].to_numpy() - 1, said["class_id"].to_numpy() - 1
    silent = np.setdiff1d(np.arange(1, len(item_names)), row)
    of_first = np.setdiff1d(np.arange(len(class_names)), column[row == 0])
    n_silent = len(silent) + len(of_first)
    row = np.concatenate([row, silent, np.zeros(len(of_first), dtype=np.int64)])
    column = np.concatenate([column, np.zeros(len(silent), dtype=np.int64), of_first])
    order = np.lexsort((column, row))
    nothing = np.full(n_silent, "", dtype=object)
    columns = {
        "item": np.asarray(item_names, dtype=object)[row],
        "label": np.asarray(class_names, dtype=object)[column],
        "answer": np.concatenate([said["answer"], np.full(n_silent, NOT_ASKED, dtype=object)]),
        SOURCE: np.concatenate([said[SOURCE], nothing]),
        PERSON: np.concatenate([said[PERSON], nothing]),
        PROBABILITY: np.append(said[PROBABILITY].to_numpy().round(6), np.full(n_silent, np.nan)),
    }
    return pd.DataFrame({name: values[order] for name, values in columns.items()})


class _Imported(NamedTuple):
    """An answer that a file has."""

    pair: tuple[int, int]  # numbers of an item and a class
    person: str
    answer: str
    by_model: bool


def import_answers(
    project: Project,
    path: str | Path,
    *,
    chosen_by_model: bool = False,
    item: str | None = None,
    complementary: bool = False,
    words: Mapping[str, str] | None = None,
) -> dict[str, int]:
    r"""Take the answers of a Label Studio or Prodigy export, or of a table, into a project.

    Parameters
    ----------
    project : Project
        Must have the items and classes that the answers are about.
    path : path
        .json (Label Studio), .jsonl (Prodigy), .csv or .parquet (item, label, answer; also person
        and source).
    chosen_by_model : bool
        Whether a model chose all questions; a table may say so by answer (source). Their answers
        count in the likelihood only, except where the project has drawn the same question at
        random.
    item : str, optional
        The field that names the item.
    complementary : bool
        Whether a ticked label is one that is surely irrelevant.
    words : mapping of str to str, optional
        What the words of the file mean, such as ``{"accept": "yes", "reject": "no"}``.

    Returns
    -------
    counts : dict
        Answers that were ``taken``, and answers to questions that were ``already_answered``.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     file = project.folder / "more.csv"
    ...     _ = file.write_text("item,label,answer\nrain,sport,maybe\ngoal,sport,yes\n")
    ...     import_answers(project, file)
    {'taken': 1, 'already_answered': 1}
    """
    path = Path(path)
    reading = ReadOptions(
        label_names=project.class_names,
        item=item,
        labels_are="complementary" if complementary else None,
        words=words,
    )
    said = _read_import(project, path, reading)
    if chosen_by_model:
        said = [one._replace(by_model=True) for one in said]
    with project.writing() as connection:
        taken = _find_cards(connection, said)
        _insert_imported(connection, taken)
    return {"taken": len(taken), "already_answered": len(said) - len(taken)}


def _read_import(project: Project, path: Path, reading: ReadOptions) -> list[_Imported]:
    """Return the answers of a file, by the numbers of item and class."""
    dataset = open_dataset(path, reading)
    rows = {name: number for number, name in enumerate(project.item_names, 1)}
    unknown = [name for name in dataset.items or [] if name not in rows]
    if unknown or dataset.items is None:
        raise ComesError(
            f"{path.name} has answers to {listed(unknown, 3) or 'nameless items'}, which the "
            "project does not have. Make the project with these items, or name the field (--item)."
        )
    found = dataset.known_answers()
    said = found.annotations
    if said is None:
        row, column = (found.codes != State.NOT_ASKED).nonzero()
        said = LongAnswers(row, column, row * 0, found.codes[row, column], ("",))
    known: dict[tuple[tuple[int, int], str], _Imported] = {}
    for row, column, person, code in zip(said.row, said.label, said.person, said.code, strict=True):
        pair = rows[dataset.items[row]], int(column) + 1
        name, answer = said.people[person] or f"({path.name})", State(code).word
        before = known.get((pair, name))
        if before is not None and before.answer != answer:
            answer = MAYBE  # they were not sure
        by_model = found.chosen is not None and bool(found.chosen[row, column])
        known[pair, name] = _Imported(pair, name, answer, by_model)
    return list(known.values())


def _find_cards(connection: Connection, said: Sequence[_Imported]) -> dict[int, _Imported]:
    """Return the answers to questions that nobody has answered, by the numbers of their cards.

    A question without a card gets one, and answers of further people get cards of their own.
    """
    columns = [cards.c[name] for name in ("item_id", "class_id", "turn", "is_done", "annotator")]
    known = {
        (row.item_id, row.class_id, row.turn): row for row in connection.execute(select(*columns))
    }
    answered = {((i, c), row.annotator) for (i, c, _), row in known.items() if row.is_done}
    places: dict[Place, _Imported] = {}
    for one in said:
        first = known.get((*one.pair, 0))
        if (first is not None and first.is_done) or (one.pair, one.person) in answered:
            continue
        turns = ((*one.pair, turn) for turn in count())
        free = (t for t in turns if t not in places and not (t in known and known[t].is_done))
        places[next(free)] = one
    new, number_of_round = [p for p in places if p not in known], next_round(connection)
    for source, is_it in ((MODEL, True), (IMPORTED, False)):
        own = [place for place in new if places[place].by_model is is_it]
        append_cards(connection, own, source, [{"round": number_of_round}] * len(own))
    numbers = connection.execute(select(cards.c.id, *columns[:3])).all()
    return {number: places[place] for number, *key in numbers if (place := tuple(key)) in places}


def _insert_imported(connection: Connection, taken: Mapping[int, _Imported]) -> None:
    """Insert answers by card, and mark the cards as done."""
    now = time.time()
    rows = (
        {
            "card_id": number,
            "annotator": one.person,
            "tab": "import",
            "key": f"import-{number}-{now:.6f}",
            "answer": one.answer,
            "answered_at": now,
        }
        for number, one in taken.items()
    )
    insert_rows(connection, answers, rows)
    stands = answers.c.card_id == cards.c.id, answers.c.undone_at.is_(None)
    inserted = select(answers.c.card_id).where(
        answers.c.tab == "import", answers.c.answered_at == now
    )
    done = update(cards).where(cards.c.id.in_(inserted), ~cards.c.is_done)
    person = select(answers.c.annotator).where(*stands).scalar_subquery()
    connection.execute(done.values(is_done=True, annotator=person))


def export_raw_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write every answer as it was given to a table; return how many answers and people."""
    table = read_raw_answers(project)
    if table.empty:
        raise ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")
    write_table(table, path)
    return {"answers": len(table), "people": int(table[PERSON].nunique())}


def read_raw_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that stands, in the order in which they came.

    Its columns are number, item, label, answer (no, yes, maybe or skip), person, at (a time in UTC,
    ISO 8601), seconds, source, round and probability of the question, hint (probability that the
    card showed), decision (whether the lead decided) and comment (what people wrote about the card,
    in one line each). Answers to control cards, and of people who are left out, are not among them.
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
        HINT: answers.c.hint,
        "decision": answers.c.tab,
        "comment": cards.c.id,
    }
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(_stands())
        .order_by(answers.c.id)
    )
    with project.reading() as connection:
        table = pd.DataFrame(fetch_all(connection, query), columns=list(columns))
        written, first = _read_notes(connection), _read_first_rates(connection)
    names = dict(enumerate(project.class_names, 1))
    chance = table["label"].map({names[number]: rate for number, rate in first.items()})
    is_first = (table["round"] == 0) & (table[SOURCE] == RANDOM)
    at = [datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds") for at in table["at"]]
    return table.assign(
        at=at,
        seconds=table["seconds"].astype(float),
        hint=table[HINT].astype(float),
        probability=table[PROBABILITY].astype(float).mask(is_first, chance.astype(float)).round(6),
        decision=np.where(table["decision"] == LEADS_TAB, "lead", ""),
        comment=[written.get(card, "") for card in table["comment"]],
    )


def _read_notes(connection: Connection) -> dict[int, str]:
    """Return what was written about each card; "(flagged)" where there are no words."""
    query = select(notes.c.card_id, notes.c.annotator, notes.c.text).order_by(notes.c.id)
    written: dict[int, list[str]] = {}
    for card, person, text in connection.execute(query):
        written.setdefault(card, []).append(f"{person}: {text or '(flagged)'}")
    return {card: "\n".join(lines) for card, lines in written.items()}
