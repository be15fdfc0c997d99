"""``comes generate``: make candidate labels from true ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import WRITTEN, Data, Form, Json, Seed, parse_numbers
from comes.cli.printing import print_summary
from comes.cli.reading_options import reading_options

if TYPE_CHECKING:
    from comes.datasets import Reading


@takes_options(reading=reading_options)
def generate(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help=WRITTEN)],
    reading: "Reading",
    case: Annotated[
        Literal["a", "b", "independent", "one", "size", "instance"],
        typer.Option(
            help="The process: a and b as in the paper; independent draws; one uniform label; a "
            "set of random size (CTL); instance-dependent."
        ),
    ] = "b",
    rate: Annotated[
        str | None,
        typer.Option(
            help="Share of irrelevant labels that are excluded (case a: that become candidates): "
            "one number, or one per label separated by commas. Default: 0.1 (case a: 0.9)."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(help="How much the features decide, for case instance; by default 2."),
    ] = None,
    form: Form = "wide",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Make candidate labels from true ones.

    Example: comes generate scene:train --case b --rate 0.1 --seed 0 -o scene.npz
    """
    from comes.jobs import generate_candidates

    made = generate_candidates(
        data,
        output,
        reading=reading,
        case=case,
        rate=parse_numbers(rate, "--rate"),
        strength=strength,
        form=form,
        seed=seed,
    )
    print_summary({"data": str(made), "case": case, "seed": seed, "file": str(output)}, as_json)
