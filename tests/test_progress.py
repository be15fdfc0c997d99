"""Progress on standard error: a bar on a terminal, lines elsewhere, and without rich there."""

import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from comes import progress
from comes.datasets import make_scenes, write_dataset
from comes.generation import simulate_answers
from comes.progress import progress_bar
from command_line import Run, command_runner

run = pytest.fixture(command_runner)


@pytest.fixture(autouse=True)
def no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "in_command", False)  # as before a command


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def advance_twice(show: bool | None = None, unit: str = "") -> None:
    with progress_bar(3, "the [b]work[/b]", unit=unit, show=show) as advance:
        advance()
        advance("note [x]")


def test_a_bar_shows_description_count_and_note(capsys: pytest.CaptureFixture[str]) -> None:
    advance_twice(show=True, unit="epoch")
    captured = capsys.readouterr()
    assert captured.out == ""
    for text in ("the [b]work[/b]", "epoch 2/3", "note [x]"):  # as they are, not markup
        assert text in captured.err


def test_a_bar_is_shown_by_default_in_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    advance_twice()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    advance_twice()
    assert "2/3" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    advance_twice(show=False)
    assert terminal.getvalue() == ""


def test_without_rich_there_is_no_bar_but_no_error_either(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it raises
    advance_twice(show=False)
    with pytest.raises(ImportError):
        advance_twice(show=True)


def test_a_redirected_command_prints_a_line_now_and_then(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seconds count from the beginning."""
    scenes = make_scenes(n=300)
    answers = simulate_answers(scenes.known_relevant(), asked_rate=0.5, seed=0)
    write_dataset(replace(scenes, answers=answers, relevant=None), tmp_path / "a.npz")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.05)
    monkeypatch.setattr("comes.cli.model.STARTED", time.monotonic() - 1000)
    command = ("fit", str(tmp_path / "a.npz"), "--epochs", "60", "-o", str(tmp_path / "model"))
    done = run(*command)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Warning")]
    pattern = r"likelihood: epoch \d+/\d+, about \d+ s left"
    assert sum(bool(re.fullmatch(pattern, line)) for line in lines) >= 2, done.stderr
    assert re.search(r"seconds: 10\d\d\.\d \(training \d", done.stdout)
    assert len(done.stdout.splitlines()) <= 12


def test_lines_are_ten_seconds_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("comes.progress.time.monotonic", lambda: now)
    with progress_bar(60, "work", unit="epoch") as advance:
        for _ in range(60):
            now += 1
            advance()
    assert capsys.readouterr().err.splitlines() == [
        f"work: epoch {done}/60, about {60 - done} s left" for done in (10, 20, 30, 40, 50)
    ]


def test_no_line_says_that_nothing_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("comes.progress.time.monotonic", lambda: now)
    with progress_bar(70, "work") as advance:
        for _ in range(70):
            now += 0.15  # ten seconds are over when three steps are left
            advance()
    assert capsys.readouterr().err == ""
