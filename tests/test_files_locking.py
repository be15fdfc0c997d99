"""`locked`: one process at a time, and none for ever."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from comes.files import locked

HOLD = """
import sys, time
from pathlib import Path
from comes.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    Path(sys.argv[1]).with_name("done").touch()
"""


def hold(path: Path, seconds: float) -> subprocess.Popen[str]:
    """Start a process that holds the lock; return when it does."""
    command = [sys.executable, "-c", HOLD, str(path), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_waits_until_the_first_is_done(tmp_path: Path) -> None:
    said: list[str] = []
    with hold(tmp_path / "lock", 0.5), locked(tmp_path / "lock", lambda: said.append("busy")):
        assert (tmp_path / "done").exists()
        assert (tmp_path / "lock").exists()  # a third one would wait for us
    assert said == ["busy"]
    assert not (tmp_path / "lock").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", 60) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert (tmp_path / "lock").exists()
    with locked(tmp_path / "lock", pytest.fail):
        pass
    assert not (tmp_path / "lock").exists()


def test_an_error_inside_sets_it_free(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        _ = 1 / 0
    with locked(tmp_path / "lock", pytest.fail):
        pass
