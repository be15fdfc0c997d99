"""``comes priors``: estimate how often each label is relevant."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comes.cli.completion_values import offer
from comes.cli.option_groups import takes_options
from comes.cli.options import Clean, Data, Json, Seed, parse_numbers
from comes.cli.printing import print_json, print_table
from comes.cli.reading_options import reading_options

if TYPE_CHECKING:
    from comes.datasets import ReadOptions


@takes_options(reading=reading_options)
def priors(
    data: Data,
    reading: "ReadOptions",
    method: Annotated[
        str,
        typer.Option(
            help="How to estimate: hierarchical, best-bin or bbe.",
            autocompletion=offer("hierarchical", "best-bin", "bbe"),
        ),
    ] = "hierarchical",
    exclude_rate: Annotated[
        str | None,
        typer.Option(
            help="How often an irrelevant label is excluded, if that is known: one number, or one "
            "per label separated by commas."
        ),
    ] = None,
    clean: Clean = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .xlsx or .parquet file for 'fit'."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A .png, .pdf or .svg file: estimated against true priors.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how often each label is relevant, and rates, from what was said.

    Example: comes priors photos.csv --labels 'has_*' -o priors.csv
    """
    from comes.jobs import estimate_priors

    table = estimate_priors(
        data,
        output,
        reading=reading,
        method=method,
        exclude_rate=parse_numbers(exclude_rate, "--exclude-rate"),
        clean=clean,
        plot=plot,
        seed=seed,
    )
    if as_json:
        print_json(table.to_dict("records"))
        return
    print_table(table)
    if "error" in table:
        print(f"mean absolute error: {table['error'].abs().mean():.4f}")
