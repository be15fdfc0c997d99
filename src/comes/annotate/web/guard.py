"""The guard in front of every request: who may send it, from where, and how large it may be.

A loopback address needs no token, but the Host header must name a loopback address too, so that no
page of another site can reach the server through a browser. On any other address every request must
carry the token of a link, in a cookie that scripts cannot read, or as ``Authorization: Bearer`` for
``/api/v1``. Its role, under ``comes_role`` in the scope, says what it may do. A request that
changes something must be json and come from one of our pages.
"""

import ipaddress
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from comes.annotate.links import KnownLinks
from comes.annotate.web.rendering import render
from comes.errors import ComesError

LARGEST_BODY = 64 * 1024  # bytes
COOKIE = "comes_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
TITLES = {401: "A token is needed", 404: "Not found", 503: "Try again"}
ROLE = "comes_role"  # in the scope of a request
LET_IN = "comes_let_in"  # in the scope of a request that needed a token and had one
LEADS = ("/lead", "/api/lead")  # paths for leads alone
SCRIPTS = "/api/v1"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SENT_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Refuses what is not allowed, and adds the headers that every response has.

    Parameters
    ----------
    app : ASGI application
    links : KnownLinks, optional
        The links that let people in; None if no token is needed, and everybody is a lead.
    """

    def __init__(self, app: ASGIApp, links: KnownLinks | None) -> None:
        self._app, self._links = app, links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # start and end of the server
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SENT_HEADERS]
                if scope["scheme"] == "https":
                    message["headers"] = [*map(_secure_cookie, message["headers"])]
            await send(message)

        refusal = await self._intercept_request(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            scope[LET_IN] = not scope["path"].startswith("/static/")
            await self._app(scope, receive, send_with_headers)

    async def _intercept_request(self, scope: Scope) -> Response | None:
        """Return a refusal, or the page that stores the token; None lets the request through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        scope[ROLE] = "lead"
        if self._links is None:
            if not is_loopback(_parse_host(host)):
                return make_refusal(headers, 421, "this server responds on its own address only")
        elif not scope["path"].startswith("/static/"):  # the page that refuses needs these
            try:
                if not self._links.is_fresh:
                    await run_in_threadpool(self._links.read)
            except ComesError as error:
                return make_refusal(headers, 503, f"{str(error).rstrip('.')}; try again")
            stopped = self._check_token(scope, headers, self._links)
            if stopped is not None:
                return stopped
        if scope["method"] not in ("GET", "HEAD"):
            return _refuse_change(headers, host)
        return None

    def _check_token(self, scope: Scope, headers: Headers, links: KnownLinks) -> Response | None:
        """Find the role of a request; return a refusal, or the page that stores its token."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["method"] == "GET" and (role := links.find_role(given)):
            # Not a redirect: after a click on another site, a browser would follow it without
            # the cookie. It sends the cookie with a link from one of our pages.
            start = "/lead" if role == "lead" else "/"
            answer = HTMLResponse(render("entered.html.jinja", start=start))
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", max_age=2592000)
            return answer
        role = links.find_role(_read_token(scope["path"], headers))
        if role is None:
            return make_refusal(headers, 401, "open the address that contains the token")
        scope[ROLE] = role
        if role != "lead" and _is_under(scope["path"], *LEADS):
            return make_refusal(
                headers, 403, "this page is for the lead; with the lead's link you can open it"
            )
        if role == "annotator" and _is_under(scope["path"], SCRIPTS):
            return make_refusal(headers, 403, "this needs the token of a script, or of the lead")
        return None


def _secure_cookie(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Let a browser send a cookie that came over TLS over TLS alone."""
    name, value = header
    return (name, value + b"; Secure") if name == b"set-cookie" else header


def _refuse_change(headers: Headers, host: str) -> Response | None:
    """Refuse what a page of another site could send, and what is too large."""
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return make_refusal(headers, 403, "this came from another site")
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return make_refusal(headers, 403, "this came from another site")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return make_refusal(headers, 415, "the content type must be application/json")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 9 or int(length) > LARGEST_BODY:
        return make_refusal(headers, 413, f"at most {LARGEST_BODY} bytes are read")
    return None


def make_refusal(headers: Headers, status: int, reason: str, card: int | None = None) -> Response:
    """Return a refusal: a page for a browser that opens one, json for everything else."""
    if headers.get("accept", "").startswith("text/html"):
        text = f"{reason[:1].upper()}{reason[1:]}."
        return HTMLResponse(
            render("message.html.jinja", title=TITLES.get(status, "Sorry"), text=text), status
        )
    return JSONResponse({"error": reason, "card": card}, status)


def _parse_host(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_under(path: str, *folders: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _read_token(path: str, headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and _is_under(path, SCRIPTS):
        return token.strip()
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
