"""Pictures in display sizes, which worker processes make and a folder keeps.

What is decoded comes from files that others made. In a process of its own a decoder cannot hold up
the server, nor take its memory.
"""

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path

from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from comes.annotate.asking import GUIDELINES, Guideline, find_guideline, read_asking
from comes.annotate.cards import RefusedError
from comes.annotate.pictures import (
    LONGEST,
    WIDTHS,
    Display,
    UnshownError,
    find_picture,
    make_in_worker,
    prepare_worker,
    read_state,
)
from comes.annotate.schema import classes
from comes.annotate.web.app import Site
from comes.errors import ComesError
from comes.files import replacing_file

AT_ONCE = max(1, min(2, (os.cpu_count() or 2) - 1))  # a core is left for answers
MOST_WAITING = 100  # every page fetches a few pictures ahead


def start_worker() -> Executor:
    """Return a pool of one process, so that who breaks it is known."""
    context = multiprocessing.get_context("spawn")
    server = (os.getpid(),)
    return ProcessPoolExecutor(1, context, initializer=prepare_worker, initargs=server)


class Decoder:
    """Makes display sizes, two at a time at most; what is asked for twice at once is made once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "decoder")
        self._running: dict[str, asyncio.Future[Display]] = {}
        self._own = threading.local()  # each thread has a worker, which ends with it

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
        """Return a display size, made by the worker of this thread."""
        started = time.monotonic()
        # The worker may have been killed since it was used last.
        for _ in range(2):
            try:
                if not hasattr(self._own, "worker"):
                    self._own.worker = start_worker()
                job = self._own.worker.submit(make_in_worker, picture, width, LONGEST)
                made: Display = job.result()
            except BrokenProcessPool:
                del self._own.worker
                if time.monotonic() > started + LONGEST:
                    break
            else:
                return made
        raise UnshownError("takes too long, or too much memory, to be shown")

    def close(self) -> None:
        """Make no more pictures."""
        self._threads.shutdown(wait=False, cancel_futures=True)


MOST = 2 << 30  # bytes
PNG = b"\x89PNG"  # how such a file begins; others are JPEG


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
        path = self._folder / key[:2] / key
        with suppress(OSError):
            content = path.read_bytes()
            os.utime(path)  # it was asked for
            return Display("image/png" if content.startswith(PNG) else "image/jpeg", content)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep a picture under a key, whole or not at all."""
        path = self._folder / key[:2] / key
        with suppress(OSError, ComesError):
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            with replacing_file(path) as temporary:
                temporary.chmod(0o600)
                temporary.write_bytes(content)
            self._make_room(len(content))

    def _make_room(self, added: int) -> None:
        """Look at the folder now and then, and remove what was asked for longest ago."""
        with self._lock:
            self._added += added
            if self._added < self._most / 10:
                return
            self._added = 0
        found = [(path.stat(), path) for path in self._folder.glob("*/[!.]*")]
        size = 0
        for stat, path in sorted(found, key=lambda one: -one[0].st_mtime):
            size += stat.st_size
            if size > self._most:
                path.unlink(missing_ok=True)


FOLDER = "display"  # of display sizes, in the folder of the project
REMEMBERED = 100_000  # pictures of which it is known that they go as they are, or are broken
Find = Callable[[Request], tuple[Path, str]]  # the source of a picture, and its name


class PictureRoutes:
    """The pictures of a project, and the guidelines of its classes."""

    def __init__(self, site: Site) -> None:
        self._project, self._decoder = site.project, Decoder()
        site.closings.append(self._decoder.close)
        self._cache = DisplayCache(site.project.folder / FOLDER)
        self._known: dict[str, Display | str] = {}  # go as they are, or why they cannot be shown
        example = partial(self._send, find=self._find_example, width=WIDTHS[-1])
        self.routes = [
            Route("/items/{number}", self.item),
            Route("/items/{number}/full", partial(self._send, find=self._find_item, width=None)),
            Route("/api/guidelines/{number}", self.guideline),
            Route("/guidelines/{number}/{picture}", example),
        ]

    async def item(self, request: Request) -> Response:
        """Send a picture in a display size."""
        wanted = request.query_params.get("width", str(WIDTHS[-1]))
        if wanted not in map(str, WIDTHS):
            raise RefusedError(400, f"width must be {' or '.join(map(str, WIDTHS))}")
        return await self._send(request, self._find_item, int(wanted))

    def guideline(self, request: Request) -> Response:
        """Send the text about a class, and how many pictures there are."""
        _, found = self._find_guideline(request)
        return JSONResponse({**found._asdict(), "pictures": len(found.pictures)})

    def _find_guideline(self, request: Request) -> tuple[Path, Guideline]:
        number = _parse_number(request.path_params["number"])
        with self._project.reading() as connection:
            name = connection.scalar(select(classes.c.name).where(classes.c.id == number))
            folder = read_asking(connection).get(GUIDELINES)
        if name is None or folder is None:
            raise RefusedError(404, "there are no such guidelines")
        home = Path(folder).resolve()
        return home, find_guideline(home, name)

    def _find_example(self, request: Request) -> tuple[Path, str]:
        home, found = self._find_guideline(request)
        row = _parse_number(request.path_params["picture"]) - 1
        if not 0 <= row < len(found.pictures):
            raise RefusedError(404, "there is no such picture")
        return home, found.pictures[row].relative_to(home).as_posix()

    def _find_item(self, request: Request) -> tuple[Path, str]:
        images = self._project.images
        row = _parse_number(request.path_params["number"]) - 1
        if images is None or not 0 <= row < len(images):
            raise RefusedError(404, "there is no such image")
        return images.sources[row], images.names[row]

    async def _send(self, request: Request, find: Find, width: int | None) -> Response:
        source, name = await run_in_threadpool(find, request)
        try:
            key = f"{await run_in_threadpool(read_state, source, name)}-{width or 'full'}"
            headers = {"Cache-Control": "private, no-cache", "ETag": f'"{key}"'}
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Response(status_code=304, headers=headers)
            made = self._known.get(key) or await run_in_threadpool(self._cache.read, key)
            if made is None:
                made = await self._decoder.run(key, partial(self._make, source, name, width, key))
            if isinstance(made, str):
                raise UnshownError(made)
            if made.content is not None:
                return Response(made.content, media_type=made.kind, headers=headers)
            found = await run_in_threadpool(find_picture, source, name)
        except OSError as error:
            raise RefusedError(422, f"this picture cannot be read ({error.strerror})") from None
        except UnshownError as error:
            raise RefusedError(422, f"this picture {error}") from None
        if isinstance(found, Path):
            return FileResponse(found, media_type=made.kind, headers=headers)
        return Response(found, media_type=made.kind, headers=headers)

    def _make(self, source: Path, name: str, width: int | None, key: str) -> Display:
        """Make a display size and keep it; remember what goes as it is, and what is broken."""
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        # A small size is made of the largest one, where that is kept: it takes a fifth of the time.
        is_small = width is not None and width < WIDTHS[-1]
        largest = self._cache.read(f"{key.partition('-')[0]}-{WIDTHS[-1]}") if is_small else None
        try:
            kept = largest and largest.content
            made = self._decoder.make(kept or find_picture(source, name), width)
        except UnshownError as error:
            self._known[key] = str(error)
            raise
        if made.content is None:
            self._known[key] = made
        else:
            self._cache.write(key, made.content)
        return made


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
