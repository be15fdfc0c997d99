"""Text files of cells: what separates the columns, and numbers with a comma for the point."""

import csv
import gzip
import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from comes.errors import ComesError

DELIMITERS = (",", ";", "\t", "|")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "None", "n/a", "<NA>")  # in cells of numbers
LINES = 100  # that tell the delimiter
DECIMAL = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # may as well be 1234


def find_delimiter(path: Path) -> str:
    """Return what separates the columns: the usual one, or another that fits where it does not.

    A delimiter fits if every one of the first lines has as many cells as the first, two at least.
    """
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    _refuse_nul(path)
    usual = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        return choose_delimiter(file, usual)


def choose_delimiter(file: TextIO, usual: str) -> str:
    """Return what separates the columns of a stream of text that can be rewound."""
    for delimiter in (usual, *DELIMITERS):
        file.seek(0)
        try:
            lines = islice(csv.reader(file, delimiter=delimiter), LINES)
            counts = {len(cells) for cells in lines if cells}
        except csv.Error:  # a cell that is too long: pandas says what is wrong, if anything is
            continue
        if len(counts) == 1 and max(counts) > 1:
            return delimiter
    return usual


def _refuse_nul(path: Path) -> None:
    """Raise an error if a file of text holds bytes of zeros, as a damaged one does."""
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
        place = 0
        while block := file.read(1 << 20):
            if b"\0" in block and not block.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ComesError(
                    f"{path.name} holds bytes that are not text (NUL at {place + block.index(0)}). "
                    "It is damaged, or not a text file: take another copy."
                )
            place += len(block)


def read_decimal_commas(table: pd.DataFrame, kept: Collection[str]) -> pd.DataFrame:
    """Return a table whose columns of numbers such as 1,5 are numbers; raise if that is unclear.

    Parameters
    ----------
    table : DataFrame
    kept : collection of str
        Columns of text, which stay as they are.
    """
    texts = {c: _find_commas(table[c]) for c in table.columns if str(c) not in kept}
    with_commas = {c: cells for c, cells in texts.items() if cells is not None}
    is_sure = any(not all(map(THOUSANDS.fullmatch, cells)) for cells in with_commas.values())
    if with_commas and not is_sure:
        name, cells = next(iter(with_commas.items()))
        raise ComesError(
            f"column {name!r} holds numbers such as {cells[0]!r}, which may be "
            f"{cells[0].replace(',', '.')} or {cells[0].replace(',', '')}. Write them without a "
            "comma."
        )
    numbers = {c: table[c].map(_read_number, na_action="ignore").astype(float) for c in with_commas}
    return table.assign(**{str(c): column for c, column in numbers.items()})


def _find_commas(cells: "pd.Series[Any]") -> list[str] | None:
    """Return the cells with a comma, if all cells of a column are numbers of that form."""
    if pd.api.types.is_numeric_dtype(cells):
        return None
    texts = [str(cell).strip() for cell in cells.dropna().unique()]
    commas = [text for text in texts if "," in text]
    return commas if commas and all(map(DECIMAL.fullmatch, texts)) else None


def _read_number(cell: Any) -> float:
    return float(str(cell).strip().replace(".", "").replace(",", "."))
