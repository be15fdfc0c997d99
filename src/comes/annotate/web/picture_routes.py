"""Pictures of items, by number: in a display size, and whole for whoever zooms in."""

from functools import partial
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from comes.annotate.display_sizes import WIDTHS, Display, UnshownError
from comes.annotate.picture_files import PictureFiles
from comes.annotate.web.decoding import Decoder
from comes.annotate.web.display_cache import DisplayCache
from comes.annotate.web.site import Site
from comes.errors import ComesError, first_line

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
