"""Tables of the options of commands, made from what the commands declare."""

import inspect
from typing import Any

from typer.main import get_command

from comes.cli import app
from comes.cli.options import reading_options
from comes.methods import METHODS

READING = set(inspect.signature(reading_options).parameters)


def options_table(name: str) -> list[list[str]]:
    """Return the options of a command; of a group, those of each of its commands."""
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    if not hasattr(command, "commands"):
        return [["option", "meaning"], *option_rows(command)]
    table = [["command", "option", "meaning"]]
    for title, member in command.commands.items():
        titles = [f"`{title}`"] + [""] * len(member.params)
        table += [[title, *row] for title, row in zip(titles, option_rows(member), strict=False)]
    return table


def option_rows(command: Any) -> list[list[str]]:
    """Return the options of one command; how it reads data is told once for all commands."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    options = [p for p in command.params if p.param_type_name == "option"]
    reads_data = {option.name for option in options} >= READING
    options = [p for p in options if not p.hidden and p.name != "help_all"]
    rows = [
        [f"`{_names_text(option, context)}`", _meaning_text(option)]
        for option in options
        if not (reads_data and option.name in READING)
    ]
    return [*rows, ["", "and those of [reading data](#reading-data)"]] if reads_data else rows


def _names_text(option: Any, context: Any) -> str:
    names: str = option.get_help_record(context)[0]
    return _escape(names.replace(" range>", ">"))


def _meaning_text(option: Any) -> str:
    # Methods are listed in one place, so that a new one leaves this page as it is.
    methods = "the [methods](../explain/methods.md)"
    meaning = (option.help or "").replace(", ".join(METHODS), methods)
    parts = [_escape(meaning)] if meaning else []
    if option.required:
        parts.append("Required.")
    elif not option.is_flag and option.default not in (None, ""):
        parts.append(f"Default: {option.default}.")
    return " ".join(parts)


def _escape(text: str) -> str:
    """Return text that does not end a cell."""
    return text.replace("|", "\\|")
