"""The pictures of a project in display sizes, which worker processes make and a folder keeps.

What is decoded comes from files that others made. In a process of its own a decoder cannot hold up
the server, nor take its memory.
"""

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from comes.annotate.cards import RefusedError
from comes.annotate.pictures import (
    LONGEST,
    WIDTHS,
    Display,
    PictureFiles,
    UnshownError,
    make_in_worker,
    prepare_worker,
)
from comes.annotate.web.app import Site
from comes.errors import ComesError
from comes.files import replacing_file

AT_ONCE = max(1, min(2, (os.cpu_count() or 2) - 1))  # a core is left for answers
MOST_WAITING = 100  # every page fetches a few pictures ahead


def start_worker() -> Executor:
    """Return a pool of one process, so that who breaks it is known."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=prepare_worker)


class Decoder:
    """Makes display sizes, two at a time at most; what is asked for twice at once is made once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "decoder")
        self._running: dict[str, asyncio.Future[Display]] = {}
        self._workers: SimpleQueue[Executor | None] = SimpleQueue()
        for _ in range(AT_ONCE):
            self._workers.put(None)  # until there is a picture to make

    async def run(self, key: str, work: Callable[[], Display]) -> Display:
        """Return the result of some work; refuse (503) when too much waits already."""
        future = self._running.get(key)
        if future is None:
            if len(self._running) >= AT_ONCE + MOST_WAITING:
                raise RefusedError(503, "many pictures are being prepared; try again")
            future = asyncio.get_running_loop().run_in_executor(self._threads, work)
            self._running[key] = future
            future.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(future)  # others may wait for what one no longer wants

    def make(self, picture: Path | bytes, width: int | None) -> Display:
        """Return a display size, in a thread that waits for a worker."""
        worker = self._workers.get() or start_worker()
        try:
            for _ in range(2):  # the first may have been killed since it was used last
                try:
                    return worker.submit(make_in_worker, picture, width, LONGEST).result()
                except BrokenProcessPool:
                    worker = start_worker()
        finally:
            self._workers.put(worker)
        raise UnshownError("takes too long, or too much memory, to be shown")

    def close(self) -> None:
        """Make no more pictures."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._workers.empty():
            if worker := self._workers.get():
                worker.shutdown(wait=False, cancel_futures=True)


MOST = 2 << 30  # bytes
ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png"}


class DisplayCache:
    """Pictures under keys, in files of a folder that any server of the project may share.

    Beyond about `most` bytes, those go that were not asked for longest. A folder that cannot be
    written to keeps nothing, and pictures are made every time.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._folder, self._most = folder, most
        self._added = most  # bytes since the folder was looked at
        self._lock = threading.Lock()

    def read(self, key: str) -> Display | None:
        """Return what is kept under a key; None if nothing is."""
        for kind in ENDINGS:
            path = self._path(key, kind)
            with suppress(OSError):
                content = path.read_bytes()
                os.utime(path)  # it was asked for
                return Display(kind, content)
        return None

    def write(self, key: str, kind: str, content: bytes) -> None:
        """Keep a picture under a key, whole or not at all."""
        path = self._path(key, kind)
        with suppress(OSError, ComesError):
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            with replacing_file(path) as temporary:
                temporary.chmod(0o600)
                temporary.write_bytes(content)
            self._make_room(len(content))

    def _path(self, key: str, kind: str) -> Path:
        return self._folder / key[:2] / f"{key}{ENDINGS[kind]}"

    def _make_room(self, added: int) -> None:
        """Look at the folder now and then, and remove what was asked for longest ago."""
        with self._lock:
            self._added += added
            if self._added < self._most / 10:
                return
            self._added = 0
        found = [(path.stat(), path) for path in self._folder.glob("*/*")]
        size = 0
        for stat, path in sorted(found, key=lambda one: -one[0].st_mtime):
            size += stat.st_size
            if size > self._most:
                path.unlink(missing_ok=True)


FOLDER = "display"  # of display sizes, in the folder of the project
REMEMBERED = 100_000  # pictures of which it is known that they go as they are, or are broken


class PictureRoutes:
    """The pictures of a project."""

    def __init__(self, site: Site) -> None:
        self._site, self._decoder = site, Decoder()
        site.closings.append(self._decoder.close)
        self._cache = DisplayCache(site.project.folder / FOLDER)
        self._files: PictureFiles | None = None
        self._known: dict[str, Display | UnshownError] = {}  # go as they are, or cannot be shown
        self.routes = [
            Route("/items/{number}", self.item),
            Route("/items/{number}/full", partial(self._send, width=None)),
        ]

    async def item(self, request: Request) -> Response:
        """Send a picture in a display size."""
        wanted = request.query_params.get("width", str(WIDTHS[-1]))
        if wanted not in map(str, WIDTHS):
            raise RefusedError(400, f"width must be {' or '.join(map(str, WIDTHS))}")
        return await self._send(request, int(wanted))

    async def _send(self, request: Request, width: int | None) -> Response:
        files, row = self._find(request.path_params["number"])
        try:
            key = f"{await run_in_threadpool(files.state, row)}-{width or 'full'}"
            headers = {"Cache-Control": "private, max-age=3600", "ETag": f'"{key}"'}
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Response(status_code=304, headers=headers)
            made = self._known.get(key) or await run_in_threadpool(self._cache.read, key)
            if made is None:
                made = await self._decoder.run(key, partial(self._make, files, row, width, key))
            if isinstance(made, UnshownError):
                raise made
            content = made.content or await run_in_threadpool(files.find, row)
        except OSError as error:
            raise RefusedError(422, f"this picture cannot be read ({error.strerror})") from None
        except UnshownError as error:
            raise RefusedError(422, f"this picture {error}") from None
        if isinstance(content, Path):
            return FileResponse(content, media_type=made.kind, headers=headers)
        return Response(content, media_type=made.kind, headers=headers)

    def _find(self, number: str) -> tuple[PictureFiles, int]:
        images = self._site.project.images
        row = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
        if images is None or not 0 <= row < len(images):
            raise RefusedError(404, "there is no such image")
        if self._files is None or len(self._files) != len(images):
            self._files = PictureFiles(images)
        return self._files, row

    def _make(self, files: PictureFiles, row: int, width: int | None, key: str) -> Display:
        """Make a display size and keep it; remember what goes as it is, and what is broken."""
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        try:
            made = self._decoder.make(files.find(row), width)
        except UnshownError as error:
            self._known[key] = UnshownError(str(error))
            raise
        if made.content is None:
            self._known[key] = made
        else:
            self._cache.write(key, made.kind, made.content)
        return made
