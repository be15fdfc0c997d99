"""``comes bench``: run an experiment from its config file."""

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from comes.cli.printing import print_json, print_rows
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
    """Run every method on every data set of a config file; go on where it was stopped.

    Example: comes bench experiments/smoke.toml
    """
    from comes.experiment import run_tasks
    from comes.experiment.config import read_experiment, tasks_of

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
    paths = [folder / task.key / "result.json" for task in tasks]
    rows = [_means(json.loads(p.read_text(encoding="utf-8"))) for p in paths if p.exists()]
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "done": outcome.done,
                "kept": outcome.kept,
                "failed": outcome.failed,
                "means": rows,
            }
        )
    else:
        if rows:
            print_rows(
                [
                    {k: v if isinstance(v, str) else f"{v:.3f}" for k, v in row.items()}
                    for row in rows
                ]
            )
        missing = len(tasks) - len(rows)
        print(f"{outcome.done} tasks run, {outcome.kept} kept, {missing} missing; {folder}")
    for name, error in outcome.failed.items():
        print(f"Error: {name}: {error}", file=sys.stderr)
    if outcome.failed:
        raise typer.Exit(1)


def _means(result: dict[str, Any]) -> dict[str, Any]:
    """Return the mean of every metric over the repeats."""
    metrics = [repeat["pml"] for repeat in result["repeats"]]
    means = {name: statistics.mean(m[name] for m in metrics) for name in metrics[0]}
    return {"data": result["data"], "method": result["method"]} | means
