"""SIGTERM ends a command as Ctrl-C does, and workers do not outlive who started them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from comes.datasets import make_scenes
from comes.images import load_model
from comes.workflows.data import convert_dataset

BENCH = """
name = "long"
label_seeds = 4
settings = { epochs = 20000, device = "cpu" }
data = [{ name = "scenes", rows = 500, case = "b" }]
methods = [{ method = "bce" }, { method = "comes-hl" }]
"""


def start(
    *arguments: str, folder: Path, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "comes", *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.Popen(command, cwd=folder, env=env, stderr=stderr)


def find_children(parent: int) -> list[int]:
    """Return the processes whose parent this is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def read_state(process: int) -> tuple[bool, int]:
    """Return whether a process runs, and the hundredths of a second that it has computed."""
    try:
        fields = (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False, 0
    return fields[0] != "Z", int(fields[11])


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the limit is for what never comes."""
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_sigterm_keeps_what_was_trained(tmp_path: Path) -> None:
    convert_dataset(make_scenes(n=300), tmp_path / "d.npz", simulate="b", rate=0.5)
    options = ("--method", "bce", "--epochs", "100000", "-o", "model")
    ours, theirs = os.openpty()  # on a terminal, a bar says how far it is
    process = start("fit", "d.npz", *options, folder=tmp_path, stderr=theirs)
    os.close(theirs)
    said = b""
    while not re.search(rb"epoch [1-9]", said):
        said += os.read(ours, 4096)
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(OSError):  # the end of what a terminal shows
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    assert process.wait() == 128 + signal.SIGTERM, said.decode()
    assert b"the weights so far are kept" in said
    assert load_model(tmp_path / "model.partial").history_.interrupted
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.npz", "model.partial"]


def test_killed_bench_leaves_no_workers(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(BENCH)
    process = start("bench", "long.toml", "-o", "runs", "--workers", "2", folder=tmp_path)

    def two_workers_compute() -> bool:
        return sum(read_state(child)[1] > 200 for child in find_children(process.pid)) >= 2

    wait_until(two_workers_compute)
    children = find_children(process.pid)
    assert len(children) >= 3  # two workers, and loky's own
    process.kill()
    process.wait()
    wait_until(lambda: not any(read_state(child)[0] for child in children))
