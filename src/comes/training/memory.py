"""Keep the memory that one training step frees for the next one."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 * 2**20  # also where glibc's own adjustment ends
KEPT = 2**30


@contextmanager
def kept_memory() -> Iterator[None]:
    """Inside the block, let freed memory stay with the process (Linux; elsewhere do nothing).

    Every step frees arrays of megabytes and asks for the same again. By default glibc hands them
    back to the system, which clears every page anew: half of the time of a small network.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not (hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim")):
        yield
        return
    assert libc is not None
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
    libc.mallopt(M_TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        libc.mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_MMAP_THRESHOLD)
        libc.malloc_trim(0)
