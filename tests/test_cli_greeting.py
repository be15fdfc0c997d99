"""``comes`` alone: four commands that can be pasted, at once, and plain when piped."""

import os
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from comes.cli import app
from comes.cli.greeting import FIRST_STEPS, WAY_ON
from command_line import command_runner

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def test_comes_alone_names_four_things_to_do_and_the_way_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = command_runner(monkeypatch, capsys)().stdout
    assert len(FIRST_STEPS) == 4
    lines = [line.strip() for line in text.splitlines()]
    assert set(FIRST_STEPS) | set(FIRST_STEPS.values()) <= set(lines)
    assert all(f"\n{command} " in text for command in WAY_ON)
    assert len(lines) < 20 and max(map(len, lines)) < 80


@pytest.mark.parametrize("line", FIRST_STEPS.values())
def test_what_it_names_can_be_pasted(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    command = COMMANDS[name]
    if hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    assert program == "comes"
    command.make_context(name, arguments)  # raises at what is missing or not known


def test_it_is_plain_when_piped_and_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from comes.cli import main\n"
        "sys.argv = ['comes']\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, {'torch', 'pandas', 'sklearn'} & {*sys.modules})"
    )
    terminal = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=terminal, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout and done.stderr == ""
    assert done.stdout.endswith("\n0 set()\n")
