"""SIGTERM ends a command as Ctrl-C does, and workers do not outlive who started them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from comes.datasets import make_scenes
from comes.estimator import load_model
from comes.jobs import generate_candidates

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

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


def is_running(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[
            0
        ] != "Z"
    except OSError:
        return False


def test_sigterm_keeps_what_was_trained(tmp_path: Path) -> None:
    generate_candidates(make_scenes(n=300), tmp_path / "d.npz", rate=0.5)
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


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_killed_bench_leaves_no_workers(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(BENCH)
    process = start("bench", "long.toml", "-o", "runs", "--workers", "2", folder=tmp_path)
    until = time.monotonic() + 120
    children: list[int] = []
    while time.monotonic() < until and len(children) < 3:  # two workers, and loky's own
        time.sleep(0.1)
        children = find_children(process.pid)
    assert len(children) >= 3
    time.sleep(3)
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while time.monotonic() < until and any(map(is_running, children)):
        time.sleep(0.2)
    assert not any(map(is_running, children))
