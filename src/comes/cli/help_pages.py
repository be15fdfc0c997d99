"""Help pages: options under headings, and examples that can be pasted."""

import inspect
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

EXAMPLE = "Example: "
OPTIONS, COMMANDS = "Options", "Commands"  # what has no heading of its own


def options_under(heading: str) -> Any:
    """Return `typer.Option` for options that help shows under a heading."""
    return partial(typer.Option, rich_help_panel=heading)


class HelpPage:
    """What the pages of commands and groups share."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what a command does, then its examples, each on a line."""
        paragraphs = inspect.cleandoc(getattr(self, "help", None) or "").split("\n\n")
        for paragraph in paragraphs:
            if not paragraph.startswith(EXAMPLE):
                formatter.write_paragraph()
                with formatter.indentation():
                    formatter.write_text(paragraph)
        examples = [p.removeprefix(EXAMPLE) for p in paragraphs if p.startswith(EXAMPLE)]
        if examples:
            with formatter.section("Examples" if len(examples) > 1 else "Example"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{' '.join(example.split())}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, those with a heading under it."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], OPTIONS: []}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_option = parameter.param_type_name == "option"
                heading = getattr(parameter, "rich_help_panel", None) or OPTIONS
                sections.setdefault(heading if is_option else "Arguments", []).append(record)
        write_sections(sections, formatter)


class CommandPage(HelpPage, TyperCommand):
    """The help of a command."""


class GroupPage(HelpPage, TyperGroup):
    """The help of a group, which lists its commands with the whole first sentence of each."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands under their headings."""
        super().format_options(ctx, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            heading = getattr(command, "rich_help_panel", None) or COMMANDS
            first = inspect.cleandoc(command.help or "").split("\n\n")[0]
            sections.setdefault(heading, []).append((name, " ".join(first.split())))
        write_sections(sections, formatter)


def write_sections(sections: dict[str, list[tuple[str, str]]], formatter: Any) -> None:
    """Write lists of names and meanings under their headings; one that is empty is left out."""
    for heading, records in sections.items():
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)


def use_help_pages(*apps: typer.Typer) -> None:
    """Let the commands of apps have such pages."""
    for app in apps:
        for command in app.registered_commands:
            command.cls = CommandPage
