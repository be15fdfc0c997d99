"""Downloads that are checked, resumed, and never repeated."""

import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from comes.errors import ComesError
from comes.files import expanded

CHUNK = 1 << 16  # bytes; a broken download loses less than one


def cache_folder() -> Path:
    """Return the folder of downloads: $COMES_CACHE, or the user's cache."""
    own = os.environ.get("COMES_CACHE")
    if own:
        return expanded(own)
    import pooch

    return expanded(pooch.os_cache("comes"))


def download(address: str, checksum: str | None, path: Path) -> Path:
    """Return a file of the cache, downloaded if it is not there.

    What arrived before a connection broke stays in ``NAME.part``, and the next call goes on from
    there. The file gets its name when the whole of it has the checksum.

    Parameters
    ----------
    address : str
        http or https.
    checksum : str or None
        "sha256:..." or "md5:...". None for what changes, as the pages of an interface do.
    path : Path
        Where to keep it.
    """
    if path.is_file():
        return path
    import pooch
    from requests import ConnectionError, RequestException, Timeout

    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(address, checksum, path.name, path.parent, downloader=_resume(path))
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
            f"what {address} sends is not the {path.name} that was wanted: its checksum differs "
            f"from {checksum}. It was not kept. Get the file elsewhere, and put it at {path}."
        ) from None
    except OSError as error:
        raise ComesError(f"{path} cannot be written: {error.strerror or error}.") from None
    return path


def unpack_tar(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, and remove the archive.

    Members and links that lead outside the folder are refused, and devices. A member appears in its
    place only when all of them could be unpacked.
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as name:
            temporary = Path(name)
            with tarfile.open(archive) as members:
                members.extractall(temporary, filter="data")
            _merge(temporary, folder)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ComesError(
            f"{archive.name} cannot be unpacked ({error}). Remove it from {archive.parent} and try "
            "again."
        ) from None
    archive.unlink()


def _merge(source: Path, target: Path) -> None:
    """Move everything in one folder into another, folder by folder."""
    for entry in source.iterdir():
        place = target / entry.name
        if entry.is_dir() and place.is_dir():
            _merge(entry, place)
        else:
            entry.replace(place)


def _resume(path: Path) -> Any:
    """Return a downloader for pooch that goes on from ``NAME.part``."""
    import requests

    part = path.with_name(path.name + ".part")

    def downloader(address: str, target: str, _: Any) -> None:
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
            with part.open("ab" if have else "wb") as file:
                for chunk in _shown(response.iter_content(CHUNK), path.name, have, size):
                    file.write(chunk)
        if size is not None and part.stat().st_size < size:
            raise EOFError(f"the connection broke after {part.stat().st_size} of {size} bytes")
        os.replace(part, target)

    return downloader


def _shown(chunks: Iterator[bytes], name: str, have: int, size: int | None) -> Iterator[bytes]:
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
