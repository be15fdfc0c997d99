"""``comes predict``: put new rows or images through a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from comes.cli.help_pages import options_under
from comes.cli.options import Data, ImageSource, Json, ModelFolder, Seed, SkipBroken
from comes.cli.printing import print_summary
from comes.errors import ComesError

page_option = options_under("A page of images")
question_option = options_under("What to ask next")


def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet, .jsonl, ... file.")
    ],
    item: Annotated[
        str | None, typer.Option(help="The column that names the items. Default: row numbers.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also a column of scores for each label.")
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="Only so many labels of each item, the best first, a row for each of them."
        ),
    ] = None,
    images: ImageSource = None,
    skip_broken: SkipBroken = False,
    page: Annotated[
        Path | None, page_option(help="Also a folder for a page of images with predictions.")
    ] = None,
    examples: Annotated[
        int | None,
        page_option(help="Images on that page, however many there are. Default: 120.", min=1),
    ] = None,
    maps: Annotated[
        bool,
        page_option("--maps", help="Show on that page where in an image the evidence is."),
    ] = False,
    ask_next: Annotated[
        Path | None,
        question_option(help="Also a table of what to ask next, for 'comes annotate add --cards'."),
    ] = None,
    questions: Annotated[
        int | None, question_option(help="Pairs in that table. Default: 200.", min=1)
    ] = None,
    asked: Annotated[
        str | None, question_option(help="Answers so far, which are left out of that table.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write predicted labels and probabilities for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict new.csv --model model/ --item photo --top 3 -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv --page page --maps

    Example: comes predict photos/ -m model/ -o scores.csv --ask-next next.csv --asked answers.csv
    """
    from comes.jobs import AskOptions, PageOptions, predict_more, write_top

    _refuse_unused(page, {"--maps": maps, "--examples": examples}, "the page", "a folder (--page)")
    _refuse_unused(
        ask_next,
        {"--asked": asked, "--questions": questions},
        "what to ask next",
        "a file (--ask-next)",
    )
    given: dict[str, Any] = {"images": images, "skip_broken": skip_broken, "item": item}
    if top is not None:
        _refuse_beside_top({"--page": page, "--ask-next": ask_next})
        written = write_top(model, data, output, top, scores=scores, **given)
        summary = {"rows": written.n_items, "labels": written.n_labels, "file": str(output)}
        print_summary(summary, as_json)
        return
    predicted = predict_more(
        model,
        data,
        output,
        scores=scores,
        **given,
        page=None if page is None else PageOptions(page, examples or 120, maps, seed),
        ask=None if ask_next is None else AskOptions(ask_next, questions or 200, asked),
    )
    summary = {"rows": len(predicted.table), "labels": predicted.n_labels, "file": str(output)}
    if predicted.page is not None:
        summary["page"] = str(predicted.page)
    if predicted.questions is not None:
        summary |= {"questions": len(predicted.questions), "ask_next": str(ask_next)}
    print_summary(summary, as_json)


def _refuse_unused(target: Path | None, options: dict[str, Any], of: str, wanted: str) -> None:
    """Raise at the first option for something that is not written."""
    for option, value in options.items():
        if target is None and value:
            raise ComesError(f"{option} is for {of}: name {wanted}, or leave it out.")


def _refuse_beside_top(options: dict[str, Any]) -> None:
    """Raise at the first option that needs the scores of all labels."""
    for option, value in options.items():
        if value is not None:
            raise ComesError(
                f"{option} needs the scores of all labels, and --top keeps only the best of them. "
                "Run the two apart."
            )
