"""How a database is opened, and what it promises."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from annotation_site import dump
from comes.annotate import Project, open_project
from comes.annotate.schema import cards, explain, items, open_engine, settings
from comes.errors import ComesError
from projects import Projects


@pytest.fixture
def project(projects: Projects) -> Project:
    return projects.make()


def test_an_answer_is_on_disk_when_it_is_acknowledged(projects: Projects) -> None:
    with projects.make().engine.connect() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def test_a_card_needs_an_item_that_there_is(project: Project) -> None:
    row = {"class_id": 1, "turn": 0, "source": "random", "position": 0}
    with pytest.raises(ComesError, match=r"(?i)foreign key"), project.writing() as connection:
        connection.execute(insert(cards).values(item_id=99, **row))


def test_readers_do_not_wait_for_writers(project: Project) -> None:
    with project.writing() as connection:
        connection.execute(insert(settings).values(name="open", value="1"))
        assert project.read_setting("open") is None
    assert project.read_setting("open") == "1"


def test_a_reader_sees_one_moment(project: Project) -> None:
    """Counts that are read one after the other belong together."""

    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(settings)).scalar_one()

    with project.reading() as connection:
        before = count(connection)
        project.write_setting("new", "1")
        assert count(connection) == before
    with project.reading() as connection:
        assert count(connection) == before + 1


def test_other_databases_are_refused() -> None:
    for address in ("nonsense", "mysql://u@h/d", "sqlite://", "oracle+x://h/d", "postgres//h", ""):
        with pytest.raises(ComesError, match="is not the address of a database. Give sqlite:///F"):
            open_engine(address)


def test_a_relative_file_lies_in_the_folder(tmp_path: Path) -> None:
    engine: Engine = open_engine("sqlite:///a.db", tmp_path)
    with engine.begin():
        pass
    engine.dispose()
    assert (tmp_path / "a.db").exists()


def test_what_a_database_says_becomes_one_line(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(SQLAlchemyError) as caught, engine.connect() as connection:
        connection.execute(select(items))
    engine.dispose()
    message = str(explain(caught.value, "news"))
    assert message == "the database of news does not answer: no such table: items"


def test_a_project_of_an_earlier_version_opens(projects: Projects) -> None:
    project = projects.make()
    before = dump(project)
    with project.writing() as connection:
        for name in ("notes", "people", "links"):
            connection.execute(text(f"DROP TABLE {name}"))
        for column in ("probability", "known"):
            connection.execute(text(f"ALTER TABLE cards DROP COLUMN {column}"))
        connection.execute(text("ALTER TABLE classes DROP COLUMN question"))
    again = open_project(project.folder)
    try:
        assert {name: len(rows) for name, rows in dump(again).items()} == {
            name: len(rows) for name, rows in before.items()
        }
        with again.reading() as connection:
            assert connection.execute(select(cards.c.probability).limit(1)).scalar() is None
    finally:
        again.engine.dispose()
