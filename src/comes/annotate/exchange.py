"""Answers out of a project, for training."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, update

from comes.annotate.cards import Pair, Place, append_cards, next_round
from comes.annotate.project import Project
from comes.annotate.schema import (
    CONTROL,
    IMPORTED,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    classes,
    insert_rows,
    items,
    notes,
    people,
)
from comes.answers import LongAnswers, State
from comes.datasets import Dataset, ReadOptions, combine_answers, open_dataset, write_dataset
from comes.datasets.labels import MAYBE, NO, NOT_ASKED
from comes.datasets.long import BY_MODEL, MODEL, PERSON, SOURCE
from comes.datasets.table import is_table_name, write_table
from comes.errors import ComesError, listed

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


class _Said(NamedTuple):
    """An answer that a file has."""

    pair: Pair
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


def _read_import(project: Project, path: Path, reading: ReadOptions) -> list[_Said]:
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
    heard: dict[tuple[Pair, str], _Said] = {}
    for row, column, person, code in zip(said.row, said.label, said.person, said.code, strict=True):
        pair = rows[dataset.items[row]], int(column) + 1
        name, answer = said.people[person] or f"({path.name})", State(code).word
        before = heard.get((pair, name))
        if before is not None and before.answer != answer:
            answer = MAYBE  # they were not sure
        by_model = found.chosen is not None and bool(found.chosen[row, column])
        heard[pair, name] = _Said(pair, name, answer, by_model)
    return list(heard.values())


def _find_cards(connection: Connection, said: Sequence[_Said]) -> dict[int, _Said]:
    """Return the answers to questions that nobody has answered, by the numbers of their cards.

    A question without a card gets one, and what further people said gets cards of its own.
    """
    columns = [cards.c[name] for name in ("item_id", "class_id", "turn", "is_done", "annotator")]
    known = {
        (row.item_id, row.class_id, row.turn): row for row in connection.execute(select(*columns))
    }
    heard = {((i, c), row.annotator) for (i, c, _), row in known.items() if row.is_done}
    places: dict[Place, _Said] = {}
    for one in said:
        first = known.get((*one.pair, 0))
        if (first is not None and first.is_done) or (one.pair, one.person) in heard:
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


def _insert_imported(connection: Connection, taken: Mapping[int, _Said]) -> None:
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
