"""The command line, run inside a test."""

import sys
import warnings
from collections.abc import Callable
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
    monkeypatch.setattr("comes.cli.end_like_ctrl_c", lambda: None)  # signals are those of pytest

    def run_command(*arguments: str, code: int = 0) -> Result:
        monkeypatch.setattr(sys, "argv", ["comes", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        result = Result(*capsys.readouterr())
        assert end.value.code == code, result.stderr
        return result

    return run_command
