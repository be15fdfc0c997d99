"""The pages on which people answer, and what they send: a name, requests for cards, answers."""

import time
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from comes.annotate.answer_history import find_history
from comes.annotate.card_notes import write_note
from comes.annotate.leases import (
    FROZEN,
    Asker,
    SentAnswer,
    lease_cards,
    release_cards,
    store_answers,
    undo_answers,
)
from comes.annotate.person_names import KnownNameError, clean_name, join_person
from comes.annotate.web.bodies import (
    AnswersBody,
    CardsBody,
    JoinBody,
    NoteBody,
    ReleaseBody,
    UndoBody,
    read_body,
)
from comes.annotate.web.own_progress import ProgressCounter
from comes.annotate.web.page_values import describe_page
from comes.annotate.web.site import NAME_COOKIE, Site, read_name


class AnswerPages:
    """The pages of annotators."""

    def __init__(self, site: Site) -> None:
        self._site, self._counter = site, ProgressCounter(site.project)
        self.routes = [
            Route("/", self.cards),
            Route("/grid", self.grid),
            Route("/join", self.join),
            Route("/api/join", self.take_name, methods=["POST"]),
            Route("/api/cards", self.next_cards, methods=["POST"]),
            Route("/api/answers", self.take_answers, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/api/history", self.history),
            Route("/api/release", self.release, methods=["POST"]),
            Route("/api/notes", self.take_note, methods=["POST"]),
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
        """Remember who annotates; ask back where the name looks like a known one."""
        body = await read_body(request, JoinBody)
        name, is_same = clean_name(body.name), body.is_same
        try:
            name = await self._site.run_command(
                partial(join_person, name=name, is_same=is_same, now=time.time())
            )
        except KnownNameError as asked:
            values = {"error": asked.reason, "card": None, "known": asked.known}
            return JSONResponse(values, asked.status)
        answer = JSONResponse({"name": name})
        answer.set_cookie(
            NAME_COOKIE, quote(name), httponly=True, samesite="strict", max_age=2592000
        )
        return answer

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a tab."""
        body = await read_body(request, CardsBody)
        asker = Asker(self._site.require_name(request), body.tab)
        now, by_item = time.time(), body.mode == "grid"
        lease = partial(lease_cards, asker=asker, now=now, lease=self._site.lease)
        leased = await self._site.run_command(partial(lease, by_item=by_item, has=body.has))
        counted = await run_in_threadpool(self._counter.read, asker.annotator)
        frozen = None
        if not leased:
            frozen = await run_in_threadpool(self._site.project.read_setting, FROZEN)
        values = {
            "cards": leased,
            "progress": counted,
            "waiting": 0 if leased else counted["total"] - counted["done"],
            "frozen": bool(frozen),
        }
        return JSONResponse(values)

    async def take_answers(self, request: Request) -> Response:
        """Store answers; the reply comes when they are on disk."""
        body = await read_body(request, AnswersBody)
        asker, now = Asker(self._site.require_name(request), body.tab), time.time()
        sent = [SentAnswer(a.card, a.answer, a.key, a.seconds) for a in body.answers]
        n_new = await self._site.run_command(
            partial(store_answers, asker=asker, sent=sent, now=now, lease=self._site.lease)
        )
        if n_new == len(sent):
            seconds = sum(answer.seconds or 0.0 for answer in sent)
            self._counter.add(asker.annotator, n_new, seconds)
        elif n_new:
            self._counter.forget(asker.annotator)
        return JSONResponse({"stored": len(sent)})

    async def undo(self, request: Request) -> Response:
        """Undo answers."""
        body = await read_body(request, UndoBody)
        asker, now = Asker(self._site.require_name(request), body.tab), time.time()
        undone = await self._site.run_command(
            partial(undo_answers, asker=asker, keys=body.keys, now=now, lease=self._site.lease)
        )
        self._counter.forget(asker.annotator)
        return JSONResponse({"cards": undone})

    async def history(self, request: Request) -> Response:
        """Say what this person answered last."""
        annotator = self._site.require_name(request)
        return JSONResponse({"history": await run_in_threadpool(self._read_history, annotator)})

    def _read_history(self, annotator: str) -> list[dict[str, Any]]:
        with self._site.project.reading() as connection:
            return find_history(connection, annotator)

    async def release(self, request: Request) -> Response:
        """Give the cards of a closed tab back."""
        body = await read_body(request, ReleaseBody)
        asker = Asker(self._site.require_name(request), body.tab)
        released = await self._site.run_command(partial(release_cards, asker=asker, keep=body.keep))
        return JSONResponse({"released": released})

    async def take_note(self, request: Request) -> Response:
        """Store a note on a card."""
        body = await read_body(request, NoteBody)
        asker, now = Asker(self._site.require_name(request), body.tab), time.time()
        note = partial(write_note, asker=asker, card=body.card, text=body.text, now=now)
        return JSONResponse({"is_new": await self._site.run_command(note)})
