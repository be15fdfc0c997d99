"""Help pages, as a newcomer reads them: what it does, examples to paste, options in groups."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from comes.cli import app
from command_line import Run, command_runner

MOST_IN_A_GROUP = 18  # as many as say how data is read


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return command_runner(monkeypatch, capsys)


def pages(command: Any = None, *words: str) -> Iterator[tuple[list[str], Any, str]]:
    """Give the words, the command and the help of everything that can be called."""
    command = command or get_command(app)
    context = command.make_context("comes", [], resilient_parsing=True)
    yield list(words), command, command.get_help(context)
    for name, member in getattr(command, "commands", {}).items():
        yield from pages(member, *words, name)


PAGES = list(pages())
IDS = [" ".join(words) or "comes" for words, _, _ in PAGES]


@pytest.mark.parametrize(("words", "command", "text"), PAGES, ids=IDS)
def test_a_page_shows_examples_whole_and_every_option_once(
    words: list[str], command: Any, text: str
) -> None:
    lines = text.splitlines()
    for paragraph in command.help.split("\n\n"):
        if paragraph.startswith("Example: "):
            assert f"  {' '.join(paragraph.removeprefix('Example: ').split())}" in lines
    declared = [p.opts[0] for p in command.params if p.param_type_name == "option"]
    shown = [line.split()[0].rstrip(",") for line in lines if line.startswith("  -")]
    for option in declared:
        short = [o for p in command.params if option in p.opts for o in p.opts if len(o) == 2]
        assert shown.count(option) + sum(map(shown.count, short)) == 1, option


@pytest.mark.parametrize(("words", "command", "text"), PAGES, ids=IDS)
def test_many_options_stand_under_headings(words: list[str], command: Any, text: str) -> None:
    headings: dict[str, int] = {}
    heading = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            heading = line
        headings[heading] = headings.get(heading, 0) + line.startswith("  -")
    assert headings["Options:"] <= 12
    assert max(headings.values()) <= MOST_IN_A_GROUP
    if any(parameter.name == "unannotated" for parameter in command.params):
        assert "\nReading data:\n" in text


def test_a_group_shows_the_whole_first_sentence_of_its_commands() -> None:
    text = " ".join(PAGES[0][2].split())
    for name, command in PAGES[0][1].commands.items():
        assert f"{name} {' '.join(command.help.split(chr(10) * 2)[0].split())}" in text
    assert "..." not in text.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["fti"], "No such command 'fti'. Did you mean 'fit'?"),
        (["annotate", "srve"], "Did you mean 'serve'?"),
        (["datasets", "conver", "a.csv", "b.csv"], "Did you mean 'convert'?"),
        (["fit", "a.csv", "--epoch", "3"], "--epochs"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_word(
    arguments: list[str], hint: str, run: Run
) -> None:
    assert hint in run(*arguments, code=2).stderr
