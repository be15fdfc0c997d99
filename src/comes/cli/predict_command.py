"""``comes predict``: put new rows or images through a model."""

from pathlib import Path
from typing import Annotated

import typer

from comes.cli.options import Data, Json, ModelFolder
from comes.cli.printing import print_summary


def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv or .parquet file.")],
    images: Annotated[
        str | None, typer.Option(help="The folder or .zip of the images that a table names.")
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write predicted labels and scores for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv
    """
    from comes.jobs import predict_items

    table = predict_items(model, data, output, images=images, skip_broken=skip_broken)
    n_labels = int(table.columns.str.startswith("score:").sum())
    print_summary({"rows": len(table), "labels": n_labels, "file": str(output)}, as_json)
