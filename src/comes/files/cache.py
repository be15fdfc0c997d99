"""What is kept on disk to be had only once: the folders for it, and downloads."""

import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from comes.errors import ComesError
from comes.files.writing import expanded

CHUNK = 1 << 16  # bytes; a broken download loses less than one


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
