"""``comes annotate demo``: the page to try, and the whole way from questions to a model."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from comes.cli.annotate_options import Port
from comes.cli.options import Json, Seed
from comes.cli.printing import print_json, print_rows

if TYPE_CHECKING:
    from comes.demo import Circle


def demo(
    robot: Annotated[
        int, typer.Option(min=0, help="Simulated annotators; 0 serves the page for you.")
    ] = 0,
    scenes: Annotated[
        int | None, typer.Option(min=20, help="Drawn scenes: 300; for robots digits: 6000.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs, in place of the estimator's own.")
    ] = None,
    port: Port = 8000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Annotate drawn scenes yourself, or let robots annotate digits and train on their answers.

    Example: comes annotate demo

    Example: comes annotate demo --robot 10
    """
    from comes.demo import annotate_by_robots, serve_scenes

    if not robot:
        ending = "(Ctrl-C ends it, and forgets the answers)"
        serve_scenes(
            scenes or 300, port, seed, lambda address: print(f"{address}/  {ending}", flush=True)
        )
        return
    circle = annotate_by_robots(
        robot, scenes or 6000, epochs, seed, tell=lambda sentence: print(sentence, file=sys.stderr)
    )
    if as_json:
        print_json(circle._asdict() | {"learned": [row._asdict() for row in circle.learned]})
    else:
        _print_circle(circle)


def _print_circle(circle: "Circle") -> None:
    """Print what robots said, and what was learned from it."""
    from comes.methods import METHODS

    said = ", ".join(f"{count} {word}" for word, count in circle.said.items())
    print(
        f"{circle.robots} robots answered {circle.answers} cards over HTTP in "
        f"{circle.seconds:.1f} s, {circle.answers / circle.seconds:.0f} a second: {said}. "
        f"Class priors estimated from them are off by {circle.prior_error:.3f} on average."
    )
    given = {"candidates": "candidates alone, without who was asked"}
    print_rows(
        [
            {
                "method": METHODS[row.method].title,
                "trained on": given.get(row.given, "answers of the robots"),
                "average precision ↑": f"{row.average_precision:.3f}",
                "seconds": f"{row.seconds:.0f}",
            }
            for row in circle.learned
        ]
    )
