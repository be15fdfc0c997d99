"""Files written whole or not at all: a failure leaves what was there before."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comes.errors import ComesError


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes ``path`` when the block ends well.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> with replacing_file(target) as temporary:
    ...     _ = temporary.write_text("done")
    >>> target.read_text()
    'done'
    """
    path = Path(path)
    _check_parent(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    temporary.chmod(0o666 & ~_umask())
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path, marker: str) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes ``path`` when the block ends well.

    An existing folder is replaced only if it is empty or holds the file ``marker``, so that a
    mistyped path never deletes a folder of something else.
    """
    path = Path(path)
    check_replaceable(path, marker)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
    temporary.chmod(0o777 & ~_umask())
    try:
        yield temporary
        if path.exists():
            old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
            path.replace(old)
            temporary.replace(path)
            shutil.rmtree(old)
        else:
            temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(path: str | Path, marker: str) -> None:
    """Raise unless a folder could be written there; see `replacing_folder`."""
    path = Path(path)
    _check_parent(path)
    if path.exists() and not (path / marker).exists() and (path.is_file() or any(path.iterdir())):
        raise ComesError(
            f"{path} exists and is not such an output (it has no {marker}). "
            "Choose another name, or remove it."
        )


def _check_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise ComesError(f"{path.parent} is not a folder. Create it first, or correct the path.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
