"""What the routes of a served project share: its writer, its pages, and who asks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from comes.annotate.leases import RefusedError
from comes.annotate.project import Project
from comes.annotate.web.guard import ROLE
from comes.annotate.web.rendering import render
from comes.annotate.web.writer import Writer

NAME_COOKIE = "comes_name"
Result = TypeVar("Result")


class Site:
    """A project that is served.

    Parameters
    ----------
    project : Project
    lease : float
        Seconds that a silent tab keeps its cards.
    """

    def __init__(self, project: Project, lease: float) -> None:
        self.project, self.lease = project, lease
        self._writer: Writer | None = None
        self.preparations: list[Callable[[], Coroutine[Any, Any, None]]] = []  # while it starts

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the writer as long as the server runs."""
        self._writer = Writer(self.project.engine)
        try:
            begun = [asyncio.create_task(prepare()) for prepare in self.preparations]
            yield
            await asyncio.gather(*begun, return_exceptions=True)
        finally:
            await run_in_threadpool(self._writer.close)

    async def run_command(self, command: Callable[[Connection], Result]) -> Result:
        """Run a command in the writer; return its result after the commit."""
        assert self._writer is not None
        return await asyncio.wrap_future(self._writer.submit(command))

    @cached_property
    def _has_grid(self) -> bool:
        """Whether items have several open classes, so that a grid of them is worth a tab."""
        return self.project.read_setting("by") == "item"

    def render_page(self, template: str, **values: Any) -> Response:
        """Return a page of this project."""
        values = {"has_grid": self._has_grid, **values}
        text = render(template, project=self.project.name, **values)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})

    def identify_page(self, name: str) -> str:
        """Return what tells pages of this project and person from all others."""
        return f"{self.project.identity}-{quote(name, safe='')}"

    def require_name(self, request: Request) -> str:
        """Return who asks; refuse a page of another project, or one opened under another name."""
        name = read_name(request)
        if name is None:
            raise RefusedError(403, "say who you are first: open /join")
        page = request.headers.get("x-comes-page")
        if page and page != self.identify_page(name):
            raise RefusedError(403, "the name or the project has changed: reload the page")
        return name


def read_role(request: Request) -> str:
    """Return the role of who asks, as the guard found it."""
    return str(request.scope.get(ROLE, "lead"))


def read_name(request: Request) -> str | None:
    """Return the name in the cookie; None without a cookie, or if it is not one that we set."""
    name = unquote(request.cookies.get(NAME_COOKIE, ""))
    is_ours = name and name.isprintable() and name == name.strip() and len(name) <= 60
    return name if is_ours else None
