"""Display sizes on disk: made once, private to their owner, and bounded."""

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

MOST = 2 << 30  # bytes
KEPT = 0.8  # of them, after the oldest were removed
ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png"}


class DisplayCache:
    """Pictures under keys, in files of a folder that any server of the project may share.

    A folder that cannot be written to keeps nothing, and pictures are made every time.

    Parameters
    ----------
    folder : Path
    most : int
        Bytes; beyond, those go that were not asked for longest.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._folder, self._most = folder, most
        self._size: int | None = None  # unknown until something is written
        self._lock = threading.Lock()

    def read(self, key: str) -> tuple[str, bytes] | None:
        """Return kind and content of what is kept under a key; None if nothing is."""
        for kind, ending in ENDINGS.items():
            path = self._path(key, ending)
            with suppress(OSError):
                content = path.read_bytes()
                os.utime(path)  # it was asked for
                return kind, content
        return None

    def write(self, key: str, kind: str, content: bytes) -> None:
        """Keep a picture under a key, whole or not at all."""
        path = self._path(key, ENDINGS[kind])
        with suppress(OSError):
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")  # mode 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            self._make_room(len(content))

    def _path(self, key: str, ending: str) -> Path:
        return self._folder / key[:2] / f"{key}{ending}"

    def _make_room(self, added: int) -> None:
        """Remove the files that were asked for longest ago, where there are too many."""
        with self._lock:
            if self._size is not None:
                self._size += added
                if self._size <= self._most:
                    return
            found = sorted(
                (stat.st_mtime, stat.st_size, path)
                for path in self._folder.glob("*/*")
                for stat in (path.stat(),)
            )
            self._size = sum(size for _, size, _ in found)
            if self._size <= self._most:
                return
            for _, size, path in found:
                if self._size <= KEPT * self._most:
                    break
                path.unlink(missing_ok=True)
                self._size -= size
