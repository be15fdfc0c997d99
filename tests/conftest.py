"""What several test files share."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import Server

# Small tensors gain nothing from threads, and on a busy machine threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, here and in children


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
