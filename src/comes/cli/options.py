"""Options that several commands share, and how their text is read."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from comes.cli.completion_values import complete_data
from comes.cli.help_pages import options_under
from comes.errors import ComesError

image_option = options_under("Images")

Data = Annotated[
    str,
    typer.Argument(
        help="A file (.csv, .xlsx, .parquet, .npz, .mat, .arff, ...), a name, or the folder of an "
        "annotation project.",
        autocompletion=complete_data,
    ),
]
Form = Annotated[
    Literal["wide", "names", "long"], typer.Option(help="Form of the labels in a written table.")
]
Clean = Annotated[
    Path | None,
    typer.Option(help="A small file with true labels: it sharpens priors, rates and thresholds."),
]
ImageSource = Annotated[
    str | None, image_option(help="The folder or .zip of the images that a table names.")
]
SkipBroken = Annotated[
    bool, image_option("--skip-broken", help="Leave out images that cannot be read.")
]
Json = Annotated[bool, typer.Option("--json", help="Print json.")]
ModelFolder = Annotated[Path, typer.Option("--model", "-m", help="Folder that 'comes fit' wrote.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
WRITTEN = "A table (.csv, .tsv, .csv.gz, .parquet, .xlsx), or a .npz, .mat or .jsonl file."


def drop_missing(**options: Any) -> dict[str, Any]:
    """Return the options that were given: all but those that are None."""
    return {name: value for name, value in options.items() if value is not None}


def split_names(text: str | None) -> list[str] | None:
    """Return the names in text such as "sky, sea", or None if it was not given."""
    return None if text is None else [name for part in text.split(",") if (name := part.strip())]


def parse_numbers(text: str | None, option: str) -> float | list[float] | None:
    """Return one number, one per label, or None if the option was not given."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in split_names(text) or ()]
    except ValueError:
        numbers = []
    if not numbers:
        raise ComesError(f"{option} should be a number, or one per label; got {text!r}.")
    return numbers[0] if len(numbers) == 1 else numbers


def parse_pairs(text: str | None, option: str) -> dict[str, str] | None:
    """Return what "1=yes,0=no" says, or None if the option was not given."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in split_names(text) or ()]
    if not all(equals for _, equals, _ in pairs):
        raise ComesError(f"{option} should be pairs such as 1=yes,0=no; got {text!r}.")
    words = [word.strip() for word, _, _ in pairs]
    for word in words:
        if words.count(word) > 1:
            raise ComesError(f"{option} should say once what {word!r} means; got {text!r}.")
    return {word: state.strip() for word, (_, _, state) in zip(words, pairs, strict=True)}
