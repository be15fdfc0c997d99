"""How results are printed: tables for people, json for programs."""

import json
import math
import re
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

import comes

if TYPE_CHECKING:
    import pandas as pd
STARTED = time.monotonic()  # about when the command began


def print_metrics(rows: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """Print one row of metrics per title; an arrow says whether higher or lower is better."""
    from comes.metrics import METRICS

    arrows = {name: "↑" if metric.higher_is_better else "↓" for name, metric in METRICS.items()}
    print_rows(
        [
            {"": title}
            | {f"{m.title} {arrows[name]}": f"{values[name]:.3f}" for name, m in METRICS.items()}
            for title, values in rows
        ]
    )


def print_table(table: "pd.DataFrame", digits: str = ".3f", width: int = 100) -> None:
    """Print a DataFrame, its floats in this format."""
    print_rounded(table.rename(columns=str).to_dict("records"), digits, width)  # type: ignore[arg-type]


def print_rounded(rows: Sequence[Mapping[str, Any]], digits: str = ".3f", width: int = 100) -> None:
    """Print a table of rows with the same keys, its floats in this format."""
    print_rows([{k: _format_number(v, digits) for k, v in row.items()} for row in rows], width)


def _format_number(value: Any, digits: str) -> Any:
    """Return a float in this format, NaN as a dash, and other values as they are."""
    if not isinstance(value, float):
        return value
    return "–" if math.isnan(value) else f"{value:{digits}}"


def print_rows(rows: Sequence[Mapping[str, Any]], width: int = 100) -> None:
    """Print a table of rows with the same keys, over at least so many columns of text."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE)
    for name in rows[0]:
        is_number = re.fullmatch(r"[\d.]+|nan|–", str(rows[0][name]))
        justify: Any = "right" if is_number else "left"
        table.add_column(name.replace("_", " "), justify=justify, no_wrap=not name)  # titles whole
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=max(width, Console().width), markup=False).print(table)


def print_prose(text: str, width: int = 100) -> None:
    """Print a paragraph in lines of at most so many characters."""
    print(textwrap.fill(text, width))


def print_summary(summary: Mapping[str, Any], as_json: bool) -> None:
    """Print what a command did, a line per fact or as json."""
    if as_json:
        print_json(summary)
    else:
        print(format_lines(summary))


def print_json(values: Any) -> None:
    """Print json, with null for numbers that are not finite."""
    print(json.dumps(_replace_nan(values), indent=2, ensure_ascii=False))


def _replace_nan(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {str(key): _replace_nan(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_replace_nan(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def format_lines(values: Mapping[str, Any], separator: str = "\n") -> str:
    """Return values with their names as text, floats with four digits that count."""
    return separator.join(
        f"{name.replace('_', ' ')}: {_format_number(value, '.4g')}"
        for name, value in values.items()
    )


def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line; takes the place of `warnings.showwarning`."""
    print(f"Warning: {message}", file=sys.stderr)


FIRST_STEPS = {
    "Train on a file": "comes fit tickets.csv --labels 'is_*' -o model",
    "Judge a model without true labels": "comes evaluate new.csv --labels 'is_*' --model model",
    "Collect labels on a web page": "comes annotate init project --items photos/ "
    "--classes classes.txt",
    "Compare methods": "comes fit tickets.csv --labels 'is_*' --select method -o best",
}
WAY_ON = {
    "comes demo": "see it learn; with --table tickets.csv, get a file to try",
    "comes doctor": "see whether everything is in order here",
    "comes --help": "every command; comes fit --help has the options of one",
}


def greet() -> None:
    """Print the first steps, with colours on a terminal."""
    name = typer.style(f"comes {comes.__version__}", bold=True)
    typer.echo(f"{name} learns multi-label classifiers from labels that are not exact.")
    for title, command in FIRST_STEPS.items():
        typer.secho(f"\n{title}", bold=True)
        typer.secho(f"  {command}", fg="cyan")
    typer.echo()
    for command, meaning in WAY_ON.items():
        typer.echo(f"{typer.style(f'{command:14}', fg='cyan')}{meaning}")


OPTION = re.compile(r"--[a-z][a-z-]*")
BRACKETS = re.compile(r" ?\(([^()]*--[a-z][^()]*)\)")


def drop_foreign_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """Return a message without brackets that name an option which the command does not have.

    Workflows serve several commands and notebooks: their messages name all options that may help.
    """
    known = find_options(command, arguments)

    def keep(found: re.Match[str]) -> str:
        return found[0] if set(OPTION.findall(found[1])) <= known else ""

    return BRACKETS.sub(keep, message) if known else message


def find_options(command: Any, arguments: Sequence[str]) -> set[str]:
    """Return the options of the command that arguments name; none if they name no command."""
    words = [word for word in arguments if not word.startswith("-")]
    while hasattr(command, "commands"):
        if words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        elif words and "show" in command.commands:  # comes datasets photos.csv
            command = command.commands["show"]
        else:
            return set()
    return {name for parameter in command.params for name in parameter.opts}
