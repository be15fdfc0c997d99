"""Connections: whoever keeps the server waiting is cut, and others are served."""

import asyncio
import http.client
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from annotation_site import port_of, request, text_project
from comes.annotate import Limits, Project, ServerOptions, serve_in_thread
from comes.annotate.web.connections import Places, Visit, allow_many_files

QUICK = Limits(first=0.5, body=0.7, kept=2.0, total=60.0)
SLACK = 20.0  # seconds of a busy machine


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
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def seconds_until_cut(connection: socket.socket, sent: bytes = b"", drip: float = 0.0) -> float:
    """Send bytes, or one by one with pauses; return when the server has closed."""
    started = time.monotonic()
    try:
        if not drip:
            connection.sendall(sent)
            while connection.recv(4096):
                pass
        for byte in sent if drip else b"":
            connection.sendall(bytes([byte]))
            connection.settimeout(drip)
            try:
                if not connection.recv(4096):
                    break
            except TimeoutError:
                continue
    except OSError:
        pass
    return time.monotonic() - started


def ask(port: int, seconds: float = 20.0) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    with closing(connection):
        connection.request("GET", "/join")
        return connection.getresponse().status


BODY = request("POST", "/api/join", {"name": "Ann"}, Cookie=None).partition(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "drip", "expected"),
    [
        (b"", 0.0, QUICK.first),  # silent
        (b"GET / HT", 0.0, QUICK.first),  # half a line
        (b"GET /join HTTP/1.1\r\nX: " + b"y" * 200, 0.1, QUICK.first),  # byte by byte
        (BODY[0] + BODY[1] + b"{", 0.0, QUICK.body),  # no more of the body
    ],
    ids=["silent", "half a line", "slow headers", "no body"],
)
def test_who_does_not_go_on_is_cut(
    project: Project, sent: bytes, drip: float, expected: float
) -> None:
    with served(project) as port, connect(port) as connection:
        took = seconds_until_cut(connection, sent, drip)
        assert expected <= took <= expected + SLACK
        assert ask(port) == 200


def test_a_slow_body_does_not_move_its_deadline(project: Project) -> None:
    with served(project) as port, connect(port) as connection:
        connection.sendall(
            b"POST /api/join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 500\r\n\r\n"
        )
        assert QUICK.body <= seconds_until_cut(connection, b" " * 500, 0.1) <= QUICK.body + SLACK


def test_a_body_after_its_refusal_is_not_read_without_end(project: Project) -> None:
    with served(project) as port, connect(port) as connection:
        connection.sendall(
            b"POST /api/join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 900000\r\n\r\n"
        )
        assert b" 413 " in connection.recv(4096)
        assert seconds_until_cut(connection, b" " * 500, 0.1) <= QUICK.first + SLACK


def test_a_connection_is_kept_for_a_while_and_then_closed(project: Project) -> None:
    with served(project) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(3):
            connection.request("GET", "/join")
            assert connection.getresponse().read()
            time.sleep(QUICK.kept / 8)
        assert seconds_until_cut(connection.sock) <= QUICK.kept + SLACK
        connection.close()


def test_a_request_is_dealt_with_when_its_body_is_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from comes.annotate.web.guard import Guard

    seen: list[str] = []
    real = Guard.__call__

    async def note(self: Any, scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope.get("path", ""))
        await real(self, scope, receive, send)

    monkeypatch.setattr(Guard, "__call__", note)
    with served(project) as port, connect(port) as connection, connect(port) as other:
        connection.sendall(BODY[0] + BODY[1] + BODY[2][:5])
        other.sendall(BODY[0] + BODY[1] + BODY[2][:5])
        other.close()
        time.sleep(0.3)
        assert "/api/join" not in seen
        connection.sendall(BODY[2][5:])
        assert b" 200 " in connection.recv(4096)
        assert seen.count("/api/join") == 1


def test_a_request_that_takes_long_is_waited_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines are for clients, not for the server's own work."""
    from comes.annotate.web.answer_routes import AnswerPages

    async def dawdle(self: Any, request: Any) -> Any:
        await asyncio.sleep(2.5)
        return PlainTextResponse("at last")

    monkeypatch.setattr(AnswerPages, "join", dawdle)
    with served(project) as port:
        assert ask(port) == 200


def test_idle_sockets_do_not_keep_others_out(project: Project) -> None:
    with served(project, Limits(places=20, first=60.0)) as port, ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(connect(port))
        assert [ask(port) for _ in range(20)] == [200] * 20


def test_slow_bodies_do_not_keep_others_out(project: Project) -> None:
    limits = Limits(places=20, first=60.0, body=60.0)
    with served(project, limits) as port, ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(connect(port)).sendall(BODY[0] + BODY[1] + b"{")
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
                seconds = []
                for _ in range(30):
                    started = time.monotonic()
                    assert ask(port) == 200
                    seconds.append(time.monotonic() - started)
                assert sum(took >= 1 for took in seconds) < 3  # a second for want of a file
        finally:
            run.kill()


# Who gives way


class Cable:
    """Stands in for a socket, and says whether it was cut."""

    def __init__(self) -> None:
        self.is_cut = False

    def shutdown(self, _: int) -> None:
        self.is_cut = True


def enter(places: Places, client: str, port: int) -> Any:
    cable: Any = Cable()
    places.enter(cable, (client, port))
    return cable


def visit_of(places: Places, cable: Any) -> Visit:
    return next(visit for visit in places.visits.values() if visit.connection is cable)


def test_the_busiest_client_gives_way() -> None:
    places = Places(Limits(places=20))
    guest = enter(places, "10.0.0.1", 1)
    other = enter(places, "10.0.0.2", 1)
    crowd = [enter(places, "10.0.0.9", port) for port in range(30)]
    assert not guest.is_cut and not other.is_cut
    assert [cable.is_cut for cable in crowd] == [True] * 20 + [False] * 10  # half of the places


def test_who_was_let_in_gives_way_last_and_who_is_served_never() -> None:
    places = Places(Limits(places=16))
    cables = [enter(places, "10.0.0.1", port) for port in range(8)]
    for cable in cables[:4]:
        visit_of(places, cable).was_let_in = True
    visit_of(places, cables[4]).waits = False
    for port in range(8, 11):
        enter(places, "10.0.0.1", port)
    assert [cable.is_cut for cable in cables] == [False] * 5 + [True] * 3
    for visit in places.visits.values():
        visit.waits = False
    with pytest.raises(ConnectionAbortedError):
        enter(places, "10.0.0.1", 99)


def test_a_place_is_free_when_its_connection_closes(project: Project) -> None:
    places = Places(Limits(places=16))
    cable = enter(places, "10.0.0.1", 1)
    places.leave(cable)
    assert places.visits == {}


def test_a_server_may_open_as_many_files_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert allow_many_files() == min(hard, 10_000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
