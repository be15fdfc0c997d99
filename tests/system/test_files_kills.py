"""`locked` between processes: one waits for the other, and a killed one holds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from comes.files import locked

HOLD = """
import sys
from pathlib import Path
from comes.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
    Path(sys.argv[1]).with_name("done").touch()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until it gets a line; return when it does."""
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_waits_until_the_first_is_done(tmp_path: Path) -> None:
    with hold(tmp_path / "lock") as process:
        assert process.stdin is not None
        with locked(tmp_path / "lock", process.stdin.close):  # when it is busy
            assert process.stdin.closed
            assert (tmp_path / "done").exists()
            assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with hold(tmp_path / "lock") as process:
        process.kill()
        process.wait()
    assert (tmp_path / "lock").exists()
    with locked(tmp_path / "lock", pytest.fail):
        pass
    assert not (tmp_path / "lock").exists()
