"""What several test files share.

A test that needs a program, a package or data that a machine may lack is marked
``@pytest.mark.needs("chromium")``. Where it is absent these tests are left out, and one line
at the end says how many, and how to get it.
"""

import importlib.util
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from databases import find_postgresql
from serving import Server

if TYPE_CHECKING:
    from projects import Projects

# Small tensors gain nothing from threads, and on a busy machine threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, here and in children
# Nor do small fits gain from processes, each of which imports torch; tests of workers ask for two.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")


# The same examples in every run: a failure that is drawn by chance helps nobody here.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("fixed")

DATA = Path(os.environ.get("COMES_DATA", "no data"))


def _has_package(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


def _has_program(*names: str) -> bool:
    return any(shutil.which(name) is not None for name in names)


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


# What a test may need: whether it is there, and how to get it.
NEEDS = {
    "pml": ((DATA / "pml").is_dir, "set COMES_DATA to a folder with pml/"),
    "mulan": ((DATA / "mulan").is_dir, "set COMES_DATA to a folder with mulan/"),
    "images": ((DATA / "images").is_dir, "set COMES_DATA to a folder with images/"),
    "chem": ((DATA / "chem").is_dir, "set COMES_DATA to a folder with chem/"),
    "text": ((DATA / "text").is_dir, "set COMES_DATA to a folder with text/"),
    "weights": ((DATA / "weights").is_dir, "set COMES_DATA to a folder with weights/"),
    "chromium": (lambda: _has_program("chromium"), "apt-get install chromium"),
    "firefox": (lambda: _has_program("firefox", "firefox-esr"), "apt-get install firefox-esr"),
    "openssl": (lambda: _has_program("openssl"), "apt-get install openssl"),
    "postgresql": (lambda: find_postgresql() is not None, "apt-get install postgresql"),
    "dask": (lambda: _has_package("distributed"), "pip install distributed"),
    "ray": (lambda: _has_package("ray"), "pip install ray"),
    "mkdocstrings": (lambda: _has_package("mkdocstrings"), "pip install mkdocstrings-python"),
    "zensical": (lambda: _has_package("zensical"), "pip install zensical"),
    "transformers": (lambda: _has_package("transformers"), "pip install transformers"),
    "lightning": (lambda: _has_package("lightning"), "pip install lightning"),
    "sentence_transformers": (
        lambda: _has_package("sentence_transformers"),
        "pip install sentence-transformers",
    ),
    "model2vec": (lambda: _has_package("model2vec"), "pip install model2vec"),
    "wordllama": (lambda: _has_package("wordllama"), "pip install wordllama"),
    "datasets": (lambda: _has_package("datasets"), "pip install datasets"),
    "pillow_heif": (lambda: _has_package("pillow_heif"), "pip install pillow-heif"),
    "skops": (lambda: _has_package("skops"), "pip install skops"),
    "rdkit": (lambda: _has_package("rdkit"), "pip install rdkit"),
    "cuda": (_has_cuda, "run on a machine with a GPU"),
}


LEFT_OUT = pytest.StashKey[Counter[str]]()


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose needs this machine does not meet."""
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    missing = Counter[str]()
    for item in items:
        needs = [name for mark in item.iter_markers("needs") for name in mark.args]
        absent = [name for name in needs if not NEEDS[name][0]()]
        missing.update(absent[:1])
        (left_out if absent else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = missing


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the main process, if this is a worker of pytest-xdist, what was left out."""
    missing = session.config.stash.get(LEFT_OUT, Counter[str]())
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(missing)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a worker left out; all workers collect the same tests."""
    missing: dict[str, int] = getattr(node, "workeroutput", {}).get("left_out", {})
    node.config.stash[LEFT_OUT] = Counter[str](missing)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say in one line what was left out, and how to get it."""
    missing = config.stash.get(LEFT_OUT, Counter[str]())
    parts = [f"{n} need {name} ({NEEDS[name][1]})" for name, n in sorted(missing.items())]
    if parts:
        terminalreporter.write_line(f"tests left out: {', '.join(parts)}")


@pytest.fixture
def pml_data() -> Path:
    """The folder of real PML files; mark the test ``needs("pml")``."""
    return DATA / "pml"


@pytest.fixture
def mulan_data() -> Path:
    """The folder of real Mulan files; mark the test ``needs("mulan")``."""
    return DATA / "mulan"


@pytest.fixture
def image_data() -> Path:
    """The folder of real images; mark the test ``needs("images")``."""
    return DATA / "images"


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


@pytest.fixture
def projects(tmp_path: Path) -> "Iterator[Projects]":
    """What makes annotation projects in a folder."""
    from projects import Projects

    projects = Projects(tmp_path)
    yield projects
    projects.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data, and an empty cache."""
    for name, variable in (("data", "COMES_DATA"), ("cache", "COMES_CACHE")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path
