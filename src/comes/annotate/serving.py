"""A project as a web server: in the foreground for people, in a thread for robots and tests."""

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from comes.annotate.guard import digest, is_loopback
from comes.annotate.project import DESCRIPTION, Project
from comes.annotate.server import LEASE, make_app
from comes.errors import ComesError

TOKEN = "token_digest"  # a setting of the project
STARTING = 30.0  # seconds


def find_token(
    project: Project, host: str, *, is_wanted: bool = False, new: bool = False
) -> tuple[str | None, str | None]:
    """Return the digest of the token that an address needs, and the token if it was made now.

    A loopback address needs none unless it is wanted, as behind a proxy. A token is made once for
    a project; only its digest is kept.
    """
    if is_loopback(host) and not is_wanted and not new:
        return None, None
    known = project.setting(TOKEN)
    if known and not new:
        return known, None
    token = secrets.token_urlsafe(32)
    project.set(TOKEN, digest(token))
    return digest(token), token


def check_items(project: Project) -> None:
    """Raise if the pictures of a project are not where they were."""
    if project.source is not None and not project.source.exists():
        raise ComesError(
            f"the pictures of {project.name} are not at {project.source} any more. Put them back, "
            f"or correct the path in {project.folder.name}/{DESCRIPTION}."
        )


def serve(
    project: Project, listener: socket.socket, token_digest: str | None, lease: float = LEASE
) -> None:
    """Serve a project on an open port until it is interrupted."""
    with listener:
        _server(project, token_digest, lease).run([listener])


@contextmanager
def serving(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token_digest: str | None = None,
    lease: float = LEASE,
) -> Iterator[str]:
    """Serve a project in a thread; give its address."""
    listener = open_port(host, port)
    server = _server(project, token_digest, lease)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    until = time.monotonic() + STARTING
    while not server.started:
        if time.monotonic() > until or not thread.is_alive():
            raise ComesError("the server of the annotation page did not start.")
        time.sleep(0.01)
    try:
        yield address_of(host, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def open_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise if somebody else does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise ComesError(
            f"{host}, port {port}, cannot be had: {error.strerror or error}. Choose another "
            "(--host, --port)."
        ) from None
    return listener


def address_of(host: str, port: int) -> str:
    """Return the address that a browser opens; this machine's name where it is any of its own."""
    if host in ("0.0.0.0", "::", ""):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(project: Project, token_digest: str | None, lease: float) -> uvicorn.Server:
    app: Any = make_app(project, token_digest=token_digest, lease=lease)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", backlog=1024
    )
    return uvicorn.Server(config)
