"""Clients that keep the server waiting, and what of it the server ends by itself.

For the rest a proxy is in front: docs/guide/annotate-server.md.
"""

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from annotation_site import port_of, request, text_project
from comes.annotate import Project, serve_in_thread
from comes.annotate.web import server

LIMIT = 120.0  # seconds; what is waited for takes milliseconds
HEAD, BREAK, BODY = request("POST", "/api/join", {"name": "Ann"}, Cookie=None).partition(
    b"\r\n\r\n"
)
HALVES = {"silent": b"", "half a line": b"GET / HT", "half a body": HEAD + BREAK + BODY[:5]}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = text_project(tmp_path)
    yield project
    project.engine.dispose()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def ask(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    with closing(connection):
        connection.request("GET", "/join")
        return connection.getresponse().status


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_others_are_served_while_clients_keep_the_server_waiting(
    project: Project, sent: bytes
) -> None:
    with serve_in_thread(project) as address, ExitStack() as stack:
        port = port_of(address)
        for _ in range(100):
            stack.enter_context(connect(port)).sendall(sent)
        assert [ask(port) for _ in range(20)] == [200] * 20


def test_when_too_many_are_connected_others_are_told_to_come_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 20)
    with serve_in_thread(project) as address:
        port = port_of(address)
        with ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(connect(port))
            assert ask(port) == 503
        assert 200 in (ask(port) for _ in range(10_000))  # they are gone as soon as it notices


def test_a_connection_is_kept_for_the_next_request(project: Project) -> None:
    with serve_in_thread(project) as address:
        connection = http.client.HTTPConnection("127.0.0.1", port_of(address), timeout=LIMIT)
        with closing(connection):
            sockets = set()
            for _ in range(3):
                connection.request("GET", "/join")
                assert connection.getresponse().read()
                sockets.add(connection.sock)
            assert len(sockets) == 1


def test_a_body_after_its_refusal_is_not_read(project: Project) -> None:
    with serve_in_thread(project) as address, connect(port_of(address)) as connection:
        connection.sendall(HEAD.replace(b"Content-Length: 15", b"Content-Length: 900000") + BREAK)
        reply = connection.recv(4096)
        assert b" 413 " in reply
        while connection.recv(4096):
            pass  # it is closed


def test_many_idle_sockets_with_few_files(project: Project) -> None:
    """As `ulimit -Sn 256`: the server asks the system for more, and answers beside 300 sockets."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))\n"
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
