"""Downloads: checked, resumed, and never repeated."""

import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from comes.errors import ComesError

CHUNK = 1 << 16  # bytes; a broken download loses less than one


def download(address: str, checksum: str | None, path: Path) -> Path:
    """Return a file of the cache, downloaded if it is not there.

    What arrived before a connection broke stays in ``NAME.part``, and the next call goes on from
    there. The file gets its name when the whole of it has the checksum.

    Parameters
    ----------
    address : str
        http or https.
    checksum : str or None
        "sha256:..." or "md5:...". None for what changes, such as the pages of a web service.
    path : Path
        Where to keep it.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> kept = Path(tempfile.mkdtemp()) / "scene.arff"
    >>> _ = kept.write_text("@relation scene")
    >>> download("https://example.org/scene.arff", None, kept).name  # it is there already
    'scene.arff'
    """
    if path.is_file():
        return path
    import pooch
    from requests import ConnectionError, RequestException, Timeout

    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            address, checksum, path.name, path.parent, downloader=_ResumingDownloader(path)
        )
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


def unpack_tar(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, and remove the archive.

    Members and links that lead outside the folder are refused, and devices. A member appears in its
    place only when all of them could be unpacked.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("one")
    >>> with tarfile.open(folder / "all.tar", "w") as archive:
    ...     archive.add(folder / "a.txt", "parts/a.txt")
    >>> unpack_tar(folder / "all.tar", folder)
    >>> (folder / "parts" / "a.txt").read_text(), (folder / "all.tar").exists()
    ('one', False)
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as name:
            temporary = Path(name)
            with tarfile.open(archive) as members:
                members.extractall(temporary, filter="data")
            _merge_folders(temporary, folder)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ComesError(
            f"{archive.name} cannot be unpacked ({error}). Remove it from {archive.parent} and try "
            "again."
        ) from None
    archive.unlink()


def _merge_folders(source: Path, target: Path) -> None:
    """Move everything in one folder into another, folder by folder."""
    for entry in source.iterdir():
        place = target / entry.name
        if entry.is_dir() and place.is_dir():
            _merge_folders(entry, place)
        else:
            entry.replace(place)


@dataclass(frozen=True)
class _ResumingDownloader:
    """A downloader for pooch that goes on from ``NAME.part``."""

    path: Path

    def __call__(self, address: str, target: str, _: Any) -> None:
        import requests

        part = self.path.with_name(self.path.name + ".part")
        have = part.stat().st_size if part.exists() else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        with requests.get(address, headers=headers, stream=True, timeout=60) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                os.replace(part, target)  # all of it is there, or the checksum will say so
                return
            response.raise_for_status()
            if response.status_code != requests.codes.partial_content:
                have = 0
            length = response.headers.get("Content-Length")
            size = have + int(length) if length else None
            chunks = response.iter_content(CHUNK)
            with part.open("ab" if have else "wb") as file:
                for chunk in _show_progress(chunks, self.path.name, have, size):
                    file.write(chunk)
        if size is not None and part.stat().st_size < size:
            raise EOFError(f"the connection broke after {part.stat().st_size} of {size} bytes")
        os.replace(part, target)


def _show_progress(
    chunks: Iterator[bytes], name: str, have: int, size: int | None
) -> Iterator[bytes]:
    """Yield the chunks under a progress bar, where there is a terminal."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=size, completed=have)
        for chunk in chunks:
            yield chunk
            bar.advance(task, len(chunk))
