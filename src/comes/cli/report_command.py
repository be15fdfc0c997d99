"""``comes report``: results to tables, plots and a page; or a page of example predictions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import Json, Seed
from comes.cli.printing import print_json
from comes.cli.reading_options import reading_options
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions


@takes_options(reading=reading_options)
def report(
    runs: Annotated[
        list[str], typer.Argument(help="Folders that comes bench wrote; with --model, the data.")
    ],
    reading: "ReadOptions",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path(
        "report"
    ),
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="A model, to show how good it is and what it predicts."),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(help="Rows or images on that page. Default: 40 rows, 60 images.", min=1),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), plots and one page with all of it.

    With a model, a page about it: quality by label, calibration, what was said, and some rows.

    Example: comes report runs/smoke -o report

    Example: comes report test.csv --relevant 'is_*' --model model/ -o page

    Example: comes report photos.csv --labels 'has_*' --images photos/ --model model/ -o page
    """
    if model is not None:
        _report_model(runs, model, reading, output, examples, seed, as_json)
        return
    from comes.datasets import ReadOptions
    from comes.jobs import report_results

    if reading != ReadOptions():
        raise ComesError("options that say how data is read need --model, to show its examples.")
    if examples is not None:
        raise ComesError("--examples is for the page of a model (--model). Leave it out.")
    written = report_results(runs, output)
    if as_json:
        n_results = len(written.results)
        print_json({"page": str(written.page), "cells": n_results, "errors": written.errors})
    else:
        print(f"{len(written.results)} results: {written.page}")


def _report_model(
    data: list[str],
    model: Path,
    reading: "ReadOptions",
    output: Path,
    examples: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Write a page about a model, and say where it is."""
    from comes.jobs import report_model

    if len(data) != 1:
        raise ComesError(f"with --model one file of data is shown; got {len(data)}.")
    found = report_model(model, data[0], output, reading=reading, n_examples=examples, seed=seed)
    if as_json:
        print_json({"page": str(found.page), "rows": found.n_rows})
    else:
        print(f"{found.n_rows} {found.what}: {found.page}")
