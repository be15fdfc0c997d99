"""The commands in the documents: tables of their options, and the page of their help."""

import inspect
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from comes.cli import app
from comes.cli.options import reading_options
from comes.methods import METHODS

READING = set(inspect.signature(reading_options).parameters)
WIDTH = 84  # of the page of help


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
    options = [p for p in options if not p.hidden]
    rows = [
        [f"`{_names_text(option, context)}`", _meaning_text(option)]
        for option in options
        if not (reads_data and option.name in READING)
    ]
    return [*rows, ["", "and those of [reading data](#reading-data)"]] if reads_data else rows


def _names_text(option: Any, context: Any) -> str:
    hidden, option.hidden = option.hidden, False  # the page has the rare ones, too
    names: str = option.get_help_record(context)[0]
    option.hidden = hidden
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


def help_page() -> str:
    """Return a page with the help of `comes` and of each of its commands."""
    explained = "What `--help` prints. [The command line](cli.md) explains it."
    parts = ["# Help of every command", explained]
    for name, text in list_help(get_command(app), "comes"):
        parts.append(f"## {name} {{ #{name.replace(' ', '-')} }}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def list_help(command: Any, name: str) -> Iterator[tuple[str, str]]:
    """Give the name and the help of a command and, if it is a group, of those in it."""
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=WIDTH)
    yield name, context.get_help()
    for member, inner in getattr(command, "commands", {}).items():
        yield from list_help(inner, f"{name} {member}")
