"""Rows of features in a file that grows part by part, so that a kill loses a second of work.

Until it is whole, a file of features is ``NAME.part``, and ``NAME.json`` says how many of its rows
are safely on disk, and a hash of the items (pictures, texts) that they belong to. A later call goes
on from there if its first items are the same, so one that cannot be read costs nothing before it.
"""

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.files.locking import locked
from comes.files.replacing import replacing_file

Features = npt.NDArray[np.float32]
NUMBER = np.dtype("<f4")
SECONDS = 1.0  # of work between two marks of what is done
MAPPED = 2**26  # bytes; larger files are mapped into memory, not read


@dataclass(frozen=True)
class GrowingFile:
    """A file of features of shape (n, d) that is written in parts.

    Parameters
    ----------
    path : Path
        The .npy file, once it is whole.
    part : Path
        Its name until then, shared by calls for nearly the same items.
    shape : two ints

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "features.npy"
    >>> def compute(start):
    ...     for row in range(start, 3):
    ...         yield np.full((1, 2), row, dtype=np.float32)
    >>> file = GrowingFile(path, path.with_suffix(".part"), (3, 2))
    >>> file.fill(lambda: iter([b"a", b"b", b"c"]), compute)
    >>> read_features(path).tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    """

    path: Path
    part: Path
    shape: tuple[int, int]

    def fill(
        self,
        states: Callable[[], Iterator[bytes]],
        compute: "Compute",
        when_busy: Callable[[], object] | None = None,
    ) -> None:
        """Write what ``compute(start)`` gives, from the first row that is not there yet.

        ``states`` gives for every item what tells it from a changed one. ``when_busy`` is called
        once if another process is writing the file; this one waits for it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self._beside(".lock"), when_busy):
                if read_features(self.path) is not None:  # another process was here
                    return
                with open(self.part, "r+b" if self.part.exists() else "w+b") as file:
                    self._write(file, states, compute)
                self._beside(".json").unlink(missing_ok=True)
                self.part.replace(self.path)
        except OSError as error:
            raise ComesError(
                f"features cannot be written to {self.path.parent}: {error.strerror or error}. "
                "Make room there, or name another folder for them (COMES_CACHE)."
            ) from None

    def _beside(self, ending: str) -> Path:
        return self.part.with_suffix(ending)

    def _write(
        self, file: BinaryIO, states: Callable[[], Iterator[bytes]], compute: "Compute"
    ) -> None:
        """Go on writing; what is done is marked every second, and whatever happens."""
        header, row_bytes = _make_header(self.shape), self.shape[1] * NUMBER.itemsize
        done, seen, following = self._find_done(states)
        file.seek(0)
        file.write(header)
        file.seek(len(header) + done * row_bytes)
        file.truncate()
        marked = time.monotonic()
        try:
            for rows in compute(done):
                file.write(np.ascontiguousarray(rows, NUMBER).data)
                done += len(rows)
                for _ in range(len(rows)):
                    seen.update(next(following))
                if time.monotonic() - marked > SECONDS:
                    self._mark(file, done, seen.hexdigest())
                    marked = time.monotonic()
        finally:
            self._mark(file, done, seen.hexdigest())

    def _find_done(self, states: Callable[[], Iterator[bytes]]) -> tuple[int, Any, Iterator[bytes]]:
        """Return how many rows are done, the hash of their items, and the states of the rest."""
        stored, seen, following = self._read_mark(), hashlib.sha256(), states()
        for _ in range(stored["done"]):
            seen.update(next(following))
        if stored["done"] and seen.hexdigest() != stored["items"]:
            return 0, hashlib.sha256(), states()
        return stored["done"], seen, following

    def _read_mark(self) -> dict[str, Any]:
        """Return what was marked as done for rows of this width; nothing if it does not fit."""
        try:
            found = json.loads(self._beside(".json").read_text())
            needed = len(_make_header(self.shape)) + found["done"] * self.shape[1] * NUMBER.itemsize
            fits = found["n_features"] == self.shape[1] and found["done"] <= self.shape[0]
            if fits and self.part.stat().st_size >= needed:
                return dict(found)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return {"done": 0, "items": ""}

    def _mark(self, file: BinaryIO, done: int, items: str) -> None:
        """Say how many rows are done, once they are on disk."""
        file.flush()
        os.fsync(file.fileno())
        mark = {"done": done, "n_features": self.shape[1], "items": items}
        with replacing_file(self._beside(".json")) as temporary:
            temporary.write_text(json.dumps(mark) + "\n")


Compute = Callable[[int], Iterator[Features]]


def read_features(path: Path) -> Features | None:
    """Return stored features, large ones mapped; None if the file is missing or damaged.

    Examples
    --------
    >>> read_features(Path("no/such.npy")) is None
    True
    """
    try:
        # Copied on write: torch takes no array that is read-only, and the file never changes.
        is_large = path.stat().st_size > MAPPED
        found: Features = np.load(path, mmap_mode="c" if is_large else None)
    except (OSError, ValueError, EOFError):
        return None
    return found


def _make_header(shape: tuple[int, int]) -> bytes:
    """Return the first bytes of a .npy file."""
    header = io.BytesIO()
    described: Any = {"descr": NUMBER.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()
