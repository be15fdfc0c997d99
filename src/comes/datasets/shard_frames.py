"""The rows of a block as a table, as they are stored: parquet, csv, jsonl, and tar files."""

import csv
import io
import json
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comes.datasets.delimited import choose_delimiter, read_decimal_commas
from comes.datasets.shard_blocks import (
    CSV_ENDINGS,
    Block,
    is_picture,
    read_records,
    read_samples,
    split_key,
)
from comes.datasets.shard_files import ShardFile
from comes.datasets.stored_images import StoredImages
from comes.datasets.tables import drop_superfluous, list_codes, read_csv_cells, refuse_repeated
from comes.errors import ComesError

HEAD_BYTES = 2**20  # that tell what separates the columns
KEY = "item"  # the column of the names of pictures in a tar file


def read_csv_head(file: ShardFile) -> tuple[bytes, str]:
    """Return the line that names the columns of a csv file, and what separates them."""
    with file.open_text() as stream:
        start = next(read_records(stream, in_quotes=True), b"")
        stream.seek(0)
        sample = stream.read(HEAD_BYTES)
    if b"\0" in sample:
        raise ComesError(f"{file.name} holds bytes that are not text. Take another copy.")
    text = sample.decode("utf-8-sig", errors="replace")
    whole = text if len(sample) < HEAD_BYTES else text[: text.rfind("\n") + 1]
    usual = "\t" if file.ending.startswith(".tsv") else ","
    return start, choose_delimiter(io.StringIO(whole, newline=""), usual)


def read_lines(file: ShardFile, block: Block) -> bytes:
    """Return the lines of a block."""
    with file.open_text() as stream:
        stream.seek(block.start)
        return stream.read(block.length)


def read_csv_block(
    file: ShardFile,
    block: Block,
    delimiter: str,
    text_columns: Collection[str] = (),
    word_columns: Collection[str] = (),
) -> pd.DataFrame:
    """Return the rows of a block of a csv file."""
    head, _ = read_csv_head(file)
    names = read_names(head, delimiter)
    content = read_lines(file, block)
    _refuse_more_cells(content, len(names), delimiter, file)
    with file.open_text():  # names the file in errors
        refuse_repeated(names)
        table = read_csv_cells(
            io.BytesIO(_with_end(head) + content),
            names,
            delimiter,
            [name for name in text_columns if name in names],
            [name for name in word_columns if name in names],
        )
    table = drop_superfluous(table) if block.first == 0 else table
    return read_decimal_commas(table, {*text_columns, *word_columns})


def _refuse_more_cells(content: bytes, n_columns: int, delimiter: str, file: ShardFile) -> None:
    """Raise if the first row has more cells than columns: pandas would take one for its name.

    A later row with more cells than the first is an error of pandas.
    """
    lines = io.StringIO(content[:HEAD_BYTES].decode("utf-8", errors="replace"), newline="")
    first = next((cells for cells in csv.reader(lines, delimiter=delimiter) if cells), [])
    if len(first) > n_columns:
        raise ComesError(
            f"{file.name} has a row of {len(first)} cells and {n_columns} columns. Correct it."
        )


def read_names(head: bytes, delimiter: str) -> list[str]:
    """Return the names of the columns of a csv file."""
    cells = pd.read_csv(
        io.BytesIO(head), sep=delimiter, header=None, nrows=1, dtype=str, keep_default_na=False
    )
    return [str(name) or f"Unnamed: {j}" for j, name in enumerate(cells.iloc[0])]


def _with_end(head: bytes) -> bytes:
    return head if head.endswith((b"\n", b"\r")) else head + b"\n"


def find_codes(file: ShardFile, block: Block, delimiter: str) -> list[str]:
    """Return the columns of digits that begin with 0, by the first block."""
    head, _ = read_csv_head(file)
    content = io.BytesIO(_with_end(head) + read_lines(file, block))
    cells = pd.read_csv(content, sep=delimiter, dtype=str, keep_default_na=False)
    return list_codes(cells)


def read_json_block(file: ShardFile, block: Block) -> pd.DataFrame:
    """Return the rows of a block of lines, each of which is an object."""
    rows = []
    lines = [line for line in read_lines(file, block).splitlines() if line.strip()]
    for number, line in enumerate(lines, block.first):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ComesError(f"row {number} of {file.name} is not json: {error}.") from None
        if not isinstance(row, dict):
            raise ComesError(
                f"row {number} of {file.name} must be an object, a field for every column; got "
                f"{str(row)[:60]}."
            )
        rows.append(row)
    return pd.DataFrame(rows)


def read_parquet_block(
    file: ShardFile, block: Block, most_rows: int, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the rows of a row group of a parquet file, or of a part of it."""
    with file.open() as stream:
        parquet = pq.ParquetFile(stream)
        if block.n_rows == parquet.metadata.row_group(block.start).num_rows:
            table = parquet.read_row_group(block.start, columns=columns, use_threads=False)
        else:
            batches = parquet.iter_batches(
                most_rows, row_groups=[block.start], columns=columns, use_threads=False
            )
            wanted = next(islice(batches, block.length, None))
            table = pa.Table.from_batches([wanted])
    frame: pd.DataFrame = table.to_pandas()
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(named) if named else frame


def read_tar_block(file: ShardFile, block: Block) -> tuple[StoredImages, pd.DataFrame]:
    """Return the pictures of a block of a tar file, and what stands beside them as a table."""
    names, contents, rows = [], [], []
    with file.open() as stream:
        stream.seek(block.start)
        for members in islice(read_samples(stream), block.n_rows):
            row: dict[str, Any] = {KEY: split_key(members[0].name)[0]}
            for member in members:
                stream.seek(member.offset_data)
                content = stream.read(member.size)
                if is_picture(member.name):
                    names.append(member.name)
                    contents.append(content)
                else:
                    row |= _read_fields(split_key(member.name)[1], content, member.name, file)
            rows.append(row)
    return StoredImages(names, contents), pd.DataFrame(rows)


def _read_fields(ending: str, content: bytes, name: str, file: ShardFile) -> dict[str, Any]:
    """Return what a file beside a picture says: the fields of a .json, or its text."""
    try:
        if ending != "json":
            return {ending: content.decode().strip()}
        fields = json.loads(content)
        if isinstance(fields, dict):
            return fields
    except ValueError:  # not json, or not text
        pass
    raise ComesError(f"{name} in {file.name} must be an object of json, or text; got neither.")


def read_frame(
    file: ShardFile,
    block: Block,
    most_rows: int,
    delimiter: str,
    text_columns: Collection[str] = (),
    word_columns: Collection[str] = (),
    columns: Sequence[str] | None = None,
) -> tuple[StoredImages | None, pd.DataFrame]:
    """Return the rows of a block as a table, and their pictures where the file holds them."""
    if file.ending == ".tar":
        return read_tar_block(file, block)
    if file.ending == ".parquet":
        frame = read_parquet_block(file, block, most_rows, columns)
    elif file.ending in CSV_ENDINGS:
        frame = read_csv_block(file, block, delimiter, text_columns, word_columns)
    else:
        frame = read_json_block(file, block)
    return None, frame.set_axis([str(name) for name in frame.columns], axis=1)
