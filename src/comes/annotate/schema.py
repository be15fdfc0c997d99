"""The tables of a project, and how a database is opened: SQLite in a file, or PostgreSQL.

A *card* asks whether one class is relevant to one item. It is open until it is done. While somebody
looks at it, it is leased to a browser tab. An answer that is undone stays in the table, so that a
second copy of the same request is recognised.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    delete,
    event,
    false,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from comes.errors import ComesError, first_line

metadata = MetaData()


def _index_some(name: str, column: Column[Any], rows: ColumnElement[bool], **options: Any) -> None:
    """Add an index of some rows to the table of a column."""
    Index(name, column, sqlite_where=rows, postgresql_where=rows, **options)


settings = Table(
    "settings", metadata, Column("name", String, primary_key=True), Column("value", Text)
)
items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("text", Text),  # NULL where the item is an image
    Column("source", Text),  # folder or .zip of the image, if it is not that of the project
)
classes = Table(
    "classes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("question", Text),  # NULL where the class is asked about as the others are
    Column("rate", Float),  # share of the items drawn at random, where it is not the project's
)
cards = Table(
    "cards",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("class_id", ForeignKey("classes.id"), nullable=False),
    Column("turn", Integer, nullable=False),  # 0; 1, 2, ... on cards for others
    Column("source", String, nullable=False),  # random, active, model, import, or control
    Column("probability", Float),  # of being drawn; NULL at first, and where it was not by chance
    Column("expected", Float),  # relevance, as a model saw it when it drew an active card
    Column("round", Integer),  # of questions: NULL at first, then 1, 2, ...
    Column("known", String),  # the right answer, on a control card
    Column("position", Integer, nullable=False),
    Column("is_done", Boolean, nullable=False, default=False, server_default=false()),
    Column("tab", String),  # that holds the card, or held it last
    Column("annotator", Text),
    Column("leased_until", Float),
    Index("cards_by_question", "item_id", "class_id", "turn", unique=True),
    Index("cards_by_position", "is_done", "position"),
    Index("cards_by_tab", "tab", "is_done"),
)
RANDOM, ACTIVE = "random", "active"  # sources of cards, beside comes.datasets' MODEL
IMPORTED, CONTROL = "import", "control"
DECISION, CONTROLS = 900, 1000  # the turn of the lead's own card, and the first of control cards
_index_some("special_cards", cards.c.turn, cards.c.turn >= DECISION)
_index_some("cards_not_drawn", cards.c.source, cards.c.source != RANDOM)
answers = Table(
    "answers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("card_id", ForeignKey("cards.id"), nullable=False),
    Column("annotator", Text, nullable=False, index=True),
    Column("tab", String, nullable=False),
    Column("key", String, nullable=False, unique=True),  # the browser's; a copy has the same
    Column("answer", String, nullable=False),  # no, yes, maybe, skip
    Column("seconds", Float),
    Column("hint", Float),  # probability by a model that the card showed; NULL where it showed none
    Column("answered_at", Float, nullable=False),
    Column("undone_at", Float),
)
_index_some("one_answer_per_card", answers.c.card_id, answers.c.undone_at.is_(None), unique=True)
_index_some("undone_answers", answers.c.undone_at, answers.c.undone_at.is_not(None))
rounds = Table(  # of active cards: how they were drawn
    "rounds",
    metadata,
    Column("round", Integer, primary_key=True),
    Column("class_id", ForeignKey("classes.id"), primary_key=True),
    Column("batch", Integer, primary_key=True),  # of items that were added together: 0, 1, ...
    Column("spread", Float, nullable=False),  # sum of 1 / p - 1 over the pairs that could be drawn
    Column("relevance", Float, nullable=False),  # sum of what the model expected of these pairs
    Column("no_rate", Float, nullable=False),  # how often an irrelevant pair is called so
    Column("yes_rate", Float, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("made_at", Float, nullable=False),
)
notes = Table(  # what people write about cards
    "notes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("card_id", ForeignKey("cards.id"), nullable=False),
    Column("annotator", Text, nullable=False),
    Column("text", Text, nullable=False),  # empty where the card is flagged without words
    Column("written_at", Float, nullable=False),
    Column("resolved_at", Float),
)
hints = Table(  # probabilities by a model, shown on cards where the project wants them
    "hints",
    metadata,
    Column("item_id", ForeignKey("items.id"), primary_key=True),
    Column("class_id", ForeignKey("classes.id"), primary_key=True),
    Column("probability", Float, nullable=False),
)
controls = Table(  # questions whose answer is known, of which control cards are made
    "controls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("class_id", ForeignKey("classes.id"), nullable=False),
    Column("known", String, nullable=False),  # no or yes
    UniqueConstraint("item_id", "class_id"),
)
people = Table(
    "people",
    metadata,
    Column("name", Text, primary_key=True),
    Column("joined_at", Float, nullable=False),
    Column("left_out_at", Float),  # NULL while the answers of this person count
)
links = Table(  # that let somebody in
    "links",
    metadata,
    Column("digest", String, primary_key=True),  # of the token, which is not stored
    Column("role", String, nullable=False),  # annotator or lead; script in projects of 1.0.0
    Column("label", Text, nullable=False),  # whom it is for
    Column("made_at", Float, nullable=False),
    Column("revoked_at", Float),
)

LEADS_TAB = "lead"  # the tab of an answer by which the lead decides about a pair
IMPORT_TAB = "import"  # of an answer that a file had
FROZEN = "frozen_at"  # the setting of a project that takes no more answers
ADDRESSES = "addresses"  # the setting that holds where a project was served last
WRITES = {"writes": True}  # execution option of connections that change something
ROWS_AT_ONCE = 50_000  # in one INSERT


def open_engine(address: str, folder: Path | None = None, *, is_new: bool = False) -> Engine:
    """Return the engine of a database; a relative SQLite path starts at the folder.

    A new one is filled faster without checks, and is deleted if that fails.
    """
    try:
        url = make_url(address)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
            return create_engine(url, pool_pre_ping=True)
        if url.get_backend_name() != "sqlite" or not url.database:
            raise ArgumentError
    except (ArgumentError, NoSuchModuleError):
        raise ComesError(
            f"{address!r} is not the address of a database. Give sqlite:///FILE or "
            "postgresql://USER@HOST/NAME."
        ) from None
    except ModuleNotFoundError:
        raise ComesError(
            "PostgreSQL needs a driver: pip install 'comes[annotate]' 'psycopg[binary]'."
        ) from None
    file = (folder or Path()) / url.database
    how = {"timeout": 30, "isolation_level": None}  # we send BEGIN ourselves
    engine = create_engine(url.set(database=str(file)), connect_args=how)
    if not is_new:
        event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # an answer is on disk when it is acknowledged
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def create_tables(connection: Connection) -> None:
    """Create the tables without their indexes, which `add_missing` makes faster when all is in."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))


def migrate(engine: Engine) -> None:
    """Add the tables, columns and indexes that the database of an earlier version lacks.

    A file is copied first; on PostgreSQL the transaction alone protects what is there.
    """
    with engine.connect() as connection:
        if not _list_missing(connection):
            return
    if engine.dialect.name == "sqlite":
        _back_up(Path(str(engine.url.database)))
    with engine.execution_options(**WRITES).begin() as connection:
        add_missing(connection)


def add_missing(connection: Connection) -> None:
    """Add what the database lacks; another process may just have done so."""
    for step in _list_missing(connection):
        connection.execute(step)


def _list_missing(connection: Connection) -> list[Executable]:
    """Return the statements that add missing tables, columns and indexes."""
    found, steps = inspect(connection), list[Executable]()
    there = found.get_table_names()
    for table in metadata.sorted_tables:
        known = set[str | None]()
        if table.name in there:
            known |= {one["name"] for one in found.get_indexes(table.name)}
            columns = {one["name"] for one in found.get_columns(table.name)}
            for column in table.columns:
                if column.name not in columns:
                    kind = column.type.compile(connection.dialect)
                    steps.append(text(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"))
        else:
            steps.append(CreateTable(table))
        steps += [CreateIndex(index) for index in table.indexes if index.name not in known]
    return steps


def _back_up(file: Path) -> None:
    """Copy a database to a file beside it, with what its journal holds."""
    copy = file.with_name(f"{file.stem}-backup-{time.strftime('%Y%m%d-%H%M%S')}{file.suffix}")
    temporary = copy.with_name(f".{copy.name}")
    try:
        temporary.touch(mode=0o600)
        with (
            closing(sqlite3.connect(file)) as source,
            closing(sqlite3.connect(temporary)) as target,
        ):
            source.backup(target)
        os.replace(temporary, copy)
    except (OSError, sqlite3.Error) as error:
        temporary.unlink(missing_ok=True)
        raise ComesError(
            f"{file} was written by an earlier version, and is copied before it is changed; the "
            f"copy failed: {error}. Make room for it, and try again."
        ) from None


def read_setting(connection: Connection, name: str) -> str | None:
    """Return a setting of the project; None if there is none."""
    query = select(settings.c.value).where(settings.c.name == name)
    return connection.execute(query).scalar_one_or_none()


def write_setting(connection: Connection, name: str, value: str | None) -> None:
    """Store a setting in place of an earlier value; None removes it."""
    if value is None:
        connection.execute(delete(settings).where(settings.c.name == name))
        return
    new = insert_here(connection, settings).values(name=name, value=value)
    changed = new.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    connection.execute(changed)


def insert_here(connection: Connection, table: Table) -> Any:
    """Return the database's own INSERT, which may say what to do if another server was faster."""
    dialects: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    return dialects[connection.dialect.name](table)


def insert_columns(
    connection: Connection, table: Table, columns: Mapping[str, Iterable[Any]]
) -> None:
    """Insert rows whose cells come by column, many rows at a time; the shortest column ends them.

    The driver gets plain tuples: SQLAlchemy would take longer over each row than the database.
    """
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    quote = connection.dialect.identifier_preparer.quote
    names, marks = ", ".join(map(quote, columns)), ", ".join([mark] * len(columns))
    rows = zip(*columns.values(), strict=False)
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", batch)


def fetch_all(connection: Connection, query: Select[Any]) -> list[Any]:
    """Return all rows of a query as plain tuples, in half of the time that named rows take."""
    found = connection.execute(query)
    try:
        return list(found.cursor.fetchall())
    finally:
        found.close()


def explain(error: SQLAlchemyError, where: str) -> ComesError:
    """Return an error that says in one sentence what went wrong in a database."""
    cause = getattr(error, "orig", None) or error
    return ComesError(f"the database of {where} does not answer: {first_line(cause)}")
