"""`open_shards`: more rows than memory holds, in files that are read in blocks of rows.

Training reads the blocks in random order, in several threads, again in every epoch. Parquet files
can be read so, and lines of text cannot: csv and jsonl files are copied once to the cache, as
Parquet files of a block each. Cells of csv files are copied as they are written, and get their
types when a block is read, so that a copy does not depend on what the columns mean.
"""

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.types import is_numeric_dtype as is_numeric

from comes.answers import Answers
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.indicators import FEW, MANY_PAIRS
from comes.datasets.labels import LabelForm, find_form, list_names, read_label_cells, warn_of_labels
from comes.datasets.options import ReadOptions, as_options
from comes.datasets.roles import LONG, Roles, find_roles
from comes.datasets.table import (
    DECIMAL_COMMA,
    HEAD_BYTES,
    INDEX_LEVEL,
    MISSING,
    NAMELESS,
    choose_delimiter,
    find_columns,
    find_ending,
    list_codes,
    no_column,
    read_decimal_commas,
)
from comes.datasets.table_datasets import find_features, item_names
from comes.errors import ComesError, counted, first_line, listed
from comes.files import cache_folder, replacing_folder
from comes.tables import find_item_column, needs_encoding

ROWS_AT_ONCE = 2**15
BYTES_AT_ONCE = 2**23  # of a csv file; its rows must be shorter
COPY_VERSION = 1
CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ENDINGS = (".parquet", *CSV_ENDINGS, ".jsonl", ".jsonl.gz")
FOREIGN = ("features", "images", "skip_broken", "xml", "n_features", "difficult", "unannotated")
VERSIONS = ("ETag", "etag", "checksum", "mtime", "last_modified", "LastModified", "created")
UNNAMED = re.compile(rf"{NAMELESS.pattern}|{INDEX_LEVEL.pattern}")
WITH_COMMAS = f"^(?i:{DECIMAL_COMMA.pattern})$"


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
    first: int  # row of the file
    n_rows: int
    parquet: str  # address of the file, or of its copy
    group: int
    part: int  # how many blocks of the row group come before
    rows_at_once: int


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
    >>> for k in range(2):
    ...     table.to_parquet(folder / f"part-{k}.parquet")
    >>> shards = open_shards(folder)
    >>> print(shards)
    6 rows in 2 blocks of 2 files, 1 feature, 2 labels, candidates
    >>> X, answers = shards.read(1)
    >>> X.dtype, answers
    (dtype('float32'), Candidates of 3 rows and 2 labels: 2 of 6 pairs excluded; who was asked \
is not known)
    """

    blocks: tuple[Block, ...]
    label_names: list[str]
    feature_names: list[str] | None
    features: str
    kind: Kind | None
    # What the columns are, by the first block; it holds for all.
    columns: list[str]
    roles: Roles
    form: LabelForm
    reading: ReadOptions
    texts: Collection[str]  # columns whose cells are kept as they are written
    numbers: Collection[str]  # columns that hold nothing else
    commas: Collection[str]  # columns of numbers such as 1,5
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
        place, roles = self.blocks[block], self.roles
        item = [] if roles.item is None else [roles.item]
        used = [*roles.labels, *roles.truth, *(self.feature_names or ()), *item]
        frame = self.read_columns(place, used)
        try:
            X = self.select_features(frame)
            labels = read_label_cells(frame, roles, self.reading, self.form)
            dataset = Dataset(
                X,
                labels.names,
                relevant=labels.truth,
                items=item_names(frame, roles.item) if roles.item is not None else None,
                from_complementary=roles.labels_are == "complementary",
                answers=self.unify_answers(labels.answers),
            )
        except ComesError as error:
            raise ComesError(f"{place.file.name}: {error}") from None
        is_candidates = self.reading.labels_are == "candidates"
        return dataset.with_labels_as("candidates", place.file.name) if is_candidates else dataset

    def read_columns(self, block: Block, columns: Sequence[str]) -> pd.DataFrame:
        """Return columns of a block; fields that no line of a jsonl file has are empty."""
        table, names = read_block(block, columns)
        extra = [c for c in names if c not in self.columns and not UNNAMED.fullmatch(c)]
        if extra:
            raise ComesError(
                f"{block.file.name} has the columns {listed(extra)}, which the first block does "
                "not have. Write the same columns in every shard."
            )
        frame = as_frame(table, block, self.texts, self.numbers, self.commas)
        if block.file.ending.startswith(".jsonl"):
            return frame.reindex(columns=list(columns))
        missing = [name for name in columns if name not in frame]
        if missing:
            raise ComesError(f"{block.file.name}: {no_column(missing[0], names)}")
        return frame

    def select_features(self, frame: pd.DataFrame) -> Any:
        """Return the features of a block: a table, or an array if all are complete numbers."""
        if not self.feature_names:
            return None
        X = frame[self.feature_names]
        for name in [name for name in self.feature_names if name in self.numbers]:
            cells = numbers = X[name]
            if not is_numeric(cells):
                numbers = pd.to_numeric(cells, errors="coerce").astype(np.float64)
                X = X.assign(**{name: numbers})
            wrong = (numbers.isna() & cells.notna()).to_numpy(dtype=bool)
            advice = "If it is a category, say so (category; --category on the command line)."
            if self.features != "table" and not wrong.any():
                wrong = ~np.isfinite(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
                advice = "Fill it in, or let a shard with such a gap come first."
            if wrong.any():
                cell = cells[wrong].iloc[0]
                raise ComesError(
                    f"column {name!r} must hold numbers, as in the first block; got "
                    f"{'nothing' if pd.isna(cell) else repr(cell)} at row {cells.index[wrong][0]}. "
                    f"{advice}"
                )
        if self.features == "table":
            return X.reset_index(drop=True)
        return X.to_numpy(np.float32 if (X.dtypes == np.float32).all() else np.float64)

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
        parts = [f"{counted(self.n_rows, 'row')} in {blocks}"]
        if self.feature_names is not None:
            what = "column" if self.features == "table" else "feature"
            parts.append(counted(len(self.feature_names), what))
        labels = counted(len(self.label_names), "label")
        return ", ".join([*parts, labels, self.kind or "the truth alone"])


def open_shards(
    source: str | Path,
    reading: ReadOptions | None = None,
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
    reading : ReadOptions, optional
        What the columns and labels mean. It is resolved with the first block; a block that
        disagrees is an error when it is read.
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
    reading = as_options(reading, fields)
    if rows_at_once is not None and rows_at_once < 1:
        raise ComesError(f"rows_at_once must be at least 1; got {rows_at_once}.")
    for name in reading.given:
        if name in FOREIGN:
            raise ComesError(f"{name!r} does not apply to shards. Leave it out.")
    files = list_files(source)
    blocks = tuple(b for file in files for b in cut_file(file, rows_at_once or ROWS_AT_ONCE))
    shards = look_at_first(blocks, reading)
    roles, form = shards.roles, shards.form
    by_name = [*roles.labels] * form.by_name + [*roles.truth] * form.truth_by_name
    if by_name and reading.label_names is None:
        names: set[str] = set()
        for block in blocks:
            names |= list_names(shards.read_columns(block, by_name), roles, form)
        shards = replace(shards, reading=replace(reading, label_names=sorted(names)))
    first = shards.load(0)
    shards, answers = replace(shards, label_names=first.label_names), first.answers
    if answers is None:
        return shards
    n_pairs, n_asked = answers.shape[0] * answers.shape[1], answers.count()["asked"].sum()
    is_large = max(shards.sizes) * answers.shape[1] > MANY_PAIRS
    return replace(shards, is_sparse=is_large and bool(n_asked <= FEW * n_pairs))


# Files


@contextmanager
def explaining(place: str) -> Iterator[None]:
    """Say in one sentence why a place cannot be read; what stores raise has no common class."""
    try:
        yield
    except (ComesError, MemoryError):
        raise
    except ImportError as error:
        raise ComesError(
            f"{place} needs a package that is not installed ({first_line(error)}): pip install "
            "'comes[remote]'."
        ) from None
    except Exception as error:
        reason = re.sub(r"^Could not open .*?: Invalid: ", "", first_line(error)).rstrip(".")
        raise ComesError(
            f"{place} cannot be read: {reason}. Correct the address or the file, or take another "
            "copy."
        ) from None


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
            "files as Parquet first ('comes datasets convert FILE FILE.parquet'), and turn "
            "pictures into features ('comes features')."
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


def cut_file(file: ShardFile, rows_at_once: int) -> Iterator[Block]:
    """Give the blocks of a file, in the order of its rows."""
    first = 0
    for parquet in [file.address] if file.ending == ".parquet" else copy_text(file, rows_at_once):
        with explaining(parquet):
            system, path = find_system(parquet)
            metadata = pq.read_metadata(path, filesystem=system)
        for group in range(metadata.num_row_groups):
            n_rows = metadata.row_group(group).num_rows
            for part, start in enumerate(range(0, n_rows, rows_at_once)):
                size = min(rows_at_once, n_rows - start)
                yield Block(file, first, size, parquet, group, part, rows_at_once)
                first += size
    if not first:
        raise ComesError(f"{file.name} has no rows; expected at least one. Remove it.")


# Copies of text


def copy_text(file: ShardFile, rows_at_once: int) -> list[str]:
    """Return the Parquet files in the cache that hold a csv or jsonl file, a block each."""
    from filelock import FileLock

    address, version = (
        hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        for key in (file.address, (COPY_VERSION, file.size, file.version))
    )
    folder = cache_folder() / "shards" / address
    copy = folder / f"{version}-{rows_at_once}"
    read = read_jsonl if file.ending.startswith(".jsonl") else read_csv
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with nullcontext() if copy.exists() else FileLock(folder.with_suffix(".lock")):
            if not copy.exists():  # another process may have written it
                for other in folder.iterdir():
                    if not other.name.startswith(version):  # of the file before it changed
                        shutil.rmtree(other, ignore_errors=True)
                with replacing_folder(copy, ()) as temporary:
                    for number, table in enumerate(read(file, rows_at_once)):
                        part = temporary / f"{number:08d}.parquet"
                        pq.write_table(table, part, compression="zstd")
    except OSError as error:
        raise ComesError(
            f"{file.name} is copied to the cache as Parquet, and {folder} cannot be written: "
            f"{first_line(error)}. Set COMES_CACHE to another folder."
        ) from None
    return sorted(map(str, copy.iterdir()))


def read_csv(file: ShardFile, rows_at_once: int) -> Iterator[pa.Table]:
    """Give the rows of a csv file, cells as they are written."""
    import pyarrow.csv
    import pyarrow.dataset

    with explaining(file.address):
        system, path = find_system(file.address)
        with system.open(path, "rb", compression="infer") as stream:
            head = stream.read(HEAD_BYTES)
        text = head.decode("utf-8-sig", errors="replace")
        text = text if len(head) < HEAD_BYTES else text[: text.rfind("\n") + 1]
        delimiter = choose_delimiter(text, "\t" if file.ending.startswith(".tsv") else ",")
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        n_before, cells = next(((n, cells) for n, cells in enumerate(lines) if cells), (0, []))
        names = [name or f"Unnamed: {j}" for j, name in enumerate(cells)]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ComesError(f"{file.name}: column {repeated[0]!r} occurs more than once.")
        schema = pa.schema([(name, pa.string()) for name in names])
        form = pyarrow.dataset.CsvFileFormat(
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
            read_options=pyarrow.csv.ReadOptions(
                block_size=BYTES_AT_ONCE, column_names=names, skip_rows_after_names=n_before + 1
            ),
        )
        rows = pyarrow.dataset.dataset(path, schema, form, system)
        last = ""
        for table in regroup(rows.to_batches(batch_readahead=1), rows_at_once):
            if any(pc.any(pc.match_substring(column, "\0")).as_py() for column in table.columns):
                raise ComesError(f"{file.name} holds bytes that are not text. Take another copy.")
            last = table[-1][-1].as_py()
            yield table
        opened = b'"' + last.replace('"', '""').encode()  # pyarrow does not miss the end
        if last and not file.ending.endswith(".gz") and system.tail(path, len(opened)) == opened:
            raise ComesError(f"{file.name} ends within quotes. Close them, or take another copy.")


def read_jsonl(file: ShardFile, rows_at_once: int) -> Iterator[pa.Table]:
    """Give the rows of a file with an object of json in each line.

    pyarrow would leave out fields that its first block does not have, and take texts for dates.
    """
    with explaining(file.address):
        system, path = find_system(file.address)
        with system.open(path, "rb", compression="infer") as stream:
            lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
            while some := list(islice(lines, rows_at_once)):
                rows = []
                for number, line in some:
                    try:
                        rows.append(json.loads(line))
                    except ValueError as error:
                        where = f"line {number} of {file.name}"
                        raise ComesError(f"{where} is not json: {error}.") from None
                    if not isinstance(rows[-1], dict):
                        raise ComesError(
                            f"line {number} of {file.name} must be an object, a field for every "
                            f"column; got {str(rows[-1])[:60]}."
                        )
                yield pa.Table.from_pandas(pd.DataFrame(rows), preserve_index=False)


def regroup(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.Table]:
    """Give batches as tables of so many rows, but for the last."""
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, n_rows - sum(map(len, kept)))
            kept, batch = [*kept, part], batch.slice(len(part))
            if sum(map(len, kept)) == n_rows:
                yield pa.Table.from_batches(kept)
                kept = []
    if kept:
        yield pa.Table.from_batches(kept)


# Blocks


def read_block(
    block: Block, columns: Collection[str] | None = None
) -> tuple[pa.Table, Sequence[str]]:
    """Return the rows of a block as they are stored, those columns of it, and the names of all."""
    file = block.file
    with explaining(file.address):
        if describe_file(*find_system(file.address)) != (file.size, file.version):
            raise ComesError(f"{file.name} has changed. Open the shards again.")
    with explaining(block.parquet):
        system, path = find_system(block.parquet)
        with pq.ParquetFile(path, filesystem=system) as parquet:
            names = parquet.schema_arrow.names
            used = [name for name in names if columns is None or name in columns]
            if block.n_rows == parquet.metadata.row_group(block.group).num_rows:
                return parquet.read_row_group(block.group, used, use_threads=False), names
            batches = parquet.iter_batches(2**13, [block.group], used, use_threads=False)
            return next(islice(regroup(batches, block.rows_at_once), block.part, None)), names


def as_frame(
    table: pa.Table,
    block: Block,
    texts: Collection[str] = (),
    numbers: Collection[str] | None = None,
    commas: Collection[str] = (),
) -> pd.DataFrame:
    """Return rows as a frame, numbered as in the file; cells of a csv file get their types.

    Those of ``texts`` stay as they are written, and ``numbers`` are read, by default wherever a
    column holds nothing else.
    """
    if is_csv := block.file.ending in CSV_ENDINGS:
        columns = table.columns
        for place, name in enumerate(table.column_names):
            if name not in texts:
                is_gap = pc.is_in(columns[place], pa.array(MISSING))
                cells = pc.if_else(is_gap, None, columns[place])
                is_number = numbers is None or name in numbers
                columns[place] = read_numbers(cells, name in commas) if is_number else cells
        table = pa.table(columns, table.column_names)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)  # an index is a column
    first = block.first + (2 if is_csv else 1)
    return frame.set_axis(range(first, first + len(frame)))


def read_numbers(cells: pa.ChunkedArray, with_commas: bool) -> pa.ChunkedArray:
    """Return texts as numbers, or True and False, if all are such; else as they are."""
    trimmed = pc.utf8_trim_whitespace(cells)
    if with_commas and pc.all(pc.match_substring_regex(trimmed, WITH_COMMAS)).as_py():
        trimmed = pc.replace_substring(pc.replace_substring(trimmed, ".", ""), ",", ".")
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            trimmed.slice(0, 100).cast(kind)  # as a cast that fails takes long
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    try:
        return pa.array(pd.to_numeric(trimmed.to_pandas()))  # knows +1.5, too
    except ValueError:
        return cells


def look_at_first(blocks: tuple[Block, ...], reading: ReadOptions) -> ShardedDataset:
    """Return shards with what their columns are, by the first block."""
    block = blocks[0]
    is_csv = block.file.ending in CSV_ENDINGS
    table, names = read_block(block)
    columns = [name for name in names if not UNNAMED.fullmatch(name)]
    has_labels = reading.labels is not None or reading.relevant is not None
    if reading.long is not None or (set(LONG) <= set(columns) and not has_labels):
        raise ComesError(
            f"{block.file.name} has a row for every answer, and shards need a row for every item, "
            "with its features. Read it whole, or group it by item first."
        )
    roles = find_roles(columns, reading)
    codes = list_codes(table.to_pandas(), names) if is_csv else []
    words = find_columns(columns, reading.word_columns) + codes
    texts = {*roles.text_columns, *words}
    stored = as_frame(table, block, texts)[columns]
    frame = read_decimal_commas(stored, texts) if is_csv else stored
    form = find_form(frame, roles, reading)
    labels = read_label_cells(frame, roles, reading, form)
    warn_of_labels(labels, reading, form)
    features = list(reading.feature_columns or find_features(frame, roles, labels.names, words))
    for name in features:
        if name not in frame:
            raise no_column(name, columns)
    if roles.item is None:
        roles = replace(roles, item=find_item_column(frame[roles.find_features(columns)]))
    numbers = [c for c in columns if c not in texts and is_numeric(frame[c])]
    kind: Kind | None = None if labels.answers is None else labels.answers.kind
    if reading.labels_are == "candidates":
        kind = kind or "candidates"
    what = "table" if features and needs_encoding(frame[features]) else "numbers"
    return ShardedDataset(
        blocks,
        labels.names,
        features or None,
        what if features else "none",
        kind,
        columns=columns,
        roles=roles,
        form=form,
        reading=reading,
        texts=texts,
        numbers=numbers,
        commas=[c for c in numbers if not is_numeric(stored[c])],
    )
