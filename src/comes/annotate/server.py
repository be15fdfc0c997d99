"""The web application: pages, images by number, and four commands as json."""

import asyncio
import io
import math
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from comes.annotate.bodies import AnswersBody, CardsBody, JoinBody, UndoBody, read_body
from comes.annotate.guard import Guard, make_refusal
from comes.annotate.leases import (
    Asker,
    RefusedError,
    SentAnswer,
    count_progress,
    lease_cards,
    store_answers,
    undo_answers,
)
from comes.annotate.project import Project
from comes.annotate.rendering import render
from comes.annotate.schema import answers
from comes.annotate.summary import Summary, summarise
from comes.annotate.writer import Writer
from comes.errors import ComesError

FRESH = 2.0  # seconds for which a summary is reused
LEASE = 300.0  # seconds that a silent tab keeps its cards
NAME_COOKIE = "comes_name"
SHOWN = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # of a camera that appends a second image
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
Result = TypeVar("Result")


def make_app(project: Project, *, token_digest: str | None = None, lease: float = LEASE) -> ASGIApp:
    """Return the application that serves a project.

    Parameters
    ----------
    project : Project
    token_digest : str, optional
        The digest of the token that every request must carry, from `find_token`; None if no token
        is needed.
    lease : float
        Seconds after which the cards of a silent tab are free again.

    Returns
    -------
    app : ASGI application

    Examples
    --------
    >>> from starlette.testclient import TestClient
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     with TestClient(make_app(project), base_url="http://127.0.0.1") as client:
    ...         client.post("/api/join", json={"name": "Ada"}).json()
    {'name': 'Ada'}
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
        RefusedError: _respond_refusal,
        HTTPException: _respond_http_error,
        SQLAlchemyError: _respond_unavailable,
        ComesError: _respond_unavailable,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=pages.lifespan)
    return Guard(app, token_digest)


class _Pages:
    """The handlers of the routes."""

    def __init__(self, project: Project, lease: float) -> None:
        self._project, self._lease = project, lease
        self._writer: Writer | None = None
        self._one_lead, self._summarised_at = asyncio.Lock(), -math.inf
        self._summary: Summary | None = None

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the writer as long as the server runs."""
        self._writer = Writer(self._project.engine)
        try:
            yield
        finally:
            await run_in_threadpool(self._writer.close)

    async def cards(self, request: Request) -> Response:
        """Show the page that asks one card at a time."""
        return await self._show_questions(request, "cards")

    async def grid(self, request: Request) -> Response:
        """Show the page that asks about several classes of one item."""
        return await self._show_questions(request, "grid")

    async def _show_questions(self, request: Request, mode: str) -> Response:
        name = _read_name(request)
        if name is None:
            return RedirectResponse("/join", 303)
        n_cards = await run_in_threadpool(self._project.count_cards)
        values = {"mode": mode, "kind": self._project.kind, "n_cards": n_cards}
        return self._render_page(
            "annotate.html.jinja", name=name, page=self._identify_page(name), **values
        )

    def _identify_page(self, name: str) -> str:
        """Return what tells pages of this project and person from all others."""
        return f"{self._project.identity}-{quote(name, safe='')}"

    def _require_name(self, request: Request) -> str:
        """Return who asks; refuse a page of another project, or one opened under another name."""
        name = _read_name(request)
        if name is None:
            raise RefusedError(403, "say who you are first: open /join")
        page = request.headers.get("x-comes-page")
        if page and page != self._identify_page(name):
            raise RefusedError(403, "the name or the project has changed: reload the page")
        return name

    async def join(self, request: Request) -> Response:
        """Show the page that asks for a name."""
        return self._render_page("join.html.jinja", name=_read_name(request))

    async def lead(self, request: Request) -> Response:
        """Show progress, agreement and pace."""
        async with self._one_lead:
            if time.monotonic() > self._summarised_at + FRESH:
                self._summary = await run_in_threadpool(summarise, self._project)
                self._summarised_at = time.monotonic()
        values = {"mode": "lead", "summary": self._summary}
        return self._render_page("lead.html.jinja", name=_read_name(request), **values)

    async def item(self, request: Request) -> Response:
        """Send the image with a number."""
        images, number = self._project.images, request.path_params["number"]
        row = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
        if images is None or not 0 <= row < len(images):
            raise HTTPException(404, "there is no such image")
        content, kind = await run_in_threadpool(_read_image, images, row)
        return Response(
            content, media_type=kind, headers={"Cache-Control": "private, max-age=3600"}
        )

    async def static(self, request: Request) -> Response:
        """Send one of our scripts or style sheets."""
        content = _load_static_files().get(request.path_params["name"])
        if content is None:
            raise HTTPException(404, "there is no such file")
        return Response(content[0], media_type=content[1], headers={"Cache-Control": "no-cache"})

    async def take_name(self, request: Request) -> Response:
        """Remember who annotates."""
        given = unicodedata.normalize("NFC", (await read_body(request, JoinBody)).name)
        if not given.isprintable():
            raise RefusedError(422, "a name must consist of visible characters")
        name = await run_in_threadpool(self._find_spelling, " ".join(given.split()))
        answer = JSONResponse({"name": name})
        answer.set_cookie(
            NAME_COOKIE, quote(name), httponly=True, samesite="strict", max_age=2592000
        )
        return answer

    def _find_spelling(self, name: str) -> str:
        """Return a name as this person wrote it before: Ada rather than ada."""
        with self._project.reading() as connection:
            known = connection.execute(select(answers.c.annotator).distinct()).scalars().all()
        return next((old for old in known if old.casefold() == name.casefold()), name)

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a tab."""
        body = await read_body(request, CardsBody)
        asker = Asker(self._require_name(request), body.tab)
        now, by_item = time.time(), body.mode == "grid"
        leased = await self._run_command(
            partial(lease_cards, asker=asker, now=now, lease=self._lease, by_item=by_item)
        )
        counted = await run_in_threadpool(self._read_progress, asker.annotator)
        waiting = 0 if leased else counted["total"] - counted["done"]
        return JSONResponse({"cards": leased, "progress": counted, "waiting": waiting})

    def _read_progress(self, annotator: str) -> dict[str, int]:
        with self._project.reading() as connection:
            return count_progress(connection, annotator)

    async def take_answers(self, request: Request) -> Response:
        """Store answers; the reply comes when they are on disk."""
        body = await read_body(request, AnswersBody)
        asker, now = Asker(self._require_name(request), body.tab), time.time()
        sent = [SentAnswer(a.card, a.answer, a.key, a.seconds) for a in body.answers]
        await self._run_command(
            partial(store_answers, asker=asker, sent=sent, now=now, lease=self._lease)
        )
        return JSONResponse({"stored": len(sent)})

    async def undo(self, request: Request) -> Response:
        """Undo answers."""
        body = await read_body(request, UndoBody)
        asker, now = Asker(self._require_name(request), body.tab), time.time()
        undone = await self._run_command(
            partial(undo_answers, asker=asker, keys=body.keys, now=now, lease=self._lease)
        )
        return JSONResponse({"cards": undone})

    async def _run_command(self, command: Callable[[Connection], Result]) -> Result:
        """Run a command in the writer; return its result after the commit."""
        assert self._writer is not None
        return await asyncio.wrap_future(self._writer.submit(command))

    def _render_page(self, template: str, **values: Any) -> Response:
        text = render(template, project=self._project.name, **values)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})


def _read_name(request: Request) -> str | None:
    """Return the name in the cookie; None without a cookie, or if it is not one that we set."""
    name = unquote(request.cookies.get(NAME_COOKIE, ""))
    is_ours = name and name.isprintable() and name == name.strip() and len(name) <= 60
    return name if is_ours else None


def _read_image(images: Any, row: int) -> tuple[bytes, str]:
    """Return an image in a format that browsers show; refuse a file that is not an image."""
    from PIL import Image

    try:
        content = images.read_bytes(row)
        with Image.open(io.BytesIO(content)) as opened:
            opened.load()
            if opened.format in SHOWN:
                return content, SHOWN[opened.format]
        file = io.BytesIO()
        Image.fromarray(images[row]).save(file, "PNG")
    except (ComesError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise HTTPException(422, "this image cannot be read") from None
    return file.getvalue(), "image/png"


@lru_cache
def _load_static_files() -> dict[str, tuple[bytes, str]]:
    folder = files("comes.annotate").joinpath("static")
    return {
        file.name: (file.read_bytes(), kind)
        for file in folder.iterdir()
        for ending, kind in STATIC.items()
        if file.name.endswith(ending)
    }


async def _respond_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return make_refusal(request.headers, error.status, error.reason, error.card)


async def _respond_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = make_refusal(request.headers, error.status_code, error.detail.lower())
    answer.headers.update(error.headers or {})  # which methods are allowed
    return answer


async def _respond_unavailable(request: Request, error: Exception) -> Response:
    reason = str(error) if isinstance(error, ComesError) else "the database does not answer"
    return make_refusal(request.headers, 503, f"{reason.rstrip('.')}; try again")
