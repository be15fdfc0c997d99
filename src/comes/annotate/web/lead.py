"""The lead's pages, and the report: tables and charts of what was answered, and what to change."""

import asyncio
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, StringConstraints
from sqlalchemy import func, select
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from comes.annotate.asking import (
    ASKS_YES,
    GUIDELINES,
    LANGUAGE,
    LANGUAGES,
    LONGEST_QUESTION,
    QUESTION,
    default_template,
    read_asking,
)
from comes.annotate.cards import CONTROL_SHARE, SHOWS_HINTS, RefusedError
from comes.annotate.exchange import export_answers, export_raw_answers
from comes.annotate.grow import set_controls
from comes.annotate.lead import (
    LEAD,
    STATES,
    Verdict,
    browse_answers,
    decide_pair,
    decide_pairs,
    find_disagreements,
    freeze,
    leave_out,
    list_notes,
    resolve_note,
    show_disagreements,
)
from comes.annotate.links import Role, list_links, make_link, revoke_links
from comes.annotate.project import Project
from comes.annotate.schema import controls, hints
from comes.annotate.summary import (
    SKIP,
    YES,
    AnswerCache,
    AnswerColumns,
    Summary,
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
from comes.files import check_file_target, replacing_file

BOUNDS = ["class_prior", "lower", "upper"]  # of a table of priors


def write_overview(
    project: Project, path: str | Path, *, priors: pd.DataFrame | None = None
) -> Summary:
    """Write a page about the answers of a project, an .html file.

    ``priors`` has the columns label, class_prior, lower and upper, as from
    `comes.priors.prior_table`: estimates need features, which a project does not have.
    """
    target = check_file_target(path)
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
    with replacing_file(target) as temporary:
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


STEPS = {600: "ten minutes", 3600: "hour", 21600: "six hours", 86400: "day", 604800: "week"}
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
PATIENCE = 0.1  # seconds that a page waits for a new summary, if there is one to show
OLDEST = 60.0  # seconds after which it waits in any case
MANY = 20_000  # cards of a project whose answers are read when the server starts
AT_ONCE = 20  # disagreements on a page
ROWS = 50  # answers on a page
FILTERS = ("item", "class", "person", "state")  # of answers
EXAMPLES = 3  # pictures of a class
ADDRESSES = "addresses"  # the setting that holds where the project is served
EXPORTS: dict[str, tuple[Callable[[Project, Path], Any], tuple[str, ...]]] = {
    "answers": (export_answers, ("csv", "parquet", "jsonl", "npz", "xlsx")),
    "raw": (export_raw_answers, ("csv", "parquet", "xlsx")),
}

Number = Annotated[int, Field(ge=1, lt=2**31)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
ServerPath = Annotated[str, StringConstraints(max_length=1000, strip_whitespace=True)]


class DecisionBody(Body):
    """What the lead decides about a pair; null takes the decision back."""

    item: Number
    class_number: Number
    verdict: Verdict | None


class NoteBody(Body):
    """Whether a note is dealt with."""

    note: Number
    is_resolved: bool


class PersonBody(Body):
    """Whether the answers of a person are left out."""

    name: Name
    is_left_out: bool


class LinkBody(Body):
    """A link to make."""

    role: Role
    name: Name


class RevokeBody(Body):
    """The number of a link to revoke; null revokes all."""

    number: Name | None


class AskingBody(Body):
    """How the project asks; an empty question is the usual one."""

    question: Annotated[str, StringConstraints(strip_whitespace=True)]
    asks_yes: bool
    language: Literal["en", "de"]
    guidelines: ServerPath


class SwitchBody(Body):
    """Whether something is on."""

    is_on: bool


ReadPage = Callable[[Request, Summary, AnswerColumns], dict[str, Any]]


class LeadPages:
    """The pages of leads."""

    def __init__(self, site: Site) -> None:
        self._site, self._project = site, site.project
        self._ledger = AnswerCache(site.project)
        self._work: asyncio.Task[None] | None = None
        self._known: tuple[Summary, AnswerColumns] | None = None
        self._known_at = -math.inf
        site.preparations.append(self._prepare)
        pages = {
            "": self._read_overview,
            "answers": self._read_answers,
            "disagreements": self._read_disagreements,
            "notes": self._read_notes,
            "people": self._read_people,
            "settings": self._read_settings,
        }
        changes = {
            "decide": self.decide,
            "note": self.resolve,
            "person": self.leave_person_out,
            "freeze": self.freeze,
            "link": self.make_link,
            "revoke": self.revoke_links,
            "asking": self.change_asking,
            "hints": self.switch_hints,
        }
        self.routes = [
            *(
                Route(f"/lead/{tab}".rstrip("/"), partial(self._show, tab or "overview", read))
                for tab, read in pages.items()
            ),
            Route("/lead/export/{what}.{ending}", self.export),
            *(
                Route(f"/api/lead/{name}", change, methods=["POST"])
                for name, change in changes.items()
            ),
            Route("/api/lead/table/{purpose}/{name}", self.take_table, methods=["PUT"]),
            Route("/setup", RedirectResponse("/lead")),
        ]

    # ---- pages

    async def _show(self, tab: str, read: ReadPage, request: Request) -> Response:
        summary, said = await self._summarise()
        values: dict[str, Any] = {"tab": tab, "mode": "lead", "role": "lead"}
        values |= {"name": read_name(request), "summary": summary, "kind": self._project.kind}

        def render_tab() -> Response:
            more = read(request, summary, said)
            return self._site.render_page(f"lead_{tab}.html.jinja", **values, **more)

        return await run_in_threadpool(render_tab)

    def _read_overview(self, _: Request, summary: Summary, said: AnswerColumns) -> dict[str, Any]:
        examples = _pick_examples(said) if self._project.kind == "image" else {}
        formats = {what: endings for what, (_, endings) in EXPORTS.items()}
        return {"examples": examples, "activity": count_activity(said), "formats": formats}

    def _read_answers(self, request: Request, _: Summary, said: AnswerColumns) -> dict[str, Any]:
        given = request.query_params
        names = self._project.class_names
        wanted = {name: given.get(name, "").replace("\0", "") for name in FILTERS}
        class_ = names.index(wanted["class"]) + 1 if wanted["class"] in names else None
        with self._project.reading() as connection:
            rows = browse_answers(
                connection,
                item=wanted["item"],
                class_=class_,
                person=wanted["person"],
                state=wanted["state"] if wanted["state"] in STATES else "",
                before=_read_number(given.get("before")),
                most=ROWS + 1,
            )
        return {
            "rows": rows[:ROWS],
            "is_more": len(rows) > ROWS,
            "is_first": "before" not in given,
            "wanted": wanted,
            "class_names": names,
            "people": sorted(said.people),
        }

    def _read_disagreements(
        self, request: Request, _: Summary, said: AnswerColumns
    ) -> dict[str, Any]:
        with_decided = "decided" in request.query_params
        pairs = find_disagreements(said, with_decided=with_decided)
        start = _read_number(request.query_params.get("from")) or 0
        with self._project.reading() as connection:
            shown = show_disagreements(connection, pairs[start : start + AT_ONCE])
        return {
            "pairs": shown,
            "start": start,
            "n_pairs": len(pairs),
            "at_once": AT_ONCE,
            "with_decided": with_decided,
        }

    def _read_notes(self, *_: Any) -> dict[str, Any]:
        with self._project.reading() as connection:
            return {"rows": list_notes(connection)}

    def _read_people(self, request: Request, *_: Any) -> dict[str, Any]:
        return {
            "links": list_links(self._project)[::-1],
            "needs_token": request.scope[NEEDS_TOKEN],
        }

    def _read_settings(self, *_: Any) -> dict[str, Any]:
        with self._project.reading() as connection:
            asked = read_asking(connection)
            n_controls, n_hints = (
                connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (controls, hints)
            )
        language = asked.get(LANGUAGE, "en")
        return {
            "question": asked.get(QUESTION, ""),
            "usual": {code: default_template(self._project.kind, code) for code in LANGUAGES},
            "longest": LONGEST_QUESTION,
            "asks_yes": asked.get(ASKS_YES) != "0",
            "chosen": language,
            "languages": LANGUAGES,
            "guidelines": asked.get(GUIDELINES, ""),
            "class_names": self._project.class_names,
            "n_controls": n_controls,
            "share": float(self._project.read_setting(CONTROL_SHARE) or 0.05),
            "n_hints": n_hints,
            "shows_hints": self._project.read_setting(SHOWS_HINTS) == "1",
        }

    async def export(self, request: Request) -> Response:
        """Send the answers as a file of the wanted kind."""
        what, ending = request.path_params["what"], request.path_params["ending"]
        write, endings = EXPORTS.get(what, (export_answers, ()))
        if ending not in endings:
            raise RefusedError(404, "there is no such export")
        folder = Path(await run_in_threadpool(tempfile.mkdtemp))
        remove = partial(shutil.rmtree, folder, ignore_errors=True)
        path = folder / f"{self._project.name}-{what}.{ending}"
        try:
            await run_in_threadpool(write, self._project, path)
        except ComesError as error:
            await run_in_threadpool(remove)
            raise RefusedError(409, str(error).rstrip(".")) from None
        headers = {"Cache-Control": "no-store"}
        return FileResponse(
            path, filename=path.name, headers=headers, background=BackgroundTask(remove)
        )

    # ---- changes

    async def decide(self, request: Request) -> Response:
        """Store what the lead decides about a pair."""
        body, name = await read_body(request, DecisionBody), read_name(request) or LEAD
        command = partial(decide_pair, item=body.item, class_=body.class_number, name=name)
        await self._command(partial(command, verdict=body.verdict, now=time.time()))
        return JSONResponse({"decision": body.verdict, "name": name})

    async def resolve(self, request: Request) -> Response:
        """Mark a note as dealt with, or not."""
        body = await read_body(request, NoteBody)
        command = partial(resolve_note, number=body.note, is_resolved=body.is_resolved)
        return await self._command(partial(command, now=time.time()))

    async def leave_person_out(self, request: Request) -> Response:
        """Leave the answers of a person out, or take them in again."""
        body = await read_body(request, PersonBody)
        command = partial(leave_out, name=body.name, is_left_out=body.is_left_out)
        return await self._command(partial(command, now=time.time()))

    async def freeze(self, request: Request) -> Response:
        """Take no more answers, or go on."""
        body = await read_body(request, SwitchBody)
        return await self._command(partial(freeze, is_frozen=body.is_on, now=time.time()))

    async def make_link(self, request: Request) -> Response:
        """Make a link for somebody; its address is shown this once."""
        body = await read_body(request, LinkBody)
        token = await self._change(make_link, self._project, body.role, body.name)
        stored = await run_in_threadpool(self._project.read_setting, ADDRESSES)
        known = json.loads(stored) if stored else [str(request.base_url)]
        return JSONResponse({"links": [f"{start.rstrip('/')}/?token={token}" for start in known]})

    async def revoke_links(self, request: Request) -> Response:
        """Revoke a link, or all."""
        body = await read_body(request, RevokeBody)
        revoked = await self._change(revoke_links, self._project, body.number)
        return JSONResponse({"revoked": len(revoked)})

    async def change_asking(self, request: Request) -> Response:
        """Change the question, the answers there are, the language, or the guidelines."""
        body = await read_body(request, AskingBody)
        if body.guidelines:
            check_place(body.guidelines, is_open=not request.scope[NEEDS_TOKEN])
        await self._change(self._store_asking, body)
        return JSONResponse({"done": "Saved. Pages that are open follow when they are reloaded."})

    def _store_asking(self, body: AskingBody) -> None:
        how = body.asks_yes, body.language, body.guidelines or None
        self._project.change_asking(body.question or None, *how)
        for name, value in ((QUESTION, body.question), (GUIDELINES, body.guidelines)):
            if not value:
                self._project.write_setting(name, "")

    async def switch_hints(self, request: Request) -> Response:
        """Show what a model thinks on cards, or no longer."""
        body = await read_body(request, SwitchBody)
        await self._change(self._project.write_setting, SHOWS_HINTS, str(int(body.is_on)))
        return JSONResponse({"changed": True})

    async def take_table(self, request: Request) -> Response:
        """Take known answers for control cards, or decisions, from a table."""
        purpose, name = request.path_params["purpose"], request.path_params["name"]
        if purpose not in ("controls", "decisions"):
            raise RefusedError(404, "there is no such table")
        with tempfile.TemporaryDirectory() as folder:
            path = await receive_file(request, Path(folder), name)
            if purpose == "decisions":
                lead = read_name(request) or LEAD
                count = await self._change(decide_pairs, self._project, path, lead)
                return JSONResponse({"done": f"Stored {count} decisions."})
            try:
                share = float(request.query_params.get("share", "0.05"))
            except ValueError:
                raise RefusedError(422, "the share must be a number, such as 0.05") from None
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

    async def _command(self, command: Any) -> Response:
        await self._site.run_command(command)
        await self._forget()
        return JSONResponse({"changed": True})

    async def _forget(self) -> None:
        """Let the next page show what was changed."""
        if self._work is not None:
            await asyncio.wait({self._work})  # it may have read before the change
        self._known_at = -math.inf

    # ---- what is known

    async def _summarise(self) -> tuple[Summary, AnswerColumns]:
        """Return what is known: now, or a moment ago where a new summary takes long."""
        age = time.monotonic() - self._known_at
        if self._known is None or age > FRESH:
            if self._work is None:
                self._work = asyncio.create_task(run_in_threadpool(self._read))
                self._work.add_done_callback(self._end_work)
            work, must_wait = self._work, self._known is None or age > OLDEST
            await asyncio.wait({work}, timeout=None if must_wait else PATIENCE)
            if must_wait:
                work.result()  # raises what went wrong
        assert self._known is not None
        return self._known

    def _read(self) -> None:
        started = time.monotonic()
        said = self._ledger.read()
        self._known = summarise_said(self._project, said), said
        self._known_at = started

    def _end_work(self, work: "asyncio.Task[None]") -> None:
        self._work = None
        if not work.cancelled():
            work.exception()  # whoever waits for it raises it

    async def _prepare(self) -> None:
        """Read the answers of a large project, so that the first page does not wait for them."""
        try:
            if await run_in_threadpool(self._project.count_cards) >= MANY:
                await self._summarise()
        except ComesError:
            pass  # the page will say so


def _read_number(given: str | None) -> int | None:
    return int(given) if given and given.isdecimal() and len(given) < 10 else None


def _pick_examples(said: AnswerColumns) -> dict[int, list[int]]:
    """Return numbers of the latest items that somebody said yes about, by class (from 0)."""
    found: dict[int, list[int]] = {}
    item, class_ = said.pairs[said.question[said.word == YES]].T
    for number in np.unique(class_):
        latest = 1 + item[class_ == number][::-1]
        found[int(number)] = list(dict.fromkeys(latest[: 4 * EXAMPLES].tolist()))[:EXAMPLES]
    return found
