"""The command line, run inside a test."""

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from comes.cli import main


class Result(NamedTuple):
    stdout: str
    stderr: str


Run = Callable[..., Result]


def command_runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs ``comes ARGUMENTS`` and checks the exit code."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it
    monkeypatch.setattr("comes.cli.run_interruptible", lambda run: run())  # signals: pytest's

    def run_command(*arguments: str, code: int = 0) -> Result:
        monkeypatch.setattr(sys, "argv", ["comes", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        result = Result(*capsys.readouterr())
        assert end.value.code == code, result.stderr
        return result

    return run_command


def default_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C interrupt, also where pytest was started in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
