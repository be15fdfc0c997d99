"""Some rows of a file, written in its own format: lines of text stay as they are, byte for byte."""

import gzip
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comes.datasets.checks import row_hashes
from comes.datasets.dataset import Dataset
from comes.datasets.formats import FORMATS, write_dataset
from comes.datasets.labels import find_long_columns, find_roles
from comes.datasets.opening import open_dataset, open_file
from comes.datasets.options import ReadOptions
from comes.datasets.table import (
    TEXT_ENDINGS,
    Table,
    as_texts,
    copy_excel_rows,
    find_ending,
    is_table_name,
    no_column,
)
from comes.errors import ComesError, warn_user
from comes.files import expanded, replacing_file

Rows = npt.NDArray[np.int64]

LINES = (".svm", ".libsvm", ".txt")
SIZES = re.compile(r"\s*\d+[ \t]+(\d+)[ \t]+(\d+)\s*")
WRITTEN_ANEW = (".npz", ".mat", ".jsonl")


@dataclass(frozen=True)
class RowFile:
    """A data set, the file that it was read from, and which record of the file is about what row.

    Records are the lines of a csv or LIBSVM file, and the rows of an Excel or parquet file.
    """

    dataset: Dataset
    path: Path | None = None  # None of a data set that has a name
    rows: Rows | None = field(default=None, repr=False)  # of every record, -1 if it has none
    groups: Sequence[tuple[int, str]] = field(default=(), repr=False)  # rows, and their group

    @property
    def ending(self) -> str:
        """The ending of files with some of the rows."""
        return ".npz" if self.path is None else find_ending(self.path)

    def write(self, rows: npt.ArrayLike, target: str | Path) -> None:
        """Write some rows of the data set, given by number, with the ending of the file."""
        if self.path is None or self.rows is None:
            write_dataset(self.dataset.take(rows), target)
            return
        is_chosen = np.isin(self.rows, np.asarray(rows))
        with replacing_file(target) as temporary:
            if self.ending == ".parquet":
                pq.write_table(pq.read_table(self.path).filter(pa.array(is_chosen)), temporary)
            elif self.ending == ".xlsx":
                copy_excel_rows(self.path, np.flatnonzero(is_chosen).tolist(), temporary)
            else:
                _copy_lines(self.path, is_chosen, temporary)


def open_row_file(
    which: str | Path, options: ReadOptions | None = None, *, groups: str | None = None
) -> RowFile:
    """Read a data set, and where each of its rows stands in the file.

    ``groups`` is a column of a table that is not a feature; a row whose cell is empty has no group.
    """
    options, path = options or ReadOptions(), expanded(which)
    is_file, ending = os.path.isfile(path), find_ending(path)
    if is_file and is_table_name(path):
        file = _open_table(path, options, groups)
    elif groups is not None:
        raise ComesError(
            f"groups are a column of a table; got {groups!r} and no table. Convert the data "
            "('comes datasets convert'), or leave the groups (--groups) out."
        )
    elif is_file and ending in FORMATS and ending not in (*LINES, *WRITTEN_ANEW):
        raise ComesError(
            f"{path.name} cannot be split: {ending} files are read, but not written. Convert it to "
            ".npz or .csv ('comes datasets convert'), and split that."
        )
    else:
        dataset = open_dataset(which, options)
        rows = np.arange(len(dataset)) if ending in LINES else None
        file = RowFile(dataset, path if is_file else None, rows)
    if options.features is not None and file.rows is not None and file.dataset.items is None:
        raise ComesError(
            f"the rows of {path.name} are matched with their features by position, which a part of "
            "them would not be. Name the items in both files (--item), and split again."
        )
    return file


def _open_table(path: Path, options: ReadOptions, groups: str | None) -> RowFile:
    """Read a table, and match its records with the rows of the data set by the names of items."""
    with Table(path) as table:
        if groups is not None and groups not in table.columns:
            raise no_column(groups, table.columns)
        long = find_long_columns(table.columns, options)
        if groups not in (None, options.item) and long is None:  # a long table has no features
            options = replace(options, ignore=(*(options.ignore or ()), str(groups)))
        dataset = open_file(path, options, table)
    item = find_roles(table.columns, options).item if long is None else long[0]
    rows: Rows = np.arange(len(dataset))
    if item is not None and dataset.items is not None:
        rows = pd.Index(dataset.items).get_indexer(pd.Index(as_texts(table.frame[item])))
    if groups is None:
        return RowFile(dataset, path, rows)
    names = [str(name).strip() for name in as_texts(table.frame[groups])]
    if "" in names:
        warn_user(
            f"column {groups!r} is empty in {names.count('')} rows: each is a group of its own."
        )
    pairs = zip(rows.tolist(), names, strict=True)
    return RowFile(dataset, path, rows, [(row, name) for row, name in pairs if row >= 0 and name])


def find_copies(dataset: Dataset) -> Rows:
    """Return a number for every row, (n_samples,): rows with the same features share theirs.

    Rows of a data set without features are all different; so are images that cannot be read.
    """
    if dataset.X is None:
        return np.arange(len(dataset))
    return np.asarray(pd.factorize(pd.Series(row_hashes(dataset.X)))[0], dtype=np.int64)


def _copy_lines(path: Path, is_chosen: npt.NDArray[np.bool_], target: Path) -> None:
    """Copy the header and some records of a file of text as they are; a character is a byte."""
    has_header, is_packed = find_ending(path) in TEXT_ENDINGS, path.suffix.lower() == ".gz"
    with (gzip.open if is_packed else open)(path, "rt", encoding="latin-1", newline="") as source:
        records = list(_split_records(source, in_quotes=has_header))
    sizes = None if has_header else SIZES.fullmatch(records[0])
    head = records.pop(0) if has_header or sizes else ""
    if sizes:  # of LIBSVM: rows, features and labels
        head = f"{is_chosen.sum()} {sizes[1]} {sizes[2]}\n"
    if len(records) != len(is_chosen):  # such as a stray quotation mark
        raise ComesError(
            f"{path.name} has {len(is_chosen)} rows in {len(records)} lines. Convert it to "
            ".parquet or .npz ('comes datasets convert'), and split that."
        )
    chosen = [records[number] for number in np.flatnonzero(is_chosen)]
    if chosen and not chosen[-1].endswith(("\n", "\r")):
        chosen.append("\n")
    content = "".join([head, *chosen]).encode("latin-1")
    target.write_bytes(gzip.compress(content, mtime=0) if is_packed else content)


def _split_records(lines: Iterable[str], in_quotes: bool) -> Iterator[str]:
    """Give the records of a file with their ends: lines, if need be not inside quotes."""
    record, n_quotes = "", 0
    for line in lines:
        record += line
        n_quotes += line.count('"') if in_quotes else 0
        if n_quotes % 2 == 0:
            if record.strip(" \t\r\n"):
                yield record
            record, n_quotes = "", 0
    if record:
        yield record
