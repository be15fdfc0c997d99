"""The files of pictures, and which of them a page can show."""

import hashlib
import io
import os
import threading
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any

from comes.annotate.display_sizes import (
    UnshownError,
    expect_large_pictures,
    make_display,
    refuse_large,
)
from comes.datasets import Images
from comes.datasets.images import import_pillow
from comes.errors import ComesError, ComesWarning, first_line, listed
from comes.progress import progress_bar

LARGEST_MEMBER = 128 << 20  # bytes of a picture in a .zip, unpacked


class PictureFiles:
    """The files of the pictures of a project, in folders or in .zip archives.

    Parameters
    ----------
    images : Images
    """

    def __init__(self, images: Images) -> None:
        self._images = images
        self._archives: dict[Path, tuple[tuple[int, int], zipfile.ZipFile]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._images)

    def name(self, row: int) -> str:
        """Return the name of a picture."""
        return self._images.names[row]

    def state(self, row: int) -> str:
        """Return a digest that changes when the file does: of its name, its time and its size."""
        source, name = self._images.sources[row], self._images.names[row]
        if is_archive(source):
            member = self._member(source, name)[1]
            found = (member.CRC, member.file_size)
        else:
            stat = os.stat(self.path(row))
            found = (stat.st_mtime_ns, stat.st_size)
        return hashlib.sha256(repr((name, found)).encode()).hexdigest()[:24]

    def path(self, row: int) -> Path:
        """Return where a picture of a folder lies; refuse one that lies elsewhere."""
        source, name = self._images.sources[row], self._images.names[row]
        if find_links_out(source, [name]):
            raise ComesError("this picture is a link out of its folder")
        return source / name

    def is_packed(self, row: int) -> bool:
        """Return whether a picture lies in an archive."""
        return is_archive(self._images.sources[row])

    def open(self, row: int) -> IO[bytes]:
        """Open a picture; one in an archive is unpacked into memory."""
        if not self.is_packed(row):
            return self.path(row).open("rb")
        source, name = self._images.sources[row], self._images.names[row]
        archive, member = self._member(source, name)
        try:
            return io.BytesIO(archive.read(member))  # no more than the size that was checked
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
            raise ComesError(f"this picture cannot be unpacked ({error})") from None

    def _member(self, source: Path, name: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo]:
        archive = self._open_archive(source)
        try:
            member = archive.getinfo(name)
        except KeyError:
            raise ComesError(f"this picture is no longer in {source.name}") from None
        if member.file_size > LARGEST_MEMBER:
            raise ComesError(
                f"this picture has {member.file_size >> 20} MB unpacked; at most "
                f"{LARGEST_MEMBER >> 20} are read"
            )
        return archive, member

    def _open_archive(self, source: Path) -> zipfile.ZipFile:
        """Return the archive; opened again if it was replaced."""
        stat = os.stat(source)
        state = stat.st_mtime_ns, stat.st_size
        with self._lock:
            if source not in self._archives or self._archives[source][0] != state:
                try:
                    self._archives[source] = state, zipfile.ZipFile(source)
                except zipfile.BadZipFile as error:
                    raise ComesError(f"{source.name} cannot be read as zip ({error})") from None
            return self._archives[source][1]


def find_links_out(source: Path, names: Sequence[str]) -> list[int]:
    """Return the rows of the names in a folder that lead out of it, by links."""
    if is_archive(source):
        return []
    root = os.path.realpath(source)
    real: dict[str, str] = {}  # of the folders inside: most files share a few
    found = []
    for row, name in enumerate(names):
        folder, _, file = name.rpartition("/")
        if folder not in real:
            real[folder] = os.path.realpath(os.path.join(root, folder))
        path = os.path.join(real[folder], file)
        if os.path.islink(path):
            path = os.path.realpath(path)
        if os.path.commonpath((root, path)) != root:
            found.append(row)
    return found


def is_archive(source: Path) -> bool:
    """Return whether pictures lie in an archive rather than a folder."""
    return source.suffix.lower() == ".zip"


THREADS = 8  # a disk, and more so a network, answers several at once
ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82"}  # what a whole file has near its end
ONE_AT_A_TIME = threading.Lock()  # is decoded whole
SHOWN = 3  # names in a message
TAIL = 65_536  # bytes; cameras write more behind the picture


def keep_good_pictures(source: Path, names: list[str], skip_broken: bool) -> list[str]:
    """Return the names of pictures to ask about; say which cannot be shown.

    Links that lead out of the folder are not accepted, since whoever annotates could read any file
    of this machine through them. Broken pictures are kept with a warning, or left out.
    """
    links = find_links_out(source, names)
    if links and not skip_broken:
        shown = listed([names[row] for row in links], 3)
        raise ComesError(
            f"pictures must lie in {source.name}; {len(links)} of {len(names)} are links out of "
            f"it: {shown}. Copy the files there, or leave them out (--skip-broken on the command "
            "line)."
        )
    left = [name for row, name in enumerate(names) if row not in set(links)]
    broken = find_unshown(source, left)
    kept = [name for row, name in enumerate(left) if row not in broken]
    if not kept:
        first = f" ({left[0]}: {broken[0]})" if left else ""
        raise ComesError(f"none of the {len(names)} pictures in {source.name} can be shown{first}.")
    if broken or links:
        reasons = [f"{left[row]} ({reason})" for row, reason in broken.items()]
        reasons += [f"{names[row]} (links out of the folder)" for row in links]
        _warn_of_broken(reasons, len(names), skip_broken)
    return kept if skip_broken else left


def find_unshown(source: Path, names: Sequence[str]) -> dict[int, str]:
    """Return the rows of pictures that cannot be shown, and why.

    It reads the header of every picture, and decodes those whose end looks cut off.
    """
    expect_large_pictures()
    files, found = PictureFiles(Images(source, names)), {}
    bar = progress_bar(len(names), "looking at pictures")
    with ThreadPoolExecutor(THREADS) as pool, bar as advance:
        for row, reason in enumerate(pool.map(partial(_explain, files), range(len(names)))):
            if reason is not None:
                found[row] = reason
            advance()
    return found


def _explain(files: PictureFiles, row: int) -> str | None:
    """Return why a picture cannot be shown; None if it can."""
    Image = import_pillow()
    try:
        with files.open(row) as file:
            with Image.open(file) as image:
                refuse_large(image)
                kind = image.format
            if _looks_cut_off(files, row, kind):
                with ONE_AT_A_TIME, files.open(row) as again:
                    make_display(again, 160)
    except UnshownError as error:
        return str(error)
    except ComesError as error:
        return first_line(error).removeprefix("this picture ")
    except Image.DecompressionBombError:
        return "has too many pixels"
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        known = "cannot identify image file" in str(error)
        return "is not an image" if known else first_line(error).split(" <_io")[0]
    return None


def _looks_cut_off(files: PictureFiles, row: int, kind: Any) -> bool:
    """Return whether a JPEG or PNG lacks its last bytes."""
    if kind not in ENDS:
        return False
    with files.open(row) as file:
        return ENDS[kind] not in _read_tail(file)


def _read_tail(file: IO[bytes]) -> bytes:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - TAIL))
    return file.read()


def _warn_of_broken(shown: Sequence[str], n_pictures: int, skip_broken: bool) -> None:
    fate = (
        "They are left out."
        if skip_broken
        else "People will be shown that they are broken; leave them out with --skip-broken."
    )
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    first = ", ".join(shown[:SHOWN]) + more
    warnings.warn(
        f"{len(shown)} of {n_pictures} pictures cannot be shown: {first}. {fate}",
        ComesWarning,
        stacklevel=4,
    )
