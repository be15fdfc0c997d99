"""A project: a folder that names its items and its database, and the database with its cards."""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, func, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from comes.annotate.asking import Asking, describe_asking
from comes.annotate.cards import By, Cards, sample_cards
from comes.annotate.items import Classes, Items, ItemSource, read_classes, read_items
from comes.annotate.schema import (
    RANDOM,
    WRITES,
    bring_up_to_date,
    cards,
    classes,
    create_indexes,
    create_tables,
    explain,
    hurry_sqlite,
    insert_rows,
    items,
    open_engine,
    settings,
)
from comes.datasets import Images
from comes.errors import ComesError
from comes.files import expanded, replacing_folder

OTHERS = 0o004  # may read


def make_private(folder: Path) -> None:
    """Let only the owner open the folder of a project and the files in it.

    SQLite gives the files that it makes beside a database the mode of the database.
    """
    with suppress(OSError):  # somebody else's, or a file system without modes
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)


def is_open_to_all(path: Path) -> bool:
    """Return whether every user of this machine may read a file of ours.

    A team that shares a project by its group takes this right from all others.
    """
    try:
        stat = path.stat()
    except OSError:
        return False
    return bool(stat.st_mode & OTHERS) and stat.st_uid == getattr(os, "getuid", lambda: -1)()


DESCRIPTION = "project.json"
DATABASE = "answers.db"


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

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     print(project.name, project.kind, project.count_cards())
    news text 4
    """

    folder: Path
    engine: Engine
    kind: str
    source: Path | None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection for queries, all of which see the same moment."""
        # SQLite isolates every transaction in this way.
        is_postgresql = self.engine.dialect.name == "postgresql"
        options = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        try:
            with self.engine.execution_options(**options).connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise explain(error, self.name) from None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection for changes, which are stored together when the block succeeds."""
        try:
            with self.engine.execution_options(**WRITES).begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise explain(error, self.name) from None

    @property
    def item_names(self) -> list[str]:
        """Names of the items; item number 1 comes first."""
        return self._names_of(items)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes; class number 1 comes first."""
        return self._names_of(classes)

    @property
    def images(self) -> Images | None:
        """The images, if the items are images."""
        if self.source is None:
            return None
        names = self.item_names
        if len(self._known.get("images", ())) != len(names):
            places = self._read_column(items.c.source, items.c.id)
            own = [self.source if place is None else Path(place) for place in places]
            self._known["images"] = Images(own[: len(names)], names)
        images: Images = self._known["images"]
        return images

    @cached_property
    def identity(self) -> str:
        """What tells this project from all others, also from those of the same name."""
        return self.read_setting("identity") or ""

    def count_cards(self) -> int:
        """Return how many cards there are."""
        with self.reading() as connection:
            return connection.execute(select(func.count()).select_from(cards)).scalar_one()

    def count_questions(self) -> int:
        """Return how many pairs of an item and a class are asked about."""
        with self.reading() as connection:
            query = select(func.count()).where(cards.c.turn == 0)  # every question has a first card
            return connection.execute(query).scalar_one()

    def read_setting(self, name: str) -> str | None:
        """Return what is stored under a name; None if nothing is."""
        with self.reading() as connection:
            query = select(settings.c.value).where(settings.c.name == name)
            return connection.execute(query).scalar_one_or_none()

    def write_setting(self, name: str, value: str) -> None:
        """Store a value under a name."""
        with self.writing() as connection:
            connection.execute(settings.delete().where(settings.c.name == name))
            connection.execute(insert(settings).values(name=name, value=value))

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What was read before, by name."""
        return {}

    def _names_of(self, table: Table) -> list[str]:
        """Return the names in a table, read again if it has grown: numbers are 1, 2, 3, ..."""
        with self.reading() as connection:
            last = connection.execute(select(func.max(table.c.id))).scalar_one() or 0
        if len(self._known.get(table.name, ())) != last:
            self._known[table.name] = self._read_column(table.c.name, table.c.id)
        names: list[str] = self._known[table.name]
        return names

    def _read_column(self, column: Any, order: Any) -> list[Any]:
        with self.reading() as connection:
            return list(connection.execute(select(column).order_by(order)).scalars())


def create_project(
    folder: str | Path,
    item_source: str | Path | ItemSource,
    class_source: str | Path,
    *,
    rate: float = 0.1,
    seed: int = 0,
    overlap: float = 0.0,
    opinions: int = 2,
    by: By = "class",
    images: str | Path | None = None,
    database: str | None = None,
    asking: Asking | None = None,
) -> Project:
    r"""Draw the cards of a new project and put them into its database.

    Parameters
    ----------
    folder : path
        Must not exist, or be empty.
    item_source : path, or ItemSource
        A folder or .zip of images; or a .csv or .parquet file with a column ``text``, or with names
        of images (``item``, ``image``, ``file`` ...) that lie in ``images``. An `ItemSource` also
        says which column the texts are in, and what becomes of broken images.
    class_source : path
        A .txt file with a class per line, or a .csv or .parquet file with a column ``class`` (or
        ``label``, ``name``) and optionally ``description`` and ``question``, which replaces the
        project's for this class.
    rate, seed, overlap, opinions, by
        As in `comes.annotate.sample_cards`.
    images : path, optional
        The folder or .zip of the images that ``item_source`` names.
    database : str, optional
        Address of a PostgreSQL database for a team; by default an SQLite file in the folder.
    asking : Asking, optional
        The question, whether yes is an answer, the language, and guidelines.

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
    >>> project.engine.dispose()
    """
    if not isinstance(item_source, ItemSource):
        item_source = ItemSource(item_source, images)
    home = expanded(folder)
    read = read_items(item_source)
    named = read_classes(expanded(class_source))
    described = describe_asking(asking or Asking(), named.names)
    drawn_with: dict[str, Any] = {"seed": seed, "overlap": overlap, "opinions": opinions, "by": by}
    drawn = sample_cards(len(read.names), len(named.names), rate, **drawn_with)
    address = f"sqlite:///{DATABASE}" if database is None else database
    with replacing_folder(home, ()) as temporary:
        _write_description(temporary, read, address)
        engine = open_engine(address, temporary)
        if database is None:
            hurry_sqlite(engine)
        try:
            with engine.execution_options(**WRITES).begin() as connection:
                _refuse_another_project(connection)
                create_tables(connection)
                _insert_contents(connection, read, named, drawn)
                _insert_settings(connection, {"rate": rate, **drawn_with, **described})
                create_indexes(connection)
        except SQLAlchemyError as error:
            raise explain(error, home.name) from None
        finally:
            engine.dispose()
        if database is None:
            with (temporary / DATABASE).open("rb") as file:
                os.fsync(file.fileno())  # without a journal, nothing has waited for the disk
        make_private(temporary)
    return open_project(home)


def open_project(folder: str | Path) -> Project:
    """Open the project in a folder.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     again = open_project(project.folder)
    ...     again.engine.dispose()
    >>> again.name
    'news'
    """
    home = expanded(folder).resolve()
    try:
        described = json.loads((home / DESCRIPTION).read_text(encoding="utf-8"))
        kind, images, address = (described[key] for key in ("kind", "images", "database"))
    except (OSError, ValueError, KeyError, TypeError):
        raise ComesError(
            f"{folder} is not the folder of a project: it has no readable {DESCRIPTION}. Make a "
            "project with comes annotate init."
        ) from None
    if address == f"sqlite:///{DATABASE}" and not (home / DATABASE).exists():
        raise ComesError(f"{folder} has no {DATABASE}, which holds its answers. Put it back.")
    if is_open_to_all(home / DATABASE):  # as earlier versions made it
        make_private(home)
    source = None if images is None else Path(images)
    project = Project(home, open_engine(address, home), kind, source)
    with project.reading() as connection:
        connection.execute(select(func.count()).select_from(settings))
    bring_up_to_date(project.engine)
    return project


def _write_description(folder: Path, read: Items, address: str) -> None:
    """Write the file that says what the items are and where the database is."""
    described = {
        "kind": "text" if read.images is None else "image",
        "images": None if read.images is None else str(read.images.resolve()),
        "database": address,
    }
    path = folder / DESCRIPTION
    path.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def _refuse_another_project(connection: Connection) -> None:
    """Raise if a database has the tables of a project."""
    if inspect(connection).has_table(cards.name):
        raise ComesError(
            "the database already holds a project. Give each project its own database, or serve "
            "the folder of that project."
        )


def _insert_contents(connection: Connection, read: Items, named: Classes, drawn: Cards) -> None:
    """Insert items, classes and cards; items and classes are numbered from 1."""
    texts: Sequence[str | None] = read.texts or [None] * len(read.names)
    item_rows = (
        {"id": k, "name": name, "text": text}
        for k, (name, text) in enumerate(zip(read.names, texts, strict=True), 1)
    )
    class_rows = (
        {"id": k, "name": name, "description": description, "question": question}
        for k, (name, description, question) in enumerate(
            zip(named.names, named.descriptions, named.questions, strict=True), 1
        )
    )
    columns = (column.tolist() for column in drawn)
    card_rows = (
        {"item_id": item + 1, "class_id": class_ + 1, "turn": turn, "source": RANDOM, "position": k}
        for k, (item, class_, turn) in enumerate(zip(*columns, strict=True))
    )
    insert_rows(connection, items, item_rows)
    insert_rows(connection, classes, class_rows)
    insert_rows(connection, cards, card_rows)


def _insert_settings(connection: Connection, chosen: dict[str, Any]) -> None:
    """Keep how cards were drawn, how people are asked, and what tells the project from others."""
    values = {**chosen, "identity": secrets.token_hex(8)}
    rows = [{"name": name, "value": str(value)} for name, value in values.items()]
    connection.execute(insert(settings), rows)
