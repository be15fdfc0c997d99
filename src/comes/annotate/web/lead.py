"""The lead's pages, and the report: tables and charts of what was answered, and what to change."""

import asyncio
import json
import math
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import StringConstraints
from sqlalchemy import Connection, func, select
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from comes.annotate import asking, lead
from comes.annotate.cards import CONTROL_SHARE, SHOWS_HINTS, Number, RefusedError
from comes.annotate.exchange import export_answers, export_raw_answers
from comes.annotate.grow import set_controls
from comes.annotate.links import Role, list_links, make_link, revoke_links
from comes.annotate.project import Project
from comes.annotate.schema import ADDRESSES, controls, hints, settings
from comes.annotate.summary import (
    SKIP,
    YES,
    AnswerCache,
    AnswerColumns,
    Summary,
    find_disagreements,
    summarise_said,
)
from comes.annotate.web.app import (
    NEEDS_TOKEN,
    Body,
    Site,
    check_place,
    read_body,
    read_name,
    receive_file,
    render,
)
from comes.errors import ComesError
from comes.files import replacing_file

BOUNDS = ["class_prior", "lower", "upper"]  # of a table of priors


def write_overview(
    project: Project, path: str | Path, *, priors: pd.DataFrame | None = None
) -> Summary:
    """Write a page about the answers of a project, an .html file.

    ``priors`` has the columns label, class_prior, lower and upper, as from
    `comes.priors.prior_table`: estimates need features, which a project does not have.
    """
    said = AnswerCache(project).read()
    summary = summarise_said(project, said)
    static = files("comes.annotate.web").joinpath("static")
    sheets = [static.joinpath(f"{name}.css") for name in ("annotate", "lead")]
    page = render(
        "overview.html.jinja",
        project=project.name,
        summary=summary,
        activity=count_activity(said),
        style="\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets),
        priors={} if priors is None else priors.set_index("label")[BOUNDS].to_dict("index"),
    )
    with replacing_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return summary


def describe_summary(summary: Summary, priors: pd.DataFrame | None = None) -> dict[str, Any]:
    """Return a summary, with priors as in `write_overview`, for json; unknown numbers are NaN."""
    table = summary.table()
    if priors is not None:
        columns = ["class", "class_prior", "prior_lower", "prior_upper"]
        table = table.merge(priors[["label", *BOUNDS]].set_axis(columns, axis=1), how="left")
    return {
        "cards": summary.n_cards,
        "done": summary.n_done,
        "answers": summary.n_answers,
        "questions_saved": summary.n_saved,
        "agreement": vars(summary.agreement),
        "classes": table.to_dict("records"),
        "ask_next": [row.name for row in summary.to_ask],
    }


STEPS = {
    60: "minute",
    600: "ten minutes",
    3600: "hour",
    21600: "six hours",
    86400: "day",
    604800: "week",
}
MOST_BARS = 60  # of a chart


def count_activity(said: AnswerColumns) -> dict[str, Any]:
    """Return how many people said no, cannot tell and yes, over time and each of them, for charts.

    Control cards, skips and decisions of the lead are not among it.
    """
    rows = said.is_card & (said.word != SKIP)
    at = said.at[rows]
    if not len(at):
        return {"bars": [], "people": {}}
    first, last = float(at.min()), float(at.max())
    step = next((step for step in STEPS if (last - first) / step < MOST_BARS), max(STEPS))
    start = first - (first + time.localtime(first).tm_gmtoff) % step  # a full hour or day here
    bar = ((at - start) // step).astype(np.int64)
    shape = len(said.people), int(bar.max()) + 1, 3
    place = np.ravel_multi_index((said.person[rows], bar, said.word[rows]), shape)
    counts = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
    return {
        "start": start,
        "step": step,
        "each": STEPS[step],
        "bars": counts.sum(axis=0).tolist(),
        "people": {
            name: {"words": counts[k].sum(axis=0).tolist(), "bars": counts[k].tolist()}
            for k, name in enumerate(said.people)
        },
    }


FRESH = 2.0  # seconds for which a summary is shown again
PATIENCE = 0.08  # seconds that a page waits for a new summary, if there is one to show
OLDEST = 60.0  # seconds after which it waits in any case
AT_ONCE = 20  # disagreements on a page
ROWS = 50  # answers on a page
FILTERS = ("item", "class", "person", "state")  # of answers
EXAMPLES = 3  # pictures of a class
EXPORTS: dict[str, tuple[Callable[[Project, Path], Any], tuple[str, ...]]] = {
    "answers": (export_answers, ("csv", "parquet", "jsonl", "npz", "xlsx")),
    "raw": (export_raw_answers, ("csv", "parquet", "xlsx")),
}

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


class _DecisionBody(Body):
    item: Number
    class_number: Number
    verdict: lead.Verdict | None  # null takes the decision back


class _NoteBody(Body):
    note: Number
    is_resolved: bool


class _PersonBody(Body):
    name: Name
    is_left_out: bool


class _LinkBody(Body):
    role: Role
    name: Name


class _RevokeBody(Body):
    number: Name | None  # null revokes all


class _AskingBody(Body):
    question: Annotated[str, StringConstraints(strip_whitespace=True)]  # empty for the usual one
    asks_yes: bool
    language: Literal["en", "de"]
    guidelines: Annotated[str, StringConstraints(max_length=1000, strip_whitespace=True)]


class _SwitchBody(Body):
    is_on: bool


ReadPage = Callable[[Request, Summary, AnswerColumns], dict[str, Any]]
COMMANDS: dict[str, tuple[type[Body], Callable[..., None]]] = {  # take the fields of the body
    "note": (_NoteBody, lead.resolve_note),
    "person": (_PersonBody, lead.leave_out),
    "freeze": (_SwitchBody, lead.freeze),
    "hints": (_SwitchBody, lead.show_hints),
}


class LeadPages:
    """The pages of leads."""

    def __init__(self, site: Site) -> None:
        self._site, self._project = site, site.project
        self._cache = AnswerCache(site.project)
        self._lock = asyncio.Lock()
        self._known: tuple[Summary, AnswerColumns] | None = None
        self._known_at = -math.inf
        site.preparations.append(self._prepare)
        pages: dict[str, ReadPage] = {
            "": self._read_overview,
            "answers": self._read_answers,
            "disagreements": self._read_disagreements,
            "notes": self._read_notes,
            "people": self._read_people,
            "settings": self._read_settings,
        }
        changes: dict[str, Callable[..., Any]] = {
            "decide": self._decide,
            "link": self._make_link,
            "revoke": self._revoke_links,
            "asking": self._change_asking,
            **{name: partial(self._run_command, *how) for name, how in COMMANDS.items()},
        }
        self.routes = [
            *(
                Route(f"/lead/{tab}".rstrip("/"), partial(self._show, tab or "overview", read))
                for tab, read in pages.items()
            ),
            Route("/lead/export/{what}.{ending}", self._export),
            *(
                Route(f"/api/lead/{name}", change, methods=["POST"])
                for name, change in changes.items()
            ),
            Route("/api/lead/table/{purpose}/{name}", self._take_table, methods=["PUT"]),
            Route("/setup", RedirectResponse("/lead")),
        ]

    async def _prepare(self) -> None:
        """Read the answers, which takes a second in a large project, while the server starts."""
        await run_in_threadpool(self._cache.read)

    # ---- pages

    async def _show(self, tab: str, read: ReadPage, request: Request) -> Response:
        age = time.monotonic() - self._known_at
        if age > FRESH:
            work = asyncio.create_task(self._refresh())
            work.add_done_callback(asyncio.Task.exception)  # else asyncio complains of it
            await asyncio.wait({work}, timeout=None if age > OLDEST else PATIENCE)
            if work.done():
                work.result()  # raises what went wrong
        assert self._known is not None
        summary, said = self._known
        values: dict[str, Any] = {"tab": tab, "mode": "lead", "role": "lead"}
        values |= {"name": read_name(request), "summary": summary, "kind": self._project.kind}

        def render_tab() -> Response:
            more = read(request, summary, said)
            return self._site.render_page(f"lead_{tab}.html.jinja", **values, **more)

        return await run_in_threadpool(render_tab)

    async def _refresh(self) -> None:
        async with self._lock:  # one summary for all who wait
            if time.monotonic() > self._known_at + FRESH:
                started = time.monotonic()
                self._known = await run_in_threadpool(self._summarise)
                self._known_at = started

    def _summarise(self) -> tuple[Summary, AnswerColumns]:
        said = self._cache.read()
        return summarise_said(self._project, said), said

    async def _forget(self) -> None:
        """Let the next page show what was changed."""
        async with self._lock:  # a summary that is being made may have read before the change
            self._known_at = -math.inf

    def _read_overview(self, _: Request, summary: Summary, said: AnswerColumns) -> dict[str, Any]:
        examples = _pick_examples(said) if self._project.kind == "image" else {}
        formats = {what: endings for what, (_, endings) in EXPORTS.items()}
        return {"examples": examples, "activity": count_activity(said), "formats": formats}

    def _read_answers(self, request: Request, _: Summary, said: AnswerColumns) -> dict[str, Any]:
        given = request.query_params
        wanted = {name: given.get(name, "").replace("\0", "") for name in FILTERS}
        with self._project.reading() as connection:
            before = _read_number(given.get("before"))
            rows = lead.browse_answers(connection, wanted, before, most=ROWS + 1)
        return {
            "rows": rows[:ROWS],
            "is_more": len(rows) > ROWS,
            "is_first": "before" not in given,
            "wanted": wanted,
            "class_names": self._project.class_names,
            "people": sorted(said.people),
        }

    def _read_disagreements(
        self, request: Request, summary: Summary, said: AnswerColumns
    ) -> dict[str, Any]:
        with_decided = "decided" in request.query_params
        pairs = summary.disagreements
        if with_decided:
            pairs = find_disagreements(said, with_decided=True)
        start = _read_number(request.query_params.get("from")) or 0
        with self._project.reading() as connection:
            shown = lead.show_disagreements(connection, pairs[start : start + AT_ONCE])
        return {
            "pairs": shown,
            "start": start,
            "n_pairs": len(pairs),
            "at_once": AT_ONCE,
            "with_decided": with_decided,
        }

    def _read_notes(self, *_: Any) -> dict[str, Any]:
        with self._project.reading() as connection:
            return {"rows": lead.list_notes(connection)}

    def _read_people(self, request: Request, *_: Any) -> dict[str, Any]:
        links = list_links(self._project)
        return {"links": links[::-1], "needs_token": request.scope[NEEDS_TOKEN]}

    def _read_settings(self, *_: Any) -> dict[str, Any]:
        kind = self._project.kind
        with self._project.reading() as connection:
            stored = {
                row.name: row.value for row in connection.execute(select(settings)) if row.value
            }
            n_controls, n_hints = (
                connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (controls, hints)
            )
        return {
            "question": stored.get(asking.QUESTION, ""),
            "usual": {code: asking.default_template(kind, code) for code in asking.LANGUAGES},
            "longest": asking.LONGEST_QUESTION,
            "asks_yes": stored.get(asking.ASKS_YES) != "0",
            "chosen": stored.get(asking.LANGUAGE, "en"),
            "languages": asking.LANGUAGES,
            "guidelines": stored.get(asking.GUIDELINES, ""),
            "class_names": self._project.class_names,
            "n_controls": n_controls,
            "share": float(stored.get(CONTROL_SHARE, 0.05)),
            "n_hints": n_hints,
            "shows_hints": stored.get(SHOWS_HINTS) == "1",
        }

    async def _export(self, request: Request) -> Response:
        what, ending = request.path_params["what"], request.path_params["ending"]
        write, endings = EXPORTS.get(what, (export_answers, ()))
        if ending not in endings:
            raise RefusedError(404, "there is no such export")
        folder = TemporaryDirectory(ignore_cleanup_errors=True)
        path = Path(folder.name) / f"{self._project.name}-{what}.{ending}"
        try:
            await run_in_threadpool(write, self._project, path)
        except ComesError as error:
            folder.cleanup()
            raise RefusedError(409, str(error).rstrip(".")) from None
        headers, remove = {"Cache-Control": "no-store"}, BackgroundTask(folder.cleanup)
        return FileResponse(path, filename=path.name, headers=headers, background=remove)

    # ---- changes

    async def _decide(self, request: Request) -> Response:
        body, name = await read_body(request, _DecisionBody), read_name(request) or lead.LEAD
        await self._run(partial(lead.decide_pair, **vars(body), name=name))
        return JSONResponse({"decision": body.verdict, "name": name})

    async def _run_command(
        self, kind: type[Body], command: Callable[..., None], request: Request
    ) -> Response:
        body = await read_body(request, kind)
        await self._run(partial(command, **vars(body)))
        return JSONResponse({"changed": True})

    async def _make_link(self, request: Request) -> Response:
        """Make a link for somebody; its address is shown this once."""
        body = await read_body(request, _LinkBody)
        token = await self._change(make_link, self._project, body.role, body.name)
        stored = await run_in_threadpool(self._project.read_setting, ADDRESSES)
        known = json.loads(stored) if stored else [str(request.base_url)]
        return JSONResponse({"links": [f"{start.rstrip('/')}/?token={token}" for start in known]})

    async def _revoke_links(self, request: Request) -> Response:
        body = await read_body(request, _RevokeBody)
        revoked = await self._change(revoke_links, self._project, body.number)
        return JSONResponse({"revoked": len(revoked)})

    async def _change_asking(self, request: Request) -> Response:
        body = await read_body(request, _AskingBody)
        if body.guidelines:
            check_place(body.guidelines, is_open=not request.scope[NEEDS_TOKEN])
        await self._change(self._store_asking, body)
        return JSONResponse({"done": "Saved. Pages that are open follow when they are reloaded."})

    def _store_asking(self, body: _AskingBody) -> None:
        how = body.asks_yes, body.language, body.guidelines or None
        self._project.change_asking(body.question or None, *how)
        for name, value in ((asking.QUESTION, body.question), (asking.GUIDELINES, body.guidelines)):
            if not value:
                self._project.write_setting(name, "")

    async def _take_table(self, request: Request) -> Response:
        """Take known answers for control cards, or decisions, from a table."""
        purpose, name = request.path_params["purpose"], request.path_params["name"]
        if purpose not in ("controls", "decisions"):
            raise RefusedError(404, "there is no such table")
        try:
            share = float(request.query_params.get("share", "0.05"))
        except ValueError:
            raise RefusedError(422, "the share must be a number, such as 0.05") from None
        with TemporaryDirectory() as folder:
            path = await receive_file(request, Path(folder), name)
            if purpose == "decisions":
                name = read_name(request) or lead.LEAD
                count = await self._change(lead.decide_pairs, self._project, path, name)
                return JSONResponse({"done": f"Stored {count} decisions."})
            count = await self._change(set_controls, self._project, path, share)
            return JSONResponse({"done": f"Stored {count} known answers."})

    async def _change(self, work: Callable[..., Any], *given: Any) -> Any:
        """Change something in a thread; return what it gives, or refuse with what it says."""
        try:
            result = await run_in_threadpool(work, *given)
        except ComesError as error:
            raise RefusedError(422, str(error).rstrip(".")) from None
        await self._forget()
        return result

    async def _run(self, command: Callable[[Connection], None]) -> None:
        """Change something in the writer."""
        await self._site.run_command(command)
        await self._forget()


def _read_number(given: str | None) -> int | None:
    return int(given) if given and given.isdecimal() and len(given) < 10 else None


def _pick_examples(said: AnswerColumns) -> dict[int, list[int]]:
    """Return numbers of the latest items that somebody said yes about, by class (from 0)."""
    found: dict[int, list[int]] = {}
    item, class_ = said.pairs[:, said.question[said.word == YES]]
    for number in np.unique(class_):
        latest = 1 + item[class_ == number][::-1]
        found[int(number)] = list(dict.fromkeys(latest[: 4 * EXAMPLES].tolist()))[:EXAMPLES]
    return found
