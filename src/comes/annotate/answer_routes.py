"""The pages on which people answer, and what they send: a name, requests for cards, answers."""

import time
import unicodedata
from functools import partial
from urllib.parse import quote

from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from comes.annotate.bodies import AnswersBody, CardsBody, JoinBody, UndoBody, read_body
from comes.annotate.leases import (
    Asker,
    RefusedError,
    SentAnswer,
    count_progress,
    lease_cards,
    store_answers,
    undo_answers,
)
from comes.annotate.page_values import describe_page
from comes.annotate.schema import answers
from comes.annotate.site import NAME_COOKIE, Site, read_name


class AnswerPages:
    """The pages of annotators."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/", self.cards),
            Route("/grid", self.grid),
            Route("/join", self.join),
            Route("/api/join", self.take_name, methods=["POST"]),
            Route("/api/cards", self.next_cards, methods=["POST"]),
            Route("/api/answers", self.take_answers, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
        ]

    async def cards(self, request: Request) -> Response:
        """Show the page that asks one card at a time."""
        return await self._show_questions(request, "cards")

    async def grid(self, request: Request) -> Response:
        """Show the page that asks about several classes of one item."""
        return await self._show_questions(request, "grid")

    async def _show_questions(self, request: Request, mode: str) -> Response:
        name = read_name(request)
        if name is None:
            return RedirectResponse("/join", 303)
        n_cards = await run_in_threadpool(self._site.project.count_cards)
        values = await run_in_threadpool(describe_page, self._site.project, request)
        values |= {"mode": mode, "n_cards": n_cards, "page": self._site.identify_page(name)}
        return self._site.render_page("annotate.html.jinja", name=name, **values)

    async def join(self, request: Request) -> Response:
        """Show the page that asks for a name."""
        values = await run_in_threadpool(describe_page, self._site.project, request)
        return self._site.render_page("join.html.jinja", name=read_name(request), **values)

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
        with self._site.project.reading() as connection:
            known = connection.execute(select(answers.c.annotator).distinct()).scalars().all()
        return next((old for old in known if old.casefold() == name.casefold()), name)

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a tab."""
        body = await read_body(request, CardsBody)
        asker = Asker(self._site.require_name(request), body.tab)
        now, by_item = time.time(), body.mode == "grid"
        leased = await self._site.run_command(
            partial(lease_cards, asker=asker, now=now, lease=self._site.lease, by_item=by_item)
        )
        counted = await run_in_threadpool(self._read_progress, asker.annotator)
        waiting = 0 if leased else counted["total"] - counted["done"]
        return JSONResponse({"cards": leased, "progress": counted, "waiting": waiting})

    def _read_progress(self, annotator: str) -> dict[str, int]:
        with self._site.project.reading() as connection:
            return count_progress(connection, annotator)

    async def take_answers(self, request: Request) -> Response:
        """Store answers; the reply comes when they are on disk."""
        body = await read_body(request, AnswersBody)
        asker, now = Asker(self._site.require_name(request), body.tab), time.time()
        sent = [SentAnswer(a.card, a.answer, a.key, a.seconds) for a in body.answers]
        await self._site.run_command(
            partial(store_answers, asker=asker, sent=sent, now=now, lease=self._site.lease)
        )
        return JSONResponse({"stored": len(sent)})

    async def undo(self, request: Request) -> Response:
        """Undo answers."""
        body = await read_body(request, UndoBody)
        asker, now = Asker(self._site.require_name(request), body.tab), time.time()
        undone = await self._site.run_command(
            partial(undo_answers, asker=asker, keys=body.keys, now=now, lease=self._site.lease)
        )
        return JSONResponse({"cards": undone})
