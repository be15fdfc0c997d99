"""The web application: pages, pictures by number, and four commands as json."""

import asyncio
import io
import json
import math
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from comes.annotate.guard import LARGEST_BODY, Guard, refused
from comes.annotate.project import Project
from comes.annotate.queue import (
    Asker,
    Given,
    RefusedError,
    lease_cards,
    progress,
    store_answers,
    undo_answers,
)
from comes.annotate.rendering import render
from comes.annotate.statistics import Summary, summarise
from comes.annotate.tables import answers
from comes.annotate.writer import Writer
from comes.errors import ComesError

FRESH = 2.0  # seconds for which a summary is not made anew
LEASE = 300.0  # seconds that a tab keeps its cards without being heard of
NAME_COOKIE = "comes_name"
SHOWN = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # of a camera that puts a second picture behind the first
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
Result = TypeVar("Result")

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
MOST_IN_A_REQUEST = 300


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Join(_Body):
    name: Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]


class _Cards(_Body):
    tab: Id
    mode: Literal["cards", "grid"] = "cards"


class _Answer(_Body):
    card: Annotated[int, Field(ge=1, lt=2**31)]
    answer: Literal["no", "maybe", "skip"]
    key: Id
    seconds: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None


class _Answers(_Body):
    tab: Id
    answers: Annotated[list[_Answer], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


class _Undo(_Body):
    tab: Id
    keys: Annotated[list[Id], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


Body = TypeVar("Body", bound=_Body)


def make_app(project: Project, *, token_digest: str | None = None, lease: float = LEASE) -> ASGIApp:
    """Return the application that serves a project.

    Parameters
    ----------
    project : Project
    token_digest : str, optional
        What is stored of the token that every request must carry; None for a loopback address.
    lease : float
        Seconds after which the cards of a tab that is not heard of are free again.
    """
    pages = _Pages(project, lease)
    routes = [
        Route("/", pages.cards),
        Route("/grid", pages.grid),
        Route("/join", pages.join),
        Route("/lead", pages.lead),
        Route("/items/{number}", pages.item),
        Route("/static/{name}", pages.static),
        Route("/api/join", pages.take_name, methods=["POST"]),
        Route("/api/cards", pages.next_cards, methods=["POST"]),
        Route("/api/answers", pages.take_answers, methods=["POST"]),
        Route("/api/undo", pages.undo, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {
        RefusedError: _say_refusal,
        HTTPException: _say_http_error,
        SQLAlchemyError: _say_unavailable,
        ComesError: _say_unavailable,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=pages.lifespan)
    return Guard(app, token_digest)


class _Pages:
    """What the routes do."""

    def __init__(self, project: Project, lease: float) -> None:
        self._project, self._lease = project, lease
        self._writer: Writer | None = None
        self._one_lead, self._summarised_at = asyncio.Lock(), -math.inf
        self._summary: Summary | None = None

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Write while the server runs."""
        self._writer = Writer(self._project.engine)
        try:
            yield
        finally:
            await run_in_threadpool(self._writer.close)

    async def cards(self, request: Request) -> Response:
        """Show the page that asks one card at a time."""
        return await self._annotate(request, "cards")

    async def grid(self, request: Request) -> Response:
        """Show the page that asks about several classes of one item."""
        return await self._annotate(request, "grid")

    async def _annotate(self, request: Request, mode: str) -> Response:
        name = _name(request)
        if not name:
            return RedirectResponse("/join", 303)
        n_cards = await run_in_threadpool(self._project.count_cards)
        values = {"mode": mode, "kind": self._project.kind, "n_cards": n_cards}
        return self._page("annotate.html.jinja", name=name, page=self._page_of(name), **values)

    def _page_of(self, name: str) -> str:
        """Return what tells pages of this project and person from all others."""
        return f"{self._project.identity}-{quote(name, safe='')}"

    def _known_name(self, request: Request) -> str:
        """Return who asks; refuse a page of another project, or that was opened by another name."""
        name = _name(request)
        if not name:
            raise RefusedError(403, "say who you are first: open /join")
        page = request.headers.get("x-comes-page")
        if page and page != self._page_of(name):
            raise RefusedError(403, "the name or the project has changed: reload the page")
        return name

    async def join(self, request: Request) -> Response:
        """Show the page that asks for a name."""
        return self._page("join.html.jinja", name=_name(request))

    async def lead(self, request: Request) -> Response:
        """Show progress, agreement and pace."""
        async with self._one_lead:
            if time.monotonic() > self._summarised_at + FRESH:
                self._summary = await run_in_threadpool(summarise, self._project)
                self._summarised_at = time.monotonic()
        values = {"mode": "lead", "summary": self._summary}
        return self._page("lead.html.jinja", name=_name(request), **values)

    async def item(self, request: Request) -> Response:
        """Send a picture, by number."""
        images, number = self._project.images, request.path_params["number"]
        row = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
        if images is None or not 0 <= row < len(images):
            raise HTTPException(404, "there is no such picture")
        content, kind = await run_in_threadpool(_picture, images, row)
        return Response(
            content, media_type=kind, headers={"Cache-Control": "private, max-age=3600"}
        )

    async def static(self, request: Request) -> Response:
        """Send a script or a style sheet of ours."""
        content = _static_files().get(request.path_params["name"])
        if content is None:
            raise HTTPException(404, "there is no such file")
        return Response(content[0], media_type=content[1], headers={"Cache-Control": "no-cache"})

    async def take_name(self, request: Request) -> Response:
        """Remember who annotates."""
        given = unicodedata.normalize("NFC", (await _read(request, _Join)).name)
        if not given.isprintable():
            raise RefusedError(422, "a name has letters that can be seen")
        name = await run_in_threadpool(self._spelled, " ".join(given.split()))
        answer = JSONResponse({"name": name})
        answer.set_cookie(
            NAME_COOKIE, quote(name), httponly=True, samesite="strict", max_age=2592000
        )
        return answer

    def _spelled(self, name: str) -> str:
        """Return a name as this person has written it before: Ada, and not ada."""
        with self._project.reading() as connection:
            known = connection.execute(select(answers.c.annotator).distinct()).scalars().all()
        return next((one for one in known if one.casefold() == name.casefold()), name)

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a tab."""
        body = await _read(request, _Cards)
        asker = Asker(self._known_name(request), body.tab)
        now, by_item = time.time(), body.mode == "grid"

        def command(connection: Connection) -> list[dict[str, Any]]:
            return lease_cards(connection, asker, now=now, lease=self._lease, by_item=by_item)

        leased = await self._done(command)
        counted = await run_in_threadpool(self._progress, asker.annotator)
        waiting = 0 if leased else counted["total"] - counted["done"]
        return JSONResponse({"cards": leased, "progress": counted, "waiting": waiting})

    def _progress(self, annotator: str) -> dict[str, int]:
        with self._project.reading() as connection:
            return progress(connection, annotator)

    async def take_answers(self, request: Request) -> Response:
        """Store answers; the reply comes when they are on disk."""
        body = await _read(request, _Answers)
        asker, now = Asker(self._known_name(request), body.tab), time.time()
        given = [Given(a.card, a.answer, a.key, a.seconds) for a in body.answers]

        def command(connection: Connection) -> None:
            store_answers(connection, asker, given, now=now, lease=self._lease)

        await self._done(command)
        return JSONResponse({"stored": len(given)})

    async def undo(self, request: Request) -> Response:
        """Take answers back."""
        body = await _read(request, _Undo)
        asker, now = Asker(self._known_name(request), body.tab), time.time()

        def command(connection: Connection) -> list[dict[str, Any]]:
            return undo_answers(connection, asker, body.keys, now=now, lease=self._lease)

        return JSONResponse({"cards": await self._done(command)})

    async def _done(self, command: Callable[[Connection], Result]) -> Result:
        """Return what a command returned, after its commit."""
        assert self._writer is not None
        return await asyncio.wrap_future(self._writer.submit(command))

    def _page(self, template: str, **values: Any) -> Response:
        text = render(template, project=self._project.name, **values)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})


async def _read(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request, checked."""
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > LARGEST_BODY:
                raise RefusedError(413, f"at most {LARGEST_BODY} bytes are read")
        return kind.model_validate(json.loads(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}" if place else first["msg"]) from None
    except ClientDisconnect:
        raise RefusedError(400, "the body broke off") from None
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is no json") from None


def _name(request: Request) -> str:
    name = unquote(request.cookies.get(NAME_COOKIE, ""))
    return name if name.isprintable() and name == name.strip() and len(name) <= 60 else ""


def _picture(images: Any, row: int) -> tuple[bytes, str]:
    """Return a picture as a browser shows it; one that can be opened, and no other kind of file."""
    from PIL import Image

    try:
        content = images.read_bytes(row)
        with Image.open(io.BytesIO(content)) as picture:
            picture.load()
            if picture.format in SHOWN:
                return content, SHOWN[picture.format]
        file = io.BytesIO()
        Image.fromarray(images[row]).save(file, "PNG")
    except (ComesError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise HTTPException(422, "this picture cannot be read") from None
    return file.getvalue(), "image/png"


@lru_cache
def _static_files() -> dict[str, tuple[bytes, str]]:
    folder = files("comes.annotate").joinpath("static")
    return {
        file.name: (file.read_bytes(), kind)
        for file in folder.iterdir()
        for ending, kind in STATIC.items()
        if file.name.endswith(ending)
    }


async def _say_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return refused(request.headers, error.status, error.reason, error.card)


async def _say_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refused(request.headers, error.status_code, error.detail.lower())
    answer.headers.update(error.headers or {})  # which methods are allowed
    return answer


async def _say_unavailable(request: Request, error: Exception) -> Response:
    reason = str(error) if isinstance(error, ComesError) else "the database does not answer"
    return refused(request.headers, 503, f"{reason.rstrip('.')}; try again")
