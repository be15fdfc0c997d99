"""Pictures decoded by processes of their own: which are killed, which hang, and very large ones."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from PIL import Image

from comes.annotate.pictures import UnshownError
from comes.annotate.web import pictures
from comes.annotate.web.pictures import Decoder, start_worker
from comes.errors import ComesWarning
from test_annotate_pictures import folder as folder  # a fixture
from test_annotate_pictures import make, noise, serve, size_of

LIMIT = 120.0  # seconds; what is waited for takes milliseconds


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    decoder = Decoder()
    yield decoder
    decoder.close()


def children_of(process: int) -> list[int]:
    """Return the children of a process that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it ended while we looked
        if int(parent) == process and state != "Z":
            found.append(int(path.parent.name))
    return found


def test_a_bomb_is_refused_by_the_server(folder: Path) -> None:
    Image.new("RGB", (12_000, 12_000)).save(folder / "bomb.png")
    noise(20, 20).save(folder / "small.png")
    with pytest.warns(ComesWarning, match="bomb.png .has 144 megapixels"):
        project = make(folder)
    with serve(project) as client:
        for path in ("/items/1", "/items/1/full", "/items/1?width=160"):
            refused = client.get(path)
            assert refused.status_code == 422
            assert refused.json()["error"] == (
                "this picture has 144 megapixels, too many to be shown"
            )
        assert size_of(client.get("/items/2")) == (20, 20)


def test_a_worker_that_is_killed_or_hangs_is_replaced(
    folder: Path, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise(1700, 20).save(folder / "a.png")
    assert decoder.make(folder / "a.png", 640).kind == "image/jpeg"
    for worker in children_of(os.getpid()):
        if "spawn_main" in Path(f"/proc/{worker}/cmdline").read_text():
            os.kill(worker, signal.SIGKILL)
    for _ in range(3):
        assert decoder.make((folder / "a.png").read_bytes(), 640).content
    monkeypatch.setattr(pictures, "LONGEST", 0.2)
    os.mkfifo(folder / "endless.png")  # nobody ever writes to it
    with pytest.raises(UnshownError, match="takes too long, or too much memory"):
        decoder.make(folder / "endless.png", 640)
    monkeypatch.undo()
    assert decoder.make(folder / "a.png", 640).content


def test_a_worker_has_a_limit_on_memory_and_little_priority() -> None:
    worker = start_worker()
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_AS))"
    limits = worker.submit(subprocess.check_output, [sys.executable, "-c", code]).result()
    assert limits == b"(1493172224, 1493172224)\n"  # 1 GB, and 400 MB to decode
    assert worker.submit(os.nice, 0).result() >= 10
    worker.shutdown()


def test_a_worker_loads_nothing_large() -> None:
    """The function that it runs is imported with all that its module needs."""
    code = "import sys, comes.annotate.pictures; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"numpy", "pandas", "torch", "sqlalchemy", "starlette"} & set(loaded)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_server_however_it_ends(folder: Path, how: signal.Signals) -> None:
    noise(1700, 20).save(folder / "a.png")
    project = make(folder)
    project.engine.dispose()
    command = [sys.executable, "-m", "comes", "annotate", "serve", str(project.folder)]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        assert urlopen(f"{address}items/1").status == 200
        workers = children_of(server.pid)
        assert workers
        server.send_signal(how)
        server.wait(LIMIT)
    until = time.monotonic() + LIMIT
    while any(is_alive(worker) for worker in workers):
        assert time.monotonic() < until, "a worker goes on without its server"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_large_pictures_do_not_fill_the_terminal_with_warnings(folder: Path) -> None:
    Image.new("1", (10_000, 9_500)).save(folder / "map.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project = make(folder)
        assert size_of(serve(project).get("/items/1?width=640")) == (640, 608)
