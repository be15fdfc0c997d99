"""Answers of other tools, or of other projects, into a project."""

import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from comes.annotate.adding import Pair, Place, append_cards, next_round
from comes.annotate.project import Project
from comes.annotate.schema import IMPORTED, answers, cards, insert_rows
from comes.answers import LongAnswers, State
from comes.datasets import ReadOptions, open_dataset
from comes.datasets.labels import MAYBE
from comes.datasets.long import MODEL
from comes.errors import ComesError, listed


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
