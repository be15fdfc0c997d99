"""The options that say how data is read, written once for every command that reads labels."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from comes.errors import ComesError


def reading_options(
    labels: Annotated[
        str,
        typer.Option(
            help="Candidate columns of a table: one per label (0/1, or no/maybe/nothing), "
            'separated by commas, wildcards allowed; or one of label names such as "apple;plate".'
        ),
    ] = "",
    relevant: Annotated[
        str, typer.Option(help="The same for the truth, where the table has it.")
    ] = "",
    ignore: Annotated[str, typer.Option(help="Columns that are neither label nor feature.")] = "",
    item: Annotated[str, typer.Option(help="The column that names the items.")] = "",
    long: Annotated[
        str,
        typer.Option(help="The three columns of a table of answers, if not item,label,answer."),
    ] = "",
    answers: Annotated[
        str, typer.Option(help="What the words of answers mean, such as 0=no,1=maybe.")
    ] = "",
    features: Annotated[
        str, typer.Option(help="A file of features with the same items, for a file of labels.")
    ] = "",
    images: Annotated[str, typer.Option(help="The folder or .zip of the images.")] = "",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")
    ] = False,
    candidates: Annotated[
        bool, typer.Option("--candidates", help="The labels are candidates, not the truth.")
    ] = False,
    complementary: Annotated[
        bool, typer.Option("--complementary", help="The labels mark what is surely irrelevant.")
    ] = False,
    label_names: Annotated[
        str, typer.Option(help="All labels there are, where a column of names may not show them.")
    ] = "",
    difficult: Annotated[
        str, typer.Option(help="VOC's difficult objects: irrelevant (default) or relevant.")
    ] = "",
    unannotated: Annotated[
        str, typer.Option(help="COCO's images without annotation: drop (default) or keep.")
    ] = "",
) -> dict[str, Any]:
    """Return how data is to be read; the parameters are options of every command that reads."""
    if candidates and complementary:
        raise ComesError("labels are either candidates or complementary; got both.")
    return {
        "labels": _split(labels),
        "relevant": _split(relevant),
        "ignore": _split(ignore),
        "item": item or None,
        "long": _split(long),
        "words": _pairs(answers),
        "features": features or None,
        "images": images or None,
        "skip_broken": skip_broken,
        "labels_are": "candidates" if candidates else "complementary" if complementary else None,
        "label_names": _split(label_names),
        "difficult": difficult or None,
        "unannotated": unannotated or None,
    }


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `reading_options`; it gets what they say as ``reading``."""
    own, shared = (inspect.signature(f).parameters for f in (command, reading_options))

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        reading = reading_options(**{name: values.pop(name) for name in shared})
        command(**values, reading=reading)

    parameters = [p for p in own.values() if p.name != "reading"] + list(shared.values())
    by_keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    hints = [get_type_hints(f, include_extras=True) for f in (reading_options, command)]
    with_options.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
    with_options.__annotations__ = {**hints[0], **hints[1]}
    return with_options


def _split(columns: str) -> list[str]:
    return [name for part in columns.split(",") if (name := part.strip())]


def _pairs(text: str) -> dict[str, str]:
    """Return what "0=no,1=maybe" says."""
    pairs = [part.partition("=") for part in _split(text)]
    if not all(equals for _, equals, _ in pairs):
        raise ComesError(f"--answers should be pairs such as 0=no,1=maybe; got {text!r}.")
    return {word.strip(): state.strip() for word, _, state in pairs}


def parse_numbers(text: str, option: str) -> float | list[float] | None:
    """Return one number, one per label, or None for nothing."""
    if not text:
        return None
    try:
        numbers = [float(part) for part in _split(text)]
    except ValueError:
        numbers = []
    if not numbers:
        raise ComesError(f"{option} should be a number, or one per label; got {text!r}.")
    return numbers[0] if len(numbers) == 1 else numbers
