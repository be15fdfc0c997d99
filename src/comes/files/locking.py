"""Work that one process at a time may do: others wait until it is done."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(path: Path, when_busy: Callable[[], object] | None = None) -> Iterator[None]:
    """Hold a lock inside the block; another process that wants it waits, and a killed one loses it.

    Parameters
    ----------
    path : Path
        A file that exists as long as the lock is held. Where the system has no locks nothing
        waits.
    when_busy : callable without arguments, optional
        Called once if another process holds the lock.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "features.lock"
    >>> with locked(path):
    ...     path.exists()
    True
    >>> path.exists()
    False
    """
    handle = _acquire(path, when_busy)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            path.unlink()
        os.close(handle)


def _acquire(path: Path, when_busy: Callable[[], object] | None) -> int:
    """Return the handle of the locked file, which still has its name."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(handle, wait=False):
                if when_busy is not None:
                    when_busy()
                    when_busy = None
                while not _lock(handle, wait=True):
                    pass
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the one before us removed it


def _lock(handle: int, wait: bool) -> bool:
    """Lock an open file; return whether that worked, or the system has no locks."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # some network drives have no locks
        return True
    return True
