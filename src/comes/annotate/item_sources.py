"""The items and classes of a new project, read from the files that name them."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from comes.annotate.asking import check_template
from comes.answers import check_names
from comes.datasets import (
    ITEM_COLUMNS,
    as_text,
    image_names,
    is_table_name,
    open_images,
    read_table,
)
from comes.errors import ComesError, ComesWarning, listed
from comes.files import expanded

NAME_COLUMNS = tuple(dict.fromkeys(("item", "id", *ITEM_COLUMNS)))  # the first one counts
CLASS_COLUMNS = ("class", "label", "name")


@dataclass(frozen=True)
class Items:
    """What a project asks about: texts, or images in a folder or .zip."""

    names: list[str]
    texts: list[str] | None = None
    images: Path | None = None


@dataclass(frozen=True)
class Classes:
    """The classes of a project; a class without a description has an empty one.

    ``questions`` holds templates, None where a class is asked about as the others are.
    """

    names: list[str]
    descriptions: list[str]
    questions: list[str | None]


def read_items(source: Path, images: str | Path | None) -> Items:
    """Read the items from a folder or .zip of images, or from a table of texts or image names."""
    if not source.exists():
        raise ComesError(f"{source} does not exist. Correct the path of the items.")
    if source.is_dir() or source.suffix.lower() == ".zip":
        read = Items(image_names(source), images=source)
    elif is_table_name(source):
        read = _read_item_table(source, images)
    else:
        raise ComesError(
            f"items cannot be read from {source}. Give a folder or .zip of images, or a .csv or "
            ".parquet file."
        )
    _check_characters([*read.names, *(read.texts or ())])
    return read


def read_classes(source: Path) -> Classes:
    """Read the classes from a table, or from a text file with a class per line."""
    read = _read_class_table(source) if is_table_name(source) else _read_class_lines(source)
    if not read.names:
        raise ComesError(f"{source.name} has no class. Write the name of one on every line.")
    check_names(read.names)
    questions = [question for question in read.questions if question]
    _check_characters([*read.names, *read.descriptions, *questions])
    for question in questions:
        check_template(question)
    plain = Counter("".join(name.casefold().split()) for name in read.names)
    similar = [name for name in read.names if plain["".join(name.casefold().split())] > 1]
    if similar:
        warnings.warn(
            f"classes {listed(similar)} differ in case or blanks alone, and are asked about as "
            "different ones. If they are the same, keep one.",
            ComesWarning,
            stacklevel=2,
        )
    return read


def _read_item_table(source: Path, images: str | Path | None) -> Items:
    """Read a table of texts or, if the place of the images is given, of image names."""
    table = _read_texts(source, (*NAME_COLUMNS, "text"))
    column = next((name for name in NAME_COLUMNS if name in table), None)
    if images is None and "text" in table:
        texts = list(table["text"])
        names = list(table[column]) if column else [str(k) for k in range(1, len(texts) + 1)]
        return Items(_check_unique(names, source), texts)
    if images is None or column is None:
        raise ComesError(
            f"{source.name} has neither a column text nor names of images (in a column "
            f"{', '.join(NAME_COLUMNS)}) with --images DIR; it has {listed([*map(str, table)])}."
        )
    place = expanded(images)
    found, _ = open_images(place, _check_unique(list(table[column]), source))
    return Items(list(found.names), images=place)


def _read_class_table(source: Path) -> Classes:
    table = _read_texts(source, (*CLASS_COLUMNS, "description", "question"))
    column = next((name for name in CLASS_COLUMNS if name in table), None)
    if column is None:
        raise ComesError(
            f"{source.name} has no column {' or '.join(CLASS_COLUMNS)}; it has "
            f"{listed([*map(str, table)])}."
        )
    nothing = [""] * len(table)
    descriptions = list(table["description"]) if "description" in table else nothing
    questions = list(table["question"]) if "question" in table else nothing
    return Classes(list(table[column]), descriptions, [text.strip() or None for text in questions])


def _read_class_lines(source: Path) -> Classes:
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{source} cannot be read: {error}.") from None
    names = [line.strip() for line in text.splitlines() if line.strip()]
    return Classes(names, [""] * len(names), [None] * len(names))


def _read_texts(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a table, with the named columns as texts."""
    table = read_table(path, columns)
    kept = [column for column in columns if column in table]
    return table.assign(
        **{column: [as_text(cell) for cell in table[column].tolist()] for column in kept}
    )


def _check_unique(names: list[str], source: Path) -> list[str]:
    """Return the names; raise if one is empty or occurs twice."""
    repeated = pd.Index(names)[pd.Index(names).duplicated()]
    if len(repeated) or "" in names:
        found = f"{repeated[0]!r} twice" if len(repeated) else "an empty name"
        raise ComesError(f"{source.name} has {found}. Give each item its own name.")
    return names


def _check_characters(values: Sequence[str]) -> None:
    """Raise at the first value that a database cannot store: with NUL, or not in UTF-8."""
    for value in values:
        try:
            value.encode()
            is_text = "\0" not in value
        except UnicodeEncodeError:  # the name of a file that is not in UTF-8
            is_text = False
        if not is_text:
            raise ComesError(f"{value[:100]!r} holds bytes that are not text. Rename or remove it.")
