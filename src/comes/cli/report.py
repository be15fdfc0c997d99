"""``comes report``: results to tables, plots and a page; or a page of example predictions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from comes.cli.images import open_with_images
from comes.cli.options import Json, Seed
from comes.cli.printing import print_json
from comes.cli.reading import reads_data
from comes.errors import ComesError


@reads_data
def report(
    runs: Annotated[
        list[str], typer.Argument(help="Folders that comes bench wrote; with --model, the data.")
    ],
    reading: dict[str, Any],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path(
        "report"
    ),
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="A model of images, to show its predictions."),
    ] = None,
    examples: Annotated[int, typer.Option(help="Images on that page.", min=1)] = 60,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), plots and one page with all of it.

    Example: comes report runs/smoke -o report

    Example: comes report photos.csv --labels 'has_*' --images photos/ --model model/ -o page
    """
    from comes.report import write_report
    from comes.results import read_errors, read_results

    if model is not None:
        page, n_rows = _show_examples(runs, model, reading, output, examples, seed)
        if as_json:
            print_json({"page": str(page), "rows": n_rows})
        else:
            print(f"{min(n_rows, examples)} of {n_rows} images: {page}")
        return
    if any(reading.values()):
        raise ComesError("how data is read says nothing about results; for images add --model.")
    results = read_results(runs)
    errors = read_errors(runs)
    page = write_report(results, output, errors)
    if as_json:
        print_json({"page": str(page), "cells": len(results), "errors": errors})
    else:
        print(f"{len(results)} results: {page}")


def _show_examples(
    data: list[str], model: Path, reading: dict[str, Any], output: Path, examples: int, seed: int
) -> tuple[Path, int]:
    """Write the page of example predictions; return it and the number of images."""
    from scipy.special import expit

    from comes.estimator import ImageClassifier, load_model
    from comes.report import write_examples

    if len(data) != 1:
        raise ComesError(f"with --model one file of data is shown; got {len(data)}.")
    classifier = load_model(model)
    if not isinstance(classifier, ImageClassifier):
        raise ComesError(f"{model} is a model of features; examples are shown of images.")
    dataset = open_with_images(data[0], reading, classifier)
    images = dataset.known_images()
    scores = classifier.decision_function(images)
    page = write_examples(
        images,
        classifier.label_names_,
        expit(scores - classifier.score_offset_),
        classifier.cut_scores(scores),
        output,
        candidates=dataset.candidates,
        relevant=dataset.relevant,
        n_examples=examples,
        seed=seed,
    )
    return page, len(images)
