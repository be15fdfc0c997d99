"""Keep the memory that one training step frees for the next one."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 * 2**20
KEPT = 2**30


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep up to 1 GiB of freed memory in the process inside the block.

    Every step frees arrays of megabytes and allocates the same again. By default glibc returns them
    to the system, which clears every page anew; this takes much of the time of small networks.
    At the end the memory is returned, and glibc has the thresholds that its own adjustment to large
    arrays ends at. With another C library this does nothing.
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
