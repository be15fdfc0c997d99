"""A project as a web server: in the foreground for people, in a thread for robots and tests."""

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn

from comes.annotate.links import Role, list_links, make_link, revoke_links
from comes.annotate.project import DESCRIPTION, Project
from comes.annotate.web.addresses import address_of
from comes.annotate.web.connections import Door, Places, TimedProtocol
from comes.annotate.web.guard import is_loopback
from comes.annotate.web.server import LEASE, make_app
from comes.annotate.web.server_options import ServerOptions
from comes.annotate.web.whole_bodies import WholeBodies
from comes.errors import ComesError

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
