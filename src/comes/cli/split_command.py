"""``comes split``: rows to train on and rows to test with, in two files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import Data, Json, Seed
from comes.cli.printing import print_json, print_rows, print_warning
from comes.cli.reading_options import reading_options

if TYPE_CHECKING:
    from comes.datasets import ReadOptions

LABELS_SHOWN = 30


@takes_options(reading=reading_options)
def split(
    data: Data,
    reading: "ReadOptions",
    test_share: Annotated[float, typer.Option(help="Share of the rows to test with.")] = 0.2,
    groups: Annotated[
        str | None,
        typer.Option(help="A column: rows with the same word there are kept together."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="File of the training rows. Default: NAME-train.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="File of the test rows. Default: NAME-test.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a file into rows to train on and rows to test with, in the same format.

    Rows of a group, and rows with the same features, are never in both.

    Example: comes split photos.csv --labels 'has_*' --test-share 0.2

    Example: comes split visits.csv --labels diagnosis --groups patient
    """
    from comes.jobs import split_data

    found = split_data(
        data,
        test_share=test_share,
        groups=groups,
        seed=seed,
        train=train,
        test=test,
        reading=reading,
    )
    if as_json:
        print_json(found.as_dict())
        return
    files = zip(("train", "test"), (found.train, found.test), found.n_rows, strict=True)
    for (side, path, n_rows), n_groups in zip(files, found.n_groups, strict=True):
        together = f", {n_groups} groups" if groups is not None else ""
        print(f"{side}: {n_rows} rows{together}: {path}")
    if found.n_copies:
        print(f"{found.n_copies} rows repeat the features of another, and are in the same file.")
    print_rows(
        [
            {"label": row["label"]}
            | {
                name: f"{row[f'{name} in train']} + {row[f'{name} in test']}"
                for name in found.counted
            }
            for row in found.labels[:LABELS_SHOWN].to_dict("records")
        ]
    )
    print("Counts of labels are those to train on + those to test with.")
    if len(found.labels) > LABELS_SHOWN:
        print(f"{len(found.labels) - LABELS_SHOWN} more labels; --json lists all.")
    for sentence in found.absent:
        print_warning(sentence)
    if groups is not None and groups != reading.item:
        print(f"{groups!r} is still a column of both files: train without it (--ignore).")
