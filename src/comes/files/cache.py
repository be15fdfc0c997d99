"""What is kept on disk to be had only once: downloads, and features that take long to compute."""

import errno
import hashlib
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.files.writing import expanded, replacing_file

CHUNK = 1 << 16  # bytes; a broken download loses less than one
NUMBER = np.dtype("<f4")
SECONDS = 1.0  # of work between two notes of what is done
MAPPED = 2**26  # bytes; larger files are mapped into memory, not read

Features = npt.NDArray[np.float32]


def cache_folder() -> Path:
    """Return the folder of downloads: ``$COMES_CACHE``, or the user's cache."""
    name = os.environ.get("COMES_CACHE")
    if name:
        return expanded(name)
    import pooch

    return expanded(pooch.os_cache("comes"))


def data_folder() -> Path | None:
    """Return the folder that ``$COMES_DATA`` names, or None where it is not set."""
    name = os.environ.get("COMES_DATA")
    if not name:
        return None
    folder = expanded(name)
    if not os.path.isdir(folder):
        raise ComesError(f"COMES_DATA names {folder}, which is not a folder. Correct or unset it.")
    return folder


def download(address: str, checksum: str | None, path: Path) -> Path:
    """Return a file of the cache, downloaded if it is not there, and going on where it broke.

    The checksum is "sha256:...", "md5:...", or None for what changes, as web services do.
    """
    if path.is_file():
        return path
    import pooch
    from requests import ConnectionError, RequestException, Timeout

    pooch.get_logger().setLevel("WARNING")
    part = path.with_name(f"{path.name}.part")

    def fetch(address: str, target: str, _: Any) -> None:
        _resume(address, part)
        part.replace(target)

    try:
        pooch.retrieve(address, checksum, path.name, path.parent, downloader=fetch)
    except (RequestException, EOFError) as error:
        reason = str(error)
        if isinstance(error, (ConnectionError, Timeout)):
            reason = f"no connection to {urlsplit(address).hostname}, or it broke"
        raise ComesError(
            f"{path.name} could not be downloaded from {address} ({reason}). Try again, which goes "
            f"on where it stopped, or put the file at {path}."
        ) from None
    except ValueError:
        raise ComesError(
            f"{address} does not send the expected {path.name}: its checksum differs from "
            f"{checksum}. It was not kept. Get the file elsewhere, and put it at {path}."
        ) from None
    except OSError as error:
        raise ComesError(f"{path} cannot be written: {error.strerror or error}.") from None
    return path


def _resume(address: str, part: Path) -> None:
    """Download what is missing of a file, under a progress bar where there is a terminal."""
    import requests
    from rich import progress
    from rich.console import Console

    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    with requests.get(address, headers=headers, stream=True, timeout=60) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            return  # all of it is there, or the checksum will differ
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            done = 0
        length = response.headers.get("Content-Length")
        size = done + int(length) if length else None
        columns = *progress.Progress.get_default_columns(), progress.DownloadColumn()
        console = Console(stderr=True)
        with (
            part.open("ab" if done else "wb") as file,
            progress.Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task(part.stem, total=size, completed=done)
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.advance(task, len(chunk))
    if size is not None and part.stat().st_size < size:
        raise EOFError(f"the connection broke after {part.stat().st_size} of {size} bytes")


def unpack_tar(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, all of it or nothing, and remove the archive."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as name:
            temporary = Path(name)
            with tarfile.open(archive) as members:
                members.extractall(temporary, filter="data")
            for path in sorted(temporary.rglob("*")):  # folders before what is in them
                place = folder / path.relative_to(temporary)
                if path.is_dir() and not path.is_symlink():
                    place.mkdir(exist_ok=True)
                else:
                    path.replace(place)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ComesError(
            f"{archive.name} cannot be unpacked ({error}). Remove it from {archive.parent} and try "
            "again."
        ) from None
    archive.unlink()


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
