"""Where the files of a sharded data set lie: in a folder, behind a pattern, at an address."""

import glob
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from comes.errors import ComesError, first_line, listed
from comes.files import expanded

ENDINGS = (
    ".parquet",
    ".csv",
    ".csv.gz",
    ".tsv",
    ".tsv.gz",
    ".jsonl",
    ".jsonl.gz",
    ".svm",
    ".libsvm",
    ".txt",
    ".npz",
    ".tar",
)


@dataclass(frozen=True)
class ShardFile:
    """A file of a sharded data set: its address, and what tells it from a changed one."""

    address: str
    size: int
    stamp: str  # when it was last changed, or what a store calls its version

    @property
    def name(self) -> str:
        """The last part of the address, for messages."""
        return PurePosixPath(self.address).name

    @property
    def ending(self) -> str:
        """The ending of the name that tells the format."""
        name = self.name.lower()
        return max((end for end in ENDINGS if name.endswith(end)), key=len, default="")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading; every call opens it anew, so threads may do so."""
        with explaining(self.address):
            if not is_address(self.address):
                with open(self.address, "rb") as file:
                    yield file
                return
            system, path = _find_system(self.address)
            with system.open(path, "rb") as file:
                yield file

    @contextmanager
    def open_text(self) -> Iterator[BinaryIO]:
        """Open the file for reading its lines, unpacked if it is .gz."""
        with self.open() as file:
            if not self.ending.endswith(".gz"):
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(BinaryIO, unpacked)


def is_address(place: str | Path) -> bool:
    """Return whether a place is an address such as s3://bucket/photos, and no path."""
    return isinstance(place, str) and re.match(r"[a-z][a-z0-9+.-]+://", place) is not None


def list_shards(place: str | Path) -> list[ShardFile]:
    """Return the files of a folder, pattern, path or address, by name; all of one format."""
    files = _list_remote(str(place)) if is_address(place) else _list_local(place)
    files = [file for file in files if file.ending and not file.name.startswith((".", "_"))]
    files.sort(key=lambda file: file.address)
    if not files:
        raise ComesError(
            f"{place} has no shards; expected files that end in {', '.join(ENDINGS[:-1])} or "
            f"{ENDINGS[-1]}."
        )
    endings = list(dict.fromkeys(file.ending for file in files))
    if len(endings) > 1:
        raise ComesError(
            f"{place} has files of several formats, {listed(endings)}; expected one. Name those "
            f"that are meant, such as '*{endings[0]}'."
        )
    empty = [file.name for file in files if not file.size]
    if empty:
        raise ComesError(f"the shards {listed(empty)} are empty; expected rows. Remove them.")
    return files


def _list_local(place: str | Path) -> list[ShardFile]:
    """Return the files of a folder, a pattern or a path on this machine."""
    path = expanded(place)
    if os.path.isdir(path):
        found = [str(p) for p in path.rglob("*") if p.is_file()]
    elif os.path.isfile(path):
        found = [str(path)]
    else:
        found = [name for name in glob.glob(str(path), recursive=True) if os.path.isfile(name)]
        if not found:
            raise ComesError(f"{place} is no folder of shards, no file, and no pattern of files.")
    stats = [(name, os.stat(name)) for name in found]
    return [ShardFile(name, stat.st_size, str(stat.st_mtime_ns)) for name, stat in stats]


def _list_remote(address: str) -> list[ShardFile]:
    """Return the files under an address, or behind a pattern of addresses."""
    with explaining(address):
        system, path = _find_system(address)
        find = system.glob if "*" in path else system.find
        found = find(path, detail=True)
        return [
            ShardFile(system.unstrip_protocol(name), int(entry["size"] or 0), _read_stamp(entry))
            for name, entry in found.items()
            if entry["type"] == "file"
        ]


def _read_stamp(entry: dict[str, Any]) -> str:
    """Return what a store says about the version of a file, if anything."""
    known = ("ETag", "etag", "checksum", "mtime", "last_modified", "LastModified", "created")
    return next((str(entry[key]) for key in known if entry.get(key)), "")


def _find_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ComesError(
            f"{address} needs fsspec, which is not installed: pip install 'comes[remote]'."
        ) from None
    system, path = url_to_fs(address)
    return system, str(path)


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
        raise ComesError(
            f"{place} cannot be read: {first_line(error)}. Correct the address, or take another "
            "copy of the file."
        ) from None
