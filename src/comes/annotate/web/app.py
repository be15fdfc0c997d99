"""What all pages share: templates, who may what, what comes in, and the project that is served."""

import asyncio
import ipaddress
import json
import math
import queue
import re
import threading
import time
import unicodedata
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import jinja2
from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Connection, Engine
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from comes.annotate.asking import read_words
from comes.annotate.cards import RefusedError
from comes.annotate.lead import clean_name
from comes.annotate.links import KnownLinks
from comes.annotate.project import Project
from comes.annotate.schema import WRITES
from comes.annotate.summary import ENOUGH
from comes.errors import ComesError
from comes.files import expanded, replacing_file


def write_duration(seconds: float) -> str:
    """Return a time that people can plan with: 40 s, 25 min, 3 h, 2 days of 8 h."""
    if math.isnan(seconds):
        return "–"
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    if seconds < 90 * 60:
        return f"{math.ceil(seconds / 60)} min"
    if seconds < 16 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{math.ceil(seconds / 8 / 3600)} days of 8 h"


def _write_number(form: str, number: float) -> str:
    return "–" if math.isnan(number) else form.format(number)


def _write_time(moment: float) -> str:
    return time.strftime("%d %b %H:%M", time.localtime(moment))


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("comes.annotate.web", "pages"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.globals["enough"] = ENOUGH
ENVIRONMENT.globals["words"] = read_words("en")  # where a page does not say otherwise
ENVIRONMENT.filters["share"] = partial(_write_number, "{:.0%}")
ENVIRONMENT.filters["number"] = partial(_write_number, "{:z.2f}")
ENVIRONMENT.filters["seconds"] = partial(_write_number, "{:.1f} s")
ENVIRONMENT.filters["duration"] = write_duration
ENVIRONMENT.filters["time"] = _write_time


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return ENVIRONMENT.get_template(template).render(values)


LARGEST_BODY = 64 * 1024  # bytes
COOKIE = "comes_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
TITLES = {401: "A token is needed", 404: "Not found", 503: "Try again"}
ROLE = "comes_role"  # in the scope of a request
NEEDS_TOKEN = "comes_needs_token"  # in the scope: whether one is asked for at all
LEADS = ("/lead/", "/api/lead/", "/setup/", "/api/setup/")  # paths for leads alone
UPLOADS = ("/api/setup/files/", "/api/lead/table/")  # paths that take files
LARGEST_UPLOAD = 128 * 2**20  # bytes
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Refuses what is not allowed, and adds the headers that every response has.

    Without links no token is needed, and everybody is a lead.
    """

    def __init__(self, app: Starlette, links: KnownLinks | None) -> None:
        self.app, self._links = app, links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # start and end of the server
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        response: ASGIApp
        headers = Headers(scope=scope)
        try:
            response = await self._check(scope, headers) or self.app
        except (RefusedError, ComesError) as error:
            response = describe_error(headers, error)
        await response(scope, receive, send_with_headers)

    async def _check(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request, return the page that stores its token, or (None) let it through."""
        scope[ROLE], scope[NEEDS_TOKEN] = "lead", self._links is not None
        if self._links is None:
            if not is_loopback(parse_host(headers.get("host", ""))):
                raise RefusedError(421, "this server responds on its own address only")
        elif not scope["path"].startswith("/static/"):  # the page that refuses needs these
            if not self._links.is_fresh:
                await run_in_threadpool(self._links.read)
            given = QueryParams(scope["query_string"]).get("token", "")
            if given and scope["method"] == "GET" and (role := self._links.find_role(given)):
                return _store_token(given, role, is_secure=scope["scheme"] == "https")
            cookies = cookie_parser(headers.get("cookie", ""))
            scope[ROLE] = self._links.find_role(cookies.get(COOKIE, ""))
            if scope[ROLE] is None:
                raise RefusedError(401, "open the address that contains the token")
            if scope[ROLE] != "lead" and f"{scope['path']}/".startswith(LEADS):
                raise RefusedError(
                    403, "this page is for the lead; with the lead's link you can open it"
                )
        if scope["method"] not in ("GET", "HEAD"):
            _check_change(scope, headers)
        return None


def _store_token(token: str, role: str, *, is_secure: bool) -> Response:
    # Not a redirect: after a click on another site, a browser would follow it without the cookie.
    # It sends the cookie with a link from one of our pages.
    start = "/lead" if role == "lead" else "/"
    page = HTMLResponse(render("entered.html.jinja", start=start))
    set_cookie(page, COOKIE, token, is_secure=is_secure)
    return page


def set_cookie(response: Response, name: str, value: str, *, is_secure: bool) -> None:
    """Set a cookie for 30 days, which no script and no other site gets."""
    options: Any = {"httponly": True, "samesite": "strict", "max_age": 2592000}
    response.set_cookie(name, value, secure=is_secure, **options)


def _check_change(scope: Scope, headers: Headers) -> None:
    """Refuse what a page of another site could send, and what is too large."""
    host, origin = headers.get("host", ""), headers.get("origin")
    is_ours = origin in (None, f"http://{host}", f"https://{host}")
    if not is_ours or headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise RefusedError(403, "this came from another site")
    kind, most = "application/json", LARGEST_BODY
    if scope["method"] == "PUT" and scope["path"].startswith(UPLOADS):
        kind, most = "application/octet-stream", LARGEST_UPLOAD
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise RefusedError(415, f"the content type must be {kind}")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 9 or int(length) > most:
        raise RefusedError(413, _limit(most))


def _limit(most: int) -> str:
    return f"at most {most} bytes are read" if most < 2**20 else f"at most {most >> 20} MB are read"


def describe_error(headers: Headers, error: Exception) -> Response:
    """Say what went wrong: on a page for a browser that opens one, in json for everything else."""
    told: dict[str, Any] = {"card": None}
    if isinstance(error, RefusedError):
        told = dict(vars(error))  # of some kinds with more than a reason
        status, reason = told.pop("status"), told.pop("reason")
    elif isinstance(error, HTTPException):  # of Starlette, which found no route
        status = error.status_code
        reason = "there is no such page" if status == 404 else error.detail.lower()
    else:
        known = str(error) if isinstance(error, ComesError) else "the database does not answer"
        status, reason = 503, f"{known.rstrip('.')}; try again"
    more = getattr(error, "headers", None)  # which methods are allowed
    if headers.get("accept", "").startswith("text/html"):
        title, text = TITLES.get(status, "Sorry"), f"{reason[:1].upper()}{reason[1:]}."
        page = render("message.html.jinja", title=title, text=text)
        return HTMLResponse(page, status, more)
    return JSONResponse({"error": reason, **told}, status, more)


def parse_host(host: str) -> str:
    """Return the name of a host without its port; an empty one if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


LONGEST_NAME = 60  # characters


class Body(BaseModel):
    """A json object with exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


ODD = re.compile("[\0\ud800-\udfff]")
Kind = TypeVar("Kind", bound=Body)


async def read_body(request: Request, kind: type[Kind]) -> Kind:
    """Return the body of a request; refuse one that is too large, not json, or not of the kind."""
    content = b"".join([part async for part in _receive(request, LARGEST_BODY)])
    try:
        values = json.loads(content)
        if _has_odd_text(values):
            raise RefusedError(422, "text must not contain NUL or unpaired surrogates")
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}" if place else first["msg"]) from None
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is not json") from None


async def _receive(request: Request, most: int) -> AsyncIterator[bytes]:
    """Give the parts of a body, which are counted: it may not say how long it is."""
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise RefusedError(413, _limit(most))
            yield part
    except ClientDisconnect:
        raise RefusedError(400, "the connection closed before all was here") from None


async def receive_file(
    request: Request, folder: Path, name: str, most: int = LARGEST_UPLOAD
) -> Path:
    """Return the path of a file with the body of a request, which is there once all of it is."""
    path = folder / clean_file_name(name)
    try:
        with replacing_file(path) as temporary, temporary.open("wb") as file:
            temporary.chmod(0o600)
            async for part in _receive(request, most):
                await run_in_threadpool(file.write, part)
    except ComesError as error:  # no room is left
        raise RefusedError(507, str(error).rstrip(".")) from None
    return path


def clean_file_name(given: str) -> str:
    """Return the name of a file that somebody sends; refuse one that could lead elsewhere."""
    name = unicodedata.normalize("NFC", given)
    is_plain = name.isprintable() and not set(name) & set('/\\:*?"<>|')
    if not is_plain or name[:1] in ("", ".") or name[-1] in ". " or len(name.encode()) > 200:
        raise RefusedError(
            422,
            f"a file must have a plain name of at most 200 bytes, without / or a dot in front; got "
            f"{given[:100]!r}",
        )
    return name


def check_place(given: str, *, is_open: bool) -> Path:
    """Return a path on this machine that a lead typed.

    Where others can reach the server, it must lie below the folder in which the server was started.
    """
    home = Path.cwd()
    try:
        path = expanded(given).resolve()
    except ComesError as error:
        raise RefusedError(422, str(error).rstrip(".")) from None
    if not is_open and not path.is_relative_to(home.resolve()):
        raise RefusedError(
            422, f"a path must lie in {home}, where the server was started; got {given[:200]}"
        )
    return path


def _has_odd_text(value: Any) -> bool:
    """Return whether json has a text that a database cannot store."""
    if isinstance(value, dict):
        return any(map(_has_odd_text, (*value, *value.values())))
    if isinstance(value, list):
        return any(map(_has_odd_text, value))
    return isinstance(value, str) and ODD.search(value) is not None


Result = TypeVar("Result")
Waiting = tuple[Callable[[Connection], Any], "Future[Any]"]
COMMANDS_AT_ONCE = 200  # commands in one commit


class Writer:
    """Runs commands one after the other, in transactions that they share.

    Waiting for the disk takes longer than storing an answer. While one commit is under way, the
    commands of other requests queue up, and the next commit stores them together. The future of a
    command is done when its commit is.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(**WRITES)
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_batches, name="comes-writer", daemon=True)
        self._thread.start()

    def submit(self, command: Callable[[Connection], Result]) -> "Future[Result]":
        """Queue a command, which looks before it writes and may refuse."""
        future: Future[Result] = Future()
        self._waiting.put((command, future))
        return future

    def close(self) -> None:
        """Run the commands that wait, and stop."""
        self._waiting.put(None)
        self._thread.join()

    def _run_batches(self) -> None:
        is_open = True
        while is_open:
            batch = [self._waiting.get()]
            while len(batch) < COMMANDS_AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get())
            is_open = None not in batch
            # The command of a browser that has gone away is not run.
            self._commit_batch(
                [one for one in batch if one and one[1].set_running_or_notify_cancel()]
            )

    def _commit_batch(self, batch: list[Waiting]) -> None:
        results: list[Any] = []
        try:
            with self._engine.begin() as connection:
                for command, _ in batch:
                    try:
                        results.append(command(connection))
                    except RefusedError as refusal:
                        results.append(refusal)
        except Exception as error:  # nothing of the batch is stored
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:
                for one in batch:
                    self._commit_batch([one])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, RefusedError):
                future.set_exception(result)
            else:
                future.set_result(result)


NAME_COOKIE = "comes_name"


class Site:
    """A project that is served; a silent tab keeps its cards for the seconds of a lease."""

    _writer: Writer  # while the server runs

    def __init__(self, project: Project, lease: float) -> None:
        self.project, self.lease = project, lease
        # Whether items have several open classes, so that a grid of them is worth a tab.
        self._has_grid = project.read_setting("by") == "item"
        self.preparations: list[Callable[[], Coroutine[Any, Any, None]]] = []  # while it starts
        self.closings: list[Callable[[], None]] = []  # when it ends

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
            for close in self.closings:
                close()

    async def run_command(self, command: Callable[[Connection], Result]) -> Result:
        """Run a command in the writer; return its result after the commit."""
        return await asyncio.wrap_future(self._writer.submit(command))

    def render_page(self, template: str, **values: Any) -> Response:
        """Return a page of this project."""
        values = {"project": self.project.name, "has_grid": self._has_grid, **values}
        text = render(template, **values)
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


def read_name(request: Request) -> str | None:
    """Return the name in the cookie; None without a cookie, or if it is not one that we set."""
    name = unquote(request.cookies.get(NAME_COOKIE, ""))
    try:
        return name if 0 < len(name) <= LONGEST_NAME and name == clean_name(name) else None
    except RefusedError:
        return None
