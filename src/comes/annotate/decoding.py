"""Work on pictures, a little at a time: two threads, and a queue that ends."""

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from comes.annotate.display_sizes import expect_large_pictures

AT_ONCE = 2
MOST_WAITING = 24  # a page fetches a few pictures ahead
RETRY = 1  # second after which a browser may ask again
NICE = 10  # decoding gives way to answers

Result = TypeVar("Result")


class Decoder:
    """Runs work in two threads; what is asked for twice at the same time is made once."""

    def __init__(self) -> None:
        expect_large_pictures()
        self._pool = ThreadPoolExecutor(AT_ONCE, "decoder", initializer=_step_back)
        self._running: dict[str, asyncio.Future[Any]] = {}

    async def run(self, key: str, work: Callable[[], Result]) -> Result:
        """Return the result of some work; refuse (503) when too much waits already."""
        future = self._running.get(key)
        if future is None:
            if len(self._running) >= AT_ONCE + MOST_WAITING:
                raise HTTPException(
                    503, "many pictures are being prepared", {"Retry-After": str(RETRY)}
                )
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._pool, _run_and_tidy, work)
            self._running[key] = future
            future.add_done_callback(lambda _: self._running.pop(key))
        # Whoever goes away does not end the work that others wait for.
        result: Result = await asyncio.shield(future)
        return result


def _run_and_tidy(work: Callable[[], Result]) -> Result:
    """Run some work, and give the memory of its pixels back to the system."""
    try:
        return work()
    finally:
        if (trim := _find_trim()) is not None:
            trim(0)


@cache
def _find_trim() -> Any:
    """Return the function of glibc that returns free memory; None on other systems."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None


def _step_back() -> None:
    """Let the other threads of this process go first, where threads have priorities."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
