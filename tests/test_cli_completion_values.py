"""Completion: what a shell offers after TAB, and that it is offered without torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from comes.cli import app
from comes.datasets import KNOWN
from comes.methods import METHODS
from command_line import command_runner

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


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


def test_where_no_data_set_fits_the_shell_offers_files() -> None:
    assert offered("fit", "data") == []
    assert offered("fit", "data", "photos/s") == []
    assert offered("fit", "data", "photos") == []


@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if not hasattr(c, "commands")])
def test_every_value_that_is_offered_is_in_the_help(name: str) -> None:
    options: list[Any] = [p for p in COMMANDS[name].params if p.param_type_name == "option"]
    context = COMMANDS[name].make_context(name, [], resilient_parsing=True)
    for option in options:
        shown = f"{option.get_help_record(context)}"
        assert all(value in shown for value in offered(name, option.name)), option.name


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    """The script that bash gets is sourced, and asked as TAB asks it."""
    comes = tmp_path / "comes"
    comes.write_text(f'#!/bin/sh\nexec "{sys.executable}" -X importtime -m comes "$@"\n')
    comes.chmod(0o755)
    script = """
        source <(_COMES_COMPLETE=source_bash comes 2> /dev/null)
        for line in 'comes pred' 'comes fit a.csv --early' 'comes fit a.csv --method ccm'; do
            COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            $(complete -p comes | sed 's/.*-F \\([^ ]*\\) .*/\\1/') comes
            echo "${COMPREPLY[*]}"
        done
    """
    paths = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, **paths}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["predict", "--early-stopping", "ccmn"], done.stderr
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    assert "comes.cli" in imported and "torch" not in imported


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--install-completion" in {o for p in get_command(app).params for o in p.opts}
    monkeypatch.setenv("_COMES_COMPLETE", f"source_{shell}")
    script = command_runner(monkeypatch, capsys)().stdout
    assert f"_COMES_COMPLETE=complete_{shell}" in script
