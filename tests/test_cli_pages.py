"""What commands show before they do anything: the first page, help, completion, typos."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import comes
from comes.cli import app
from comes.cli.printing import FIRST_STEPS
from comes.datasets import KNOWN
from comes.methods import METHODS
from command_line import Run, command_runner

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
MOST_IN_A_GROUP = 20  # as many as say how data is read

run = pytest.fixture(command_runner)


# The first page


def test_comes_alone_names_four_things_to_do_and_the_way_on(run: Run) -> None:
    text = run().stdout
    assert text.endswith(FIRST_STEPS + "\n")
    lines = text.splitlines()
    assert len(lines) < 20 and max(map(len, lines)) < 80
    steps = [line.strip() for line in lines if line.startswith("  ")]
    assert len(steps) == 4
    for line in steps:  # what it names can be pasted
        program, name, *arguments = shlex.split(line)
        command = COMMANDS[name]
        if hasattr(command, "commands"):
            command = command.commands[arguments.pop(0)]
        assert program == "comes"
        command.make_context(name, arguments)  # raises at what is missing or not known


PROGRAM = """
import sys
from comes.cli import main
for arguments in ([], ["--help"], ["--version"]):
    sys.argv = ["comes", *arguments]
    try: main()
    except SystemExit as end:
        heavy = {"numpy", "torch", "pandas", "sklearn"} & {*sys.modules}
        print("↑ ended:", end.code, sorted(heavy))
"""


def test_pages_are_plain_when_piped_and_import_nothing_heavy() -> None:
    """Also where a terminal has no arrows."""
    plain = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=plain | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout and done.stderr == ""
    assert "Usage: comes" in done.stdout and f"comes {comes.__version__}\n" in done.stdout
    assert done.stdout.count(" ended: 0 []\n") == 3, done.stdout


# Help


def pages(command: Any = None, *words: str) -> Iterator[tuple[str, Any, str]]:
    """Give the name, the command and the help of everything that can be called."""
    command = command or get_command(app)
    context = command.make_context("comes", [], resilient_parsing=True)
    yield " ".join(words), command, command.get_help(context)
    for name, member in getattr(command, "commands", {}).items():
        yield from pages(member, *words, name)


def test_help_of_fit_is_a_screen_and_a_half_and_help_all_has_the_rest(run: Run) -> None:
    short, whole = run("fit", "--help").stdout, run("fit", "--help-all").stdout
    counts = [sum(line.startswith("  -") for line in page.splitlines()) for page in (short, whole)]
    assert counts[0] <= 32 and counts[1] > counts[0], counts
    assert "--separator" in whole and "--separator" not in short
    assert "--separator" not in run("fit", "--help").stdout  # one does not change the other


def test_pages_show_examples_whole_and_every_option_once_under_a_heading() -> None:
    found = list(pages())
    assert len(found) > 20
    for name, command, text in found:
        lines = text.splitlines()
        for paragraph in command.help.split("\n\n"):
            if paragraph.startswith("Example: "):
                example = " ".join(paragraph.removeprefix("Example: ").split())
                assert f"  {example}" in lines, name
        shown = [line.split()[0].rstrip(",") for line in lines if line.startswith("  -")]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                spellings = {parameter.opts[0], *(o for o in parameter.opts if len(o) == 2)}
                assert sum(map(shown.count, spellings)) == 1, (name, parameter.name)
        headings: dict[str, int] = {}
        heading = ""
        for line in lines:
            if line and not line.startswith(" "):
                heading = line
            headings[heading] = headings.get(heading, 0) + line.startswith("  -")
        assert headings["Options:"] <= 12, name
        assert max(headings.values()) <= MOST_IN_A_GROUP, name
        if any(parameter.name == "unannotated" for parameter in command.params):
            assert "\nReading data:\n" in text, name


def test_a_group_shows_the_whole_first_sentence_of_its_commands() -> None:
    _, group, text = next(pages())
    text = " ".join(text.split())
    for name, command in group.commands.items():
        assert f"{name} {' '.join(command.help.split(chr(10) * 2)[0].split())}" in text
    assert "..." not in text.replace("[ARGS]...", "")


def test_a_typo_is_answered_with_the_nearest_word(run: Run) -> None:
    for arguments, hint in (
        (["fti"], "No such command 'fti'. Did you mean 'fit'?"),
        (["annotate", "srve"], "Did you mean 'serve'?"),
        (["datasets", "conver", "a.csv", "b.csv"], "Did you mean 'convert'?"),
        (["fit", "a.csv", "--epoch", "3"], "--epochs"),
    ):
        assert hint in run(*arguments, code=2).stderr, arguments


# Completion


def offered(command: str, name: str, incomplete: str = "") -> list[str]:
    """Return what is offered for a parameter of a command."""
    context = COMMANDS[command].make_context(command, [], resilient_parsing=True)
    (parameter,) = (p for p in COMMANDS[command].params if p.name == name)
    return [item.value for item in parameter.shell_complete(context, incomplete)]


def test_methods_networks_and_data_sets_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offered("fit", "method") == [*METHODS, "auto"]
    assert offered("fit", "method", "comes-r") == ["comes-rl"]
    assert offered("fit", "backbone", "res") == ["resnet50"]
    assert {"scene", "scene:train"} <= set(offered("fit", "data", "sc"))
    for name in KNOWN:
        assert any(value.startswith(name) for value in offered("fit", "data", name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scans.csv").touch()
    (tmp_path / "scenic").mkdir()
    assert offered("fit", "data", "sc")[-2:] == ["scans.csv", "scenic/"]
    for no_name in ("", "photos/s", "photos"):  # the shell offers files
        assert offered("fit", "data", no_name) == []


def test_every_value_that_is_offered_is_in_the_help() -> None:
    for name, command in COMMANDS.items():
        if hasattr(command, "commands"):
            continue
        options: list[Any] = [p for p in command.params if p.param_type_name == "option"]
        options = [option for option in options if not option.hidden]
        context = command.make_context(name, [], resilient_parsing=True)
        for option in options:
            shown = f"{option.get_help_record(context)}"
            assert all(value in shown for value in offered(name, option.name)), (name, option.name)


def test_there_is_a_script_for_each_shell(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--install-completion" in {o for p in get_command(app).params for o in p.opts}
    for shell in ("bash", "zsh", "fish"):
        monkeypatch.setenv("_COMES_COMPLETE", f"source_{shell}")
        assert f"_COMES_COMPLETE=complete_{shell}" in run().stdout
