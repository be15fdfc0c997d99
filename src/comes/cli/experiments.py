"""``comes bench``: run an experiment from its config file."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from comes.cli.options import Json, Seed, reading_options, takes_options
from comes.cli.printing import format_lines, print_json, print_rows, print_summary
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
MOST = 7  # methods that a run shows, the best first


def bench(
    config: Annotated[Path, typer.Argument(help="A .toml file: data, methods, repeats.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of results; by default runs/NAME.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Tasks at a time here; 1 on a GPU.")] = 2,
    shard: Annotated[
        str,
        typer.Option(help="Which part of the tasks, as 2/8, on machines that share the folder."),
    ] = "1/1",
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="Processes here, or a cluster.")
    ] = "loky",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of the cluster. Default: one that is started here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run every method on every data set of a config file, go on where it was stopped, and report.

    Example: comes bench experiments/smoke.toml
    """
    from comes.report.experiment_page import summarise
    from comes.workflows.experiment import run_experiment

    part = re.fullmatch(r"(\d+)/(\d+)", shard)
    if part is None:
        raise ComesError(f"--shard must look like 2/8; got {shard!r}.")
    which = int(part[1]), int(part[2])
    run = run_experiment(
        config, output, workers=workers, shard=which, backend=backend, scheduler=scheduler
    )
    if as_json:
        where = {"folder": str(run.folder), "page": None if run.page is None else str(run.page)}
        print_json(where | run.summary() | {"failed": run.failed, "means": run.means()})
    else:
        if run.results:
            table, _ = summarise(run.results)
            columns = dict.fromkeys((0, 1, len(table.head) - 2, len(table.head) - 1))
            print_rows([{table.head[k]: row[k] for k in columns} for row in table.rows[:MOST]])
        print(f"{format_lines(run.summary(), separator=', ')}; {run.page or run.folder}")
    for name, error in run.failed.items():
        print(f"Error: {name}: {error}", file=sys.stderr)
    if run.failed:
        raise typer.Exit(1)


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
    """Write tables (LaTeX, CSV), plots and one page with all of it.

    With a model, a page about it: how good it is, how sure that is, what to do next, and some rows.

    Example: comes report runs/smoke -o report

    Example: comes report test.csv --relevant 'is_*' --model model/ -o page

    Example: comes report photos.csv --labels 'has_*' --images photos/ --model model/ -o page
    """
    if model is not None:
        from comes.workflows.judge import report_model

        if len(runs) != 1:
            raise ComesError(f"with --model one file of data is shown; got {len(runs)}.")
        page = report_model(model, runs[0], output, reading=reading, n_examples=examples, seed=seed)
        print_summary({"page": str(page)}, as_json)
        return
    from comes.datasets import ReadOptions
    from comes.experiment.results import read_errors, read_results
    from comes.files import refuse_inputs
    from comes.report.experiment_page import write_report

    if reading != ReadOptions():
        raise ComesError("options that say how data is read need --model, to show its examples.")
    if examples is not None:
        raise ComesError("--examples is for the page of a model (--model). Leave it out.")
    refuse_inputs(output, *runs)
    results, errors = read_results(runs), read_errors(runs)
    page = write_report(results, output, errors)
    if as_json:
        print_json({"page": str(page), "cells": len(results), "errors": errors})
    else:
        print(f"{len(results)} results: {page}")
