"""``comes bench``: run an experiment from its config file."""

import re
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from comes.cli.options import Json
from comes.cli.printing import format_lines, print_json, print_rounded
from comes.errors import ComesError


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
    from comes.jobs import run_experiment

    part = re.fullmatch(r"(\d+)/(\d+)", shard)
    if part is None:
        raise ComesError(f"--shard must look like 2/8; got {shard!r}.")
    which = int(part[1]), int(part[2])
    run = run_experiment(
        config, output, workers=workers, shard=which, backend=backend, scheduler=scheduler
    )
    rows = run.means()
    if as_json:
        where = {"folder": str(run.folder), "page": None if run.page is None else str(run.page)}
        print_json(where | run.summary() | {"failed": run.outcome.failed, "means": rows})
    else:
        if rows:
            print_rounded(rows)
        print(f"{format_lines(run.summary(), separator=', ')}; {run.page or run.folder}")
    for name, error in run.outcome.failed.items():
        print(f"Error: {name}: {error}", file=sys.stderr)
    if run.outcome.failed:
        raise typer.Exit(1)
