"""``comes demo``: compare the methods on embedded data."""

from typing import Annotated

import typer

from comes.cli.options import Json, Seed
from comes.cli.printing import print_json, print_metrics


def demo(
    scenes: Annotated[int, typer.Option(min=20, help="Number of training scenes.")] = 10000,
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from candidate labels of embedded digit scenes and compare the methods.

    Example: comes demo
    """
    from comes.demo import run_demo

    rows = run_demo(scenes, epochs, seed)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    print(
        f"{scenes} scenes of handwritten digits; of the scenes without a digit, one in ten says so."
        "\nTrained on these candidates, and once on the true labels; metrics on 2000 new scenes."
    )
    print_metrics([(row.title, row.metrics) for row in rows])
