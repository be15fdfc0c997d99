"""``comes report``: results to tables, plots and a page."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.printing import print_json


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that comes bench wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path(
        "report"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print json.")] = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), plots and one page with all of it.

    Example: comes report runs/smoke -o report
    """
    from comes.report import read_errors, read_runs, write_report

    cells = read_runs(runs)
    errors = read_errors(runs)
    page = write_report(cells, output, errors)
    if as_json:
        print_json({"page": str(page), "cells": len(cells), "errors": errors})
    else:
        print(f"{len(cells)} results: {page}")
