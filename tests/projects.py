"""Small annotation projects, and people who answer their cards without a browser."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import select

from comes.annotate import Project, create_project, open_project
from comes.annotate.cards import (
    Answer,
    Asker,
    RefusedError,
    SentAnswer,
    lease_cards,
    release_cards,
    store_answers,
    undo_answers,
)
from comes.annotate.schema import answers, cards
from comes.annotate.web.annotate import ProgressCounter
from comes.answers import State
from comes.datasets import Dataset

LEASE = 100.0
CLASSES = ("sky", "sea")
Card = dict[str, Any]
Pair = tuple[str, str]  # names of an item and a class
_numbers = count()


class Projects:
    """Makes projects of short texts in a folder, and closes them.

    They are on SQLite, or on databases whose addresses ``new_database`` returns.
    """

    def __init__(self, folder: Path, new_database: Callable[[], str] | None = None) -> None:
        self.folder, self._new_database = folder, new_database
        self._made: list[Project] = []

    def make(
        self,
        items: int | Sequence[str] = 6,
        classes: Sequence[str] = CLASSES,
        *,
        name: str = "project",
        **options: Any,
    ) -> Project:
        """Make a project that asks everything, unless told otherwise."""
        named = [f"t{k}" for k in range(items)] if isinstance(items, int) else list(items)
        sources = _write_sources(tuple(named), tuple(classes))
        options = {"rate": 1.0, **options}
        folder = self.folder / name
        if self._new_database is None:  # a copy takes a fifth of the time of a new project
            shutil.copytree(_make_template(sources, tuple(options.items())), folder)
            return self.keep(open_project(folder))
        options["database"] = self._new_database()
        return self.keep(create_project(folder, *sources, **options))

    def keep(self, project: Project) -> Project:
        """Close another project, too, at the end."""
        self._made.append(project)
        return project

    def close(self) -> None:
        for project in self._made:
            project.engine.dispose()


@cache
def _write_sources(items: tuple[str, ...], classes: tuple[str, ...]) -> tuple[Path, Path]:
    """Write the files of items and classes, once for all projects that have the same."""
    folder = Path(tempfile.mkdtemp(prefix="comes-project-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    table = pd.DataFrame({"item": items, "text": [f"text of {item}" for item in items]})
    table.to_parquet(folder / "items.parquet")
    pd.DataFrame({"class": classes}).to_parquet(folder / "classes.parquet")
    return folder / "items.parquet", folder / "classes.parquet"


@cache
def _make_template(sources: tuple[Path, Path], options: tuple[tuple[str, Any], ...]) -> Path:
    """Make a project on SQLite, once for all that are the same; return its folder."""
    folder = Path(tempfile.mkdtemp(dir=sources[0].parent))
    project = create_project(folder / "project", *sources, **dict(options))
    project.engine.dispose()
    return project.folder


@dataclass(frozen=True)
class Desk:
    """A person at a tab of a browser."""

    project: Project
    annotator: str = "Ann"
    tab: str = "tab-of-ann"

    @property
    def asker(self) -> Asker:
        return Asker(self.annotator, self.tab)

    def ask(self, now: float = 0.0, **options: Any) -> list[Card]:
        with self.project.writing() as connection:
            return lease_cards(connection, self.asker, now=now, lease=LEASE, **options)

    def answer(
        self, card: int, answer: Answer = "no", now: float = 0.0, seconds: float | None = None
    ) -> str:
        """Answer a card; return the key that undoes it."""
        given = new_answer(card, answer, seconds)
        self.send(given, now=now)
        return given.key

    def send(self, *given: SentAnswer, now: float = 0.0) -> None:
        with self.project.writing() as connection:
            store_answers(connection, self.asker, given, now=now, lease=LEASE)

    def undo(self, *keys: str, now: float = 0.0) -> list[Card]:
        with self.project.writing() as connection:
            return undo_answers(connection, self.asker, keys, now=now, lease=LEASE)

    def release(self, *keep: int) -> int:
        with self.project.writing() as connection:
            return release_cards(connection, self.asker, keep)

    def progress(self) -> dict[str, Any]:
        return ProgressCounter(self.project).read(self.annotator)

    def answer_all(self, say: Callable[[Card], Answer] = lambda _: "no", now: float = 0.0) -> int:
        """Answer all cards there are; return how many."""
        done = 0
        while asked := self.ask(now):
            self.send(*(new_answer(card["card"], say(card)) for card in asked), now=now)
            done += len(asked)
        return done


def new_answer(card: int, answer: Answer, seconds: float | None = None) -> SentAnswer:
    """Return an answer with a new key."""
    return SentAnswer(card, answer, f"key-{next(_numbers):06}", seconds)


def refusal(command: Callable[[], Any]) -> RefusedError:
    """Return why a command is refused."""
    try:
        command()
    except RefusedError as refused:
        return refused
    raise AssertionError("nothing was refused")


def stored(project: Project) -> list[Any]:
    """Return all rows of answers, undone ones too."""
    with project.reading() as connection:
        return list(connection.execute(select(answers).order_by(answers.c.id)).all())


def all_cards(project: Project) -> list[Any]:
    with project.reading() as connection:
        return list(connection.execute(select(cards).order_by(cards.c.position)).all())


def states(dataset: Dataset) -> dict[Pair, str]:
    """Return what is known of each pair that was asked."""
    codes, items = dataset.known_answers().codes, dataset.items
    assert items is not None
    return {
        (items[row], dataset.label_names[column]): State(codes[row, column]).word
        for row, column in zip(*codes.nonzero(), strict=True)
    }


def by_person(dataset: Dataset) -> dict[tuple[str, Pair], str]:
    """Return what each person said, where that is kept."""
    said, items = dataset.known_answers().annotations, dataset.items
    assert said is not None and items is not None
    return {
        (said.people[person], (items[row], dataset.label_names[label])): State(code).word
        for row, label, person, code in zip(
            said.row, said.label, said.person, said.code, strict=True
        )
    }


def chosen_pairs(dataset: Dataset) -> set[Pair]:
    """Return the pairs that a model asked about."""
    chosen, items = dataset.known_answers().chosen, dataset.items
    assert chosen is not None and items is not None
    return {(items[row], dataset.label_names[j]) for row, j in zip(*chosen.nonzero(), strict=True)}


def say(project: Project, said: dict[Pair, Answer], annotator: str = "Ann") -> None:
    """Answer the cards of some pairs, and leave the others."""
    left, number = dict(said), 0
    while left:
        desk, number = Desk(project, annotator, f"{annotator}-{number}"), number + 1
        asked = desk.ask()
        assert asked, f"nobody asks {left}"
        wanted = [card for card in asked if (card["name"], card["class"]) in left]
        given = [
            new_answer(card["card"], left.pop((card["name"], card["class"]))) for card in wanted
        ]
        if given:
            desk.send(*given)


def pair_of(project: Project, card: Any) -> Pair:
    return project.item_names[card.item_id - 1], project.class_names[card.class_id - 1]
