"""The page with the help of every command, as the commands print it."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from comes.cli import app

WIDTH = 84


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
