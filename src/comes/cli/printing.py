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


def print_table(table: "pd.DataFrame", digits: str = ".3f", width: int = 100) -> None:
    """Print a DataFrame, its floats in this format."""
    print_rows(table.to_dict("records"), width, digits)


def print_rows(rows: Sequence[Mapping[Any, Any]], width: int = 100, digits: str = ".3f") -> None:
    """Print a table of rows with the same keys, over at least so many columns of text."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE)
    cells = [[_format_number(value, digits) for value in row.values()] for row in rows]
    for name, first in zip(map(str, rows[0]), cells[0], strict=True):
        is_number = re.fullmatch(r"[\d.]+|nan|–", first)
        justify: Any = "right" if is_number else "left"
        table.add_column(name.replace("_", " "), justify=justify, no_wrap=not name)  # titles whole
    for row in cells:
        table.add_row(*row)
    Console(width=max(width, Console().width), markup=False).print(table)


def _format_number(value: Any, digits: str) -> str:
    """Return a float in this format, NaN as a dash, and other values as they are."""
    if not isinstance(value, float):
        return str(value)
    return "–" if math.isnan(value) else f"{value:{digits}}"


def print_prose(text: str, width: int = 100) -> None:
    """Print a paragraph in lines of at most so many characters."""
    print(textwrap.fill(text, width, break_on_hyphens=False))


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


FIRST_STEPS = """
Train on a file
  comes fit tickets.csv --labels 'is_*' -o model

Judge a model without true labels
  comes evaluate new.csv --labels 'is_*' --model model

Collect labels on a web page
  comes annotate init project --items photos/ --classes classes.txt

Compare methods
  comes fit tickets.csv --labels 'is_*' --select method -o best

comes demo    see it learn; with --table tickets.csv, get a file to try
comes doctor  see whether everything is in order here
comes --help  every command; comes fit --help has the options of one"""


def greet() -> None:
    """Print the first steps, with colours on a terminal."""
    print(
        f"comes {comes.__version__} learns multi-label classifiers from labels that are not exact."
    )
    for line in FIRST_STEPS.splitlines():
        typer.secho(line, fg="cyan" if line.startswith("  ") else None)
