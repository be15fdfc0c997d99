"""``comes check``: test the central assumption on rows whose true labels are known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import Data, Json, Seed
from comes.cli.printing import print_json, print_rounded
from comes.cli.reading_options import reading_options

if TYPE_CHECKING:
    from comes.datasets import ReadOptions


@takes_options(reading=reading_options)
def check(
    data: Data,
    reading: "ReadOptions",
    clean: Annotated[
        Path | None,
        typer.Option(help="True labels of some items of the data; else the data must have them."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Test whether irrelevant labels are excluded at a constant rate, whatever the item.

    Example: comes check answers.csv --clean expert.csv --features features.npz
    """
    from comes.jobs import check_assumption

    found = check_assumption(data, clean, reading=reading, seed=seed)
    rows = found.per_label.to_dict("records")
    if as_json:
        print_json({"conclusion": found.conclusion, "labels": rows})
        return
    print_rounded([{str(k): v for k, v in row.items()} for row in rows], digits=".3g")
    print(found.conclusion)
