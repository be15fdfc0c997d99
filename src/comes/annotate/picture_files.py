"""The files of pictures: found by row, never outside their folder, never larger than allowed."""

import hashlib
import io
import os
import threading
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from comes.datasets import Images
from comes.errors import ComesError

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
