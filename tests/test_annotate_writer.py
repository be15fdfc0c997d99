"""One commit for many commands."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert
from sqlalchemy.exc import IntegrityError

from comes.annotate import Project
from comes.annotate.cards import RefusedError
from comes.annotate.schema import settings
from comes.annotate.web.app import COMMANDS_AT_ONCE, Writer
from projects import Projects

LIMIT = 120.0  # seconds; what is waited for takes milliseconds


@pytest.fixture
def project(projects: Projects) -> Project:
    return projects.make()


@pytest.fixture
def writer(project: Project) -> Iterator[Writer]:
    writer = Writer(project.engine)
    yield writer
    writer.close()


@contextmanager
def held_back(writer: Writer) -> Iterator[None]:
    """Let commands gather until the block ends, so that they share a transaction."""
    go, runs = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        runs.set()
        go.wait(LIMIT)

    writer.submit(wait)
    runs.wait(LIMIT)
    try:
        yield
    finally:
        go.set()


def keep(name: str, then: Callable[[Connection], Any] | None = None) -> Callable[..., str]:
    """Return a command that writes a row, and does something else."""

    def command(connection: Connection) -> str:
        if then is not None:
            then(connection)
        connection.execute(insert(settings).values(name=name, value="1"))
        return name

    return command


def refuse(_: Connection) -> None:
    raise RefusedError(409, "no")


def insert_twice(connection: Connection) -> None:
    connection.execute(insert(settings).values(name="rate", value="1"))  # there is one already


def fail(_: Connection) -> None:
    raise ZeroDivisionError


@pytest.fixture
def commits(project: Project) -> Iterator[list[int]]:
    """Grows by one with every transaction that is stored."""
    found: list[int] = []

    def note(_: Any) -> None:
        found.append(1)

    event.listen(project.engine, "commit", note)
    yield found
    event.remove(project.engine, "commit", note)


def test_commands_that_wait_share_a_commit(
    project: Project, writer: Writer, commits: list[int]
) -> None:
    with held_back(writer):
        waiting = [writer.submit(keep(f"row {k}")) for k in range(50)]
    assert [future.result(LIMIT) for future in waiting] == [f"row {k}" for k in range(50)]
    assert len(commits) == 2  # of what held them back, and theirs
    assert all(project.read_setting(f"row {k}") == "1" for k in range(50))


def test_a_batch_is_not_endless(project: Project, writer: Writer, commits: list[int]) -> None:
    with held_back(writer):
        waiting = [writer.submit(lambda _: None) for _ in range(COMMANDS_AT_ONCE + 1)]
    for future in waiting:
        future.result(LIMIT)
    assert len(commits) == 3


def test_a_future_is_done_when_others_can_see_what_it_did(project: Project, writer: Writer) -> None:
    for k in range(20):
        name = writer.submit(keep(f"row {k}")).result(LIMIT)
        assert project.read_setting(name) == "1"


@pytest.mark.parametrize(
    ("trouble", "error"),
    [(refuse, RefusedError), (insert_twice, IntegrityError), (fail, ZeroDivisionError)],
)
def test_a_refusal_or_an_error_of_one_command_leaves_the_others(
    project: Project, writer: Writer, trouble: Callable[[Connection], None], error: type[Exception]
) -> None:
    with held_back(writer):
        first = writer.submit(keep("first"))
        broken = writer.submit(keep("broken", trouble))
        last = writer.submit(keep("last"))
    with pytest.raises(error):
        broken.result(LIMIT)
    assert (first.result(LIMIT), last.result(LIMIT)) == ("first", "last")
    assert [project.read_setting(name) for name in ("first", "broken", "last")] == ["1", None, "1"]
    assert writer.submit(keep("after")).result(LIMIT) == "after"


def test_a_cancelled_command_is_not_run(project: Project, writer: Writer) -> None:
    """Its browser has gone away and will ask again."""
    with held_back(writer):
        cancelled, kept = writer.submit(keep("cancelled")), writer.submit(keep("kept"))
        assert cancelled.cancel()
    assert kept.result(LIMIT) == "kept"
    assert project.read_setting("cancelled") is None


def test_closing_finishes_what_waits(project: Project) -> None:
    writer = Writer(project.engine)
    waiting: list[Future[str]] = []
    with held_back(writer):
        waiting += [writer.submit(keep(f"row {k}")) for k in range(COMMANDS_AT_ONCE + 50)]
        closing = threading.Thread(target=writer.close)
        closing.start()
    closing.join(LIMIT)
    assert all(future.done() for future in waiting)
    assert project.read_setting(f"row {COMMANDS_AT_ONCE + 49}") == "1"
