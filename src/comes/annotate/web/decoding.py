"""Display sizes made by programs of their own, at most two, and a queue that ends.

What is decoded comes from files that others made. In a process of its own a decoder cannot hold up
the server, whose threads share one interpreter, nor take its memory.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from comes.annotate.display_sizes import MOST_MEMORY, Display, UnshownError

AT_ONCE = max(1, min(2, (os.cpu_count() or 2) - 1))  # a core is left for answers
MOST_WAITING = 100  # every page fetches a few pictures ahead
RETRY = 1  # second after which a browser may ask again
LONGEST = 60.0  # seconds that a picture may take
PROGRAM = Path(__file__).parents[1] / "display_sizes.py"

Result = TypeVar("Result")


class Memory:
    """A budget that threads share: who wants to decode waits until there is room."""

    def __init__(self, total: int = MOST_MEMORY) -> None:
        self._total, self._taken, self._changed = total, 0, threading.Condition()

    @contextmanager
    def taking(self, wanted: int) -> Iterator[None]:
        """Hold some bytes of the budget inside the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken + wanted <= self._total)
            self._taken += wanted
        try:
            yield
        finally:
            with self._changed:
                self._taken -= wanted
                self._changed.notify_all()


class Decoder:
    """Makes display sizes, two at a time at most; what is asked for twice at once is made once."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, "decoder")
        self._running: dict[str, asyncio.Future[Any]] = {}
        self._programs: SimpleQueue[_Program] = SimpleQueue()
        for _ in range(AT_ONCE):
            self._programs.put(_Program())
        self._memory = Memory()

    async def run(self, key: str, work: Callable[[], Result]) -> Result:
        """Return the result of some work; refuse (503) when too much waits already."""
        future = self._running.get(key)
        if future is None:
            if len(self._running) >= AT_ONCE + MOST_WAITING:
                raise HTTPException(
                    503, "many pictures are being prepared", {"Retry-After": str(RETRY)}
                )
            future = asyncio.get_running_loop().run_in_executor(self._pool, work)
            self._running[key] = future
            future.add_done_callback(lambda _: self._running.pop(key))
        # Whoever goes away does not end the work that others wait for.
        result: Result = await asyncio.shield(future)
        return result

    def make(self, picture: Path | bytes, width: int | None) -> Display:
        """Return a display size, in a thread of the pool."""
        program = self._programs.get()
        try:
            return program.make(picture, width, self._memory)
        finally:
            self._programs.put(program)


class _Program:
    """A process that makes display sizes; it starts when it is needed, and again if it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, picture: Path | bytes, width: int | None, memory: Memory) -> Display:
        for _ in range(2):  # the first may have died since it was used last
            process, started = self._start(), time.monotonic()
            clock = threading.Timer(LONGEST, process.kill)
            clock.start()
            try:
                return _converse(process, picture, width, memory)
            except (OSError, ValueError) as error:
                if isinstance(error, UnshownError):
                    raise
                _end(process)
                if time.monotonic() > started + LONGEST:
                    break
            finally:
                clock.cancel()
        raise UnshownError("takes too long, or too much memory, to be shown")

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            # It ends with us; after a kill it finds that nobody asks any more.
            weakref.finalize(self, _end, self._process)
        return self._process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(ValueError):  # its pipes are closed
        process.communicate()


def _converse(
    process: "subprocess.Popen[bytes]", picture: Path | bytes, width: int | None, memory: Memory
) -> Display:
    """Ask a program for a display size, and let it go on when there is memory."""
    assert process.stdin is not None and process.stdout is not None
    is_packed = isinstance(picture, bytes)
    asked = {"path": None if is_packed else str(picture), "width": width}
    asked["size"] = len(picture) if isinstance(picture, bytes) else None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    if isinstance(picture, bytes):
        process.stdin.write(picture)
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "needs" in answer:
        with memory.taking(answer["needs"]):
            process.stdin.write(b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise UnshownError(answer["error"])
    content = None if answer["size"] is None else process.stdout.read(answer["size"])
    return Display(answer["kind"], content)
