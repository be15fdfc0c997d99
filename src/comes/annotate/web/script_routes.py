"""``/api/v1``: the project for scripts, as json. docs/reference/annotate-api.md describes it.

A script may read what there is, take answers out, put items, classes and cards in, and annotate
itself, under the name that it gives.
"""

import math
import tempfile
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import Field, StringConstraints
from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from comes.annotate.cards import (
    FROZEN,
    Asker,
    RefusedError,
    SentAnswer,
    add_chosen_cards,
    lease_cards,
    store_answers,
)
from comes.annotate.exchange import export_answers, export_raw_answers, read_raw_answers
from comes.annotate.grow import insert_more_classes, insert_more_items
from comes.annotate.items import Classes, Items
from comes.annotate.lead import clean_name
from comes.annotate.schema import CONTROL, answers, cards, classes, items
from comes.annotate.web.app import MOST_IN_A_REQUEST, AnswerBody, Body, Id, Site, read_body
from comes.errors import ComesError

MOST_ON_A_PAGE = 1000
KINDS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/jsonl",
}

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]
Person = Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]
Rate = Annotated[float, Field(gt=0, le=1)] | None


class NewItem(Body):
    """A text to ask about."""

    name: Name
    text: Annotated[str, StringConstraints(max_length=50_000)]


class ItemsBody(Body):
    """Texts to ask about."""

    items: Annotated[list[NewItem], Field(min_length=1, max_length=MOST_ON_A_PAGE)]
    rate: Rate = None
    seed: int = 0


class NewClass(Body):
    """A class to ask about."""

    name: Name
    description: str = ""
    question: str | None = None


class ClassesBody(Body):
    """Classes to ask about."""

    classes: Annotated[list[NewClass], Field(min_length=1, max_length=MOST_ON_A_PAGE)]
    rate: Rate = None
    seed: int = 0


class Pair(Body):
    """A pair to ask about, by names."""

    item: Name
    label: Name


class PairsBody(Body):
    """Pairs that a model chose."""

    pairs: Annotated[list[Pair], Field(min_length=1, max_length=MOST_ON_A_PAGE)]


class NextBody(Body):
    """A request for cards."""

    annotator: Person
    tab: Id
    size: Annotated[int, Field(ge=1, le=MOST_IN_A_REQUEST)] = 20


class ScriptAnswersBody(Body):
    """Answers of a script."""

    annotator: Person
    tab: Id
    answers: Annotated[list[AnswerBody], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


class ScriptRoutes:
    """What scripts ask for and send."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/api/v1/project", self.project),
            Route("/api/v1/items", self.items),
            Route("/api/v1/classes", self.classes),
            Route("/api/v1/answers", self.answers),
            Route("/api/v1/export", self.export),
            Route("/api/v1/items", self.add_items, methods=["POST"]),
            Route("/api/v1/classes", self.add_classes, methods=["POST"]),
            Route("/api/v1/cards", self.add_cards, methods=["POST"]),
            Route("/api/v1/cards/next", self.next_cards, methods=["POST"]),
            Route("/api/v1/answers", self.take_answers, methods=["POST"]),
        ]

    async def project(self, request: Request) -> Response:
        """Tell what the project is, in numbers."""
        return JSONResponse(await run_in_threadpool(self._count))

    async def items(self, request: Request) -> Response:
        """List the items, a page at a time."""
        after, most = _read_number(request, "after", 0), _read_most(request)
        query = select(items.c.id.label("item"), items.c.name, items.c.text)
        rows = await run_in_threadpool(
            self._read_rows, query.where(items.c.id > after).order_by(items.c.id).limit(most)
        )
        return JSONResponse({"items": rows, "next": _find_next(rows, most, "item")})

    async def classes(self, request: Request) -> Response:
        """List the classes, with how many cards there are of each and how many are done."""
        own = (cards.c.class_id == classes.c.id) & (cards.c.source != CONTROL)
        query = (
            select(
                classes.c.id.label("number"),
                classes.c.name,
                classes.c.description,
                classes.c.question,
                func.count(cards.c.id).label("cards"),
                func.count(cards.c.id).filter(cards.c.is_done).label("done"),
            )
            .join(cards, own, isouter=True)
            .group_by(classes.c.id)
            .order_by(classes.c.id)
        )
        return JSONResponse({"classes": await run_in_threadpool(self._read_rows, query)})

    async def answers(self, request: Request) -> Response:
        """List answers as they were given, a page at a time."""
        since, after = _read_time(request), _read_number(request, "after", 0)
        most = _read_most(request)
        read = partial(read_raw_answers, self._site.project, since=since, after=after, most=most)
        table = await run_in_threadpool(read)
        found: list[Any] = table.astype(object).where(table.notna(), None).to_dict("records")
        return JSONResponse({"answers": found, "next": _find_next(found, most, "number")})

    async def export(self, request: Request) -> Response:
        """Send the answers as a file: aggregated, or raw."""
        kind = request.query_params.get("format", "csv")
        if kind not in KINDS:
            raise RefusedError(422, f"format must be one of {', '.join(KINDS)}; got {kind[:20]!r}")
        raw = request.query_params.get("raw", "0") == "1"
        if raw and kind == "jsonl":
            raise RefusedError(422, "raw answers come as csv or parquet; /api/v1/answers has json")
        content = await run_in_threadpool(self._export, kind, raw)
        name = f"{'raw' if raw else 'answers'}.{kind}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=KINDS[kind], headers=headers)

    async def add_items(self, request: Request) -> Response:
        """Add texts, and cards for them."""
        body = await read_body(request, ItemsBody)
        if self._site.project.kind != "text":
            raise RefusedError(409, "pictures lie in a folder: comes annotate add --items FOLDER")
        names = [one.name for one in body.items]
        if len(set(names)) < len(names):
            raise RefusedError(422, "each item must have its own name")
        read = Items(names, [one.text for one in body.items])
        return await self._add(
            partial(insert_more_items, self._site.project, read, rate=body.rate, seed=body.seed)
        )

    async def add_classes(self, request: Request) -> Response:
        """Add classes, and cards for them."""
        body = await read_body(request, ClassesBody)
        names = [one.name for one in body.classes]
        if len(set(names)) < len(names):
            raise RefusedError(422, "each class must have its own name")
        read = Classes(
            names,
            [one.description for one in body.classes],
            [one.question for one in body.classes],
        )
        return await self._add(
            partial(insert_more_classes, self._site.project, read, rate=body.rate, seed=body.seed)
        )

    async def add_cards(self, request: Request) -> Response:
        """Ask about pairs that a model chose."""
        body = await read_body(request, PairsBody)
        pairs = pd.DataFrame([one.model_dump() for one in body.pairs])
        return await self._add(partial(self._add_pairs, pairs))

    async def next_cards(self, request: Request) -> Response:
        """Lease cards to a script that annotates."""
        body = await read_body(request, NextBody)
        asker = Asker(clean_name(body.annotator), body.tab)
        lease = partial(lease_cards, asker=asker, lease=self._site.lease, size=body.size)
        leased = await self._site.run_command(partial(lease, now=time.time()))
        return JSONResponse({"cards": leased})

    async def take_answers(self, request: Request) -> Response:
        """Store the answers of a script; the reply comes when they are on disk."""
        body = await read_body(request, ScriptAnswersBody)
        asker = Asker(clean_name(body.annotator), body.tab)
        sent = [SentAnswer(a.card, a.answer, a.key, a.seconds) for a in body.answers]
        store = partial(store_answers, asker=asker, sent=sent, lease=self._site.lease)
        await self._site.run_command(partial(store, now=time.time()))
        return JSONResponse({"stored": len(sent)})

    async def _add(self, work: Any) -> Response:
        """Run what adds something, and say what is wrong with it."""
        try:
            return JSONResponse(await run_in_threadpool(work))
        except ComesError as error:
            if "does not answer" in str(error):  # the database, for the moment
                raise
            raise RefusedError(422, str(error).rstrip(".")) from None

    def _add_pairs(self, pairs: pd.DataFrame) -> dict[str, int]:
        return {"cards_added": add_chosen_cards(self._site.project, pairs)}

    def _export(self, kind: str, raw: bool) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"answers.{kind}"
            try:
                (export_raw_answers if raw else export_answers)(self._site.project, path)
            except ComesError as error:
                raise RefusedError(404, str(error).rstrip(".")) from None
            return path.read_bytes()

    def _count(self) -> dict[str, Any]:
        project = self._site.project
        stands = answers.c.undone_at.is_(None), cards.c.source != CONTROL
        with project.reading() as connection:
            total, done = connection.execute(
                select(func.count(), func.count().filter(cards.c.is_done))
                .select_from(cards)
                .where(cards.c.source != CONTROL)
            ).one()
            said = select(func.count()).select_from(answers).join(cards).where(*stands)
            n_answers = connection.execute(said).scalar_one()
        return {
            "project": project.name,
            "kind": project.kind,
            "items": len(project.item_names),
            "classes": len(project.class_names),
            "cards": total,
            "done": done,
            "answers": n_answers,
            "is_frozen": bool(project.read_setting(FROZEN)),
        }

    def _read_rows(self, query: Any) -> list[dict[str, Any]]:
        with self._site.project.reading() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]


def _read_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or len(text) > 9:
        raise RefusedError(422, f"{name} must be a whole number; got {text[:20]!r}")
    return int(text)


def _read_most(request: Request) -> int:
    most = _read_number(request, "most", MOST_ON_A_PAGE)
    if not 1 <= most <= MOST_ON_A_PAGE:
        raise RefusedError(422, f"most must be from 1 to {MOST_ON_A_PAGE}; got {most}")
    return most


def _read_time(request: Request) -> float:
    """Return the time since which answers are wanted: ISO 8601, or seconds since 1970."""
    text = request.query_params.get("since", "0")
    try:
        found = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text.replace(" ", "+")).astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            found = math.nan
    if not math.isfinite(found):
        raise RefusedError(
            422, f"since must be a time such as 2026-01-31T12:00:00+00:00; got {text[:40]!r}"
        )
    return found


def _find_next(rows: list[Any], most: int, name: str) -> int | None:
    """Return what to pass as ``after`` for the next page; None on the last one."""
    return int(rows[-1][name]) if len(rows) == most else None
