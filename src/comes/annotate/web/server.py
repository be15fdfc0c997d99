"""The web application: pages, pictures by number, and commands as json."""

import ipaddress
import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from comes.annotate.cards import RefusedError
from comes.annotate.links import KnownLinks, Role, list_links, make_link, revoke_links
from comes.annotate.project import DESCRIPTION, Project
from comes.annotate.web.annotate import AnswerPages, GuidelineRoutes
from comes.annotate.web.app import Guard, Site, is_loopback, make_refusal
from comes.annotate.web.connections import Door, Limits, Places, TimedProtocol
from comes.annotate.web.lead import LeadPages
from comes.annotate.web.pictures import PictureRoutes
from comes.annotate.web.whole_bodies import WholeBodies
from comes.errors import ComesError, first_line

# Documentation addresses: asking which of our addresses would be used sends nothing.
_ELSEWHERE = {socket.AF_INET: "203.0.113.1", socket.AF_INET6: "2001:db8::1"}
_EVERYWHERE = {"0.0.0.0": (socket.AF_INET,), "::": (socket.AF_INET, socket.AF_INET6)}
_EVERYWHERE[""] = _EVERYWHERE["::"]


def address_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the address that a browser opens.

    Where the server listens on all addresses, it is the first that others can open.

    Parameters
    ----------
    host : str
    port : int
    scheme : {"http", "https"}

    Examples
    --------
    >>> address_of("127.0.0.1", 8000), address_of("::1", 8000)
    ('http://127.0.0.1:8000', 'http://[::1]:8000')
    """
    return list_addresses(host, port, scheme)[0]


def list_addresses(host: str, port: int, scheme: str = "http") -> list[str]:
    """Return the addresses under which a server can be opened.

    Where it listens on all addresses, these are the machine's own in its networks, and its name.

    Parameters
    ----------
    host : str
        What the server listens on.
    port : int
    scheme : {"http", "https"}

    Examples
    --------
    >>> list_addresses("192.168.1.5", 8000, scheme="https")
    ['https://192.168.1.5:8000']
    """
    names = [host]
    if host in _EVERYWHERE:
        names = [str(own) for own in _find_own(_EVERYWHERE[host])] + [socket.gethostname()]
    return [
        f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
        for name in dict.fromkeys(names)
    ]


def is_private(address: str) -> bool:
    """Return whether an address such as http://10.0.0.7:8000 is one of a private network.

    Examples
    --------
    >>> is_private("http://10.0.0.7:8000"), is_private("http://[2a00::1]:8000")
    (True, False)
    """
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False  # a name, of which this is not known


def _find_own(
    families: tuple[socket.AddressFamily, ...],
) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Give the addresses of this machine that others can reach: that of the way out comes first."""
    for family in families:
        found = []
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[family], 9))  # fails where there is no way out
            found.append(probe.getsockname()[0])
        with suppress(OSError):  # where the machine does not know its own name
            found += [known[4][0] for known in socket.getaddrinfo(socket.gethostname(), 0, family)]
        for text in dict.fromkeys(found):
            own = ipaddress.ip_address(str(text).partition("%")[0])
            if not (own.is_loopback or own.is_link_local or own.is_unspecified):
                yield own


@dataclass(frozen=True)
class ServerOptions:
    """How a project is served.

    Parameters
    ----------
    certificate, key : path, optional
        Files in PEM format for TLS; both or none. The certificate comes with those that vouch for
        it.
    proxies : sequence of str
        Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed.
        Nobody else's are.
    limits : Limits

    Examples
    --------
    >>> ServerOptions(proxies=("127.0.0.1",)).scheme
    'http'
    """

    certificate: str | Path | None = None
    key: str | Path | None = None
    proxies: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            given, missing = ("certificate", "key")[:: 1 if self.key is None else -1]
            raise ComesError(
                f"TLS needs a certificate and its key; got --{given} alone. Add --{missing} FILE."
            )
        if self.certificate is not None and self.key is not None:
            _check_certificate(self.certificate, self.key)
        for proxy in self.proxies:
            _check_proxy(proxy)

    @property
    def scheme(self) -> str:
        """The first word of the server's address."""
        return "http" if self.certificate is None else "https"


def _check_certificate(certificate: str | Path, key: str | Path) -> None:
    """Raise if two files are not a certificate and its key."""
    for file in (certificate, key):
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise ComesError(
                f"{file} cannot be read: {error.strerror}. Correct the path."
            ) from None
    try:
        # An encrypted key would ask for its password, and a server may have nobody to ask.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise ComesError(
            f"{certificate} and {key} must be a certificate and its key without a password, in PEM "
            f"format; got {first_line(error)}"
        ) from None


def _check_proxy(proxy: str) -> None:
    try:
        ipaddress.ip_network(proxy)
    except ValueError:
        raise ComesError(
            f"a proxy must be an address or a network, such as 127.0.0.1; got {proxy!r}."
        ) from None


LEASE = 300.0  # seconds that a silent tab keeps its cards
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(project: Project, *, needs_token: bool = False, lease: float = LEASE) -> ASGIApp:
    """Return the application that serves a project.

    Parameters
    ----------
    project : Project
    needs_token : bool
        Whether every request must carry the token of a link, from `make_link`; without, everybody
        who reaches the server is a lead.
    lease : float
        Seconds after which the cards of a silent tab are free again.

    Returns
    -------
    app : ASGI application

    Examples
    --------
    >>> from starlette.testclient import TestClient
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     with TestClient(make_app(project), base_url="http://127.0.0.1") as client:
    ...         client.post("/api/join", json={"name": "Ada"}).json()
    {'name': 'Ada'}
    """
    site = Site(project, lease)
    routes = [
        *AnswerPages(site).routes,
        *LeadPages(site).routes,
        *PictureRoutes(site).routes,
        *GuidelineRoutes(site).routes,
        Route("/static/{name}", _send_static),
        Route("/sw.js", _send_static),  # a service worker may see what is below its own address
    ]
    handlers: dict[Any, Any] = {
        RefusedError: _respond_refusal,
        HTTPException: _respond_http_error,
        SQLAlchemyError: _respond_unavailable,
        ComesError: _respond_unavailable,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=site.lifespan)
    return Guard(app, KnownLinks(project) if needs_token else None)


async def _send_static(request: Request) -> Response:
    """Send one of our scripts or style sheets."""
    content = _load_static_files().get(request.path_params.get("name", "sw.js"))
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content[0], media_type=content[1], headers={"Cache-Control": "no-cache"})


@lru_cache
def _load_static_files() -> dict[str, tuple[bytes, str]]:
    folder = files("comes.annotate.web").joinpath("static")
    return {
        file.name: (file.read_bytes(), kind)
        for file in folder.iterdir()
        for ending, kind in STATIC.items()
        if file.name.endswith(ending)
    }


async def _respond_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return make_refusal(request.headers, error.status, error.reason, error.card)


async def _respond_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_unknown = error.status_code == 404 and error.detail == "Not Found"  # in no route
    reason = "there is no such page" if is_unknown else error.detail
    answer = make_refusal(request.headers, error.status_code, f"{reason[:1].lower()}{reason[1:]}")
    answer.headers.update(error.headers or {})  # which methods are allowed
    return answer


async def _respond_unavailable(request: Request, error: Exception) -> Response:
    reason = str(error) if isinstance(error, ComesError) else "the database does not answer"
    return make_refusal(request.headers, 503, f"{reason.rstrip('.')}; try again")


STARTING = 30.0  # seconds
BACKLOG = 1024  # connections that wait to be accepted
PLAIN = ServerOptions()


def find_links(
    project: Project, host: str, *, is_wanted: bool = False, new: bool = False
) -> dict[str, str] | None:
    """Return the tokens of new links by their role, where an address needs a token at all.

    Parameters
    ----------
    project : Project
    host : str
        The address to serve on.
    is_wanted : bool
        Whether a loopback address needs a token too, as behind a proxy.
    new : bool
        Whether to revoke all links and make new ones.

    Returns
    -------
    made : dict, optional
        None if no token is needed. On first use a link for annotators and one for the lead are
        made; later those stay, and nothing is made.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     print(find_links(project, "127.0.0.1"))
    ...     print(list(find_links(project, "0.0.0.0")), find_links(project, "0.0.0.0"))
    None
    ['annotator', 'lead'] {}
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


def check_images_exist(project: Project) -> None:
    """Raise if the images of a project are no longer where they were.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     check_images_exist(project)  # its items are texts
    """
    if project.source is not None and not project.source.exists():
        raise ComesError(
            f"the images of {project.name} are no longer at {project.source}. Put them back, or "
            f"correct the path in {project.folder.name}/{DESCRIPTION}."
        )


def serve(
    project: Project,
    listener: Door,
    needs_token: bool = False,
    lease: float = LEASE,
    options: ServerOptions = PLAIN,
) -> None:
    """Serve a project on an open port until it is interrupted.

    Parameters
    ----------
    project : Project
    listener : socket
        From `open_port`; it is closed at the end.
    needs_token : bool
        Whether every request must carry the token of a link.
    lease : float
        Seconds after which the cards of a silent tab are free again.
    options : ServerOptions

    Examples
    --------
    >>> from comes.annotate import open_project
    >>> project = open_project("news")  # doctest: +SKIP
    >>> serve(project, open_port("127.0.0.1", 8000))  # doctest: +SKIP
    """
    with listener:
        app = make_app(project, needs_token=needs_token, lease=lease)
        _make_server(app, listener, options).run([listener])


@contextmanager
def serve_in_thread(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    needs_token: bool = False,
    lease: float = LEASE,
    options: ServerOptions = PLAIN,
) -> Iterator[str]:
    """Serve a project in a thread; give its address.

    Parameters
    ----------
    project : Project
    host : str
    port : int
        0 takes a free one.
    needs_token, lease, options
        As in `serve`.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project, serve_in_thread(project) as address:
    ...     urlopen(f"{address}/join").status
    200
    """
    listener = open_port(host, port)
    app = make_app(project, needs_token=needs_token, lease=lease)
    server = _make_server(app, listener, options)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    until = time.monotonic() + STARTING
    while not server.started:
        if time.monotonic() > until or not thread.is_alive():
            raise ComesError(
                f"the server of {project.name} did not start on {host}. See its messages above."
            )
        time.sleep(0.01)
    try:
        yield address_of(host, listener.getsockname()[1], options.scheme)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def open_port(host: str, port: int) -> Door:
    """Return a socket that listens; raise if the port cannot be opened.

    Examples
    --------
    >>> with open_port("127.0.0.1", 0) as listener:
    ...     listener.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets that say they are TCP.
    listener = Door(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


def _make_server(app: Any, listener: Door, options: ServerOptions) -> uvicorn.Server:
    listener.places = Places(options.limits)
    protocol: Any = partial(TimedProtocol, places=listener.places)
    config = uvicorn.Config(
        WholeBodies(app),
        log_level="warning",
        access_log=False,
        server_header=False,
        loop="asyncio",  # which accepts connections through our door
        http=protocol,
        ws="none",
        backlog=BACKLOG,
        timeout_keep_alive=math.ceil(options.limits.kept),
        callback_notify=listener.places.end_overdue,
        timeout_notify=0,  # every second
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    return uvicorn.Server(config)
