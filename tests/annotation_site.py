"""A served annotation project, and requests to it: by a test client, or over a socket."""

import atexit
import http.client
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from sqlalchemy import select
from starlette.testclient import TestClient

from comes.annotate import Project, create_project, open_project
from comes.annotate.schema import answers, metadata
from comes.annotate.web import pictures

HERE = "http://127.0.0.1"
SCRIPT = "<script>alert(1)</script>"
TAB = "tab-of-ann"
KEY = "fresh-key-1"
TOKEN = "the-token-of-the-table"


def text_project(home: Path, database: str | None = None, *, n: int = 24) -> Project:
    """Return a project of texts with every question asked; texts and names look like markup."""
    if database is not None:
        return _make_text_project(home, database, n)
    shutil.copytree(_make_template(n), home / "project")  # takes a fifth of the time of a new one
    return open_project(home / "project")


@cache
def _make_template(n: int) -> Path:
    home = Path(tempfile.mkdtemp(prefix="comes-site-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    project = _make_text_project(home, None, n)
    project.engine.dispose()
    return project.folder


def _make_text_project(home: Path, database: str | None, n: int) -> Project:
    rows = "".join(f"item {k} {SCRIPT},text {k} {SCRIPT}\n" for k in range(1, n + 1))
    (home / "items.csv").write_text(f"item,text\n{rows}")
    (home / "classes.csv").write_text(f"class,description\nplain,\n{SCRIPT},a {SCRIPT}\nthird,\n")
    sources = home / "items.csv", home / "classes.csv"
    return create_project(home / "project", *sources, rate=1, database=database)


def dump(project: Project) -> dict[str, list[Any]]:
    """Return all rows of all tables."""
    with project.reading() as connection:
        return {
            table.name: list(connection.execute(select(table).order_by(*table.primary_key)))
            for table in metadata.sorted_tables
        }


def standing(project: Project) -> list[tuple[int, str, str]]:
    """Return card, person and answer of what stands."""
    query = select(answers.c.card_id, answers.c.annotator, answers.c.answer)
    with project.reading() as connection:
        rows = connection.execute(query.where(answers.c.undone_at.is_(None)).order_by(answers.c.id))
        return [(row.card_id, row.annotator, row.answer) for row in rows]


def join(client: TestClient, name: str = "Ann") -> None:
    assert client.post("/api/join", json={"name": name}).json() == {"name": name}


def lease(client: TestClient, tab: str = TAB, **more: Any) -> list[dict[str, Any]]:
    reply = client.post("/api/cards", json={"tab": tab, **more})
    assert reply.status_code == 200, reply.text
    cards: list[dict[str, Any]] = reply.json()["cards"]
    return cards


def answer(client: TestClient, card: int, said: str, key: str, tab: str = TAB) -> Any:
    given = {"card": card, "answer": said, "key": key, "seconds": 1.5}
    return client.post("/api/answers", json={"tab": tab, "answers": [given]})


@dataclass(frozen=True)
class Reply:
    """What came back; status 0 when the server closed without a word."""

    status: int
    headers: dict[str, str]
    content: bytes


def request(method: str, path: str, body: Any = None, **changed: str | None) -> bytes:
    """Return a request as it goes over the wire, with headers changed or (None) left out."""
    headers: dict[str, str | None] = {"Host": "127.0.0.1", "Cookie": "comes_name=Ann"}
    content = b""
    if body is not None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "Connection: close", "", ""])
    return head.encode("latin-1") + content


def exchange(port: int, sent: bytes, *, breaks_off: bool = False) -> Reply:
    """Send bytes, go away in the middle or not, and read the reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(sent)
            if breaks_off:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough
        reply = http.client.HTTPResponse(connection, method=sent.split(b" ", 1)[0].decode())
        try:
            reply.begin()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        except (OSError, http.client.HTTPException):
            return Reply(0, {}, b"")
        finally:
            reply.close()


def port_of(address: str) -> int:
    return urlsplit(address).port or 0


@contextmanager
def decoding_in_threads() -> Iterator[None]:
    """Let servers decode pictures in threads, which start sooner than processes."""
    with patch.object(pictures, "start_worker", lambda: ThreadPoolExecutor(1)):
        yield
