"""``comes bench``: run an experiment from its config file."""

import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from comes.cli.printing import lines, print_json, print_rows
from comes.errors import ComesError


def bench(
    config: Annotated[Path, typer.Argument(help="A .toml file: data, methods, repeats.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of results; by default runs/NAME.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Tasks at a time; 1 on a GPU.")] = 2,
    shard: Annotated[
        str,
        typer.Option(help="Which part of the tasks, as 2/8, on machines that share the folder."),
    ] = "1/1",
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="Processes here, or a cluster.")
    ] = "loky",
    scheduler: Annotated[str | None, typer.Option(help="Address of the cluster.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print json.")] = False,
) -> None:
    """Run every method on every data set of a config file, go on where it was stopped, and report.

    Example: comes bench experiments/smoke.toml
    """
    from comes.experiment import read_experiment, read_task_results, run_tasks, tasks_of
    from comes.report import list_means, write_report
    from comes.results import read_errors

    part = re.fullmatch(r"(\d+)/(\d+)", shard)
    if part is None:
        raise ComesError(f"--shard must look like 2/8; got {shard!r}.")
    experiment = read_experiment(config)
    tasks = tasks_of(experiment)
    folder = output or Path("runs") / experiment.name
    outcome = run_tasks(
        tasks,
        folder,
        workers=workers,
        shard=(int(part[1]), int(part[2])),
        backend=backend,
        scheduler=scheduler,
    )
    results = read_task_results(tasks, folder)
    missing = len(tasks) - len(results)
    page = None
    if results and not (missing and shard != "1/1"):  # the last shard writes the page
        errors = read_errors([folder / task.key for task in tasks])
        page = write_report(results, folder / "report", errors)
    summary = {"done": outcome.done, "kept": outcome.kept, "missing": missing}
    rows = list_means(results)
    if as_json:
        where = {"folder": str(folder), "page": None if page is None else str(page)}
        print_json(where | summary | {"failed": outcome.failed, "means": rows})
    else:
        if rows:
            print_rows([{k: _digits(v) for k, v in row.items()} for row in rows])
        print(f"{lines(summary, separator=', ')}; {page or folder}")
    for name, error in outcome.failed.items():
        print(f"Error: {name}: {error}", file=sys.stderr)
    if outcome.failed:
        raise typer.Exit(1)


def _digits(value: Any) -> Any:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return value
