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
    from comes.datasets import Reading


@takes_options(reading=reading_options)
def report(
    runs: Annotated[
        list[str], typer.Argument(help="Folders that comes bench wrote; with --model, the data.")
    ],
    reading: "Reading",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path(
        "report"
    ),
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="A model of images, to show its predictions."),
    ] = None,
    examples: Annotated[int, typer.Option(help="Images on that page.", min=1)] = 60,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), plots and one page with all of it.

    Example: comes report runs/smoke -o report

    Example: comes report photos.csv --labels 'has_*' --images photos/ --model model/ -o page
    """
    if model is not None:
        _report_examples(runs, model, reading, output, examples, seed, as_json)
        return
    from comes.datasets import Reading
    from comes.jobs import report_results

    if reading != Reading():
        raise ComesError("options that say how data is read need --model, to show its examples.")
    written = report_results(runs, output)
    if as_json:
        n_results = len(written.results)
        print_json({"page": str(written.page), "cells": n_results, "errors": written.errors})
    else:
        print(f"{len(written.results)} results: {written.page}")


def _report_examples(
    data: list[str],
    model: Path,
    reading: "Reading",
    output: Path,
    examples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Write a page of example predictions, and say where it is."""
    from comes.jobs import show_examples

    if len(data) != 1:
        raise ComesError(f"with --model one file of data is shown; got {len(data)}.")
    page, n_images = show_examples(
        model, data[0], output, reading=reading, n_examples=examples, seed=seed
    )
    if as_json:
        print_json({"page": str(page), "rows": n_images})
    else:
        print(f"{min(n_images, examples)} of {n_images} images: {page}")
