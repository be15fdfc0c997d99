"""The items and classes of a project, read from the files that name them."""

import json
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comes.annotate.asking import check_template
from comes.annotate.pictures import keep_good_pictures
from comes.answers.convert import check_names
from comes.datasets import open_images
from comes.datasets.images import image_names
from comes.datasets.labels import ITEM_COLUMNS
from comes.datasets.table import as_text, is_table_name, read_table
from comes.errors import ComesError, listed, reading_as, warn_user
from comes.files import expanded

NAME_COLUMNS = tuple(dict.fromkeys(("item", "id", *ITEM_COLUMNS)))  # the first one counts
JSON_LINES = ".jsonl"
CLASS_COLUMNS = ("class", "label", "name")


class Items(NamedTuple):
    """What a project asks about: texts, or images in a folder or .zip."""

    names: list[str]
    texts: list[str] | None = None
    images: Path | None = None


class Classes(NamedTuple):
    """The classes of a project; a class without a description has an empty one.

    A question is a template, and None where a class is asked about as the others are.
    """

    names: list[str]
    descriptions: list[str]
    questions: list[str | None]


def read_items(
    source: str | Path,
    images: str | Path | None = None,
    text_column: str | None = None,
    skip_broken: bool = False,
) -> Items:
    """Read the items from a folder or .zip of images, or from a table."""
    place = expanded(source)
    if not place.exists():
        raise ComesError(f"{place} does not exist. Correct the path of the items.")
    if place.is_dir() or place.suffix.lower() == ".zip":
        if text_column is not None:
            raise ComesError(
                f"a column of texts needs a table; got {place}, which holds images. Leave "
                "--text-column out."
            )
        names = keep_good_pictures(place, image_names(place), skip_broken)
        read = Items(names, images=place)
    elif is_table_name(place) or place.suffix.lower() == JSON_LINES:
        read = _read_item_table(place, images, text_column, skip_broken)
    else:
        raise ComesError(
            f"items cannot be read from {place}. Give a folder or .zip of images, or a table "
            "(.csv, .tsv, .csv.gz, .parquet, .xlsx or .jsonl)."
        )
    check_characters([*read.names, *(read.texts or ())])
    return read


def _read_item_table(
    source: Path, images: str | Path | None, text_column: str | None, skip_broken: bool
) -> Items:
    """Read a table of texts or, if the place of the images is given, of image names."""
    texts_in = text_column or "text"
    table = _read_texts(source, (*NAME_COLUMNS, texts_in))
    columns = listed([*map(str, table)])
    if text_column is not None and text_column not in table:
        raise ComesError(
            f"--text-column must be a column of {source.name}; got {text_column!r}, it has "
            f"{columns}."
        )
    column = next((name for name in NAME_COLUMNS if name in table and name != texts_in), None)
    if images is None and texts_in in table:
        texts = table[texts_in].tolist()
        names = table[column].tolist() if column else [str(k) for k in range(1, len(texts) + 1)]
        return Items(_check_unique(names, source), texts)
    if images is None or column is None:
        raise ComesError(
            f"{source.name} has neither a column text (or another: --text-column) nor names of "
            f"images (in a column {', '.join(NAME_COLUMNS)}) with --images DIR; it has {columns}."
        )
    place = expanded(images)
    given = _check_unique(table[column].tolist(), source)
    found, _ = open_images(place, given, skip_broken)
    return Items(keep_good_pictures(place, list(found.names), skip_broken), images=place)


def _check_unique(names: list[str], source: Path) -> list[str]:
    """Return the names; raise if one is empty or occurs twice."""
    repeated = pd.Index(names)[pd.Index(names).duplicated()]
    if len(repeated) or "" in names:
        found = f"{repeated[0]!r} twice" if len(repeated) else "an empty name"
        raise ComesError(f"{source.name} has {found}. Give each item its own name.")
    return names


def read_classes(source: Path) -> Classes:
    """Read the classes from a table, or from a text file with a class per line."""
    if is_table_name(source):
        table = _read_texts(source, (*CLASS_COLUMNS, "description", "question"))
    else:
        with reading_as("text", source):
            lines = source.read_text(encoding="utf-8-sig").splitlines()
        table = pd.DataFrame({"class": [line.strip() for line in lines if line.strip()]})
    column = next((name for name in CLASS_COLUMNS if name in table), None)
    if column is None:
        raise ComesError(
            f"{source.name} has no column {' or '.join(CLASS_COLUMNS)}; it has "
            f"{listed([*map(str, table)])}."
        )
    nothing = pd.Series("", table.index)
    names, descriptions, questions = (
        table.get(name, nothing).tolist() for name in (column, "description", "question")
    )
    if not names:
        raise ComesError(f"{source.name} has no class. Write the name of one on every line.")
    check_names(names)
    check_characters([*names, *descriptions, *questions])
    for question in questions:
        check_template(question)
    folded = pd.Index(["".join(name.casefold().split()) for name in names])
    if (is_similar := folded.duplicated(keep=False)).any():
        warn_user(
            f"classes {listed(list(compress(names, is_similar)))} differ in case or blanks alone, "
            "and are asked about as different ones. If they are the same, keep one."
        )
    return Classes(names, descriptions, [question.strip() or None for question in questions])


def _read_texts(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a table, with the named columns as texts."""
    is_lines = path.suffix.lower() == JSON_LINES
    table = _read_json_lines(path) if is_lines else read_table(path, columns)
    named = [column for column in columns if column in table]
    cells = {name: table[name].tolist() for name in named}
    return table.assign(**{name: list(map(_as_text, given)) for name, given in cells.items()})


def _as_text(cell: Any) -> str:
    if type(cell) is str:
        return cell
    is_nested = isinstance(cell, dict | list)
    return json.dumps(cell, ensure_ascii=False) if is_nested else as_text(cell)


def _read_json_lines(path: Path) -> pd.DataFrame:
    with reading_as("lines of json", path.name):
        lines = path.read_bytes().split(b"\n")
    rows, form = [], 'an object such as {"item": "a", "text": "b"}'
    for number, line in enumerate(lines, 1):
        if line.strip():
            with reading_as(form, f"line {number} of {path.name}"):
                rows.append(json.loads(line))
                if not isinstance(rows[-1], dict):
                    raise TypeError("it is not an object in braces")
    return pd.DataFrame(rows, dtype=object)


def check_characters(values: Sequence[str]) -> None:
    """Raise at the first value that a database cannot store: with NUL, or not in UTF-8."""
    for value in values:
        try:
            is_text = b"\0" not in value.encode()
        except UnicodeEncodeError:  # the name of a file that is not in UTF-8
            is_text = False
        if not is_text:
            raise ComesError(f"{value[:100]!r} holds bytes that are not text. Rename or remove it.")
