"""Features that take long to compute: kept on disk, where they grow, so that kills lose little."""

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.files.writing import replacing_file

NUMBER = np.dtype("<f4")
SECONDS = 1.0  # of work between two notes of what is done
MAPPED = 2**26  # bytes; larger files are mapped into memory, not read

Features = npt.NDArray[np.float32]


def read_features(path: Path) -> Features | None:
    """Return stored features, large ones mapped; None if the file is missing or damaged."""
    try:
        # Copied on write: torch takes no array that is read-only, and the file never changes.
        is_large = path.stat().st_size > MAPPED
        stored: Features = np.load(path, mmap_mode="c" if is_large else None)
    except (OSError, ValueError, EOFError):
        return None
    return stored


def grow_features(
    path: Path,
    part: Path,
    shape: tuple[int, int],
    states: Callable[[], Iterator[bytes]],
    compute: Callable[[int], Iterator[Features]],
    when_busy: Callable[[], object] | None = None,
) -> Features:
    """Compute features into a file that grows, so that a kill loses a second of work; return them.

    Until it is whole the file is ``part``; a json file beside it notes how many rows are on disk,
    and a hash of the items that they belong to, of which ``states`` gives what tells each from a
    changed one. A later call whose first items are the same goes on from there: ``compute`` gives
    rows from this number on. A process that writes it already is waited for, after ``when_busy``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(part.with_suffix(".lock"), when_busy):
            stored = read_features(path)
            if stored is None:  # no other process was here
                with open(part, "r+b" if part.exists() else "w+b") as file:
                    _write_rows(file, part.with_suffix(".json"), shape, states, compute)
                part.with_suffix(".json").unlink(missing_ok=True)
                part.replace(path)
                stored = read_features(path)
    except OSError as error:
        raise ComesError(
            f"features cannot be written to {path.parent}: {error.strerror or error}. "
            "Make room there, or name another folder for them (COMES_CACHE)."
        ) from None
    assert stored is not None
    return stored


@contextmanager
def _locked(path: Path, when_busy: Callable[[], object] | None) -> Iterator[None]:
    """Hold a lock inside the block; another process waits for it, and a killed one loses it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if when_busy is not None:
            when_busy()
        lock.acquire()
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOLCK):  # a drive without locks
            raise
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # Windows removes no open file
                path.unlink()  # whoever waits for it finds it without a name, and opens a new one
            lock.release()


def _write_rows(
    file: BinaryIO,
    note: Path,
    shape: tuple[int, int],
    states: Callable[[], Iterator[bytes]],
    compute: Callable[[int], Iterator[Features]],
) -> None:
    """Go on writing; what is done is noted every second, and whatever happens."""
    described: Any = {"descr": NUMBER.str, "fortran_order": False, "shape": shape}
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, described)
    start, row_bytes = file.tell(), shape[1] * NUMBER.itemsize
    n_stored = (os.fstat(file.fileno()).st_size - start) // row_bytes
    done, hashed, following = 0, hashlib.sha256(), states()
    with suppress(OSError, ValueError, KeyError, TypeError):  # no note, or a damaged one
        noted = json.loads(note.read_text())
        if noted["n_features"] == shape[1] and noted["done"] <= min(n_stored, shape[0]):
            for state in islice(following, noted["done"]):
                hashed.update(state)
            done = noted["done"] if hashed.hexdigest() == noted["items"] else 0
    if not done:
        hashed, following = hashlib.sha256(), states()

    def save_note() -> None:
        file.flush()
        os.fsync(file.fileno())
        text = json.dumps({"done": done, "n_features": shape[1], "items": hashed.hexdigest()})
        with replacing_file(note) as temporary:
            temporary.write_text(f"{text}\n")

    file.seek(start + done * row_bytes)
    file.truncate()
    saved = time.monotonic()
    try:
        for rows in compute(done):
            file.write(np.ascontiguousarray(rows, NUMBER).data)
            done += len(rows)
            for state in islice(following, len(rows)):
                hashed.update(state)
            if time.monotonic() - saved > SECONDS:
                save_note()
                saved = time.monotonic()
    finally:
        save_note()
