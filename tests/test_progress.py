"""The progress bar: on standard error, where it is wanted, and without rich elsewhere."""

import io
import sys

import pytest

from comes.progress import progress_bar


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
