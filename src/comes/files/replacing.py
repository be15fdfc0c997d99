"""Files written whole or not at all: a failure leaves what was there before."""

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from comes.errors import ComesError
from comes.files.folders import expanded

LONG_PATH = 200  # characters that a message shows


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
    path = check_file_target(path)
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem[:20]}-", suffix=path.suffix
        )
        os.close(handle)
        temporary = Path(name)
        temporary.chmod(0o666 & ~_read_umask())
    except OSError as error:
        raise _make_write_error(path, error) from None
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise _make_write_error(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path, files: Collection[str]) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes ``path`` when the block ends well.

    An existing folder is replaced only if it holds nothing but ``files``, so that a mistyped path
    never deletes something else.

    Examples
    --------
    >>> target = Path(tempfile.mkdtemp()) / "model"
    >>> with replacing_folder(target, ["model.json"]) as temporary:
    ...     _ = (temporary / "model.json").write_text("{}")
    >>> [file.name for file in target.iterdir()]
    ['model.json']
    """
    path = check_folder_target(path, files)
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:20]}-"))
        temporary.chmod(0o777 & ~_read_umask())
    except OSError as error:
        raise _make_write_error(path, error) from None
    try:
        yield temporary
        _swap_folders(temporary, path)
    except OSError as error:
        raise _make_write_error(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_file_target(path: str | Path) -> Path:
    """Return the path with links followed if a file can be written there, else raise.

    Examples
    --------
    >>> check_file_target("no/such/folder/scores.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: ...no/such/folder is not a folder. Create it first, or ...
    """
    path = _resolve_target(path)
    if path.is_dir():
        raise ComesError(f"{path} is a folder; expected the name of a file.")
    return path


def check_folder_target(path: str | Path, files: Collection[str]) -> Path:
    """Return the path with links followed if such a folder can be written there, else raise.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "thesis.tex").write_text("...")
    >>> check_folder_target(folder, ["model.json"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: ... holds something else (thesis.tex), which would be lost. ...
    """
    path = _resolve_target(path)
    if path.is_file():
        raise ComesError(f"{path} is a file; expected the name of a folder.")
    if path == Path.cwd():
        raise ComesError("the current folder cannot be replaced. Name a folder inside it.")
    others = [p.name for p in path.iterdir() if p.name not in files] if path.exists() else []
    if others:
        raise ComesError(
            f"{path} exists and holds something else ({others[0]}), which would be lost. "
            "Choose another name."
        )
    return path


def _swap_folders(new: Path, path: Path) -> None:
    """Put a new folder in the place of an old one, or the old one back."""
    if not path.exists():
        new.replace(path)
        return
    if _exchange(new, path):  # the caller removes the old one, under the name of the new
        return
    old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:20]}-"))
    try:
        path.replace(old)
        new.replace(path)
    except BaseException:
        if not path.exists():
            old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new one is in place


def _exchange(first: Path, second: Path) -> bool:
    """Give two folders each other's name at once; False where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    done: int = rename(here, os.fsencode(first), here, os.fsencode(second), exchange)
    return done == 0


def _resolve_target(path: str | Path) -> Path:
    """Return the path with links followed; raise if its folder cannot be written to."""
    try:
        path = expanded(path).resolve()
    except (RuntimeError, OSError) as error:  # links that lead round in a circle
        raise ComesError(f"{path} cannot be written: {error}. Correct the path.") from None
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a name that is too long, say
        raise _make_write_error(path, error) from None
    if not path.parent.is_dir():
        raise ComesError(f"{path.parent} is not a folder. Create it first, or correct the path.")
    if not os.access(path.parent, os.W_OK):
        raise ComesError(f"{path.parent} cannot be written to. Choose another folder.")
    return path


def _make_write_error(path: Path, error: OSError) -> ComesError:
    shown = str(path) if len(str(path)) <= LONG_PATH else f"{str(path)[:LONG_PATH]}..."
    return ComesError(f"{shown} cannot be written: {error.strerror or error}.{_advise(error)}")


def _advise(error: OSError) -> str:
    """Return what to do about an error of the system, where that is known."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return " Free some space, or choose another disk."
    return " Choose a shorter name." if error.errno == errno.ENAMETOOLONG else ""


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
