"""Display sizes made by programs of their own, at most two, and a queue that ends.

What is decoded comes from files that others made. In a process of its own a decoder cannot hold up
the server, whose threads share one interpreter, nor take its memory.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from comes.annotate.display_sizes import MOST_MEMORY, WIDTHS, Display, UnshownError
from comes.annotate.pictures import PictureFiles
from comes.annotate.web.app import Site
from comes.errors import ComesError, first_line

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


MOST = 2 << 30  # bytes
KEPT = 0.8  # of them, after the oldest were removed
ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png"}


class DisplayCache:
    """Pictures under keys, in files of a folder that any server of the project may share.

    A folder that cannot be written to keeps nothing, and pictures are made every time.

    Parameters
    ----------
    folder : Path
    most : int
        Bytes; beyond, those go that were not asked for longest.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._folder, self._most = folder, most
        self._size: int | None = None  # unknown until something is written
        self._lock = threading.Lock()

    def read(self, key: str) -> tuple[str, bytes] | None:
        """Return kind and content of what is kept under a key; None if nothing is."""
        for kind, ending in ENDINGS.items():
            path = self._path(key, ending)
            with suppress(OSError):
                content = path.read_bytes()
                os.utime(path)  # it was asked for
                return kind, content
        return None

    def write(self, key: str, kind: str, content: bytes) -> None:
        """Keep a picture under a key, whole or not at all."""
        path = self._path(key, ENDINGS[kind])
        with suppress(OSError):
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")  # mode 0600
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise
            self._make_room(len(content))

    def _path(self, key: str, ending: str) -> Path:
        return self._folder / key[:2] / f"{key}{ending}"

    def _make_room(self, added: int) -> None:
        """Remove the files that were asked for longest ago, where there are too many."""
        with self._lock:
            if self._size is not None:
                self._size += added
                if self._size <= self._most:
                    return
            found = sorted(
                (stat.st_mtime, stat.st_size, path)
                for path in self._folder.glob("*/*")
                for stat in (path.stat(),)
            )
            self._size = sum(size for _, size, _ in found)
            if self._size <= self._most:
                return
            for _, size, path in found:
                if self._size <= KEPT * self._most:
                    break
                path.unlink(missing_ok=True)
                self._size -= size


FOLDER = "display"  # of display sizes, in the folder of the project
REMEMBERED = 100_000  # pictures of which it is known that they go as they are, or are broken


class PictureRoutes:
    """The pictures of a project."""

    def __init__(self, site: Site) -> None:
        self._site, self._decoder = site, Decoder()
        self._cache = DisplayCache(site.project.folder / FOLDER)
        self._files: PictureFiles | None = None
        self._kinds: dict[str, str] = {}  # of pictures that go as they are
        self._broken: dict[str, str] = {}
        self.routes = [
            Route("/items/{number}", self.item),
            Route("/items/{number}/full", self.full),
        ]

    async def item(self, request: Request) -> Response:
        """Send a picture in a display size."""
        wanted = request.query_params.get("width", str(WIDTHS[-1]))
        if wanted not in map(str, WIDTHS):
            raise HTTPException(400, f"width must be {' or '.join(map(str, WIDTHS))}")
        return await self._send(request, int(wanted))

    async def full(self, request: Request) -> Response:
        """Send a whole picture."""
        return await self._send(request, None)

    async def _send(self, request: Request, width: int | None) -> Response:
        files, row = self._find(request.path_params["number"])
        try:
            state = await run_in_threadpool(files.state, row)
            key = f"{state}-{width or 'full'}"
            headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{key}"'}
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Response(status_code=304, headers=headers)
            if key in self._broken:
                raise ComesError(self._broken[key])
            found = await run_in_threadpool(self._cache.read, key)
            if found is not None:
                return Response(found[1], media_type=found[0], headers=headers)
            if key not in self._kinds:
                work = partial(self._make, files, row, width, key)
                made = await self._decoder.run(key, work)
                if made.content is not None:
                    return Response(made.content, media_type=made.kind, headers=headers)
            return await _send_file(files, row, self._kinds[key], headers)
        except OSError as error:
            raise HTTPException(422, f"this picture cannot be read ({error.strerror})") from None
        except ComesError as error:
            raise HTTPException(422, first_line(error)) from None

    def _find(self, number: str) -> tuple[PictureFiles, int]:
        images = self._site.project.images
        row = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
        if images is None or not 0 <= row < len(images):
            raise HTTPException(404, "there is no such image")
        if self._files is None or len(self._files) != len(images):
            self._files = PictureFiles(images)
        return self._files, row

    def _make(self, files: PictureFiles, row: int, width: int | None, key: str) -> Display:
        """Make a display size and keep it; remember what goes as it is, and what is broken."""
        try:
            made = self._decoder.make(self._find_source(files, row, width, key), width)
        except UnshownError as error:
            _remember(self._broken, key, f"this picture {error}")
            raise ComesError(self._broken[key]) from None
        if made.content is None:
            _remember(self._kinds, key, made.kind)
        else:
            self._cache.write(key, made.kind, made.content)
        return made

    def _find_source(
        self, files: PictureFiles, row: int, width: int | None, key: str
    ) -> Path | bytes:
        """Return what a display size is made of: the largest one, if it is there, or the file."""
        if width is not None and width < WIDTHS[-1]:
            largest = self._cache.read(f"{key.partition('-')[0]}-{WIDTHS[-1]}")
            if largest is not None:
                return largest[1]
        if not files.is_packed(row):
            return files.path(row)
        with files.open(row) as file:
            return file.read()


async def _send_file(files: PictureFiles, row: int, kind: str, headers: dict[str, str]) -> Response:
    if not files.is_packed(row):
        path = await run_in_threadpool(files.path, row)
        return FileResponse(path, media_type=kind, headers=headers)
    with await run_in_threadpool(files.open, row) as file:
        return Response(file.read(), media_type=kind, headers=headers)


def _remember(known: dict[str, str], key: str, value: str) -> None:
    if len(known) >= REMEMBERED:
        known.clear()
    known[key] = value
