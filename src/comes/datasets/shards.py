"""`open_shards`: more rows than memory holds, in files that are read in blocks of rows.

Training reads the blocks in random order, in several threads, again in every epoch. Row groups of
Parquet files can be read so, and lines of text cannot: csv and jsonl files are copied once to the
cache, as Parquet, with the types that columns have in the first block.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import is_numeric_dtype as is_numeric

from comes.answers import Answers
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.labels import LabelReader, Labels, find_long_columns, find_roles
from comes.datasets.options import ReadOptions, as_options
from comes.datasets.table import (
    DECIMAL_COMMA,
    INDEX_LEVEL,
    NAMELESS,
    TEXT_ENDINGS,
    Table,
    find_ending,
)
from comes.datasets.table_datasets import find_words, item_names, look_at
from comes.errors import ComesError, counted, first_line, listed
from comes.files import cache_folder, replacing_file
from comes.tables.columns import needs_encoding

ROWS_AT_ONCE = 2**15
COPY_VERSION = 2
ENDINGS = (".parquet", *TEXT_ENDINGS, ".jsonl", ".jsonl.gz")
FOREIGN = ("features", "images", "skip_broken", "xml", "n_features", "difficult", "unannotated")
VERSIONS = ("ETag", "etag", "checksum", "mtime", "last_modified", "LastModified", "created")
UNNAMED = re.compile(rf"{NAMELESS.pattern}|{INDEX_LEVEL.pattern}")
EMPTY = {pa.null(): pa.string(), pa.list_(pa.null()): pa.list_(pa.string())}


@dataclass(frozen=True)
class ShardFile:
    """A file, as it was when the shards were opened."""

    address: str
    size: int
    version: str  # what tells it from a changed one
    name: str
    ending: str


@dataclass(frozen=True)
class Block:
    """Rows that are read together: a row group of a Parquet file, or a part of one."""

    file: ShardFile
    parquet: str  # address of the file, or of its copy
    group: int
    part: int  # how many blocks of the row group come before
    first: int  # number of the first row in the file
    n_rows: int
    rows_at_once: int


@dataclass(frozen=True)
class Columns:
    """What the columns are, by the first block; it holds for all."""

    names: list[str]
    reader: LabelReader
    numbers: list[str]  # columns that hold nothing else
    texts: list[str]  # columns of csv files whose cells are kept as they are written
    commas: list[str]  # columns of csv files with numbers such as 1,5
    schema: pa.Schema | None  # of copies


@dataclass(frozen=True)
class ShardedDataset:
    """Rows of features and answers about their labels, in blocks that are read when needed.

    `open_shards` makes one. A block is read by opening its file anew, and nothing is kept of it:
    several threads or processes may read at the same time.

    Attributes
    ----------
    sizes : tuple of int
        The number of rows of every block, in the order of the files.
    label_names : list of str
    feature_names : list of str, or None
    features : {"numbers", "table", "none"}
        What X is.
    kind : {"answers", "candidates", "positives"}, or None
        What a pair without an answer means; None if only the truth is known.
    is_sparse : bool
        Whether the answers are sparse.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"red": [0.1, 0.7, 0.3], "candidates": ["sky;sea", "sky", "sea"]})
    >>> table.to_parquet(folder / "part-0.parquet")
    >>> shards = open_shards(folder, rows_at_once=2)
    >>> print(shards)
    3 rows in 2 blocks of 1 file, 1 feature, 2 labels, candidates
    >>> X, answers = shards.read(0)
    >>> X.dtype, answers.shape
    (dtype('float32'), (2, 2))
    """

    blocks: tuple[Block, ...]
    label_names: list[str]
    feature_names: list[str] | None
    features: str
    kind: Kind | None
    columns: Columns
    is_sparse: bool = False
    prepare: Callable[[Any], Any] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of rows of every block."""
        return tuple(block.n_rows for block in self.blocks)

    @property
    def n_rows(self) -> int:
        """The number of rows of all blocks."""
        return sum(self.sizes)

    def load(self, block: int) -> Dataset:
        """Return a block as a data set: features as they are stored, answers, truth and items."""
        place, reader = self.blocks[block], self.columns.reader
        roles = reader.roles
        items = [] if roles.item is None else [roles.item]
        used = [*roles.labels, *roles.truth, *(self.feature_names or ()), *items]
        with explaining(place.file.address):
            frame = read_block(place, used)
            labels = reader.read(frame)
            dataset = Dataset(
                self.select_features(frame),
                labels.names,
                relevant=labels.truth,
                items=item_names(frame, roles.item) if roles.item is not None else None,
                from_complementary=roles.labels_are == "complementary",
                answers=self.unify_answers(labels.answers),
            )
            if reader.options.labels_are == "candidates":
                dataset = dataset.with_labels_as("candidates", place.file.name)
        return dataset

    def select_features(self, frame: pd.DataFrame) -> Any:
        """Return the features of a block: a table, or an array if all are complete numbers."""
        if not self.feature_names:
            return None
        X = frame[self.feature_names]
        if self.features == "table":
            return X.reset_index(drop=True)
        values = X.to_numpy(np.float32 if (X.dtypes == np.float32).all() else np.float64)
        is_gap = ~np.isfinite(values)
        if is_gap.any():
            row, column = np.argwhere(is_gap)[0]
            raise ComesError(
                f"column {X.columns[column]!r} must hold numbers, as in the first block; got "
                f"{'nothing' if np.isnan(values[row, column]) else values[row, column]} at row "
                f"{X.index[row]}. Fill it in, or let a shard with such a gap come first."
            )
        return values

    def unify_answers(self, answers: Answers | None) -> Answers | None:
        """Return answers as all blocks have them: a block alone may not know their kind."""
        if answers is None or (answers.kind, answers.is_sparse) == (self.kind, self.is_sparse):
            return answers
        if self.kind not in ("answers", answers.kind):
            raise ComesError(
                f"the labels are {answers.kind} here, and {self.kind} in the first block, where "
                "every answer is 'no'. Call their columns answer:NAME, or put a block with other "
                "answers first."
            )
        codes = answers.states if self.is_sparse else answers.codes
        return Answers.from_codes(codes, self.kind, answers.label_names)

    def read(self, block: int) -> tuple[Any, Answers]:
        """Return features of a block, a float32 array, a DataFrame or prepared, and its answers."""
        dataset = self.load(block)
        X, answers = dataset.X, dataset.known_answers()
        if self.prepare is not None:
            return self.prepare(X), answers
        return X.astype(np.float32, copy=False) if isinstance(X, np.ndarray) else X, answers

    def prepared(self, prepare: Callable[[Any], Any]) -> "ShardedDataset":
        """Return the same rows, their features prepared when read, from what is stored."""
        return replace(self, prepare=prepare)

    def __iter__(self) -> Iterator[Dataset]:
        """Give the blocks as data sets, one after the other."""
        return (self.load(block) for block in range(len(self.blocks)))

    def __str__(self) -> str:
        n_files = len({block.file for block in self.blocks})
        blocks = f"{counted(len(self.blocks), 'block')} of {counted(n_files, 'file')}"
        what = "column" if self.features == "table" else "feature"
        parts = [f"{counted(self.n_rows, 'row')} in {blocks}"]
        parts += [counted(len(self.feature_names), what)] if self.feature_names else []
        parts += [counted(len(self.label_names), "label"), self.kind or "the truth alone"]
        return ", ".join(parts)


def open_shards(
    source: str | Path,
    options: ReadOptions | None = None,
    *,
    rows_at_once: int | None = None,
    **fields: Any,
) -> ShardedDataset:
    """Open a data set that lies in many files, or in one that is larger than memory.

    Parameters
    ----------
    source : str or Path
        A folder, a file, a pattern such as "parts/*.parquet", or an address of any of them, such
        as "s3://bucket/parts" (fsspec; ``pip install 'comes[remote]'``). All files have one format:
        .parquet, or .csv, .tsv or .jsonl, each also with .gz. Files of text are copied once to the
        cache, as Parquet.
    options : ReadOptions, optional
        What the columns and labels mean. It is resolved with the first block; a file that
        disagrees is an error, as it is opened or when the block is read.
    rows_at_once : int, optional
        The most rows of a block; by default 32768.
    **fields
        The fields of a `ReadOptions`, instead of one.

    Returns
    -------
    shards : ShardedDataset

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for k, names in enumerate((["sea", "sky"], ["sun"])):
    ...     table = pd.DataFrame({"red": [0.5] * len(names), "positives": names})
    ...     table.to_parquet(folder / f"part-{k}.parquet")
    >>> shards = open_shards(folder)
    >>> shards.sizes, shards.label_names
    ((2, 1), ['sea', 'sky', 'sun'])
    """
    options = as_options(options, fields)
    if rows_at_once is not None and rows_at_once < 1:
        raise ComesError(f"rows_at_once must be at least 1; got {rows_at_once}.")
    for name in options.given:
        if name in FOREIGN:
            raise ComesError(f"{name!r} does not apply to shards. Leave it out.")
    files, n_rows = list_files(source), rows_at_once or ROWS_AT_ONCE
    columns, frame, labels, X = look_at_first(files[0], options, n_rows)
    kind = None if labels.answers is None else labels.answers.kind
    blocks = [block for file in files for block in cut_file(file, n_rows, columns)]
    reader, names = columns.reader, set[str]()
    if reader.names_columns and options.label_names is None:
        for block in blocks:
            with explaining(block.file.address):
                names |= reader.list_names(read_block(block, reader.names_columns))
        reader = replace(reader, options=replace(options, label_names=sorted(names)))
        columns, labels = replace(columns, reader=reader), reader.read(frame)
    features = [] if X is None else list(X.columns)
    what = "none"
    if X is not None and features:
        what = "table" if needs_encoding(X) else "numbers"
    return ShardedDataset(
        tuple(blocks),
        labels.names,
        features or None,
        what,
        kind or ("candidates" if options.labels_are == "candidates" else None),
        columns,
        is_sparse=labels.answers is not None and labels.answers.is_sparse,
    )


def look_at_first(
    file: ShardFile, options: ReadOptions, n_rows: int
) -> tuple[Columns, pd.DataFrame, Labels, pd.DataFrame | None]:
    """Return what the columns are, by the first rows of a file, and these rows, read."""
    frame, schema, is_csv = pd.DataFrame(), None, file.ending in TEXT_ENDINGS
    with open_csv(file) if is_csv else nullcontext() as table:
        if file.ending == ".parquet":
            frame = read_block(cut_file(file, n_rows)[0])
        elif not is_csv:
            frame = next(read_jsonl(file, n_rows), frame)
        found = map(str, frame.columns) if table is None else table.columns
        names = [name for name in found if not UNNAMED.fullmatch(name)]
        if find_long_columns(names, options) is not None:
            raise ComesError(
                f"{file.name} has a row for every answer, and shards need a row for every item, "
                "with its features. Read it whole, or group it by item first."
            )
        roles = find_roles(names, options)
        words = find_words(names, table.codes if table else (), options)
        texts = {*roles.text_columns, *words}
        frame = (frame if table is None else table.read(texts, n_rows))[names]
        commas = [] if table is None else list(table.commas)
    reader, labels, X, item = look_at(frame, roles, words, options)
    if X is not None and not options.feature_columns:
        X = X.drop(columns=[item], errors="ignore")
    others = {*texts, item, *([*roles.labels, *roles.truth] if is_csv else ())}
    numbers = [name for name in names if name not in others and is_numeric(frame[name])]
    if file.ending != ".parquet":
        with explaining(file.address):
            stored = pa.Table.from_pandas(frame, preserve_index=False).schema
        kinds = {f.name: pa.string() if is_csv else EMPTY.get(f.type, f.type) for f in stored}
        schema = pa.schema({**kinds, **dict.fromkeys(numbers, pa.float64())})
    reader = replace(reader, roles=replace(roles, item=item))
    return Columns(names, reader, numbers, sorted(texts), commas, schema), frame, labels, X


# Files


@contextmanager
def explaining(place: str) -> Iterator[None]:
    """Let errors name the file; what stores raise has no common class."""
    name = PurePosixPath(place).name
    try:
        yield
    except MemoryError:
        raise
    except ComesError as error:
        if name in str(error):
            raise
        raise ComesError(f"{name}: {error}") from None
    except Exception as error:
        advice = "Correct the address or the file, or take another copy."
        if isinstance(error, ImportError):
            advice = "Install what it needs: pip install 'comes[remote]'."
        reason = first_line(error).rstrip(".")
        raise ComesError(f"{place} cannot be read: {reason}. {advice}") from None


def find_system(address: str) -> Any:
    """Return the file system of an address, and the path in it."""
    from fsspec.core import url_to_fs  # takes a while to import

    return url_to_fs(address)


def describe_file(system: Any, path: str) -> tuple[int, str]:
    """Return the size of a file, and what tells it from a changed one."""
    entry = system.info(path)
    version = next((str(entry[key]) for key in VERSIONS if entry.get(key)), "")
    return int(entry["size"] or 0), version


def list_files(source: str | Path) -> list[ShardFile]:
    """Return the files of a folder, pattern, path or address, by name; all of one format."""
    place, files = os.path.expanduser(str(source)), []
    with explaining(place):
        system, path = find_system(place)
        for found in sorted(system.find(path) if system.exists(path) else system.glob(path)):
            name = PurePosixPath(found).name
            ending = find_ending(Path(name))
            is_shard = ending in ENDINGS and not name.startswith((".", "_"))
            if is_shard and system.isfile(found):
                address = system.unstrip_protocol(found) if "://" in place else found
                files.append(ShardFile(address, *describe_file(system, found), name, ending))
    if not files:
        raise ComesError(
            f"{source} has no shards; expected files that end in {', '.join(ENDINGS[:-1])} or "
            f"{ENDINGS[-1]}. Other files are not read in blocks of rows: write LIBSVM and .npz "
            "files as Parquet first ('comes datasets convert FILE -o FILE.parquet'), and turn "
            "pictures into features (the same command)."
        )
    endings = list(dict.fromkeys(file.ending for file in files))
    if len(endings) > 1:
        raise ComesError(
            f"{source} has files of several formats, {listed(endings)}; expected one. Name those "
            f"that are meant, such as '*{endings[0]}'."
        )
    empty = [file.name for file in files if not file.size]
    if empty:
        raise ComesError(f"the shards {listed(empty)} are empty; expected rows. Remove them.")
    return files


def cut_file(file: ShardFile, n_rows: int, columns: Columns | None = None) -> list[Block]:
    """Return the blocks of a file, in the order of its rows; texts are copied to the cache."""
    parquet = file.address
    if columns is not None and columns.schema is not None:
        parquet = copy_text(file, columns, n_rows)
    with explaining(parquet):
        system, path = find_system(parquet)
        metadata = pq.read_metadata(path, filesystem=system)
        schema = metadata.schema.to_arrow_schema()
        if columns is not None:
            check_names(file, schema.names, columns)
        for name in columns.numbers if columns is not None else ():
            if not is_numeric(schema.field(name).type.to_pandas_dtype()):
                raise ComesError(
                    f"{file.name}: column {name!r} must hold numbers, as in the first block; got "
                    f"{schema.field(name).type}. Write the same columns in every shard."
                )
    blocks, first = [], 2 if file.ending in TEXT_ENDINGS else 1
    for group in range(metadata.num_row_groups):
        for part, start in enumerate(range(0, metadata.row_group(group).num_rows, n_rows)):
            size = min(n_rows, metadata.row_group(group).num_rows - start)
            blocks.append(Block(file, parquet, group, part, first, size, n_rows))
            first += size
    if not blocks:
        raise ComesError(f"{file.name} has no rows; expected at least one. Remove it.")
    return blocks


def check_names(file: ShardFile, names: Sequence[str], columns: Columns) -> None:
    """Raise unless a file has the columns of the first block."""
    extra = [name for name in names if name not in columns.names and not UNNAMED.fullmatch(name)]
    missing = [name for name in columns.names if name not in names]
    if extra or missing:
        what = f"has {listed(extra)}" if extra else f"lacks {listed(missing)}"
        raise ComesError(
            f"the columns differ: {file.name} {what}, unlike the first block. Write the same "
            "columns in every shard."
        )


def read_block(block: Block, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return columns of a block, or all; rows have their numbers in the file."""
    file = block.file
    with explaining(file.address):
        if describe_file(*find_system(file.address)) != (file.size, file.version):
            raise ComesError(f"{file.name} has changed. Open the shards again.")
    with explaining(block.parquet):
        system, path = find_system(block.parquet)
        with pq.ParquetFile(path, filesystem=system) as parquet:
            groups = [block.group]
            batches = parquet.iter_batches(block.rows_at_once, groups, columns, use_threads=False)
            rows = pa.table(next(islice(batches, block.part, None)))
    frame: pd.DataFrame = rows.to_pandas(ignore_metadata=True)  # an index is a column
    return frame.set_axis(range(block.first, block.first + len(frame)))


# Copies of text


def copy_text(file: ShardFile, columns: Columns, n_rows: int) -> str:
    """Return the Parquet file in the cache that holds a csv or jsonl file, in the same blocks."""
    from filelock import FileLock

    address, version, kind = (
        hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        for key in ((COPY_VERSION, file.address), (file.size, file.version), (columns, n_rows))
    )
    folder = cache_folder() / "shards" / address
    copy, schema = folder / f"{version}-{kind}.parquet", columns.schema
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with nullcontext() if copy.exists() else FileLock(folder.with_suffix(".lock")):
            if copy.exists():  # perhaps another process has written it
                return str(copy)
            for other in folder.iterdir():
                if not other.name.startswith(version):  # of the file before it changed
                    other.unlink(missing_ok=True)
            with (
                replacing_file(copy) as temporary,
                pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
            ):
                for frame in read_text(file, columns, n_rows):
                    with explaining(file.address):
                        for name in columns.numbers:
                            frame[name] = read_numbers(frame[name], name in columns.commas)
                        rows = pa.Table.from_pandas(frame, schema, preserve_index=False)
                    writer.write_table(rows)
    except OSError as error:
        raise ComesError(
            f"{file.name} is copied to the cache as Parquet, and {folder} cannot be written: "
            f"{first_line(error)}. Set COMES_CACHE to another folder."
        ) from None
    return str(copy)


def read_text(file: ShardFile, columns: Columns, n_rows: int) -> Iterator[pd.DataFrame]:
    """Give the rows of a csv or jsonl file in blocks."""
    if file.ending in TEXT_ENDINGS:
        words = [n for n in columns.names if n not in columns.numbers or n in columns.commas]
        with open_csv(file) as table:
            check_names(file, table.columns, columns)
            yield from table.read_blocks(columns.texts, words, n_rows)
    else:
        for frame in read_jsonl(file, n_rows):
            check_names(file, [*columns.names, *map(str, frame.columns)], columns)
            yield frame.reindex(columns=columns.names)


@contextmanager
def open_csv(file: ShardFile) -> Iterator[Table]:
    """Open a csv file, on this machine or at an address."""
    with explaining(file.address):
        system, path = find_system(file.address)
        with system.open(path, "rb") as stream, Table(Path(file.name), stream) as table:
            yield table


def read_jsonl(file: ShardFile, n_rows: int) -> Iterator[pd.DataFrame]:
    """Give the rows of a file with an object of json in each line, in blocks.

    pyarrow would leave out fields that its first block does not have, and take texts for dates.
    """

    def parse(number: int, line: bytes) -> dict[str, Any]:
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                return row
        raise ComesError(
            f"line {number} of {file.name} must be an object of json, a field for every column; "
            f"got {line[:60].decode(errors='replace').strip()}."
        )

    with explaining(file.address):
        system, path = find_system(file.address)
        with system.open(path, "rb", compression="infer") as stream:
            rows = (parse(*line) for line in enumerate(stream, 1) if line[1].strip())
            first = 1
            while some := list(islice(rows, n_rows)):
                yield pd.DataFrame(some, index=range(first, first + len(some)))
                first += len(some)


def read_numbers(cells: "pd.Series[Any]", with_commas: bool = False) -> "pd.Series[float]":
    """Return cells as numbers; raise if one is something else."""
    if with_commas:
        written = cells.str.strip()
        is_number = written.str.fullmatch(DECIMAL_COMMA).fillna(False)
        plain = written.str.replace(".", "").str.replace(",", ".").where(is_number)
    numbers = pd.to_numeric(plain if with_commas else cells, errors="coerce").astype(np.float64)
    wrong = numbers.isna() & cells.notna()
    if wrong.any():
        raise ComesError(
            f"column {cells.name!r} must hold numbers, as in the first block; got "
            f"{cells[wrong].iloc[0]!r} at row {wrong.idxmax()}. If it is a category, say so "
            "(category; --category on the command line)."
        )
    return numbers
