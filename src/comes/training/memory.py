"""Keep the memory that one training step frees for the next one."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 * 2**20
KEPT = 2**30


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let up to 1 GiB of freed memory stay with the process, and hand it back at the end.

    Every step frees arrays of megabytes and asks for the same again. By default glibc hands them
    back to the system, which clears every page anew; small networks spend much of their time so.
    Afterwards glibc has the thresholds at which its own adjustment to large arrays ends. With
    another C library nothing is done.
    """
    try:
        libc = ctypes.CDLL(None)
        mallopt, malloc_trim = libc.mallopt, libc.malloc_trim
    except (OSError, TypeError, AttributeError):  # not glibc
        yield
        return
    mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
    mallopt(M_TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_MMAP_THRESHOLD)
        malloc_trim(0)
