"""Files and folders written whole or not at all, and never over what is read."""

import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from comes.errors import ComesError

LONG_PATH = 200  # characters that a message shows
ADVICE: dict[int | None, str] = {
    errno.ENOSPC: " Free some space, or choose another disk.",
    errno.EDQUOT: " Free some space, or choose another disk.",
    errno.ENAMETOOLONG: " Choose a shorter name.",
}


@contextmanager
def replacing_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes ``path`` when the block ends well."""
    path = check_file_target(path)
    temporary = _name_temporary(path, path.suffix[:20])
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise _make_write_error(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path, files: Collection[str]) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes ``path``, if that holds nothing but ``files``."""
    path = check_folder_target(path, files)
    temporary = _name_temporary(path)
    try:
        temporary.mkdir()
        yield temporary
        _swap_folders(temporary, path)
    except OSError as error:
        raise _make_write_error(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_file_target(path: str | Path) -> Path:
    """Return the path with links followed if a file can be written there, else raise."""
    path = _resolve_target(path)
    if path.is_dir():
        raise ComesError(f"{path} is a folder; expected the name of a file.")
    return path


def check_folder_target(path: str | Path, files: Collection[str]) -> Path:
    """Return the path with links followed if such a folder can be written there, else raise."""
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


def refuse_inputs(output: str | Path, *inputs: object) -> None:
    """Raise if writing an output would replace one of the inputs, or a folder that holds one."""
    target = expanded(output)
    if not os.path.exists(target):  # not yet, or the path leads through folders that do not exist
        target = Path(os.path.normpath(target))
    paths = [expanded(source) for source in inputs if isinstance(source, str | Path)]
    for read in paths:
        if not os.path.exists(target) or not os.path.exists(read):
            continue
        if target.samefile(read):
            kind = "folder" if read.is_dir() else "file"
            raise ComesError(
                f"{target} is the {kind} that is read, and would be replaced. Name another one."
            )
        if target.is_dir() and target.resolve() in read.resolve().parents:
            raise ComesError(
                f"{target} holds {read.name}, which is read and would be lost. Name another folder."
            )


def refuse_same(*outputs: str | Path | None) -> None:
    """Raise if two outputs would be one file."""
    paths = [expanded(output).resolve() for output in outputs if output is not None]
    twice = [path.name for path in paths if paths.count(path) > 1]
    if twice:
        raise ComesError(f"two results would go to {twice[0]}. Name another file for one of them.")


def expanded(path: str | Path) -> Path:
    """Return the path with ``~`` filled in; raise if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        shown = _shorten(path)
        raise ComesError(f"{shown} cannot be found: {error}. Write the path out.") from None


def _resolve_target(path: str | Path) -> Path:
    """Return the path with links followed; raise if nothing can be written there."""
    named = expanded(path)
    try:
        target = named.resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            target.lstat()
    except (RuntimeError, ValueError, OSError) as error:  # a circle of links, a NUL, a long name
        raise _make_write_error(named, error) from None
    if os.path.exists(named) and not (target.is_file() or target.is_dir()):
        raise ComesError(
            f"{named} is a pipe or a device, which cannot be replaced. Name a file or folder."
        )
    if not target.parent.is_dir():
        raise ComesError(
            f"{_shorten(target.parent)} is not a folder. Create it first, or correct the path."
        )
    if not os.access(target.parent, os.W_OK):
        raise ComesError(f"{target.parent} cannot be written to. Choose another folder.")
    return target


def _name_temporary(path: Path, suffix: str = "") -> Path:
    """Return a new hidden name beside a path."""
    return path.with_name(f".{path.stem[:20]}-{secrets.token_hex(4)}{suffix}")


def _swap_folders(new: Path, path: Path) -> None:
    """Put a new folder in the place of an old one, or the old one back."""
    if not path.exists():
        new.replace(path)
        return
    if _exchange(new, path):  # the caller removes the old one, under the name of the new
        return
    old = _name_temporary(path)
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


def _make_write_error(path: Path, error: Exception) -> ComesError:
    advice = ADVICE.get(getattr(error, "errno", None), "")
    reason = getattr(error, "strerror", None) or error
    return ComesError(f"{_shorten(path)} cannot be written: {reason}.{advice}")


def _shorten(path: str | Path) -> str:
    shown = str(path)
    return shown if len(shown) <= LONG_PATH else f"{shown[:LONG_PATH]}..."
