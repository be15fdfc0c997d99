"""Files of a project: for their owner alone, since they hold answers, texts and passwords."""

import os
from contextlib import suppress
from pathlib import Path

OTHERS = 0o004  # may read


def make_private(folder: Path) -> None:
    """Let only the owner open the folder of a project and the files in it.

    SQLite gives the files that it makes beside a database the mode of the database.
    """
    with suppress(OSError):  # somebody else's, or a file system without modes
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)


def is_open_to_all(path: Path) -> bool:
    """Return whether every user of this machine may read a file of ours.

    A team that shares a project by its group takes this right from all others.
    """
    try:
        stat = path.stat()
    except OSError:
        return False
    return bool(stat.st_mode & OTHERS) and stat.st_uid == getattr(os, "getuid", lambda: -1)()
