"""A project: a folder that names its items and its database, and the database with its cards."""

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Engine, Table, func, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from comes.annotate.asking import add_questions, describe_asking
from comes.annotate.cards import By, append_cards, sample_cards
from comes.annotate.items import Classes, Items, read_classes, read_items
from comes.annotate.schema import (
    RANDOM,
    WRITES,
    add_missing,
    cards,
    classes,
    create_tables,
    explain,
    insert_columns,
    items,
    migrate,
    open_engine,
    read_setting,
    write_setting,
)
from comes.datasets import Images
from comes.datasets.table import read_table
from comes.errors import ComesError, listed
from comes.files import expanded, replacing_folder

DESCRIPTION = "project.json"
DATABASE = "answers.db"
OTHERS = 0o004  # may read


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
    >>> project.name, project.kind, project.count_cards()
    ('news', 'text', 4)
    """

    folder: Path
    engine: Engine
    kind: str
    source: Path | None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def reading(self) -> AbstractContextManager[Connection]:
        """Give a connection for queries, all of which see the same moment."""
        # SQLite isolates every transaction in this way.
        is_postgresql = self.engine.dialect.name == "postgresql"
        return self._begin({"isolation_level": "REPEATABLE READ"} if is_postgresql else {})

    def writing(self) -> AbstractContextManager[Connection]:
        """Give a connection for changes, which are stored together when the block succeeds."""
        return self._begin(WRITES)

    @contextmanager
    def _begin(self, options: Mapping[str, Any]) -> Iterator[Connection]:
        try:
            with self.engine.execution_options(**options).begin() as connection:
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
        if len(self._cache.get("images", ())) != len(names):
            query = select(items.c.source).order_by(items.c.id).limit(len(names))
            with self.reading() as connection:
                places = connection.execute(query).scalars().all()
            own = [self.source if place is None else Path(place) for place in places]
            self._cache["images"] = Images(own, names)
        images: Images = self._cache["images"]
        return images

    @cached_property
    def identity(self) -> str:
        """What tells this project from all others, also from those of the same name."""
        return self.read_setting("identity") or ""

    @property
    def question(self) -> str:
        """The question about the first class, as people read it."""
        query = select(classes.c.name.label("class"), classes.c.question).order_by(classes.c.id)
        with self.reading() as connection:
            first = connection.execute(query.limit(1)).one()
            card = {**first._mapping, "text": None if self.kind == "image" else ""}
            return str(add_questions(connection, [card])[0]["question"])

    def change_asking(
        self,
        question: str | None = None,
        asks_yes: bool | None = None,
        language: str | None = None,
        guidelines: str | Path | None = None,
    ) -> None:
        """Change how people are asked, as in `create_project`; what is None stays as it is.

        Answers stay as they are, so change the meaning of a question only in a new project.
        """
        changed = describe_asking(question, asks_yes, language, guidelines, self.class_names)
        with self.writing() as connection:
            for name, value in changed.items():
                write_setting(connection, name, value)

    def count_cards(self) -> int:
        """Return how many cards there are."""
        with self.reading() as connection:
            return connection.execute(select(func.count()).select_from(cards)).scalar_one()

    def count_questions(self) -> int:
        """Return how many (item, class) pairs are asked about."""
        with self.reading() as connection:
            first = select(func.count()).select_from(cards).where(cards.c.turn == 0)
            return connection.execute(first).scalar_one()

    def read_setting(self, name: str) -> str | None:
        """Return a setting; None if there is none."""
        with self.reading() as connection:
            return read_setting(connection, name)

    def write_setting(self, name: str, value: str) -> None:
        """Store a setting."""
        with self.writing() as connection:
            write_setting(connection, name, value)

    def number_classes(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of classes; raise if the project has no such class."""
        known = self.class_names
        advice = (
            f"; it has {listed(known)}. A new class goes into a file, a name on each line: comes "
            "annotate add PROJECT --new-classes FILE."
        )
        return _number(names, known, "class", advice)

    def number_answers(
        self, given: str | Path | pd.DataFrame, words: Sequence[str] = ()
    ) -> list[tuple[int, int, Any]]:
        """Return the numbers of item and class, and the answer, of each row of a table.

        An answer must be one of the words; without any, the table needs no answers.
        """
        needed = ("item", "label", "answer")[: 3 if words else 2]
        table = given if isinstance(given, pd.DataFrame) else read_table(Path(given), needed)
        if missing := [name for name in needed if name not in table]:
            raise ComesError(
                f"the table must have the columns {listed(needed)}; {listed(missing)} is missing. "
                "Add it."
            )
        cells = [table[name].astype(str).str.strip().tolist() for name in needed]
        rows = _number(cells[0], self.item_names, "item", ". Correct the names.")
        pairs = list(zip(rows, self.number_classes(cells[1]), strict=True))
        if not words:
            return [(*pair, "") for pair in pairs]
        if repeated := [pair for pair, n in Counter(pairs).items() if n > 1]:
            item, label = repeated[0]
            raise ComesError(
                f"an item and a label must be there once; {self.item_names[item - 1]}, "
                f"{self.class_names[label - 1]} is there more often. Leave one of them."
            )
        if unknown := [word for word in dict.fromkeys(cells[2]) if word not in words]:
            raise ComesError(
                f"the answer of a row must be {' or '.join(words)}; got {listed(unknown, 3)}. "
                "Correct the table."
            )
        return [(*pair, word) for pair, word in zip(pairs, cells[2], strict=True)]

    @cached_property
    def _cache(self) -> dict[str, Any]:
        """What was read before, by name."""
        return {}

    def _names_of(self, table: Table) -> list[str]:
        """Return the names in a table, read again if it has grown: numbers are 1, 2, 3, ..."""
        names: list[str] = self._cache.setdefault(table.name, [])
        with self.reading() as connection:
            last = connection.execute(select(func.max(table.c.id))).scalar_one() or 0
            if len(names) != last:
                query = select(table.c.name).order_by(table.c.id)
                names = self._cache[table.name] = list(connection.execute(query).scalars())
        return names


def _number(names: Sequence[str], known: Sequence[str], what: str, advice: str) -> list[int]:
    """Return the numbers of names among those that are known; raise if one is not."""
    numbers = {name: number for number, name in enumerate(known, 1)}
    if unknown := [name for name in dict.fromkeys(names) if name not in numbers]:
        raise ComesError(f"the project has no {what} {listed(unknown, 3)}{advice}")
    return [numbers[name] for name in names]


def create_project(
    folder: str | Path,
    item_source: str | Path,
    class_source: str | Path,
    *,
    images: str | Path | None = None,
    text_column: str | None = None,
    skip_broken: bool = False,
    rate: float = 0.1,
    seed: int = 0,
    overlap: float = 0.0,
    opinions: int = 2,
    by: By = "class",
    question: str | None = None,
    asks_yes: bool = True,
    language: str = "en",
    guidelines: str | Path | None = None,
    database: str | None = None,
) -> Project:
    r"""Draw the cards of a new project and put them into its database.

    Parameters
    ----------
    folder : path
        Must not exist, or be empty.
    item_source : path
        A folder or .zip of images; or a table (.csv, .tsv, .csv.gz, .parquet, .xlsx or .jsonl) with
        a column of texts, or with names of images (``item``, ``image``, ``file`` ...).
    class_source : path
        A .txt file with a class per line, or a .csv or .parquet file with a column ``class`` (or
        ``label``, ``name``) and optionally ``description`` and ``question``, which replaces the
        project's for this class.
    images : path, optional
        The folder or .zip of the images that a table names.
    text_column : str, optional
        The column of the texts; by default ``text``.
    skip_broken : bool
        Leave out images that cannot be shown, rather than warn of them.
    rate : float
        Share of the items that are asked about each class, in (0, 1].
    seed : int
    overlap : float
        Share of the cards that further people get, too; with ``by="item"`` share of the items.
    opinions : int
        How many people answer a card of the overlap.
    by : {"class", "item"}
        ``class`` draws items for each class, and asks about one class for a block of cards.
        ``item`` draws items once and asks about all their classes, for the grid.
    question : str, optional
        A sentence with ``{class}`` for the name of the class, and optionally ``{a}`` for "a" or
        "an". By default "Is there {a} {class} in this picture?" or "Is this text about {class}?",
        in the language of the page.
    asks_yes : bool
        Whether yes is an answer. Without it, no and cannot tell are.
    language : {"en", "de"}
        Of the page. Everybody may choose another one in the browser.
    guidelines : path, optional
        A folder with CLASS.md or CLASS.txt, and pictures CLASS/*.jpg or CLASS-*.jpg.
    database : str, optional
        Address of a PostgreSQL database for a team; by default an SQLite file in the folder.

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
    home = expanded(folder)
    read = read_items(item_source, images, text_column, skip_broken)
    named = read_classes(expanded(class_source))
    asked = describe_asking(question, asks_yes, language, guidelines, named.names)
    drawn_with: dict[str, Any] = {"seed": seed, "overlap": overlap, "opinions": opinions, "by": by}
    drawn = sample_cards(len(read.names), len(named.names), rate, **drawn_with)
    address = f"sqlite:///{DATABASE}" if database is None else database
    with replacing_folder(home, ()) as temporary:
        described = {
            "kind": "text" if read.images is None else "image",
            "images": None if read.images is None else str(read.images.resolve()),
            "database": address,
        }
        text = json.dumps(described, indent=1) + "\n"
        (temporary / DESCRIPTION).write_text(text, encoding="utf-8")
        engine = open_engine(address, temporary, is_new=database is None)
        try:
            with engine.execution_options(**WRITES).begin() as connection:
                if inspect(connection).has_table(cards.name):
                    raise ComesError(
                        "the database already holds a project. Give each project its own database, "
                        "or serve the folder of that project."
                    )
                create_tables(connection)
                insert_items(connection, read)
                insert_classes(connection, named)
                append_cards(connection, drawn.places(), RANDOM)
                values = {"rate": rate, **drawn_with, **asked, "identity": secrets.token_hex(8)}
                for name, value in values.items():
                    write_setting(connection, name, str(value))
                add_missing(connection)
        except SQLAlchemyError as error:
            raise explain(error, home.name) from None
        finally:
            engine.dispose()
        _make_private(temporary)
    return open_project(home)


def insert_items(
    connection: Connection, read: Items, n_known: int = 0, source: str | None = None
) -> None:
    """Insert items behind those that are known."""
    columns: dict[str, Iterable[Any]] = {
        "id": count(n_known + 1),
        "name": read.names,
        "text": read.texts or repeat(None),
        "source": repeat(source),
    }
    insert_columns(connection, items, columns)


def insert_classes(
    connection: Connection, named: Classes, n_known: int = 0, rate: float | None = None
) -> None:
    """Insert classes behind those that are known."""
    columns: dict[str, Iterable[Any]] = {
        "id": count(n_known + 1),
        "name": named.names,
        "description": named.descriptions,
        "question": named.questions,
        "rate": repeat(rate),
    }
    insert_columns(connection, classes, columns)


def open_project(folder: str | Path) -> Project:
    """Open the project in a folder.

    A project of an earlier version is brought up to date, after a copy of its database was made
    beside it.

    Parameters
    ----------
    folder : path

    Returns
    -------
    project : Project

    Examples
    --------
    >>> again = open_project(project.folder)
    >>> again.name
    'news'
    >>> again.engine.dispose()
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
    file = home / DATABASE
    if address == f"sqlite:///{DATABASE}" and not file.exists():
        raise ComesError(f"{folder} has no {DATABASE}, which holds its answers. Put it back.")
    # As earlier versions made it. A team that shares a project by its group takes this right from
    # all others.
    if file.exists() and file.stat().st_mode & OTHERS:
        _make_private(home)
    source = None if images is None else Path(images)
    project = Project(home, open_engine(address, home), kind, source)
    try:
        migrate(project.engine)
    except SQLAlchemyError as error:
        raise explain(error, project.name) from None
    return project


def _make_private(folder: Path) -> None:
    """Let only the owner open the folder of a project and the files in it.

    SQLite gives the files that it makes beside a database the mode of the database.
    """
    with suppress(OSError):  # somebody else's, or a file system without modes
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)
