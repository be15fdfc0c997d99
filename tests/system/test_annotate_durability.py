"""An answer that was acknowledged is stored, once, whenever servers are killed.

The machinery is that of ``python benchmarks/annotation_kills.py``, which kills more often.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import annotation_kills
import pytest
import robots
from annotation_kills import (
    Kill,
    compare,
    kill_while_robots_answer,
    list_arguments,
    make_project,
)

from databases import PostgreSQL, reserve_port


@pytest.fixture(autouse=True)
def _patience_and_ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers start slowly on a busy machine, and again on the port that they had."""
    with ExitStack() as ports:

        def find_port() -> int:
            number: int = ports.enter_context(reserve_port()).getsockname()[1]
            return number

        monkeypatch.setattr(annotation_kills, "find_port", find_port)
        monkeypatch.setattr(annotation_kills, "STARTING", 300.0)
        monkeypatch.setattr(robots, "PATIENCE", 300.0)
        yield


def start_python(folder: Path, port: int) -> Kill:
    """Start ``python -m comes annotate serve``; return what ends it as kill -9 does."""
    command = [sys.executable, "-m", "comes", *list_arguments(folder, port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def kill() -> None:
        assert process.poll() is None
        process.kill()
        process.wait()

    return kill


def check(home: Path, n_items: int, database: str | None = None, **options: Any) -> None:
    """All that was acknowledged is there exactly once, as it was said, and all is done."""
    project = make_project(home, n_items, database)
    reports, during = kill_while_robots_answer(project, **options)
    found = compare(project, reports)
    project.engine.dispose()
    assert found.pop("cards") == found.pop("stored") == found.pop("acknowledged") == 10 * n_items
    assert found == dict.fromkeys(found, 0)
    assert during  # else there was too little to do


def test_no_answer_is_lost_or_doubled_when_the_server_is_killed_twenty_times(
    tmp_path: Path,
) -> None:
    check(tmp_path, 200, robots=10, kills=20)


@pytest.mark.needs("postgresql")
def test_nor_when_two_servers_of_one_database_are(tmp_path: Path, postgresql: PostgreSQL) -> None:
    check(tmp_path, 300, postgresql.new_database(), robots=20, kills=10, servers=2)


def test_nor_with_the_command_that_people_type(tmp_path: Path) -> None:
    check(tmp_path, 50, robots=10, kills=1, start=start_python)
