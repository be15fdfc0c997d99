"""Shards cut into blocks of rows: where each begins, and how many rows it has.

A parquet file says how many rows its row groups have, an .npz file how many it has. Lines are
counted in one pass, and so are the pictures of a tar file.
"""

import io
import tarfile
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import pyarrow.parquet as pq

from comes.datasets.image_formats import PICTURE_ENDINGS
from comes.datasets.shard_files import ShardFile
from comes.errors import ComesError

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
JSON_ENDINGS = (".jsonl", ".jsonl.gz")
SVM_ENDINGS = (".svm", ".libsvm", ".txt")


@dataclass(frozen=True)
class Block:
    """Rows of one file that are read together."""

    file: int  # its number among the files
    first: int  # row of the file
    n_rows: int
    start: int  # byte at which it begins; of parquet, the row group
    length: int  # in bytes; of parquet, how many blocks of the row group come before


def cut_file(file: ShardFile, number: int, most_rows: int) -> list[Block]:
    """Return the blocks of a file, each of at most so many rows."""
    cut: Callable[[ShardFile, int], Iterator[tuple[int, int, int]]]
    if file.ending == ".parquet":
        cut = _cut_parquet
    elif file.ending == ".npz":
        cut = _cut_npz
    elif file.ending == ".tar":
        cut = _cut_tar
    else:
        cut = _cut_lines
    blocks, first = [], 0
    for n_rows, start, length in cut(file, most_rows):
        blocks.append(Block(number, first, n_rows, start, length))
        first += n_rows
    if not blocks:
        raise ComesError(f"{file.name} has no rows; expected at least one. Remove it.")
    return blocks


def as_numbers(block: Block) -> list[int]:
    """Return a block as a row of numbers, which ``Block(*numbers)`` reads."""
    return list(astuple(block))


def _cut_parquet(file: ShardFile, most_rows: int) -> Iterator[tuple[int, int, int]]:
    """Give the row groups of a parquet file, large ones in parts."""
    with file.open() as stream:
        metadata = pq.ParquetFile(stream).metadata
        sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    for group, size in enumerate(sizes):
        for part, first in enumerate(range(0, size, most_rows)):
            yield min(most_rows, size - first), group, part


def _cut_npz(file: ShardFile, _: int) -> Iterator[tuple[int, int, int]]:
    """Give an .npz file as one block; the shape of an array says how many rows it has."""
    with file.open() as stream, zipfile.ZipFile(stream) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        for name in ("X_shape", "X", "relevant", "candidates", "complementary", "positives", "no"):
            if name not in names:
                continue
            with archive.open(f"{name}.npy") as member:
                if name == "X_shape":
                    n_rows = int(np.load(io.BytesIO(member.read()), allow_pickle=False)[0])
                else:
                    n_rows = _read_shape(member)[0]
            yield n_rows, 0, file.size
            return
    raise ComesError(f"{file.name} has no array 'X'; it has {', '.join(sorted(names)) or 'none'}.")


def _read_shape(member: Any) -> tuple[int, ...]:
    """Return the shape that the head of an array says."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    return tuple(read(member)[0])


def _cut_lines(file: ShardFile, most_rows: int) -> Iterator[tuple[int, int, int]]:
    """Give the records of a file of text; a csv file begins with one that names the columns."""
    with file.open_text() as stream:
        start = skip_head(stream, file)
        place, rows = start, 0
        for record in read_records(stream, in_quotes=file.ending in CSV_ENDINGS):
            place += len(record)
            rows += bool(record.strip())
            if rows == most_rows:
                yield rows, start, place - start
                start, rows = place, 0
        if rows:
            yield rows, start, place - start


def skip_head(stream: BinaryIO, file: ShardFile) -> int:
    """Move behind what names the columns, or says n, d and q; return how many bytes that is."""
    if file.ending in CSV_ENDINGS:
        return len(next(read_records(stream, in_quotes=True), b""))
    line = stream.readline() if file.ending in SVM_ENDINGS else b""
    if _are_sizes(line):
        return len(line)
    mark = len(BOM_UTF8) if line.startswith(BOM_UTF8) else 0
    stream.seek(mark)
    return mark


def read_sizes(file: ShardFile) -> tuple[int, int, int] | None:
    """Return n, d and q if the first line of a LIBSVM file says so."""
    with file.open_text() as stream:
        line = stream.readline()
    if not _are_sizes(line):
        return None
    n, d, q = map(int, line.removeprefix(BOM_UTF8).split())
    return n, d, q


def _are_sizes(line: bytes) -> bool:
    words = line.removeprefix(BOM_UTF8).split()
    return len(words) == 3 and all(word.isdigit() for word in words)


def read_records(stream: BinaryIO, *, in_quotes: bool) -> Iterator[bytes]:
    """Give the lines of a stream with their ends; with quotes, those that no quote holds open."""
    open_lines: list[bytes] = []
    is_open = False
    for line in stream:
        if in_quotes and line.count(b'"') % 2:
            is_open = not is_open
        if is_open:
            open_lines.append(line)
        elif open_lines:
            yield b"".join([*open_lines, line])
            open_lines = []
        else:
            yield line
    if open_lines:
        yield b"".join(open_lines)


def _cut_tar(file: ShardFile, most_rows: int) -> Iterator[tuple[int, int, int]]:
    """Give the pictures of a tar file, each with what stands beside it under the same key."""
    with file.open() as stream:
        start, rows, end = 0, 0, 0
        for members in read_samples(stream):
            if rows == most_rows:
                yield rows, start, end - start
                start, rows = end, 0
            rows += 1
            last = members[-1]
            end = last.offset_data + -(-last.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        if rows:
            yield rows, start, end - start


def read_samples(stream: BinaryIO) -> Iterator[list[tarfile.TarInfo]]:
    """Give the members of a tar file that share a key, from where the stream stands."""
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        sample: list[tarfile.TarInfo] = []
        while (member := archive.next()) is not None:
            vars(archive)["members"].clear()  # or it would remember all of them
            if not member.isfile() or split_key(member.name)[0].rpartition("/")[2] == "":
                continue
            if sample and split_key(sample[0].name)[0] != split_key(member.name)[0]:
                yield _checked(sample)
                sample = []
            sample.append(member)
        if sample:
            yield _checked(sample)


def _checked(sample: list[tarfile.TarInfo]) -> list[tarfile.TarInfo]:
    """Return the members of a sample; raise unless one of them is a picture."""
    n_pictures = sum(is_picture(member.name) for member in sample)
    if n_pictures != 1:
        names = ", ".join(member.name for member in sample)
        raise ComesError(
            f"a sample of a tar file needs one picture, and has {n_pictures}: {names}. Store the "
            "files of a sample one after the other, with one name and different endings."
        )
    return sample


def is_picture(name: str) -> bool:
    """Return whether a member of a tar file is a picture."""
    return name.lower().endswith(PICTURE_ENDINGS)


def split_key(name: str) -> tuple[str, str]:
    """Return the key of a member and its ending: what stands after the first dot of the file."""
    path = PurePosixPath(name)
    key, _, ending = path.name.partition(".")
    return str(path.with_name(key)) if key else "", ending.lower()
