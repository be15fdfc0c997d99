"""Answers out of a project, for training, and into it from other tools."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sqlalchemy import Connection, func, select, update

from comes.annotate.cards import Place, append_cards, next_round
from comes.annotate.project import Project
from comes.annotate.schema import (
    CONTROL,
    IMPORT_TAB,
    IMPORTED,
    LEADS_TAB,
    RANDOM,
    answers,
    cards,
    fetch_all,
    insert_columns,
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
PAIR = ["item_id", "class_id"]
CODES = {state.word: int(state) for state in State}


def collect_answers(project: Project) -> Dataset:
    """Return all answers of a project, with the items that they are about.

    Where two people disagree and the lead has not decided, the pair counts as "maybe".

    Parameters
    ----------
    project : Project
        Must have an answer.

    Returns
    -------
    dataset : Dataset
        Its features are the images, or a table with the one column "text". Every item of the
        project is a row and every class a label, asked or not. Its answers know which questions a
        model chose, or showed what it thinks, and, if several people answered, who said what. If
        all say "no", they are candidates, without the questions of a model.

    Examples
    --------
    >>> dataset = collect_answers(project)
    >>> dataset.items[0], dataset.X["text"][0]
    ('rain', 'It rains.')
    >>> dataset.candidates  # the first text is surely not about sport
    array([[False,  True],
           [ True,  True]])
    """
    dataset = _combine(project, _require_some(project, read_answers(project)))
    if project.images is not None:
        return replace(dataset, X=project.images)
    with project.reading() as connection:
        texts = connection.execute(select(items.c.text).order_by(items.c.id)).scalars().all()
    return replace(dataset, X=pd.DataFrame({TEXT: texts}))


def export_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write the answers of a project; return how many there are of which kind.

    Parameters
    ----------
    project : Project
    path : path
        .csv, .parquet, .xlsx: a row per answer, with the columns item, label, answer, source (who
        chose the question: random, active, import or model; hint where the card showed what a model
        thinks), person (who answered) and probability (with which the question was drawn).
        .npz or .jsonl: the answers as `collect_answers` returns them, without features.

    Returns
    -------
    counts : dict
        Under items, classes, answers, people, asked (pairs with an answer), surely_not (pairs about
        which all say no) and chosen_by_model (answers).

    Examples
    --------
    >>> counts = export_answers(project, project.folder / "answers.csv")
    >>> print((project.folder / "answers.csv").read_text())
    item,label,answer,source,person,probability
    rain,sport,no,random,(answers.csv),1.0
    rain,weather,not asked,,,
    goal,sport,not asked,,,
    <BLANKLINE>
    >>> counts["asked"], counts["surely_not"]
    (1, 1)
    """
    said = _require_some(project, read_answers(project))
    if is_table_name(path):
        write_table(_list_answers(project, said), path)
    else:
        write_dataset(_combine(project, said), path)
    n_asked = len(said.drop_duplicates(PAIR))
    n_doubted = len(said[said["answer"] != NO].drop_duplicates(PAIR))
    return {
        "items": len(project.item_names),
        "classes": len(project.class_names),
        "answers": len(said),
        "people": said[PERSON].nunique(),
        "asked": n_asked,
        "surely_not": n_asked - n_doubted,
        "chosen_by_model": int(said[SOURCE].isin(BY_MODEL).sum()),
    }


def _require_some(project: Project, said: pd.DataFrame) -> pd.DataFrame:
    if said.empty:
        raise ComesError(f"{project.name} has no answers yet. Collect some: comes annotate serve.")
    return said


def read_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that counts: item_id, class_id, answer, source, person, probability.

    Answers of people who are left out do not count, nor do those to control cards. Where the lead
    has decided about a pair, no other answer about it counts. Where a card has shown what a model
    thinks, the source of all answers about its pair is "hint".
    """
    with project.reading() as connection:
        said = _read_standing(connection, turn=cards.c.turn)
    said = said[said["answer"] != "skip"]
    # Sorted here: a database would look the answers up one by one, in the order of the cards.
    said = said.iloc[np.lexsort([said[name] for name in ("turn", *PAIR[::-1])])]
    said[SOURCE] = said[SOURCE].mask(_share_pair(said, said[HINT].notna()), HINT)
    is_decided = said["tab"] == LEADS_TAB
    said = said[is_decided | ~_share_pair(said, is_decided)].reset_index(drop=True)
    return said.drop(columns=["turn", "tab", "round", HINT])


def _share_pair(said: pd.DataFrame, rows: "pd.Series[bool]") -> "pd.Series[bool]":
    """Return which answers are about the pair of one of some rows."""
    if not rows.any():
        return rows
    return rows.groupby([said[name] for name in PAIR]).transform("any")


def _read_standing(connection: Connection, **more: Any) -> pd.DataFrame:
    """Return a row per answer that stands, not to a control card, of people who are not left out.

    It has the probability with which its question was drawn, and more columns if they are named.
    """
    columns = {
        "item_id": cards.c.item_id,
        "class_id": cards.c.class_id,
        "answer": answers.c.answer,
        SOURCE: cards.c.source,
        PERSON: answers.c.annotator,
        "tab": answers.c.tab,
        "round": cards.c.round,
        PROBABILITY: cards.c.probability,
        HINT: answers.c.hint,
        **more,
    }
    left_out = select(people.c.name).where(people.c.left_out_at.is_not(None))
    query = (
        select(*columns.values())
        .join(cards, cards.c.id == answers.c.card_id)
        .where(
            answers.c.undone_at.is_(None),
            cards.c.source != CONTROL,
            answers.c.annotator.not_in(left_out),
        )
    )
    said = pd.DataFrame(fetch_all(connection, query), columns=list(columns))
    # The first cards of a class were drawn among all items.
    n_items = connection.execute(select(func.max(items.c.id))).scalar_one() or 1
    is_first = cards.c.source == RANDOM, cards.c.round.is_(None), cards.c.turn == 0
    drawn = select(cards.c.class_id, func.count()).where(*is_first).group_by(cards.c.class_id)
    rates = {number: count / n_items for number, count in connection.execute(drawn)}
    chance = said["class_id"].map(rates).astype(float)
    of_first = said["round"].isna() & (said[SOURCE] == RANDOM)
    said[PROBABILITY] = said[PROBABILITY].astype(float).mask(of_first, chance)
    return said


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
    n_items, n_classes = len(project.item_names), len(project.class_names)
    silent = np.setdiff1d(np.arange(2, n_items + 1), said["item_id"])
    of_first = np.setdiff1d(np.arange(1, n_classes + 1), said["class_id"][said["item_id"] == 1])
    pairs = {
        "item_id": np.append(silent, np.ones_like(of_first)),
        "class_id": np.append(np.ones_like(silent), of_first),
    }
    nothing = {"answer": NOT_ASKED, SOURCE: "", PERSON: "", PROBABILITY: np.nan}
    rows = pd.concat([said, pd.DataFrame({**pairs, **nothing})], ignore_index=True)
    rows = rows.sort_values(PAIR, kind="stable", ignore_index=True).round({PROBABILITY: 6})
    return pd.DataFrame({**_name_pairs(project, rows), **rows.drop(columns=PAIR)})


def _name_pairs(project: Project, said: pd.DataFrame) -> dict[str, Any]:
    """Return the names of the items and classes of answers."""
    names = np.asarray(project.item_names, dtype=object)
    labels = np.asarray(project.class_names, dtype=object)
    row, column = (said[name].to_numpy(np.int64) - 1 for name in PAIR)
    return {"item": names[row], "label": labels[column]}


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
    >>> file = project.folder / "more.csv"
    >>> _ = file.write_text("item,label,answer\nrain,sport,maybe\ngoal,sport,yes\n")
    >>> import_answers(project, file)
    {'taken': 1, 'already_answered': 1}
    """
    path = Path(path)
    reading = ReadOptions(
        label_names=project.class_names,
        item=item,
        labels_are="complementary" if complementary else None,
        words=words,
    )
    said = _read_import(project, path, reading, chosen_by_model)
    now = time.time()
    with project.writing() as connection:
        taken = _find_cards(connection, said)
        rows = {
            "card_id": taken,
            "annotator": [one.person for one in taken.values()],
            "tab": repeat(IMPORT_TAB),
            "key": [f"import-{number}-{now:.6f}" for number in taken],
            "answer": [one.answer for one in taken.values()],
            "answered_at": repeat(now),
        }
        insert_columns(connection, answers, rows)
        new = answers.c.tab == IMPORT_TAB, answers.c.answered_at == now
        is_own = answers.c.card_id == cards.c.id
        done = {"is_done": True, "annotator": answers.c.annotator}
        connection.execute(update(cards).where(*new, is_own).values(done))
    return {"taken": len(taken), "already_answered": len(said) - len(taken)}


def _read_import(
    project: Project, path: Path, reading: ReadOptions, chosen_by_model: bool
) -> list[_Imported]:
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
        is_chosen = found.chosen is not None and bool(found.chosen[row, column])
        known[pair, name] = _Imported(pair, name, answer, chosen_by_model or is_chosen)
    return list(known.values())


def _find_cards(connection: Connection, said: Sequence[_Imported]) -> dict[int, _Imported]:
    """Return the answers to questions that nobody has answered, by the numbers of their cards.

    A question without a card gets one, and answers of further people get cards of their own.
    """
    place = [cards.c[name] for name in (*PAIR, "turn")]
    known = {
        (row.item_id, row.class_id, row.turn): row
        for row in connection.execute(select(*place, cards.c.is_done, cards.c.annotator))
    }
    done = {at: row.annotator for at, row in known.items() if row.is_done}
    answered = {(at[:2], person) for at, person in done.items()}
    taken: dict[Place, _Imported] = {}
    for one in said:
        at = (*one.pair, 0)
        if at in done or (one.pair, one.person) in answered:
            continue
        while at in done or at in taken:
            at = (*one.pair, at[2] + 1)
        taken[at] = one
    new, number_of_round = [at for at in taken if at not in known], next_round(connection)
    for source, is_it in ((MODEL, True), (IMPORTED, False)):
        own = [at for at in new if taken[at].by_model is is_it]
        append_cards(connection, own, source, {"round": repeat(number_of_round)})
    numbers = connection.execute(select(cards.c.id, *place))
    return {number: taken[at] for number, *key in numbers if (at := tuple(key)) in taken}


def export_raw_answers(project: Project, path: str | Path) -> dict[str, int]:
    """Write every answer as it was given to a table; return how many answers and people."""
    table = _require_some(project, read_raw_answers(project))
    write_table(table, path)
    return {"answers": len(table), "people": int(table[PERSON].nunique())}


def read_raw_answers(project: Project) -> pd.DataFrame:
    """Return a row per answer that stands, in the order in which they came.

    Its columns are number, item, label, answer (no, yes, maybe or skip), person, at (a time in UTC,
    ISO 8601), seconds, source, round and probability of the question, hint (probability that the
    card showed), decision (whether the lead decided) and comment (what people wrote about the card,
    in one line each). Answers to control cards, and of people who are left out, are not among them.
    """
    more = {"number": answers.c.id, "card": cards.c.id}
    more |= {"at": answers.c.answered_at, "seconds": answers.c.seconds}
    written: dict[int, list[str]] = {}
    with project.reading() as connection:
        table = _read_standing(connection, **more).sort_values("number", ignore_index=True)
        query = select(notes.c.card_id, notes.c.annotator, notes.c.text).order_by(notes.c.id)
        for card, person, text in connection.execute(query):
            written.setdefault(card, []).append(f"{person}: {text or '(flagged)'}")
    columns = {
        "number": table["number"],
        **_name_pairs(project, table),
        "answer": table["answer"],
        PERSON: table[PERSON],
        "at": [
            datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds") for at in table["at"]
        ],
        "seconds": table["seconds"].astype(float),
        SOURCE: table[SOURCE],
        "round": table["round"].astype(float).fillna(0).astype(int),
        PROBABILITY: table[PROBABILITY].round(6),
        HINT: table[HINT].astype(float),
        "decision": np.where(table["tab"] == LEADS_TAB, "lead", ""),
        "comment": ["\n".join(written.get(card, ())) for card in table["card"]],
    }
    return pd.DataFrame(columns)
