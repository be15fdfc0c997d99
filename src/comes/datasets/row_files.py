"""Some rows of a file, written in its own format: lines of text stay as they are, byte for byte."""

import gzip
import re
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq

from comes.datasets.column_roles import find_long_columns, find_roles
from comes.datasets.dataset import Dataset
from comes.datasets.findings import row_hashes
from comes.datasets.formats import FORMATS
from comes.datasets.images import Images
from comes.datasets.opening import open_dataset
from comes.datasets.reading import Reading
from comes.datasets.spreadsheets import copy_excel_rows
from comes.datasets.tables import find_ending, item_names, no_column, read_columns, read_table
from comes.datasets.writing import check_writable, write_dataset
from comes.errors import ComesError, ComesWarning
from comes.files import expanded, replacing_file

Rows = npt.NDArray[np.int64]

WITH_HEADER = (".csv", ".tsv")
LINES = (*WITH_HEADER, ".svm", ".libsvm", ".txt")
TABLES = (*WITH_HEADER, ".parquet", ".xlsx")
SIZES = re.compile(rb"\s*\d+[ \t]+(\d+)[ \t]+(\d+)\s*")
BY_DATASET = ".npz", ".mat", ".jsonl"  # written anew


@dataclass(frozen=True)
class RowFile:
    r"""A data set, the file that it was read from, and which record of the file says what row.

    Attributes
    ----------
    dataset : Dataset
    path : Path, or None
        None of a data set that has a name.
    place : int array of shape (n_records,), or None
        The row of the data set that each record (a line of a csv) is about, -1 if none is; None
        where the file does not consist of records.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> _ = path.write_text("red,maybe\n0.10,sky;sea\n.7,sky\n")
    >>> photos = open_row_file(path, Reading(labels=["maybe"]))
    >>> photos.write([1], path.with_name("second.csv"))
    >>> path.with_name("second.csv").read_text()
    'red,maybe\n.7,sky\n'
    """

    dataset: Dataset
    path: Path | None = None
    place: Rows | None = field(default=None, repr=False)

    @property
    def ending(self) -> str:
        """The ending of files with some of the rows."""
        return ".npz" if self.path is None else find_ending(self.path)

    def read_groups(self, column: str) -> list[tuple[int, str]]:
        """Return pairs of a row and what a column says of it; empty cells say nothing."""
        if self.path is None or self.place is None or not self.ending.startswith(TABLES):
            raise ComesError(
                f"groups are a column of a table; got {column!r} and no table. Convert the data "
                "('comes datasets convert'), or leave the groups (--groups) out."
            )
        cells = read_table(self.path, [column])[column]
        texts = ["" if pd.isna(cell) else str(cell).strip() for cell in cells]
        n_empty = sum(not text for text in texts)
        if n_empty:
            warnings.warn(
                f"column {column!r} is empty in {n_empty} rows: each is a group of its own.",
                ComesWarning,
                stacklevel=2,
            )
        pairs = zip(self.place.tolist(), texts, strict=True)
        return [(row, text) for row, text in pairs if row >= 0 and text]

    def write(self, rows: npt.ArrayLike, target: str | Path) -> None:
        """Write some rows of the data set, given by number, with the ending of the file."""
        chosen = np.asarray(rows)
        if self.path is None or self.place is None:
            write_dataset(self.dataset.take(chosen), target)
            return
        records = np.flatnonzero(np.isin(self.place, chosen))
        with replacing_file(target) as temporary:
            if self.ending == ".parquet":
                pq.write_table(pq.read_table(self.path).take(records), temporary)
            elif self.ending == ".xlsx":
                copy_excel_rows(self.path, records.tolist(), temporary)
            else:
                self._write_lines(records, temporary)

    def _write_lines(self, records: Rows, temporary: Path) -> None:
        """Write records of a file of text as they are."""
        assert self.path is not None and self.place is not None
        has_header = self.ending.startswith(WITH_HEADER)
        lines = _split_records(self.path, in_quotes=has_header)
        sizes = None if has_header else SIZES.fullmatch(lines[0])
        head = lines[:1] if has_header or sizes else []
        body = lines[len(head) :]
        if sizes:  # of LIBSVM: rows, features and labels
            head = [b" ".join([b"%d" % len(records), *sizes.groups()]) + b"\n"]
        if len(body) != len(self.place):  # such as a stray quotation mark
            raise ComesError(
                f"{self.path.name} has {len(self.place)} rows in {len(body)} lines. Convert it to "
                ".parquet or .npz ('comes datasets convert'), and split that."
            )
        chosen = b"".join([*head, *(body[record] for record in records)])
        is_packed = self.ending.endswith(".gz")
        temporary.write_bytes(gzip.compress(chosen, mtime=0) if is_packed else chosen)


def open_row_file(
    which: str | Path, reading: Reading | None = None, *, groups: str | None = None
) -> RowFile:
    r"""Read a data set, and where each of its rows stands in the file.

    Parameters
    ----------
    which : str or Path
        As in `open_dataset`.
    reading : Reading, optional
    groups : str, optional
        A column that is not a feature, for `RowFile.read_groups`.

    Returns
    -------
    file : RowFile

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = path.write_text("item,label,answer\nb,sky,no\na,sky,yes\nb,sea,no\n")
    >>> answers = open_row_file(path)
    >>> answers.dataset.items, answers.place.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    reading = reading or Reading()
    path = expanded(which)
    if not path.is_file():
        return RowFile(open_dataset(which, reading))
    ending = find_ending(path)
    plain = ending.removesuffix(".gz")
    if plain in BY_DATASET:
        check_writable(path)
        return RowFile(open_dataset(path, reading), path)
    if plain not in (*LINES, *TABLES) and ending in FORMATS:
        raise ComesError(
            f"{path.name} cannot be split: {ending} files are read, but not written. Convert it to "
            ".npz or .csv ('comes datasets convert'), and split that."
        )
    if groups is not None and plain in TABLES and groups != reading.item:
        columns = read_columns(path)
        if groups not in columns:
            raise no_column(groups, columns)
        if find_long_columns(columns, reading, path) is None:  # which has no features
            reading = replace(reading, ignore=(*(reading.ignore or ()), groups))
    dataset = open_dataset(path, reading)
    if reading.features is not None and dataset.items is None:
        raise ComesError(
            f"the rows of {path.name} are matched with their features by position, which a part of "
            "them would not be. Name the items in both files (--item), and split again."
        )
    return RowFile(dataset, path, _place_records(dataset, path, reading))


def find_copies(dataset: Dataset) -> npt.NDArray[np.int64]:
    """Return a number for every row, (n_samples,): rows with the same features share theirs.

    Rows of a data set without features are all different; so are images that cannot be read.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    >>> find_copies(Dataset(X, ["sky"], relevant=np.array([[True], [True], [False]])))
    array([0, 1, 0])
    """
    X = dataset.X
    if X is None:
        return np.arange(len(dataset))
    keys: Any
    if isinstance(X, Images):
        keys = [_read_picture(X, row) for row in range(len(dataset))]
    else:
        keys = row_hashes(X)
    return np.asarray(pd.factorize(pd.Series(keys))[0], dtype=np.int64)


def _read_picture(images: Images, row: int) -> int:
    """Return a number that equal pictures share."""
    try:
        return hash(images.read_bytes(row))
    except ComesError:
        return -row - 1


def _place_records(dataset: Dataset, path: Path, reading: Reading) -> Rows:
    """Return the row of the data set that each record of a file is about, -1 if none is."""
    if not find_ending(path).startswith(TABLES):
        return np.arange(len(dataset))
    columns = read_columns(path)
    long = find_long_columns(columns, reading, path)
    item = long[0] if long is not None else find_roles(columns, reading).item
    if item is None or dataset.items is None:
        return np.arange(len(dataset))
    place = {name: row for row, name in enumerate(dataset.items)}
    names = item_names(read_table(path, [item]), item)
    return np.array([place.get(name, -1) for name in names])


def _split_records(path: Path, in_quotes: bool) -> list[bytes]:
    """Return the records of a file of text with their ends: lines, if need be not inside quotes."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content and not content.endswith((b"\n", b"\r")):
        content += b"\n"
    records, open_lines, n_quotes = [], [], 0
    for line in content.splitlines(keepends=True):
        open_lines.append(line)
        n_quotes += line.count(b'"') if in_quotes else 0
        if n_quotes % 2 == 0:
            record = b"".join(open_lines)
            if record.strip():
                records.append(record)
            open_lines, n_quotes = [], 0
    return records if not open_lines else [*records, b"".join(open_lines)]
