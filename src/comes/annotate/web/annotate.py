"""The pages on which people answer: cards and grid, joining, and how far they are."""

import math
import time
from functools import partial
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import Field, StringConstraints
from sqlalchemy import Connection, func, select, text
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from comes.annotate.asking import (
    ASKS_YES,
    GUIDELINES,
    LANGUAGE,
    LANGUAGES,
    QUESTION,
    default_template,
    read_asking,
    read_words,
)
from comes.annotate.cards import (
    MOST_CHARACTERS,
    Asker,
    Id,
    Number,
    SentAnswer,
    answers_of,
    find_history,
    lease_cards,
    release_cards,
    store_answers,
    undo_answers,
    write_note,
)
from comes.annotate.lead import clean_name, join_person
from comes.annotate.project import Project
from comes.annotate.schema import DECISION, FROZEN, answers, cards
from comes.annotate.web.app import (
    LONGEST_NAME,
    NAME_COOKIE,
    ROLE,
    Body,
    Site,
    read_body,
    read_name,
    set_cookie,
)

FRESH = 1.0  # seconds for which the cards of everybody are not counted again
FRESH_BARRED = 900.0  # and those that are not for a person, which takes longest
MOST_PEOPLE = 1000  # whose counts are kept
_OTHER = cards.alias("other")


class ProgressCounter:
    """Counts how far everybody is, at most once a second, and how far one person is."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._all, self._all_at = (0, 0), -math.inf
        self._barred: dict[str, tuple[int, float]] = {}

    def read(self, annotator: str, *, is_exact: bool = False) -> dict[str, Any]:
        """Return the cards in ``total`` and ``done``, and what concerns a person.

        These are the answers (``mine``), their ``seconds``, and the cards ``left`` to get.
        """
        now = time.monotonic()
        with self._project.reading() as connection:
            if is_exact or now > self._all_at + FRESH:
                self._all, self._all_at = _count_cards(connection), now
            barred, at = self._barred.get(annotator, (0, -math.inf))
            if is_exact or now > at + FRESH_BARRED:
                barred = _count_barred(connection, annotator)
                if len(self._barred) >= MOST_PEOPLE:
                    self._barred.clear()
                self._barred[annotator] = barred, now
            columns = func.count(), func.coalesce(func.sum(answers.c.seconds), 0.0)
            own = select(*columns).where(*answers_of(annotator), answers.c.undone_at.is_(None))
            mine, seconds = connection.execute(own).one()
        total, n_open = self._all
        return {
            "total": total,
            "done": total - n_open,
            "mine": mine,
            "seconds": round(float(seconds), 1),
            "left": max(n_open - barred, 0),
        }

    def add(self, n_answers: int) -> None:
        """Take answers into account until the cards are counted again."""
        total, n_open = self._all
        self._all = total, n_open - n_answers


def _count_cards(connection: Connection) -> tuple[int, int]:
    """Return how many cards there are, and how many are open, other than controls and decisions."""
    total = select(func.count()).select_from(cards).scalar_subquery()
    is_open = select(func.count()).select_from(cards).where(~cards.c.is_done).scalar_subquery()
    whole, n_open = connection.execute(select(total, is_open)).one()
    special = select(func.count(), func.count().filter(~cards.c.is_done))
    apart, n_apart = connection.execute(special.where(cards.c.turn >= text(str(DECISION)))).one()
    return whole - apart, n_open - n_apart


def _count_barred(connection: Connection, annotator: str) -> int:
    """Return the open cards about questions that a person has answered on another card."""
    is_other = (
        (_OTHER.c.item_id == cards.c.item_id)
        & (_OTHER.c.class_id == cards.c.class_id)
        & (_OTHER.c.id != cards.c.id)
    )
    query = (
        select(func.count(_OTHER.c.id.distinct()))
        .select_from(answers)
        .join(cards, cards.c.id == answers.c.card_id)
        .join(_OTHER, is_other)
        .where(answers.c.annotator == annotator, answers.c.undone_at.is_(None), ~_OTHER.c.is_done)
    )
    return connection.execute(query).scalar_one()


MOST_IN_A_REQUEST = 300  # answers or keys
MOST_OPEN = 3000  # cards that a page may have
Numbers = Annotated[list[Number], Field(max_length=MOST_OPEN, default_factory=list)]


class JoinBody(Body):
    """Who annotates."""

    name: Annotated[
        str, StringConstraints(min_length=1, max_length=LONGEST_NAME, strip_whitespace=True)
    ]
    is_same: bool = False  # as somebody whose name differs in case or blanks only


class TabBody(Body):
    """What a tab sends."""

    tab: Id


class CardsBody(TabBody):
    """A request for cards."""

    mode: Literal["cards", "grid"] = "cards"
    has: Numbers  # cards that the page has, or whose answers are on their way


class ReleaseBody(TabBody):
    """A tab that is closed."""

    keep: Numbers  # cards whose answers are on their way


class NoteBody(TabBody):
    """A note on a card; without words it is a flag."""

    card: Number
    text: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS, strip_whitespace=True)] = ""


class AnswersBody(TabBody):
    """Answers that are stored together."""

    answers: Annotated[list[SentAnswer], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


class UndoBody(TabBody):
    """Keys of answers to undo."""

    keys: Annotated[list[Id], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


Kind = TypeVar("Kind", bound=TabBody)
LANGUAGE_COOKIE = "comes_language"


class AnswerPages:
    """The pages of annotators."""

    def __init__(self, site: Site) -> None:
        self._site, self._counter = site, ProgressCounter(site.project)
        self.routes = [
            Route("/", partial(self._show_questions, mode="cards")),
            Route("/grid", partial(self._show_questions, mode="grid")),
            Route("/join", self.join),
            Route("/api/join", self.take_name, methods=["POST"]),
            Route("/api/cards", self.next_cards, methods=["POST"]),
            Route("/api/answers", self.take_answers, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/api/history", self.history),
            Route("/api/release", self.release, methods=["POST"]),
            Route("/api/notes", self.take_note, methods=["POST"]),
        ]

    def _show_questions(self, request: Request, mode: str) -> Response:
        name = read_name(request)
        if name is None:
            return RedirectResponse("/join", 303)
        n_cards, page = self._site.project.count_cards(), self._site.identify_page(name)
        return self._show("annotate.html.jinja", request, mode=mode, n_cards=n_cards, page=page)

    def join(self, request: Request) -> Response:
        """Show the page that asks for a name."""
        project = self._site.project
        return self._show(
            "join.html.jinja",
            request,
            question=project.question,
            n_items=len(project.item_names),
            n_classes=len(project.class_names),
        )

    def _show(self, template: str, request: Request, **values: Any) -> Response:
        """Show a page in the language of the browser."""
        project = self._site.project
        with project.reading() as connection:
            asked = read_asking(connection)
        own, has_own_question = asked.get(LANGUAGE, "en"), QUESTION in asked
        chosen = request.cookies.get(LANGUAGE_COOKIE, own)
        language = chosen if chosen in LANGUAGES else own
        question = asked.get(QUESTION) or default_template(project.kind, own)
        return self._site.render_page(
            template,
            name=read_name(request),
            words=read_words(language),
            language=language,
            languages=LANGUAGES,
            role=request.scope[ROLE],
            kind=project.kind,
            asks_yes=asked.get(ASKS_YES) != "0",
            has_guidelines=GUIDELINES in asked,
            has_own_question=has_own_question,
            asked=question,
            ask=question if has_own_question else default_template(project.kind, language),
            **values,
        )

    async def take_name(self, request: Request) -> Response:
        """Remember who annotates; ask back where the name looks like a known one."""
        body = await read_body(request, JoinBody)
        command = partial(join_person, name=clean_name(body.name), is_same=body.is_same)
        name = await self._site.run_command(partial(command, now=time.time()))
        answer = JSONResponse({"name": name})
        set_cookie(answer, NAME_COOKIE, quote(name), is_secure=request.url.scheme == "https")
        return answer

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a tab."""
        body, asker, now = await self._read(request, CardsBody)
        by_item, lease = body.mode == "grid", self._site.lease
        leased = await self._site.run_command(
            partial(lease_cards, asker=asker, now=now, lease=lease, by_item=by_item, has=body.has)
        )
        # Without cards, the page says how it ended: then nothing is left out of the count.
        is_end = not leased
        counted = await run_in_threadpool(self._counter.read, asker.annotator, is_exact=is_end)
        frozen = None
        if is_end:
            frozen = await run_in_threadpool(self._site.project.read_setting, FROZEN)
        waiting = counted["total"] - counted["done"] if is_end else 0
        values = {
            "cards": leased,
            "progress": counted,
            "waiting": waiting,
            "frozen": is_end and bool(frozen),
        }
        return JSONResponse(values)

    async def take_answers(self, request: Request) -> Response:
        """Store answers; the reply comes when they are on disk."""
        body, asker, now = await self._read(request, AnswersBody)
        n_new = await self._site.run_command(
            partial(store_answers, asker=asker, sent=body.answers, now=now, lease=self._site.lease)
        )
        self._counter.add(n_new)
        return JSONResponse({"stored": len(body.answers)})

    async def undo(self, request: Request) -> Response:
        """Undo answers."""
        body, asker, now = await self._read(request, UndoBody)
        undone = await self._site.run_command(
            partial(undo_answers, asker=asker, keys=body.keys, now=now, lease=self._site.lease)
        )
        self._counter.add(-len(undone))
        return JSONResponse({"cards": undone})

    def history(self, request: Request) -> Response:
        """Say what this person answered last."""
        annotator = self._site.require_name(request)
        with self._site.project.reading() as connection:
            return JSONResponse({"history": find_history(connection, annotator)})

    async def release(self, request: Request) -> Response:
        """Give the cards of a closed tab back."""
        body, asker, _ = await self._read(request, ReleaseBody)
        released = await self._site.run_command(partial(release_cards, asker=asker, keep=body.keep))
        return JSONResponse({"released": released})

    async def take_note(self, request: Request) -> Response:
        """Store a note on a card."""
        body, asker, now = await self._read(request, NoteBody)
        note = partial(write_note, asker=asker, card=body.card, text=body.text, now=now)
        return JSONResponse({"is_new": await self._site.run_command(note)})

    async def _read(self, request: Request, kind: type[Kind]) -> tuple[Kind, Asker, float]:
        body = await read_body(request, kind)
        return body, Asker(self._site.require_name(request), body.tab), time.time()
