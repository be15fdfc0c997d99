"""What needs processes of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import launch_browser
from databases import PostgreSQL, find_postgresql, running_postgresql
from two_processes import TwoProcesses


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; mark the test ``needs("chromium")``."""
    with launch_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on `results.make_results`."""
    from comes.report.experiment_page import write_report
    from results import ERRORS, make_results

    return write_report(make_results(), tmp_path_factory.mktemp("runs") / "report", ERRORS).parent


@pytest.fixture(scope="session")
def two_processes() -> Iterator[TwoProcesses]:
    """Two processes that can train together."""
    processes = TwoProcesses()
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A running PostgreSQL; mark the test ``needs("postgresql")``."""
    binaries = find_postgresql()
    assert binaries is not None
    with running_postgresql(binaries) as server:
        yield server
