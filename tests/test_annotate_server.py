"""The annotation page over HTTP: what it shows, what it stores, and what it refuses."""

import hmac
import http.client
import io
import json
import logging
import re
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient
from typer.testing import CliRunner

from comes import annotate
from comes.annotate import (
    Project,
    Summary,
    create_project,
    find_token,
    make_app,
    serving,
    summarise,
)
from comes.annotate import server as server_module
from comes.annotate.guard import HEADERS, digest_token
from comes.annotate.leases import Asker, SentAnswer, lease_cards, store_answers, undo_answers
from comes.annotate.schema import answers, metadata
from comes.cli import app
from databases import PostgreSQL

HERE = "http://127.0.0.1"
SCRIPT = "<script>alert(1)</script>"
TAB = "tab-of-ann"
KEY = "fresh-key-1"
TOKEN = "the-token-of-the-table"


def text_project(home: Path, database: str | None = None, *, n: int = 24) -> Project:
    """Return a project of texts with every question asked; texts and names look like markup."""
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


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = text_project(tmp_path)
    yield project
    project.engine.dispose()


@pytest.fixture
def client(project: Project) -> Iterator[TestClient]:
    """A browser of somebody who has not said a name."""
    with TestClient(make_app(project), base_url=HERE, follow_redirects=False) as client:
        yield client


def join(client: TestClient, name: str = "Ann") -> None:
    assert client.post("/api/join", json={"name": name}).json() == {"name": name}


def lease(client: TestClient, tab: str = TAB, **more: Any) -> list[dict[str, Any]]:
    reply = client.post("/api/cards", json={"tab": tab, **more})
    assert reply.status_code == 200
    cards: list[dict[str, Any]] = reply.json()["cards"]
    return cards


def answer(client: TestClient, card: int, said: str, key: str, tab: str = TAB) -> Any:
    given = {"card": card, "answer": said, "key": key, "seconds": 1.5}
    return client.post("/api/answers", json={"tab": tab, "answers": [given]})


# Pages


def test_who_has_no_name_is_asked_for_one_first(client: TestClient) -> None:
    for page in ("/", "/grid"):
        reply = client.get(page)
        assert (reply.status_code, reply.headers["location"]) == (303, "/join")
    assert "What is your name?" in client.get("/join").text
    refused = client.post("/api/cards", json={"tab": TAB})
    assert refused.status_code == 403 and "/join" in refused.json()["error"]


def test_the_name_is_kept_where_no_script_and_no_other_site_gets_it(client: TestClient) -> None:
    reply = client.post("/api/join", json={"name": "  Zoë; Ö'Neil "})
    assert reply.json() == {"name": "Zoë; Ö'Neil"}
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    for page in ("/", "/grid", "/join", "/lead"):
        assert "Zoë; Ö&#39;Neil" in client.get(page).text


def test_pages_need_nothing_from_elsewhere_and_run_no_inline_script(client: TestClient) -> None:
    join(client)
    for page in ("/", "/grid", "/join", "/lead"):
        reply = client.get(page)
        assert reply.status_code == 200 and reply.headers["cache-control"] == "no-store"
        for address in re.findall(r'(?:src|href)="([^"]*)"', reply.text):
            assert address.startswith("/") and not address.startswith("//")
            assert client.get(address).status_code == 200
        assert re.findall(r"<script(?![^>]*src=)|<style|\bon\w+=|style=", reply.text) == []


def test_every_answer_has_the_headers_that_fence_it_in(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret of the server")

    replies = [client.get("/join"), client.get("/"), client.get("/static/annotate.js")]
    replies += [client.get("/nowhere"), client.get("/api/cards"), client.get("/items/1")]
    replies += [client.post("/api/join", json={}), client.post("/api/join", content="x")]
    replies += [client.get("/", headers={"host": "evil.example"})]
    join(client)
    replies += [client.post("/api/cards", json={"tab": TAB})]
    monkeypatch.setattr(server_module, "lease_cards", fail)
    with TestClient(client.app, base_url=HERE, raise_server_exceptions=False) as careless:
        join(careless)
        replies.append(careless.post("/api/cards", json={"tab": TAB}))
    assert "secret" not in replies[-1].text
    found = [reply.status_code for reply in replies]
    assert found == [200, 303, 200, 404, 405, 404, 422, 415, 421, 200, 500]
    for reply in replies:
        assert {name: reply.headers.get_list(name) for name in HEADERS} == {
            name: [value] for name, value in HEADERS.items()
        }


def test_the_policy_allows_our_own_files_only() -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["img-src"] == "'self'"
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert HEADERS["X-Content-Type-Options"] == "nosniff"


def test_a_refusal_is_a_page_for_a_person_and_json_for_a_script(client: TestClient) -> None:
    as_page = client.get("/nowhere", headers={"accept": "text/html,*/*"})
    assert as_page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>Not found</h1>" in as_page.text
    as_json = client.get("/nowhere", headers={"accept": "application/json"})
    assert (as_json.status_code, as_json.json()) == (404, {"error": "not found", "card": None})
    elsewhere = client.get("/", headers={"host": "evil.example", "accept": "text/html"})
    assert elsewhere.status_code == 421 and "<h1>Sorry</h1>" in elsewhere.text
    wrong_method = client.get("/api/cards")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")


def test_static_files_are_ours_and_of_the_kind_they_say(client: TestClient) -> None:
    for name, kind in (("annotate.js", "text/javascript"), ("annotate.css", "text/css")):
        reply = client.get(f"/static/{name}")
        assert reply.headers["content-type"].startswith(kind) and reply.content
    assert client.get("/static/server.py").status_code == 404


# Names and texts are text


def test_markup_in_names_and_texts_stays_text(client: TestClient) -> None:
    join(client, f"Ann {SCRIPT}")
    cards = lease(client)
    assert all(SCRIPT in card["name"] and SCRIPT in card["text"] for card in cards)
    for number, card in enumerate(cards):
        assert answer(client, card["card"], "no", f"{KEY}{number}").status_code == 200
    for page in ("/", "/grid", "/join", "/lead"):
        reply = client.get(page)
        assert SCRIPT not in reply.text and "Ann &lt;script&gt;alert(1)" in reply.text
        assert reply.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    lead = client.get("/lead").text
    assert f"<bdi>{'&lt;script&gt;alert(1)&lt;/script&gt;'}</bdi>" in lead  # the class
    assert "<bdi>item " in lead


def test_what_is_not_html_is_never_sent_as_html(client: TestClient) -> None:
    join(client)
    reply = client.post("/api/cards", json={"tab": TAB}, headers={"accept": "text/html"})
    assert reply.headers["content-type"] == "application/json" and SCRIPT in reply.text
    echoed = client.post(
        "/api/join", json={"name": "x", SCRIPT: 1}, headers={"accept": "text/html"}
    )
    assert echoed.status_code == 422 and SCRIPT not in echoed.text and "&lt;script" in echoed.text


# Commands


def test_cards_are_leased_answered_and_taken_back(client: TestClient, project: Project) -> None:
    join(client)
    reply = client.post("/api/cards", json={"tab": TAB}).json()
    assert reply["progress"] == {"total": 72, "done": 0, "mine": 0} and reply["waiting"] == 0
    assert len({card["class"] for card in reply["cards"]}) == 1
    assert set(reply["cards"][0]) == {"card", "item", "name", "text", "class", "description"}
    first, second = (card["card"] for card in reply["cards"][:2])
    assert answer(client, first, "no", "key-of-the-first").json() == {"stored": 1}
    assert answer(client, second, "maybe", "key-of-the-second").json() == {"stored": 1}
    assert answer(client, first, "no", "key-of-the-first").json() == {"stored": 1}  # sent again
    assert standing(project) == [(first, "Ann", "no"), (second, "Ann", "maybe")]
    keys = {"tab": TAB, "keys": ["key-of-the-first"]}
    for _ in range(2):  # the second is the same request, sent again
        undone = client.post("/api/undo", json=keys).json()["cards"]
        assert [card["card"] for card in undone] == [first]
    assert standing(project) == [(second, "Ann", "maybe")]
    assert answer(client, first, "skip", "key-of-the-third").status_code == 200
    assert standing(project) == [(second, "Ann", "maybe"), (first, "Ann", "skip")]


def test_a_grid_holds_the_classes_of_one_item(client: TestClient) -> None:
    join(client)
    cards = lease(client, mode="grid")
    assert len({card["item"] for card in cards}) == 1
    assert [card["class"] for card in cards].count(SCRIPT) == 1 and len(cards) == 3


def test_answers_of_a_request_are_stored_all_or_none(client: TestClient, project: Project) -> None:
    join(client)
    mine = [card["card"] for card in lease(client)]
    foreign = lease(client, "another-tab")[0]["card"]
    given = [
        {"card": card, "answer": "no", "key": f"{KEY}{card}"}
        for card in (mine[0], mine[1], foreign)
    ]
    refused = client.post("/api/answers", json={"tab": TAB, "answers": given})
    assert (refused.status_code, refused.json()["card"]) == (409, foreign)
    assert standing(project) == []
    stored = client.post("/api/answers", json={"tab": TAB, "answers": given[:2]})
    assert stored.json() == {"stored": 2} and len(standing(project)) == 2


def test_who_finds_all_cards_taken_is_told_that_some_wait(tmp_path: Path) -> None:
    project = text_project(tmp_path, n=2)  # six cards
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        while lease(client, f"tab-number-{len(project.item_names)}-{time.monotonic_ns()}"):
            pass
        reply = client.post("/api/cards", json={"tab": "one-tab-more"}).json()
    project.engine.dispose()
    assert (reply["cards"], reply["waiting"]) == ([], 6)


def test_the_page_of_the_lead_counts(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    monkeypatch.setattr(server_module, "FRESH", 0.0)
    assert "0 of 72 cards are done" in client.get("/lead").text  # a lead needs no name
    join(client)
    card = lease(client)[0]
    answer(client, card["card"], "no", KEY)
    page = client.get("/lead").text
    assert "1 of 72 cards are done" in page and "<td>surely not</td><td><bdi>Ann</bdi>" in page


def test_the_page_of_the_lead_is_made_once_in_a_while(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Project] = []

    def summarise_and_count(project: Project) -> Summary:
        made.append(project)
        return summarise(project)

    monkeypatch.setattr(server_module, "summarise", summarise_and_count)
    for _ in range(5):
        assert client.get("/lead").status_code == 200
    assert len(made) == 1


def test_a_database_that_does_not_answer_is_a_reason_to_try_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("SELECT secret", {}, Exception("gone"))

    join(client)
    monkeypatch.setattr(server_module, "lease_cards", fail)
    reply = client.post("/api/cards", json={"tab": TAB})
    assert reply.status_code == 503 and "try again" in reply.json()["error"]
    assert "secret" not in reply.text
    monkeypatch.undo()
    assert lease(client)


# Pictures


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Path]]:
    """A project of pictures of every kind, and their folder."""
    home = tmp_path_factory.mktemp("pictures")
    folder = home / "photos"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    for ending in ("jpg", "png", "gif", "webp", "tiff", "bmp"):
        image.save(folder / f"a.{ending}")
    image.save(folder / "camera.jpg", "MPO", save_all=True, append_images=[image])
    Image.fromarray(pixels[:, :, 0].astype(np.uint16) << 8).save(folder / "deep.tiff")
    (folder / "page.png").write_text(f"<html>{SCRIPT}</html>")
    (folder / "short.png").write_bytes((folder / "a.png").read_bytes()[:100])
    (folder / "gone.png").write_bytes((folder / "a.png").read_bytes())
    (home / "classes.txt").write_text("one\ntwo\n")
    project = create_project(home / "project", folder, home / "classes.txt", rate=1)
    (folder / "gone.png").unlink()
    yield project, folder
    project.engine.dispose()


def picture(project: Project, name: str) -> Any:
    number = project.item_names.index(name) + 1
    with TestClient(make_app(project), base_url=HERE) as client:
        return client.get(f"/items/{number}")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jpg", "image/jpeg"),
        ("camera.jpg", "image/jpeg"),
        ("a.png", "image/png"),
        ("a.gif", "image/gif"),
        ("a.webp", "image/webp"),
    ],
)
def test_pictures_that_browsers_show_come_as_they_are(
    pictures: tuple[Project, Path], name: str, kind: str
) -> None:
    project, folder = pictures
    reply = picture(project, name)
    assert (reply.status_code, reply.headers["content-type"]) == (200, kind)
    assert reply.content == (folder / name).read_bytes()
    assert reply.headers["cache-control"].startswith("private")


@pytest.mark.parametrize("name", ["a.tiff", "a.bmp", "deep.tiff"])
def test_pictures_that_browsers_do_not_show_come_as_png(
    pictures: tuple[Project, Path], name: str
) -> None:
    project, folder = pictures
    reply = picture(project, name)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
    shown = np.asarray(Image.open(io.BytesIO(reply.content)))
    with Image.open(folder / "a.png") as expected:
        if name == "deep.tiff":
            assert (shown == np.asarray(expected)[:, :, :1]).all()
        else:
            assert (shown == np.asarray(expected)).all()


@pytest.mark.parametrize("name", ["page.png", "short.png", "gone.png"])
def test_what_is_no_picture_is_not_sent(pictures: tuple[Project, Path], name: str) -> None:
    reply = picture(pictures[0], name)
    assert reply.status_code == 422 and "script" not in reply.text
    assert str(pictures[1]) not in reply.text


ODD_NUMBERS = {
    "zero": "0",
    "one too many": "12",
    "negative": "-1",
    "a fraction": "1.0",
    "an exponent": "1e0",
    "5000 digits": "9" * 5000,
    "2 to the 64": str(2**64),
    "a letter": "1x",
    "sql": "1%20OR%201=1",
    "NUL": "1%00",
    "by name": "a.png",
    "up": "../../etc/passwd",
    "up, encoded": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "up, encoded twice": "%252e%252e%252fproject.json",
    "absolute": "/etc/passwd",
    "backslash": "..%5c..%5canswers.db",
}


def test_pictures_are_sent_by_number_only(pictures: tuple[Project, Path]) -> None:
    project, _ = pictures
    assert len(project.item_names) == 11
    with serving(project) as address:
        paths = {name: f"/items/{number}" for name, number in {"": "11", **ODD_NUMBERS}.items()}
        statuses = {
            name: exchange(port_of(address), request("GET", path)).status
            for name, path in paths.items()
        }
    assert statuses == {"": 422, **dict.fromkeys(ODD_NUMBERS, 404)}  # the last one is short.png


def test_pictures_in_an_archive_come_to_many_at_once(tmp_path: Path) -> None:
    expected = []
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for k in range(8):
            file = io.BytesIO()
            noise = np.random.default_rng(k).integers(0, 256, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(noise).save(file, "PNG")
            archive.writestr(f"{k}.png", file.getvalue())
            expected.append(file.getvalue())
    (tmp_path / "classes.txt").write_text("one\n")
    project = create_project(
        tmp_path / "project", tmp_path / "photos.zip", tmp_path / "classes.txt", rate=1
    )

    with serving(project) as address:

        def fetch(row: int) -> bytes:
            return exchange(port_of(address), request("GET", f"/items/{row + 1}")).content

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(fetch, [*range(8)] * 5))
    project.engine.dispose()
    assert got == expected * 5


# Over a socket


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
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
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


@dataclass(frozen=True)
class Site:
    """A project where people are at work, served with and without a token."""

    project: Project
    port: int
    guarded: int  # port where a token is needed
    held: int  # a card that Ann has
    answered: int  # one that she answered, with the key key-of-ann
    bobs: int  # one that Bob has; he answered another with the key key-of-bob
    stale: int  # one that was Carol's, and is now Ann's


@contextmanager
def running_site(home: Path, database: str | None) -> Iterator[Site]:
    """Serve a project where Ann, Bob and Carol have been at work."""
    project = text_project(home, database)
    now = time.time()
    ann, bob, carol = (Asker(n, f"tab-of-{n.lower()}") for n in ("Ann", "Bob", "Carol"))
    times: dict[str, Any] = {"now": now, "lease": 3600.0}
    with project.writing() as connection:
        carols = lease_cards(connection, carol, now=now - 100, lease=50)
        anns = lease_cards(connection, ann, **times)
        assert carols == anns
        bobs = lease_cards(connection, bob, **times)
        kept = SentAnswer(anns[0]["card"], "no", "key-of-ann")
        undone = SentAnswer(anns[1]["card"], "no", "key-undone")
        store_answers(connection, ann, [kept, undone], **times)
        undo_answers(connection, ann, ["key-undone"], **times)
        of_bob = SentAnswer(bobs[0]["card"], "maybe", "key-of-bob")
        store_answers(connection, bob, [of_bob], **times)
    project.write_setting("token_digest", digest_token(TOKEN))
    with serving(project) as free, serving(project, token_digest=digest_token(TOKEN)) as guarded:
        numbers = (anns[2]["card"], anns[0]["card"], bobs[1]["card"], anns[3]["card"])
        yield Site(project, port_of(free), port_of(guarded), *numbers)
    project.engine.dispose()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), None) as site:
        yield site


@pytest.fixture(scope="module")
def postgresql_site(
    tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL
) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), postgresql.new_database()) as site:
        yield site


@pytest.fixture(scope="module", params=["site", "postgresql_site"])
def each_site(request: pytest.FixtureRequest) -> Site:
    site: Site = request.getfixturevalue(request.param)
    return site


Build = Callable[[Site], bytes]
WITH_TOKEN = f"comes_name=Ann; comes_token={TOKEN}"


def get(path: str, **headers: str | None) -> Build:
    return lambda site: request("GET", path, **headers)


def post(path: str, body: Any, **headers: str | None) -> Build:
    return lambda site: request("POST", path, body, **headers)


def answering(
    which: str = "held",
    *,
    tab: Any = TAB,
    headers: dict[str, str | None] | None = None,
    **changed: Any,
) -> Build:
    """Return a request that would be stored, but for what is changed."""

    def build(site: Site) -> bytes:
        given = {"card": getattr(site, which), "answer": "no", "key": KEY, "seconds": 1.0}
        body = {"tab": tab, "answers": [given | changed]}
        return request("POST", "/api/answers", body, **(headers or {}))

    return build


def literally(field: str, value: str) -> Build:
    """Return an answer with a field that `json.dumps` would not write."""

    def build(site: Site) -> bytes:
        given = {"card": f"{site.held}", "answer": '"no"', "key": f'"{KEY}"', "seconds": "1.0"}
        fields = ",".join(f'"{name}":{text}' for name, text in (given | {field: value}).items())
        return request(
            "POST", "/api/answers", f'{{"tab":"{TAB}","answers":[{{{fields}}}]}}'.encode()
        )

    return build


def chunked(size: int) -> Build:
    """Return an answer in chunks, with white space in front that makes it large."""

    def build(site: Site) -> bytes:
        whole = request(
            "POST", "/api/answers", b"", Content_Length=None, Transfer_Encoding="chunked"
        )
        body = b" " * size + answering()(site).split(b"\r\n\r\n", 1)[1]
        parts = [body[k : k + 4096] for k in range(0, len(body), 4096)]
        return whole + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"

    return build


def guarded(build: Build) -> Build:
    """Mark a request as one for the server that wants a token."""
    return _Guarded(build)


class _Guarded:
    def __init__(self, build: Build) -> None:
        self._build = build

    def __call__(self, site: Site) -> bytes:
        return self._build(site)


EVIL = "http://evil.example"
MULTIPART = "multipart/form-data; boundary=x"
FORM = "application/x-www-form-urlencoded"
LONG = "a" * 10_000

# Refused before the database is asked, whichever it is.
HOSTILE_REQUESTS: dict[str, tuple[Build, int]] = {
    # paths
    "static: up": (get("/static/../server.py"), 404),
    "static: up, encoded": (get("/static/%2e%2e%2fserver.py"), 404),
    "static: up, encoded twice": (get("/static/%252e%252e%252fserver.py"), 404),
    "static: up, backslash": (get("/static/..%5cserver.py"), 404),
    "static: absolute": (get("/static//etc/passwd"), 404),
    "static: absolute, encoded": (get("/static/%2fetc%2fpasswd"), 404),
    "static: NUL": (get("/static/annotate.js%00.css"), 404),
    "static: the folder": (get("/static/"), 404),
    "static: overlong utf-8": (get("/static/%c0%ae%c0%ae%c0%afserver.py"), 404),
    "unknown path": (get("/admin"), 404),
    "unknown command": (post("/api/drop", {"tab": TAB}), 404),
    "very long address": (get(f"/{'a' * 30_000}"), 404),
    "trace of the database": (get("/answers.db"), 404),
    # methods
    "GET of a command": (get("/api/answers"), 405),
    "HEAD of a command": (lambda site: request("HEAD", "/api/answers"), 405),
    "PUT": (lambda site: request("PUT", "/api/answers", {"tab": TAB}), 405),
    "DELETE": (lambda site: request("DELETE", "/api/answers", {"tab": TAB}), 405),
    "PATCH of a page": (lambda site: request("PATCH", "/lead", {}), 405),
    "POST to a page": (post("/lead", {}), 405),
    "OPTIONS, as before a request across sites": (
        lambda site: request("OPTIONS", "/api/answers", Origin=EVIL),
        403,
    ),
    "a method nobody knows": (lambda site: request("BREW", "/api/answers", {}), 405),
    "a method in another's clothes": (
        lambda site: request("GET", "/api/answers", X_HTTP_Method_Override="POST"),
        405,
    ),
    # where it comes from
    "other site": (answering(headers={"Origin": EVIL}), 403),
    "other port": (answering(headers={"Origin": "http://127.0.0.1:9"}), 403),
    "our name inside another": (
        answering(headers={"Origin": "http://127.0.0.1.evil.example"}),
        403,
    ),
    "our name as a user": (answering(headers={"Origin": "http://127.0.0.1@evil.example"}), 403),
    "origin null": (answering(headers={"Origin": "null"}), 403),
    "origin empty": (answering(headers={"Origin": ""}), 403),
    "origin no address": (answering(headers={"Origin": "http://["}), 403),
    "cross-site": (answering(headers={"Sec-Fetch-Site": "cross-site"}), 403),
    "same-site": (answering(headers={"Sec-Fetch-Site": "same-site"}), 403),
    "other name (rebinding)": (answering(headers={"Host": "evil.example"}), 421),
    "other name that begins as ours": (answering(headers={"Host": "127.0.0.1.evil.example"}), 421),
    "other name, ours as a user": (answering(headers={"Host": "127.0.0.1@evil.example"}), 421),
    "name that is none": (answering(headers={"Host": "["}), 421),
    "page by another name": (get("/lead", Host="evil.example"), 421),
    "static file by another name": (get("/static/annotate.js", Host="evil.example"), 421),
    # kinds of body
    "text/plain": (answering(headers={"Content-Type": "text/plain"}), 415),
    "text that says json": (
        answering(headers={"Content-Type": "text/plain; application/json"}),
        415,
    ),
    "form": (post("/api/join", b"name=Eve", Content_Type=FORM), 415),
    "multipart": (post("/api/join", b"--x--", Content_Type=MULTIPART), 415),
    "no kind": (answering(headers={"Content-Type": None}), 415),
    "no body": (post("/api/answers", b""), 400),
    "not json": (post("/api/answers", b"tab=x"), 400),
    "json cut off": (post("/api/answers", b'{"tab": "'), 400),
    "two jsons": (post("/api/answers", b"{}{}"), 400),
    "invalid utf-8": (post("/api/join", b'{"name": "\xff\xfe"}'), 400),
    "half a surrogate": (post("/api/join", b'{"name": "\\ud800"}'), 422),
    "half a surrogate as a field": (post("/api/join", b'{"\\ud800": 1}'), 422),
    "30000 brackets": (post("/api/answers", b"[" * 30_000), 400),
    "10000 objects": (
        post("/api/answers", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        400,
    ),
    "a number of 5000 digits": (literally("card", "9" * 5000), 400),
    "a list": (post("/api/answers", []), 422),
    "null": (post("/api/answers", b"null"), 422),
    "a string": (post("/api/join", "Eve"), 422),
    # sizes
    "70 kB": (post("/api/answers", b" " * 70_000), 413),
    "70 kB in chunks": (chunked(70_000), 413),
    "9 GB, as it says": (post("/api/answers", b"{}", Content_Length="9000000000"), 413),
    # what a body holds
    "card as text": (answering(card="1"), 422),
    "card as bool": (answering(card=True), 422),
    "card as float": (answering(card=1.0), 422),
    "card as null": (answering(card=None), 422),
    "card as list": (answering(card=[1]), 422),
    "key as number": (answering(key=12345678), 422),
    "tab with a blank": (answering(tab="tab of ann"), 422),
    "tab empty": (answering(tab=""), 422),
    "tab as list": (answering(tab=[TAB]), 422),
    "unknown word": (answering(answer="yes"), 422),
    "known word, large": (answering(answer="NO"), 422),
    "word as bool": (answering(answer=False), 422),
    "seconds negative": (answering(seconds=-0.1), 422),
    "seconds of two days": (answering(seconds=172_800), 422),
    "seconds as text": (answering(seconds="1"), 422),
    "seconds as bool": (answering(seconds=True), 422),
    "a field more": (answering(is_done=True), 422),
    "a field more outside": (
        lambda site: request("POST", "/api/cards", {"tab": TAB, "annotator": "Bob"}),
        422,
    ),
    "a field less": (post("/api/answers", {"tab": TAB}), 422),
    "no answers": (post("/api/answers", {"tab": TAB, "answers": []}), 422),
    "301 answers": (
        post(
            "/api/answers",
            {
                "tab": TAB,
                "answers": [{"card": k, "answer": "no", "key": f"{KEY}{k}"} for k in range(1, 302)],
            },
        ),
        422,
    ),
    "undo of nothing": (post("/api/undo", {"tab": TAB, "keys": []}), 422),
    "undo of 301": (
        post("/api/undo", {"tab": TAB, "keys": [f"{KEY}{k}" for k in range(301)]}),
        422,
    ),
    "cards in an unknown mode": (post("/api/cards", {"tab": TAB, "mode": "all"}), 422),
    "nobody": (answering(headers={"Cookie": None}), 403),
    "nobody asks for cards": (post("/api/cards", {"tab": "tab-of-eve"}, Cookie=None), 403),
    "name of blanks": (
        post("/api/cards", {"tab": "tab-of-eve"}, Cookie="comes_name=%20%20"),
        403,
    ),
    "joining with blanks": (post("/api/join", {"name": "   "}), 422),
    "joining with a number": (post("/api/join", {"name": 7}), 422),
    "card zero": (answering(card=0), 422),
    "negative card": (answering(card=-1), 422),
    # the token
    "no token": (guarded(answering()), 401),
    "no token, page": (guarded(get("/lead")), 401),
    "no token, picture": (guarded(get("/items/1")), 401),
    "no token, unknown path": (guarded(get("/admin")), 401),
    "wrong token": (guarded(answering(headers={"Cookie": "comes_name=Ann; comes_token=x"})), 401),
    "empty token": (guarded(answering(headers={"Cookie": "comes_name=Ann; comes_token="})), 401),
    "half the token": (
        guarded(answering(headers={"Cookie": f"comes_name=Ann; comes_token={TOKEN[:-1]}"})),
        401,
    ),
    "the digest as token": (
        guarded(
            answering(headers={"Cookie": f"comes_name=Ann; comes_token={digest_token(TOKEN)}"})
        ),
        401,
    ),
    "token of other letters": (
        guarded(answering(headers={"Cookie": "comes_name=Ann; comes_token=\xff"})),
        401,
    ),
    "wrong token in the address": (guarded(get("/?token=x")), 401),
    "empty token in the address": (guarded(get("/?token=")), 401),
    "token in the body": (guarded(post("/api/join", {"name": "Ann", "token": TOKEN})), 401),
    "token in another header": (
        guarded(answering(headers={"Authorization": f"Bearer {TOKEN}"})),
        401,
    ),
    "token in the address of a command": (
        guarded(
            lambda site: answering()(site).replace(
                b"/api/answers", f"/api/answers?token={TOKEN}".encode()
            )
        ),
        401,
    ),
    "token, from another site": (
        guarded(answering(headers={"Cookie": WITH_TOKEN, "Origin": EVIL})),
        403,
    ),
    "token, origin null without a name of ours": (
        guarded(
            lambda site: (
                answering(headers={"Cookie": WITH_TOKEN, "Origin": "null", "Host": None})(site)
            ).replace(b"HTTP/1.1", b"HTTP/1.0")
        ),
        403,
    ),
    "token, text/plain": (
        guarded(answering(headers={"Cookie": WITH_TOKEN, "Content-Type": "text/plain"})),
        415,
    ),
    "token, up": (guarded(get("/static/%2e%2e%2fserver.py", Cookie=WITH_TOKEN)), 404),
}


# Refused by the database, or values that a database may choke on.
HOSTILE_VALUES: dict[str, tuple[Build, int]] = {
    # what an answer holds
    "no such card": (answering(card=10_000), 404),
    "huge card": (answering(card=2**31), 422),
    "card of 64 bits": (answering(card=2**63), 422),
    "card as text of sql": (answering(card="1; DROP TABLE answers"), 422),
    "card of Bob": (answering("bobs"), 409),
    "card that nobody has": (answering(card=72), 409),
    "card that was Carol's": (
        answering("stale", tab="tab-of-carol", headers={"Cookie": "comes_name=Carol"}),
        409,
    ),
    "card of Ann's, in the tab of Bob": (answering(tab="tab-of-bob"), 409),
    "card of Ann's, by Bob, in her tab": (answering(headers={"Cookie": "comes_name=Bob"}), 409),
    "card that is answered": (answering("answered"), 409),
    "key of another card": (answering(key="key-of-ann"), 409),
    "key of another answer": (answering("answered", key="key-of-ann", answer="maybe"), 409),
    "key of somebody else": (answering(key="key-of-bob"), 409),
    "key of what was taken back, for another card": (answering(key="key-undone"), 409),
    "key with a quote": (answering(key="key'; DROP--"), 422),
    "key with a line end": (answering(key="fresh-key\n"), 422),
    "key with NUL": (answering(key="fresh-key\0"), 422),
    "key of other letters": (answering(key="kéy-of-ann"), 422),
    "key too short": (answering(key="short"), 422),
    "key too long": (answering(key="k" * 65), 422),
    "tab too long": (answering(tab="t" * 65), 422),
    "seconds NaN": (literally("seconds", "NaN"), 422),
    "seconds Infinity": (literally("seconds", "Infinity"), 422),
    "seconds 1e999": (literally("seconds", "1e999"), 422),
    "a card twice": (
        lambda site: request(
            "POST",
            "/api/answers",
            {
                "tab": TAB,
                "answers": [
                    {"card": site.held, "answer": "no", "key": f"{KEY}{k}"} for k in range(2)
                ],
            },
        ),
        422,
    ),
    "a key twice": (
        lambda site: request(
            "POST",
            "/api/answers",
            {
                "tab": TAB,
                "answers": [
                    {"card": card, "answer": "no", "key": KEY} for card in (site.held, site.stale)
                ],
            },
        ),
        422,
    ),
    "a good answer beside one of Bob's cards": (
        lambda site: request(
            "POST",
            "/api/answers",
            {
                "tab": TAB,
                "answers": [
                    {"card": card, "answer": "no", "key": f"{KEY}{card}"}
                    for card in (site.held, site.bobs)
                ],
            },
        ),
        409,
    ),
    # taking back
    "undo of Bob's answer": (post("/api/undo", {"tab": TAB, "keys": ["key-of-bob"]}), 404),
    "undo of Bob's answer, beside one's own": (
        post("/api/undo", {"tab": TAB, "keys": ["key-of-ann", "key-of-bob"]}),
        404,
    ),
    "undo of Bob's answer in his tab": (
        post("/api/undo", {"tab": "tab-of-bob", "keys": ["key-of-bob"]}),
        404,
    ),
    "undo of what is not there": (post("/api/undo", {"tab": TAB, "keys": ["key-of-nobody"]}), 404),
    "undo by a key with %": (post("/api/undo", {"tab": TAB, "keys": ["key-of-%"]}), 422),
    # asking
    "cards of a tab that is a pattern": (post("/api/cards", {"tab": "tab-of-%"}), 422),
    # names
    "name of control characters": (answering(headers={"Cookie": "comes_name=Ann%00%0a"}), 403),
    "name that turns the line": (answering(headers={"Cookie": "comes_name=%e2%80%aeAnn"}), 403),
    "name of 10 kB": (
        post("/api/cards", {"tab": "tab-of-eve"}, Cookie=f"comes_name={LONG}"),
        403,
    ),
    "joining with control characters": (post("/api/join", {"name": "Eve\x1b[2J"}), 422),
    "joining with a line end": (post("/api/join", {"name": "Eve\r\nSet-Cookie: a=b"}), 422),
    "joining with 10 kB": (post("/api/join", {"name": LONG}), 422),
}


def check_refusal(site: Site, build: Build, status: int) -> None:
    """Send a request; it is refused with a status, and changes nothing."""
    before = dump(site.project)
    reply = exchange(site.guarded if isinstance(build, _Guarded) else site.port, build(site))
    assert reply.status == status
    assert dump(site.project) == before
    for header, value in HEADERS.items():
        assert reply.headers[header.lower()] == value
    assert "set-cookie" not in reply.headers
    if reply.content:
        assert set(json.loads(reply.content)) == {"error", "card"}


@pytest.mark.parametrize("name", HOSTILE_REQUESTS | HOSTILE_VALUES)
def test_what_is_hostile_is_refused_and_changes_nothing(site: Site, name: str) -> None:
    check_refusal(site, *(HOSTILE_REQUESTS | HOSTILE_VALUES)[name])


@pytest.mark.parametrize("name", HOSTILE_VALUES)
def test_hostile_values_are_refused_on_postgresql_too(postgresql_site: Site, name: str) -> None:
    check_refusal(postgresql_site, *HOSTILE_VALUES[name])


# One of each kind. Mostly the HTTP parser speaks before we do, or nobody is left to speak to.
BROKEN: dict[str, Build] = {
    "less than it says": answering(headers={"Content-Length": "5000"}),
    "length that is not a number": answering(headers={"Content-Length": "0x10"}),
    "length and chunks": answering(headers={"Transfer-Encoding": "chunked"}),
    "chunks without an end": lambda site: chunked(0)(site)[:-5],
    "NUL in a header": answering(headers={"X-A": "b\0"}),
    "not HTTP": lambda site: b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "headers of 1 MB": get("/lead", X_A="a" * 1_000_000),
    "nothing": lambda site: b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_a_request_changes_nothing(
    site: Site, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    before = dump(site.project)
    assert exchange(site.port, BROKEN[name](site), breaks_off=True).status in (0, 400)
    assert exchange(site.port, request("GET", "/join")).status == 200  # it serves as before
    assert dump(site.project) == before
    logging.getLogger("uvicorn.error").removeHandler(caplog.handler)
    assert [record for record in caplog.records if record.exc_info] == []  # no trace of a crash


def test_the_tables_hold_only_the_hostile_part(each_site: Site) -> None:
    """The same requests without what makes them hostile are stored."""
    site = each_site
    for port, cookie in ((site.port, "comes_name=Ann"), (site.guarded, WITH_TOKEN)):
        for build in (answering(headers={"Cookie": cookie}), chunked(0)):
            sent = build(site).replace(b"comes_name=Ann\r\n", cookie.encode() + b"\r\n")
            sent = sent.replace(b"\r\nCookie", b"\r\nOrigin: http://127.0.0.1\r\nCookie")
            before = dump(site.project)
            assert exchange(port, sent).status == 200
            assert len(dump(site.project)["answers"]) == len(before["answers"]) + 1
            undo = {"tab": TAB, "keys": [KEY]}
            assert exchange(port, request("POST", "/api/undo", undo, Cookie=cookie)).status == 200
            with site.project.writing() as connection:
                connection.execute(answers.delete().where(answers.c.key == KEY))


# Pages of another name or project


def test_a_page_that_was_opened_by_another_name_is_told_to_reload(
    client: TestClient, project: Project
) -> None:
    join(client)
    page = re.search(r'data-page="([^"]+)"', client.get("/").text)
    assert page is not None
    headers = {"X-Comes-Page": page[1]}
    body = {"tab": TAB}
    assert client.post("/api/cards", json=body, headers=headers).status_code == 200
    join(client, "Bob")  # in another tab, which shares the cookie
    before = dump(project)
    reply = client.post("/api/cards", json=body, headers=headers)
    assert reply.status_code == 403 and "reload" in reply.json()["error"]
    join(client, "Ann")
    elsewhere = {"X-Comes-Page": "another-project-Ann"}
    assert client.post("/api/cards", json=body, headers=elsewhere).status_code == 403
    assert dump(project) == before


def test_a_name_is_spelled_as_before(client: TestClient) -> None:
    join(client, "Anna Bell")
    card = lease(client)[0]["card"]
    assert answer(client, card, "no", "key-of-anna-1").status_code == 200
    for other in ("anna bell", "  ANNA   Bell "):
        assert client.post("/api/join", json={"name": other}).json() == {"name": "Anna Bell"}


# The token


def test_a_loopback_address_needs_no_token(project: Project) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.0.0.2"):
        assert find_token(project, host) == (None, None)
        name = f"[{host}]" if ":" in host else host
        with TestClient(make_app(project), base_url=f"http://{name}") as client:
            assert client.get("/join").status_code == 200


def test_another_address_needs_the_token_which_is_kept_as_a_digest_only(project: Project) -> None:
    known, token = find_token(project, "0.0.0.0")
    assert token is not None and known == digest_token(token) and len(token) >= 40
    assert find_token(project, "192.168.1.5") == (known, None)  # the same one, shown once
    assert token not in repr(dump(project))
    for file in project.folder.iterdir():
        assert token.encode() not in file.read_bytes()


def test_the_address_with_the_token_lets_a_browser_in(project: Project) -> None:
    known, token = find_token(project, "0.0.0.0")
    app = make_app(project, token_digest=known)
    with TestClient(app, base_url="http://team.example:8000", follow_redirects=False) as client:
        page = client.get("/", headers={"accept": "text/html"})
        assert page.status_code == 401 and "A token is needed" in page.text
        assert client.get("/static/annotate.css").status_code == 200  # that page wants it
        reply = client.get("/", params={"token": token})
        assert reply.status_code == 200 and 'content="0; url=/"' in reply.text
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert client.get("/").headers["location"] == "/join"
        join(client)
        assert lease(client)
        client.cookies.set("of_another_program", '{"a": [1, "b"]}')
        assert client.get("/").status_code == 200


def test_behind_a_proxy_loopback_wants_the_token_too(project: Project) -> None:
    known, token = find_token(project, "127.0.0.1", is_wanted=True)
    assert known and token
    assert find_token(project, "127.0.0.1", is_wanted=True) == (known, None)


def test_a_new_token_ends_the_old(project: Project) -> None:
    _, old = find_token(project, "0.0.0.0")
    known, new = find_token(project, "0.0.0.0", new=True)
    assert new and new != old
    with TestClient(make_app(project, token_digest=known), base_url="http://team.example") as team:
        team.cookies.set("comes_token", old or "")
        assert team.get("/join").status_code == 401
        assert team.get("/", params={"token": old or ""}).status_code == 401
        team.cookies.set("comes_token", new)
        assert team.get("/join").status_code == 200


def test_how_much_of_a_token_is_right_cannot_be_timed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []
    real = hmac.compare_digest

    def compare(a: str, b: str) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    app = make_app(project, token_digest=digest_token(TOKEN))
    with TestClient(app, base_url="http://team.example") as client:
        client.cookies.set("comes_token", "wrong")
        assert client.get("/lead").status_code == 401
    assert compared == [(digest_token("wrong"), digest_token(TOKEN))]


def test_the_command_shows_the_token_once_and_makes_a_new_one_on_demand(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[str | None] = []

    def note(project: Project, listener: socket.socket, token_digest: str | None, *_: Any) -> None:
        listener.close()
        project.engine.dispose()
        served.append(token_digest)

    def start(*options: str) -> str:
        """Return the address that the command prints."""
        command = ["annotate", "serve", str(project.folder), "--host", "0.0.0.0", "--port", "0"]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0
        return result.stdout.splitlines()[0].split(": ", 1)[1]

    monkeypatch.setattr(annotate, "serve", note)
    first, again, renewed = start(), start(), start("--new-token")
    token = re.compile(r"\?token=([\w-]{40,})$")
    assert token.search(first) and not token.search(again) and token.search(renewed)
    digests = [digest_token(token.findall(address)[0]) for address in (first, renewed)]
    assert served == [digests[0], digests[0], digests[1]] and digests[0] != digests[1]
    assert project.read_setting("token_digest") == digests[1]
