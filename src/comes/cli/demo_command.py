"""``comes demo``: compare the methods on embedded data."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.options import Json, Seed
from comes.cli.printing import print_json, print_metrics, print_summary


def demo(
    scenes: Annotated[int, typer.Option(min=20, help="Number of training scenes.")] = 8000,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs, in place of the estimator's own.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Train nothing; write a table of support tickets to try commands on."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from answers about embedded digit scenes, and show what each kind of answer adds.

    Example: comes demo
    """
    from comes.demo import run_demo, write_tickets

    if table is not None:
        print_summary(write_tickets(table, seed=seed), as_json)
        return
    rows = run_demo(scenes, epochs, seed)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    print(
        f"{scenes} scenes of handwritten digits. About one pair of scene and digit in ten somebody "
        "was asked: no, yes\nor maybe. Candidates are what is left if only the no is kept. Metrics "
        "on 2000 new scenes."
    )
    print_metrics([(row.title, row.metrics) for row in rows])
