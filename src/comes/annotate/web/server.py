"""The web server: the application, the addresses that it prints, encryption, and uvicorn."""

import ipaddress
import json
import secrets
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from comes.annotate.cards import RefusedError
from comes.annotate.links import KnownLinks, Role, list_links, make_link, revoke_links
from comes.annotate.project import DESCRIPTION, Project
from comes.annotate.schema import ADDRESSES
from comes.annotate.web.annotate import AnswerPages
from comes.annotate.web.app import Guard, Site, describe_error, is_loopback, parse_host
from comes.annotate.web.lead import LeadPages
from comes.annotate.web.pictures import PictureRoutes
from comes.errors import ComesError, first_line

LEASE = 300.0  # seconds that a silent tab keeps its cards
STATIC = Path(__file__).with_name("static")
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(project: Project, *, needs_token: bool = False, lease: float = LEASE) -> Guard:
    """Return the application that serves a project; without tokens, everybody is a lead."""
    site = Site(project, lease)
    routes = [
        *AnswerPages(site).routes,
        *LeadPages(site).routes,
        *PictureRoutes(site).routes,
        Route("/sw.js", _send_static),  # a service worker may see what is below its own address
    ]
    return guard_routes(routes, KnownLinks(project) if needs_token else None, site.lifespan)


def guard_routes(routes: Sequence[Route], links: KnownLinks | None, lifespan: Any) -> Guard:
    """Return an application of some routes, with our scripts, what refusals say, and the guard."""
    kinds = (RefusedError, HTTPException, SQLAlchemyError, ComesError)
    handlers: dict[Any, Any] = dict.fromkeys(kinds, _respond_error)
    every = [*routes, Route("/static/{name}", _send_static)]
    return Guard(Starlette(routes=every, exception_handlers=handlers, lifespan=lifespan), links)


def _send_static(request: Request) -> Response:
    """Send one of our scripts or style sheets."""
    name = request.path_params.get("name", "sw.js")
    for file in STATIC.iterdir():  # and nothing that a name could lead to
        if file.name == name and file.suffix in KINDS:
            kind, headers = KINDS[file.suffix], {"Cache-Control": "no-cache"}
            return FileResponse(file, media_type=kind, headers=headers)
    raise RefusedError(404, "there is no such file")


def _respond_error(request: Request, error: Exception) -> Response:
    return describe_error(request.headers, error)


def list_addresses(host: str, port: int, scheme: str = "http") -> list[str]:
    """Return where a server can be opened: on all addresses, that of the way out and its name."""
    names = [host]
    if host in ("", "0.0.0.0", "::"):
        names = [*_find_own(), socket.gethostname()]
    return [
        f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
        for name in names
    ]


def _find_own() -> list[str]:
    """Return the address with which this machine reaches others, if it reaches any."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))  # of documentation: nothing is sent to it
        return [str(probe.getsockname()[0])]
    return []


def describe_addresses(addresses: Sequence[str], made: dict[str, str] | None) -> list[str]:
    """Return lines that say which address is for whom, and who can open it.

    `made` holds the tokens of new links by role; it is None where no token is needed.
    """
    tokens = {role: f"?token={token}" for role, token in (made or {}).items()}
    lines = [
        f"For annotators: {addresses[0]}/{tokens.get('annotator', '')}",
        f"For the lead: {addresses[0]}/lead{tokens.get('lead', '')}",
    ]
    if len(addresses) > 1:
        lines.append(f"The same at {', '.join(addresses[1:])}.")
    if made is None:
        return [*lines, "Only this machine can open them, and there is no token: all may lead."]
    if is_loopback(parse_host(addresses[0].partition("://")[2])):
        lines.append("Only this machine can open them, with a link.")
    else:
        lines.append(
            "Everyone who reaches this address and has the link can open it. For people outside of "
            "this network, use a VPN, or a proxy and --address."
        )
    once, before = "a token is shown once", "their tokens are not shown again"
    return [
        *lines,
        f"Keep these links: {once}." if made else f"Links from before are valid; {before}.",
    ]


def find_links(
    project: Project, host: str, *, is_wanted: bool = False, new: bool = False
) -> dict[str, str] | None:
    """Return the tokens of new links by their role; None where an address needs no token.

    On first use a link for annotators and one for the lead are made; later those stay, and nothing
    is made.
    """
    if is_loopback(host) and not is_wanted and not new:
        return None
    if new:
        revoke_links(project)
    valid = {link.role for link in list_links(project) if link.revoked_at is None}
    wanted: dict[Role, str] = {"annotator": "annotators", "lead": "the lead"}
    return {
        role: make_link(project, role, label) for role, label in wanted.items() if role not in valid
    }


BACKLOG = 1024  # connections that wait to be accepted
MOST_CONNECTIONS = 1000  # beyond, requests get 503; all of them need files
MOST_FILES = 4096


def serve(
    project: Project | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    address: str | None = None,
    needs_token: bool = False,
    new_links: bool = False,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    proxies: Sequence[str] = (),
    lease: float = LEASE,
) -> None:
    """Serve a project until Ctrl-C, and print which address is for whom.

    Pictures are decoded in processes of their own, so a script that calls this needs
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    project : Project, or path
        A folder that has no project yet is served to a lead, who starts one on the page.
    host : str
        The address to listen on; 0.0.0.0 is all of them. All but loopback need a token.
    port : int
        0 takes a free one.
    address : str, optional
        What people open, where the server is behind a proxy.
    needs_token : bool
        Whether loopback needs a token, too, as behind a proxy. Without one everybody is a lead.
    new_links : bool
        Whether to revoke all links and make new ones.
    certificate, key : path, optional
        Files in PEM format for TLS; both or none. The certificate comes with those that vouch for
        it.
    proxies : sequence of str
        Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed.
        Nobody else's are.
    lease : float
        Seconds after which the cards of a silent tab are free again.

    Examples
    --------
    >>> from comes.annotate import open_project
    >>> serve(open_project("news"), "0.0.0.0")  # doctest: +SKIP
    """
    scheme = _check_options(certificate, key, proxies)
    with open_port(host, port) as listener:
        addresses = list_addresses(host, listener.getsockname()[1], scheme)
        if address is not None:
            addresses = [address.rstrip("/")]
        if isinstance(project, Path):
            from comes.annotate.web.setup import Setup  # which needs this module

            is_open = is_loopback(host) and not needs_token
            token = None if is_open else secrets.token_urlsafe(32)
            query = "" if is_open else f"?token={token}"
            app: ASGIApp = Setup(project, token, addresses=addresses, lease=lease)
            print(f"{project} has no project yet. Start it here: {addresses[0]}/setup{query}")
        else:
            if project.source is not None and not project.source.exists():
                raise ComesError(
                    f"the images of {project.name} are no longer at {project.source}. Put them "
                    f"back, or correct the path in {project.folder.name}/{DESCRIPTION}."
                )
            made = find_links(project, host, is_wanted=needs_token, new=new_links)
            project.write_setting(ADDRESSES, json.dumps(addresses))
            print(*describe_addresses(addresses, made), sep="\n")
            app = make_app(project, needs_token=made is not None, lease=lease)
        sys.stdout.flush()
        _make_server(app, certificate, key, proxies).run([listener])


@contextmanager
def serve_in_thread(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    needs_token: bool = False,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    proxies: Sequence[str] = (),
    lease: float = LEASE,
) -> Iterator[str]:
    """Serve a project in a thread; give its address.

    Parameters
    ----------
    project : Project
    host : str
    port : int
        0 takes a free one.
    needs_token : bool
        Whether every request must carry the token of a link.
    certificate, key, proxies, lease
        As in `serve`.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> with serve_in_thread(project) as address:
    ...     urlopen(f"{address}/join").status
    200
    """
    scheme = _check_options(certificate, key, proxies)
    app = make_app(project, needs_token=needs_token, lease=lease)
    with open_port(host, port) as listener:
        server = _make_server(app, certificate, key, proxies)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while thread.is_alive() and not server.started:
            time.sleep(0.01)
        if not server.started:
            raise ComesError(
                f"the server of {project.name} did not start on {host}. See its messages above."
            )
        try:
            yield list_addresses(host, listener.getsockname()[1], scheme)[0]
        finally:
            server.should_exit = True
            thread.join()


def _check_options(
    certificate: str | Path | None, key: str | Path | None, proxies: Sequence[str]
) -> str:
    """Return http or https; raise if files are no certificate and key, or a proxy no address."""
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise ComesError(
                f"a proxy must be an address or a network, such as 127.0.0.1; got {proxy!r}."
            ) from None
    if certificate is None and key is None:
        return "http"
    if certificate is None or key is None:
        given, missing = ("certificate", "key") if key is None else ("key", "certificate")
        raise ComesError(
            f"TLS needs a certificate and its key; got --{given} alone. Add --{missing} FILE."
        )
    for file in (certificate, key):
        if not Path(file).is_file():
            raise ComesError(f"{file} is no file. Correct the path.")
    try:
        # An encrypted key would ask for its password, and a server may have nobody to ask.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, str)
    except (OSError, ValueError) as error:
        raise ComesError(
            f"{certificate} and {key} must be a certificate and its key without a password, in PEM "
            f"format; got {first_line(error)}"
        ) from None
    return "https"


def open_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise if the port cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ComesError(
            f"port {port} of {host} cannot be opened: {error.strerror or error}. Choose another "
            "one (--host, --port)."
        ) from None
    return listener


def _make_server(
    app: ASGIApp, certificate: str | Path | None, key: str | Path | None, proxies: Sequence[str]
) -> uvicorn.Server:
    with suppress(ImportError, OSError, ValueError):  # Windows has no limit; a few systems lie
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MOST_FILES), hard))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        http="h11",  # which limits the size of headers
        ws="none",
        backlog=BACKLOG,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return uvicorn.Server(config)
