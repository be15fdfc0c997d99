"""``comes predict``: put new rows or images through a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from comes.cli.options import Data, ImageSource, Json, ModelFolder, Seed, SkipBroken
from comes.cli.printing import print_summary
from comes.errors import ComesError


def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .tsv, .xlsx or .parquet file.")
    ],
    images: ImageSource = None,
    skip_broken: SkipBroken = False,
    page: Annotated[
        Path | None, typer.Option(help="Also a folder for a page of images with predictions.")
    ] = None,
    examples: Annotated[
        int, typer.Option(help="Images on that page, however many there are.", min=1)
    ] = 120,
    maps: Annotated[
        bool,
        typer.Option("--maps", help="Show on that page where in an image the evidence is."),
    ] = False,
    ask_next: Annotated[
        Path | None,
        typer.Option(help="Also a table of what to ask next, for 'comes annotate add --cards'."),
    ] = None,
    questions: Annotated[int, typer.Option(help="Pairs in that table.", min=1)] = 200,
    asked: Annotated[
        str | None, typer.Option(help="Answers so far, which are left out of that table.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write predicted labels and scores for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv --page page --maps

    Example: comes predict photos/ -m model/ -o scores.csv --ask-next next.csv --asked answers.csv
    """
    from comes.jobs import AskOptions, PageOptions, predict_more

    if maps and page is None:
        raise ComesError("--maps is for the page: name a folder for it (--page), or leave it out.")
    if asked is not None and ask_next is None:
        raise ComesError("--asked is for what to ask next: name a file for it (--ask-next).")
    predicted = predict_more(
        model,
        data,
        output,
        images=images,
        skip_broken=skip_broken,
        page=None if page is None else PageOptions(page, examples, maps, seed),
        ask=None if ask_next is None else AskOptions(ask_next, questions, asked),
    )
    table = predicted.table
    n_labels = int(table.columns.str.startswith("score:").sum())
    summary: dict[str, Any] = {"rows": len(table), "labels": n_labels, "file": str(output)}
    if predicted.page is not None:
        summary["page"] = str(predicted.page)
    if predicted.questions is not None:
        summary |= {"questions": len(predicted.questions), "ask_next": str(ask_next)}
    print_summary(summary, as_json)
