"""What several test files share."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases import PostgreSQL, find_postgresql, running_postgresql
from serving import Server

if TYPE_CHECKING:
    from projects import Projects
    from two_processes import TwoProcesses

# Small tensors gain nothing from threads, and on a busy machine threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, here and in children
# Nor do small fits gain from processes, each of which imports torch; tests of workers ask for two.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")


@pytest.fixture
def pml_data() -> Path:
    """The folder of real PML files; the test is skipped where it is absent."""
    return _real_data("pml")


@pytest.fixture
def mulan_data() -> Path:
    """The folder of real Mulan files; the test is skipped where it is absent."""
    return _real_data("mulan")


@pytest.fixture
def image_data() -> Path:
    """The folder of real images; the test is skipped where it is absent."""
    return _real_data("images")


def _real_data(name: str) -> Path:
    folder = Path(os.environ.get("COMES_DATA", "")) / name
    if "COMES_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"COMES_DATA does not name a folder with {name}/")
    return folder


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on `results.make_results`."""
    from comes.report import write_report
    from results import ERRORS, make_results

    return write_report(make_results(), tmp_path_factory.mktemp("runs") / "report", ERRORS).parent


@pytest.fixture
def server() -> Iterator[Server]:
    """A running web server."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def two_processes() -> "Iterator[TwoProcesses]":
    """Two processes that can train together."""
    from two_processes import TwoProcesses

    processes = TwoProcesses()
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A running PostgreSQL; the test is skipped where there is none."""
    binaries = find_postgresql()
    if binaries is None:
        pytest.skip("no PostgreSQL on this machine")
    with running_postgresql(binaries) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str | None:
    """The address of an empty database; None is SQLite in a file."""
    if request.param == "sqlite":
        return None
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def projects(tmp_path: Path) -> "Iterator[Projects]":
    """What makes annotation projects in a folder."""
    from projects import Projects

    projects = Projects(tmp_path)
    yield projects
    projects.close()
