"""Clients that keep the server waiting: they are cut, and others are served."""

import asyncio
import http.client
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from comes.annotate.web.connections import Limits
from starlette.responses import PlainTextResponse

from annotation_site import port_of, request, text_project
from comes.annotate import Project, serve_in_thread
from comes.annotate.web.annotate import AnswerPages
from comes.annotate.web.app import Guard
from comes.annotate.web.server import ServerOptions
from test_annotate_encryption import certified as certified  # a fixture

QUICK = Limits(first=0.5, body=0.7, kept=2.0, total=60.0)
PATIENT = Limits(first=300.0, body=300.0, kept=300.0)
LIMIT = 120.0  # seconds; what is waited for takes a second


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = text_project(tmp_path)
    yield project
    project.engine.dispose()


@contextmanager
def served(project: Project, limits: Limits = QUICK) -> Iterator[int]:
    """Give the port of a server with limits."""
    with serve_in_thread(project, options=ServerOptions(limits=limits)) as address:
        yield port_of(address)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def is_cut(connection: socket.socket) -> bool:
    """Say whether the server has closed, waiting as long as the connection's own limit."""
    try:
        while connection.recv(4096):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def is_cut_while_sending(connection: socket.socket, sent: bytes) -> bool:
    """Send ten bytes a second; say whether the server has closed before the last one."""
    connection.settimeout(0.1)
    for byte in sent:
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return True
        if is_cut(connection):
            return True
    return False


def ask(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    with closing(connection):
        connection.request("GET", "/join")
        return connection.getresponse().status


HEAD, BREAK, BODY = request("POST", "/api/join", {"name": "Ann"}, Cookie=None).partition(
    b"\r\n\r\n"
)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", QUICK.first),
        (b"GET / HT", QUICK.first),
        (HEAD + BREAK + b"{", QUICK.body),
    ],
    ids=["silent", "half a line", "no body"],
)
def test_who_does_not_go_on_is_cut_and_not_too_soon(
    project: Project, sent: bytes, expected: float
) -> None:
    with served(project) as port:
        started = time.monotonic()
        with connect(port) as connection:
            connection.sendall(sent)
            assert is_cut(connection)
            assert time.monotonic() - started >= expected
        assert ask(port) == 200


def test_slow_headers_and_bodies_do_not_move_their_deadlines(project: Project) -> None:
    with served(project) as port:
        with connect(port) as connection:
            assert is_cut_while_sending(connection, b"GET /join HTTP/1.1\r\nX: " + b"y" * 600)
        with connect(port) as connection:
            connection.sendall(
                b"POST /api/join HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\nContent-Length: 700\r\n\r\n"
            )
            assert is_cut_while_sending(connection, b" " * 600)


def test_a_body_after_its_refusal_is_not_read_without_end(project: Project) -> None:
    with served(project) as port, connect(port) as connection:
        connection.sendall(
            b"POST /api/join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 900000\r\n\r\n"
        )
        assert b" 413 " in connection.recv(4096)
        assert is_cut_while_sending(connection, b" " * 600)


def test_a_connection_is_kept_for_a_while_and_then_closed(project: Project) -> None:
    with served(project, PATIENT) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        with closing(connection):
            sockets = set()
            for _ in range(3):
                connection.request("GET", "/join")
                assert connection.getresponse().read()
                sockets.add(connection.sock)
            assert len(sockets) == 1
    with served(project) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        with closing(connection):
            connection.request("GET", "/join")
            assert connection.getresponse().read()
            assert is_cut(connection.sock)


def test_a_request_is_dealt_with_when_its_body_is_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = Guard.__call__

    async def note(self: Any, scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope.get("path", ""))
        await real(self, scope, receive, send)

    monkeypatch.setattr(Guard, "__call__", note)
    with served(project, PATIENT) as port, connect(port) as connection, connect(port) as other:
        connection.sendall(HEAD + BREAK + BODY[:5])
        other.sendall(HEAD + BREAK + BODY[:5])
        other.close()
        assert ask(port) == 200  # what came later has been answered
        assert "/api/join" not in seen
        connection.sendall(BODY[5:])
        assert b" 200 " in connection.recv(4096)
        assert seen.count("/api/join") == 1


def test_a_request_that_takes_long_is_waited_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines are for clients, not for the server's own work."""

    async def take_long(self: Any, request: Any) -> Any:
        await asyncio.sleep(QUICK.kept + QUICK.first)
        return PlainTextResponse("at last")

    monkeypatch.setattr(AnswerPages, "join", take_long)
    with served(project) as port:
        assert ask(port) == 200


def test_idle_sockets_and_slow_bodies_do_not_keep_others_out(project: Project) -> None:
    for count, sent in ((120, b""), (60, HEAD + BREAK + b"{")):
        with served(project, Limits(20, first=300.0, body=300.0)) as port, ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connect(port)).sendall(sent)
            assert [ask(port) for _ in range(20)] == [200] * 20


def test_many_idle_sockets_with_few_files(project: Project) -> None:
    """As `ulimit -n 256`: the server of another process keeps answering beside 300 sockets."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\n"
        "from comes.cli import main\n"
        f"sys.argv = ['comes', 'annotate', 'serve', {str(project.folder)!r}, '--port', '0']\n"
        "main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            port = port_of(run.stdout.readline().split()[-1])
            with ExitStack() as stack:
                for _ in range(300):
                    stack.enter_context(connect(port))
                assert [ask(port) for _ in range(30)] == [200] * 30
        finally:
            run.kill()


@pytest.mark.needs("openssl")
def test_who_does_not_finish_a_handshake_is_cut(
    project: Project, certified: tuple[Path, Path]
) -> None:
    options = ServerOptions(*certified, limits=Limits(places=16, first=0.5))
    trusting = ssl.create_default_context(cafile=str(certified[0]))
    with serve_in_thread(project, options=options) as address, ExitStack() as stack:
        port = port_of(address)
        silent = [stack.enter_context(connect(port)) for _ in range(40)]
        other = http.client.HTTPSConnection("127.0.0.1", port, timeout=LIMIT, context=trusting)
        with closing(other):
            other.request("GET", "/join")
            assert other.getresponse().status == 200
        assert all(is_cut(connection) for connection in silent)
