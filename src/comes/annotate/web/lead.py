"""The overview of a project: a table per class, a record for json, and a self-contained page."""

import asyncio
import math
import time
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from comes.annotate.lead import (
    Verdict,
    decide_pair,
    find_disagreements,
    freeze,
    leave_out,
    list_notes,
    resolve_note,
    show_disagreements,
)
from comes.annotate.project import Project
from comes.annotate.summary import (
    YES,
    AnswerCache,
    AnswerColumns,
    Summary,
    summarise,
    summarise_said,
)
from comes.annotate.web.app import Body, Site, read_body, read_name, render
from comes.errors import ComesError
from comes.files import check_file_target, replacing_file

BOUNDS = ["class_prior", "lower", "upper"]  # of a table of priors


def write_overview(
    project: Project, path: str | Path, *, priors: pd.DataFrame | None = None
) -> Summary:
    """Write a page about the answers of a project.

    Parameters
    ----------
    project : Project
    path : path
        An .html file, which is replaced.
    priors : DataFrame, optional
        Estimated class priors, with the columns label, class_prior, lower and upper, as from
        `comes.priors.prior_table`. Estimates need features, which a project does not have.

    Returns
    -------
    summary : Summary

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     summary = write_overview(project, project.folder / "overview.html")
    ...     page = (project.folder / "overview.html").read_text(encoding="utf-8")
    >>> "1 of 4 cards are done" in page
    True
    """
    target = check_file_target(path)
    summary = summarise(project)
    static = files("comes.annotate.web").joinpath("static")
    sheets = [static.joinpath(f"{name}.css") for name in ("annotate", "lead")]
    style = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    page = render(
        "overview.html.jinja",
        project=project.name,
        summary=summary,
        style=style,
        priors={} if priors is None else _index_priors(priors),
    )
    with replacing_file(target) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return summary


def tabulate_classes(summary: Summary, priors: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a row per class, with its estimated prior if there is one.

    Parameters
    ----------
    summary : Summary
    priors : DataFrame, optional
        As in `write_overview`. A class that is not among them has empty cells.

    Returns
    -------
    table : DataFrame
        The columns of `Summary.table` and, with priors, class_prior, prior_lower, prior_upper.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> priors = pd.DataFrame(
    ...     {"label": ["weather"], "class_prior": [0.4], "lower": [0.3], "upper": [0.5]}
    ... )
    >>> tabulate_classes(summary, priors)[["class", "excluded", "class_prior", "prior_upper"]]
         class  excluded  class_prior  prior_upper
    0    sport         1          NaN          NaN
    1  weather         0          0.4          0.5
    """
    table = summary.table()
    if priors is None:
        return table
    named = priors[["label", *BOUNDS]].set_axis(
        ["class", "class_prior", "prior_lower", "prior_upper"], axis=1
    )
    return table.merge(named, how="left")


def describe_summary(summary: Summary, priors: pd.DataFrame | None = None) -> dict[str, Any]:
    """Return a summary as nested dictionaries and lists, for json.

    Parameters
    ----------
    summary : Summary
    priors : DataFrame, optional
        As in `write_overview`.

    Returns
    -------
    described : dict
        With cards, done, answers, questions_saved, agreement, classes (a dictionary for each row of
        `tabulate_classes`) and ask_next (names of classes). Unknown numbers are NaN.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     described = describe_summary(summarise(project))
    >>> described["cards"], described["done"], described["ask_next"]
    (4, 1, ['weather', 'sport'])
    """
    return {
        "cards": summary.n_cards,
        "done": summary.n_done,
        "answers": summary.n_answers,
        "questions_saved": summary.n_saved,
        "agreement": vars(summary.agreement),
        "classes": tabulate_classes(summary, priors).to_dict("records"),
        "ask_next": [row.name for row in summary.to_ask],
    }


def _index_priors(priors: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return class prior and bounds by label."""
    values = priors[BOUNDS].to_numpy(dtype=np.float64)
    return {
        str(name): dict(zip(BOUNDS, row.tolist(), strict=True))
        for name, row in zip(priors["label"], values, strict=True)
    }


FRESH = 2.0  # seconds for which a summary is shown again
PATIENCE = 0.1  # seconds that a page waits for a new summary, if there is one to show
OLDEST = 60.0  # seconds after which it waits in any case
MANY = 20_000  # cards of a project whose answers are read when the server starts
AT_ONCE = 20  # disagreements on a page
EXAMPLES = 3  # pictures of a class

Number = Annotated[int, Field(ge=1, lt=2**31)]


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

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    is_left_out: bool


class FreezeBody(Body):
    """Whether the project takes no more answers."""

    is_frozen: bool


class LeadPages:
    """The pages of leads."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ledger = AnswerCache(site.project)
        self._work: asyncio.Task[None] | None = None
        self._known: tuple[Summary, AnswerColumns] | None = None
        self._known_at = -math.inf
        site.preparations.append(self._prepare)
        self.routes = [
            Route("/lead", self.lead),
            Route("/lead/disagreements", self.disagreements),
            Route("/lead/notes", self.notes),
            Route("/api/lead/decide", self.decide, methods=["POST"]),
            Route("/api/lead/note", self.resolve, methods=["POST"]),
            Route("/api/lead/person", self.leave_person_out, methods=["POST"]),
            Route("/api/lead/freeze", self.freeze, methods=["POST"]),
        ]

    async def lead(self, request: Request) -> Response:
        """Show progress, agreement and pace."""
        summary, said = await self._summarise()
        return await run_in_threadpool(self._render_overview, request, summary, said)

    def _render_overview(self, request: Request, summary: Summary, said: AnswerColumns) -> Response:
        kind = self._site.project.kind
        examples = _pick_examples(said) if kind == "image" else {}
        return self._render(request, "lead", summary=summary, kind=kind, examples=examples)

    async def disagreements(self, request: Request) -> Response:
        """Show what people disagree on, for the lead to decide."""
        summary, said = await self._summarise()
        with_decided = "decided" in request.query_params
        pairs = await run_in_threadpool(find_disagreements, said, with_decided=with_decided)
        given = request.query_params.get("from", "0")
        start = int(given) if given.isdecimal() and len(given) < 9 else 0
        shown = await run_in_threadpool(self._show_pairs, pairs[start : start + AT_ONCE])
        return self._render(
            request,
            "disagreements",
            summary=summary,
            kind=self._site.project.kind,
            pairs=shown,
            start=start,
            n_pairs=len(pairs),
            at_once=AT_ONCE,
            with_decided=with_decided,
        )

    def _show_pairs(self, pairs: list[tuple[int, int]]) -> list[dict[str, Any]]:
        with self._site.project.reading() as connection:
            return show_disagreements(connection, pairs)

    async def notes(self, request: Request) -> Response:
        """Show what people wrote about cards."""
        summary, _ = await self._summarise()
        rows = await run_in_threadpool(self._read_notes)
        values = {"kind": self._site.project.kind, "summary": summary}
        return self._render(request, "notes", rows=rows, **values)

    def _read_notes(self) -> list[dict[str, Any]]:
        with self._site.project.reading() as connection:
            return list_notes(connection)

    def _render(self, request: Request, tab: str, **values: Any) -> Response:
        template = "lead.html.jinja" if tab == "lead" else f"lead_{tab}.html.jinja"
        values |= {"mode": "lead", "role": "lead", "tab": tab, "name": read_name(request)}
        return self._site.render_page(template, **values)

    async def decide(self, request: Request) -> Response:
        """Store what the lead decides about a pair."""
        body, name = await read_body(request, DecisionBody), read_name(request) or "the lead"
        command = partial(decide_pair, item=body.item, class_=body.class_number, name=name)
        return await self._change(partial(command, verdict=body.verdict, now=time.time()))

    async def resolve(self, request: Request) -> Response:
        """Mark a note as dealt with, or not."""
        body = await read_body(request, NoteBody)
        command = partial(resolve_note, number=body.note, is_resolved=body.is_resolved)
        return await self._change(partial(command, now=time.time()))

    async def leave_person_out(self, request: Request) -> Response:
        """Leave the answers of a person out, or take them in again."""
        body = await read_body(request, PersonBody)
        command = partial(leave_out, name=body.name, is_left_out=body.is_left_out)
        return await self._change(partial(command, now=time.time()))

    async def freeze(self, request: Request) -> Response:
        """Take no more answers, or go on."""
        body = await read_body(request, FreezeBody)
        return await self._change(partial(freeze, is_frozen=body.is_frozen, now=time.time()))

    async def _change(self, command: Any) -> Response:
        """Run a command; the next page shows what it changed."""
        await self._site.run_command(command)
        if self._work is not None:
            await asyncio.wait({self._work})  # it may have read before the change
        self._known_at = -math.inf
        return JSONResponse({"changed": True})

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
        self._known = summarise_said(self._site.project, said), said
        self._known_at = started

    def _end_work(self, work: "asyncio.Task[None]") -> None:
        self._work = None
        if not work.cancelled():
            work.exception()  # whoever waits for it raises it

    async def _prepare(self) -> None:
        """Read the answers of a large project, so that the first page does not wait for them."""
        try:
            if await run_in_threadpool(self._site.project.count_cards) >= MANY:
                await self._summarise()
        except ComesError:
            pass  # the page will say so


def _pick_examples(said: AnswerColumns) -> dict[int, list[int]]:
    """Return numbers of the latest items that somebody said yes about, by class (from 0)."""
    found: dict[int, list[int]] = {}
    for class_ in np.unique(said.class_):
        rows = np.flatnonzero((said.class_ == class_) & (said.word == YES))[::-1][: 4 * EXAMPLES]
        numbers = dict.fromkeys((said.item[rows] + 1).tolist())
        found[int(class_)] = list(numbers)[:EXAMPLES]
    return found
