"""A project: a folder that says where its items and its database are, and the cards in there."""

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Engine, func, insert, inspect, select, update
from sqlalchemy.exc import SQLAlchemyError

from comes.annotate.sampling import By, Cards, sample_cards, sample_more
from comes.annotate.tables import (
    WRITES,
    answers,
    cards,
    classes,
    explain,
    items,
    metadata,
    open_engine,
    settings,
)
from comes.datasets import Images
from comes.datasets.answers import MODEL, as_text
from comes.datasets.images import image_names, open_images
from comes.datasets.tables import read_table
from comes.errors import ComesError, listed
from comes.files import expanded, replacing_folder
from comes.labels import check_names

DESCRIPTION = "project.json"
DATABASE = "answers.db"
NAME_COLUMNS = ("item", "id", "image", "file", "filename", "path")
CLASS_COLUMNS = ("class", "label", "name")
AT_ONCE = 50_000  # rows that are inserted together


@dataclass(frozen=True)
class Project:
    """An open project.

    Attributes
    ----------
    folder : Path
    engine : sqlalchemy Engine
    kind : str
        "image" or "text".
    source : Path, optional
        The folder or .zip of the images.
    """

    folder: Path
    engine: Engine
    kind: str
    source: Path | None

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.folder.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection for queries; one moment in time for all of them."""
        moment = {"isolation_level": "REPEATABLE READ"}  # of SQLite, every transaction is
        options = moment if self.engine.dialect.name == "postgresql" else {}
        try:
            with self.engine.execution_options(**options).connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise explain(error, self.name) from None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection for changes, all of which are stored when the block ends well."""
        try:
            with self.engine.execution_options(**WRITES).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise explain(error, self.name) from None

    @cached_property
    def item_names(self) -> list[str]:
        """Names of the items, by number less one."""
        return self._column(items.c.name, items.c.id)

    @cached_property
    def class_names(self) -> list[str]:
        """Names of the classes, by number less one."""
        return self._column(classes.c.name, classes.c.id)

    @cached_property
    def images(self) -> Images | None:
        """The pictures, if the items are pictures."""
        return None if self.source is None else Images(self.source, self.item_names)

    def _column(self, wanted: Any, order: Any) -> list[str]:
        with self.reading() as connection:
            return list(connection.execute(select(wanted).order_by(order)).scalars())

    @cached_property
    def identity(self) -> str:
        """What tells it from other projects, also of the same name."""
        return self.setting("identity") or ""

    def count_cards(self) -> int:
        """Return how many cards there are."""
        with self.reading() as connection:
            return connection.execute(select(func.count()).select_from(cards)).scalar_one()

    def setting(self, name: str) -> str | None:
        """Return what is kept under a name."""
        with self.reading() as connection:
            query = select(settings.c.value).where(settings.c.name == name)
            return connection.execute(query).scalar_one_or_none()

    def set(self, name: str, value: str) -> None:
        """Keep a value under a name."""
        with self.writing() as connection:
            connection.execute(settings.delete().where(settings.c.name == name))
            connection.execute(insert(settings).values(name=name, value=value))


def create_project(
    folder: str | Path,
    item_source: str | Path,
    class_source: str | Path,
    *,
    rate: float = 0.1,
    seed: int = 0,
    overlap: float = 0.0,
    by: By = "class",
    images: str | Path | None = None,
    database: str | None = None,
) -> Project:
    r"""Draw the cards of a new project and put them into its database.

    Parameters
    ----------
    folder : path
        Must not exist, or be empty.
    item_source : path
        A folder or .zip of images, or a .csv or .parquet file with a column ``text``, or one of
        names of images (``item``, ``image``, ``file`` ...), which lie in ``images``.
    class_source : path
        A .txt file with a class per line, or a .csv or .parquet file with a column ``class`` (or
        ``label``, ``name``) and, if you like, ``description``.
    rate, seed, overlap, by
        As in `comes.annotate.sample_cards`.
    images : path, optional
    database : str, optional
        Address of a PostgreSQL database for a team; by default a file of SQLite in the folder.

    Returns
    -------
    project : Project

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "texts.csv").write_text("item,text\na,rain\nb,goal\n")
    >>> _ = (home / "classes.txt").write_text("sport\nweather\n")
    >>> project = create_project(home / "news", home / "texts.csv", home / "classes.txt", rate=1)
    >>> project.kind, project.item_names, project.class_names
    ('text', ['a', 'b'], ['sport', 'weather'])
    """
    names, texts, source = _read_items(expanded(item_source), images)
    named = _read_classes(expanded(class_source))
    _check_characters([*names, *(texts or ()), *(text for pair in named for text in pair)])
    drawn = sample_cards(len(names), len(named), rate, seed=seed, overlap=overlap, by=by)
    kind = "image" if source else "text"
    description = {"kind": kind, "images": None if source is None else str(source.resolve())}
    home = expanded(folder)
    with replacing_folder(home, ()) as temporary:
        address = database or f"sqlite:///{DATABASE}"
        engine = open_engine(address, temporary)
        described = json.dumps(description | {"database": address}, indent=1) + "\n"
        (temporary / DESCRIPTION).write_text(described, encoding="utf-8")
        os.chmod(temporary / DESCRIPTION, 0o600)  # an address may hold a password
        try:
            with engine.execution_options(**WRITES).begin() as connection:
                if inspect(connection).has_table(cards.name):
                    raise ComesError(
                        "the database holds a project already. Give each project a database of its "
                        "own, or serve the folder of that project."
                    )
                metadata.create_all(connection)
                _fill(connection, names, texts, named, drawn)
                made: dict[str, Any] = {"rate": rate, "seed": seed, "overlap": overlap, "by": by}
                made |= {"identity": secrets.token_hex(8)}
                rows = [{"name": key, "value": str(value)} for key, value in made.items()]
                connection.execute(insert(settings), rows)
        except SQLAlchemyError as error:
            raise explain(error, home.name) from None
        finally:
            engine.dispose()
    return open_project(home)


def open_project(folder: str | Path) -> Project:
    """Open the project in a folder."""
    home = expanded(folder).resolve()
    try:
        described = json.loads((home / DESCRIPTION).read_text(encoding="utf-8"))
        kind, source, address = (described[key] for key in ("kind", "images", "database"))
    except (OSError, ValueError, KeyError, TypeError):
        raise ComesError(
            f"{folder} is no folder of a project: it has no {DESCRIPTION} that can be read. Make "
            "one: comes annotate init."
        ) from None
    if address == f"sqlite:///{DATABASE}" and not (home / DATABASE).exists():
        raise ComesError(f"{folder} has no {DATABASE}, which holds its answers. Put it back.")
    project = Project(
        home, open_engine(address, home), kind, None if source is None else Path(source)
    )
    with project.reading() as connection:
        connection.execute(select(func.count()).select_from(settings))
    return project


def add_random_cards(project: Project, wanted: Sequence[str], rate: float, seed: int) -> int:
    """Ask about further items of some classes, drawn among those not drawn yet; return how many.

    A card that a model chose before, and that is drawn now, counts as drawn.
    """
    numbers = _class_numbers(project, list(dict.fromkeys(wanted)))
    with project.writing() as connection:
        n_drawn, new = 0, []
        for number in numbers:
            own = select(cards.c.item_id, cards.c.source).where(cards.c.class_id == number)
            source_of = {row.item_id: row.source for row in connection.execute(own)}
            drawn = np.zeros(len(project.item_names), dtype=bool)
            drawn[[item - 1 for item, source in source_of.items() if source != MODEL]] = True
            more = [row + 1 for row in sample_more(drawn, rate, seed + number)]
            is_chosen = cards.c.item_id.in_([item for item in more if item in source_of])
            connection.execute(
                update(cards).where(cards.c.class_id == number, is_chosen).values(source="random")
            )
            new += [(item, number) for item in more if item not in source_of]
            n_drawn += len(more)
        append_cards(connection, new, "random")
    return n_drawn


def add_chosen_cards(project: Project, pairs: pd.DataFrame) -> int:
    """Ask about pairs that a model chose (columns item and label); return how many are new.

    Their answers are kept out of the risk, which needs pairs that were drawn at random.
    """
    rows = {name: number for number, name in enumerate(project.item_names, 1)}
    for column in ("item", "label"):
        if column not in pairs:
            raise ComesError(f"cards need the columns item and label; {column} is missing.")
    names = pairs["item"].astype(str)
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise ComesError(f"the project has no item {listed(unknown, 3)}. Correct the names.")
    numbers = _class_numbers(project, list(pairs["label"].astype(str)))
    chosen = list(dict.fromkeys(zip((rows[name] for name in names), numbers, strict=True)))
    with project.writing() as connection:
        rows_there = connection.execute(select(cards.c.item_id, cards.c.class_id))
        known = {(row.item_id, row.class_id) for row in rows_there}
        return append_cards(connection, [pair for pair in chosen if pair not in known], MODEL)


def reopen_skipped_cards(project: Project) -> int:
    """Ask again what people skipped; return how many cards that are."""
    skips = answers.c.answer == "skip", answers.c.undone_at.is_(None)
    free = {"is_done": False, "tab": None, "annotator": None, "leased_until": None}
    with project.writing() as connection:
        skipped = cards.c.id.in_(select(answers.c.card_id).where(*skips))
        connection.execute(update(cards).where(skipped).values(**free))
        taken_back = update(answers).where(*skips).values(undone_at=time.time())
        return connection.execute(taken_back).rowcount


def append_cards(connection: Connection, pairs: Sequence[tuple[int, int]], source: str) -> int:
    """Add cards behind all others, and return how many."""
    last = connection.execute(select(func.max(cards.c.position))).scalar_one() or 0
    rows = (
        {"item_id": item, "class_id": class_, "turn": 0, "source": source, "position": last + k}
        for k, (item, class_) in enumerate(pairs, 1)
    )
    insert_rows(connection, cards, rows)
    return len(pairs)


def _class_numbers(project: Project, wanted: Sequence[str]) -> list[int]:
    known = {name: number for number, name in enumerate(project.class_names, 1)}
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        raise ComesError(
            f"the project has no class {listed(unknown, 3)}; it has {listed(project.class_names)}."
        )
    return [known[name] for name in wanted]


def _fill(
    connection: Connection,
    names: list[str],
    texts: list[str] | None,
    named: list[tuple[str, str]],
    drawn: Cards,
) -> None:
    """Insert items, classes and cards; they are numbered from 1."""
    insert_rows(
        connection,
        items,
        (
            {"id": k, "name": name, "text": None if texts is None else texts[k - 1]}
            for k, name in enumerate(names, 1)
        ),
    )
    rows = enumerate(named, 1)
    insert_rows(connection, classes, ({"id": k, "name": n, "description": d} for k, (n, d) in rows))
    columns = (column.tolist() for column in drawn)
    insert_rows(
        connection,
        cards,
        (
            {
                "item_id": item + 1,
                "class_id": class_ + 1,
                "turn": turn,
                "source": "random",
                "position": k,
            }
            for k, (item, class_, turn) in enumerate(zip(*columns, strict=True))
        ),
    )


def insert_rows(connection: Connection, table: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows, many at a time."""
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            connection.execute(insert(table), waiting)
            waiting = []
    if waiting:
        connection.execute(insert(table), waiting)


def _read_items(
    source: Path, images: str | Path | None
) -> tuple[list[str], list[str] | None, Path | None]:
    """Return names, texts if they are texts, and where the pictures are if they are pictures."""
    if not source.exists():
        raise ComesError(f"{source} does not exist. Correct the path of the items.")
    if source.is_dir() or source.suffix.lower() == ".zip":
        return image_names(source), None, source
    table = _read_table(source, "items")
    named = next((column for column in NAME_COLUMNS if column in table), None)
    if images is None and "text" in table:
        texts = list(table["text"])
        names = [str(k) for k in range(1, len(texts) + 1)] if named is None else list(table[named])
        return _unique(names, source), texts, None
    if images is None or named is None:
        raise ComesError(
            f"{source.name} has neither a column text nor names of images (in a column "
            f"{', '.join(NAME_COLUMNS)}) with --images DIR; it has {listed([*map(str, table)])}."
        )
    place = expanded(images)
    found, _ = open_images(place, _unique(list(table[named]), source))
    return list(found.names), None, place


def _read_classes(source: Path) -> list[tuple[str, str]]:
    """Return names and descriptions."""
    if source.suffix.lower() in (".csv", ".parquet"):
        table = _read_table(source, "classes")
        column = next((name for name in CLASS_COLUMNS if name in table), None)
        if column is None:
            raise ComesError(
                f"{source.name} has no column {' or '.join(CLASS_COLUMNS)}; it has "
                f"{listed([*map(str, table)])}."
            )
        described = table["description"] if "description" in table else [""] * len(table)
        named = list(zip(table[column], described, strict=True))
    else:
        try:
            text = source.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ComesError(f"{source} cannot be read: {error}.") from None
        named = [(line.strip(), "") for line in text.splitlines() if line.strip()]
    if not named:
        raise ComesError(f"{source.name} has no class; a name in every line was wanted.")
    check_names([name for name, _ in named])
    return named


def _read_table(path: Path, what: str) -> pd.DataFrame:
    """Return a table of texts."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ComesError(
            f"{path} is nothing that {what} come in; a .csv or .parquet file was wanted"
            f"{', or a folder or .zip of images' if what == 'items' else ', or .txt'}."
        )
    columns = [*NAME_COLUMNS, *CLASS_COLUMNS, "text", "description"]
    table = read_table(path, columns)
    kept = [column for column in dict.fromkeys(columns) if column in table]
    return table.assign(**{column: [as_text(cell) for cell in table[column]] for column in kept})


def _unique(names: list[str], source: Path) -> list[str]:
    twice = pd.Index(names)[pd.Index(names).duplicated()]
    if len(twice) or "" in names:
        shown = f"{twice[0]!r} twice" if len(twice) else "an empty name"
        raise ComesError(f"{source.name} has {shown}; each item needs a name of its own.")
    return names


def _check_characters(values: list[str]) -> None:
    """Raise if there is something that no database keeps."""
    for value in values:
        try:
            value.encode()
        except UnicodeEncodeError:  # of a file whose name is not in UTF-8
            pass
        else:
            if "\0" not in value:
                continue
        raise ComesError(f"{value[:100]!r} holds bytes that are no text. Rename or remove it.")
