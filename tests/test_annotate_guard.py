"""What the annotation page refuses: hostile and broken requests, and all without the token."""

import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient
from typer.testing import CliRunner

from annotation_site import (
    HERE,
    KEY,
    TAB,
    TOKEN,
    dump,
    exchange,
    join,
    lease,
    port_of,
    request,
    text_project,
)
from comes.annotate import Project, serve_in_thread
from comes.annotate.cards import Asker, SentAnswer, lease_cards, store_answers, undo_answers
from comes.annotate.links import digest_token, list_links
from comes.annotate.schema import answers
from comes.annotate.web import server
from comes.annotate.web.app import HEADERS
from comes.annotate.web.server import find_links, make_app
from comes.cli import app


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
def running_site(home: Path, database: str | None = None) -> Iterator[Site]:
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
    with (
        serve_in_thread(project) as free,
        serve_in_thread(project, needs_token=True) as guarded,
    ):
        numbers = (anns[2]["card"], anns[0]["card"], bobs[1]["card"], anns[3]["card"])
        yield Site(project, port_of(free), port_of(guarded), *numbers)
    project.engine.dispose()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


Build = Callable[[Site], bytes]
WITH_TOKEN = f"comes_name=Ann; comes_token={TOKEN}"
EVIL = "http://evil.example"
LONG = "a" * 10_000


def send(method: str, path: str, body: Any = None, **headers: str | None) -> Build:
    return lambda site: request(method, path, body, **headers)


def get(path: str, **headers: str | None) -> Build:
    return send("GET", path, **headers)


def post(path: str, body: Any, **headers: str | None) -> Build:
    return send("POST", path, body, **headers)


def answering(*which: str, tab: Any = TAB, headers: Any = None, **changed: Any) -> Build:
    """Return answers that would be stored, but for what is changed; by default to `held`."""

    def build(site: Site) -> bytes:
        numbers = [getattr(site, one) for one in which or ("held",)]
        keys = [KEY if number == 0 else f"{KEY}{number}" for number in range(len(numbers))]
        given = [
            {"card": card, "answer": "no", "key": key, "seconds": 1.0} | changed
            for card, key in zip(numbers, keys, strict=True)
        ]
        return request("POST", "/api/answers", {"tab": tab, "answers": given}, **(headers or {}))

    return build


def note(which: str, tab: str = TAB, text: str = "x", name: str = "Ann") -> Build:
    """Return a note on one of the cards of a site."""
    return lambda site: request(
        "POST",
        "/api/notes",
        {"tab": tab, "card": getattr(site, which), "text": text},
        Cookie=f"comes_name={name}",
    )


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
        whole = post("/api/answers", b"", Content_Length=None, Transfer_Encoding="chunked")(site)
        body = b" " * size + answering()(site).split(b"\r\n\r\n", 1)[1]
        parts = [body[k : k + 4096] for k in range(0, len(body), 4096)]
        return whole + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"

    return build


def replacing(build: Build, old: bytes, new: bytes) -> Build:
    return lambda site: build(site).replace(old, new)


def posting(path: str, **changed: Any) -> Build:
    return post(path, {"tab": TAB} | changed)


def joining(name: Any) -> Build:
    return post("/api/join", {"name": name})


Table = dict[tuple[int, str], Build]  # by the status that a request gets, and why
PATHS: Table = {
    (404, path[:60]): get(path)
    for path in (
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/static/%252e%252e%252fserver.py",
        "/static/..%5cserver.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/annotate.js%00.css",
        "/static/",
        "/static/%c0%ae%c0%ae%c0%afserver.py",
        "/admin",
        f"/{'a' * 30_000}",
        "/answers.db",
    )
} | {(404, "unknown command"): post("/api/drop", {"tab": TAB})}
METHODS: Table = {
    (405, "GET of a command"): get("/api/answers"),
    (405, "HEAD of a command"): send("HEAD", "/api/answers"),
    (405, "PUT"): send("PUT", "/api/answers", {"tab": TAB}),
    (405, "DELETE"): send("DELETE", "/api/answers", {"tab": TAB}),
    (405, "PATCH of a page"): send("PATCH", "/lead", {}),
    (405, "POST to a page"): post("/lead", {}),
    (403, "OPTIONS, as before a request across sites"): send(
        "OPTIONS", "/api/answers", Origin=EVIL
    ),
    (405, "a method nobody knows"): send("BREW", "/api/answers", {}),
    (405, "another's clothes"): get("/api/answers", X_HTTP_Method_Override="POST"),
}
ORIGINS: Table = {
    (status, f"{header} {value}"): answering(headers={header: value})
    for status, header, values in (
        (403, "Origin", [EVIL, "http://127.0.0.1:9", f"http://127.0.0.1.{EVIL[7:]}", "null", ""]),
        (403, "Origin", ["http://127.0.0.1@evil.example", "http://["]),
        (403, "Sec-Fetch-Site", ["cross-site", "same-site"]),
        (421, "Host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "["]),
    )
    for value in values
} | {
    (421, "page by another name"): get("/lead", Host="evil.example"),
    (421, "static file by another name"): get("/static/annotate.js", Host="evil.example"),
}
BODIES: Table = {
    (415, "text/plain"): answering(headers={"Content-Type": "text/plain"}),
    (415, "text that says json"): answering(
        headers={"Content-Type": "text/plain; application/json"}
    ),
    (415, "form"): post("/api/join", b"name=Eve", Content_Type="application/x-www-form-urlencoded"),
    (415, "multipart"): post("/api/join", b"--x--", Content_Type="multipart/form-data; boundary=x"),
    (415, "no kind"): answering(headers={"Content-Type": None}),
    (400, "no body"): post("/api/answers", b""),
    (400, "not json"): post("/api/answers", b"tab=x"),
    (400, "json cut off"): post("/api/answers", b'{"tab": "'),
    (400, "two jsons"): post("/api/answers", b"{}{}"),
    (400, "invalid utf-8"): post("/api/join", b'{"name": "\xff\xfe"}'),
    (422, "half a surrogate"): post("/api/join", b'{"name": "\\ud800"}'),
    (422, "the other half"): post("/api/join", b'{"name": "A\\udfff"}'),
    (422, "half a surrogate as a field"): post("/api/join", b'{"\\ud800": 1}'),
    (422, "NUL"): post("/api/join", b'{"name": "A\\u0000"}'),
    (422, "NUL as a field"): post("/api/join", b'{"A\\u0000": 1}'),
    (422, "NUL in a note"): note("held", text="a\0b"),
    (400, "30000 brackets"): post("/api/answers", b"[" * 30_000),
    (400, "10000 objects"): post("/api/answers", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    (400, "a number of 5000 digits"): literally("card", "9" * 5000),
    (422, "a list"): post("/api/answers", []),
    (422, "null"): post("/api/answers", b"null"),
    (422, "a string"): post("/api/join", "Eve"),
    (413, "70 kB"): post("/api/answers", b" " * 70_000),
    (413, "70 kB in chunks"): chunked(70_000),
    (413, "9 GB, as it says"): post("/api/answers", b"{}", Content_Length="9000000000"),
}
ODD_FIELDS: list[tuple[str, list[Any]]] = [
    ("card", ["1", True, 1.0, None, [1], 0, -1]),
    ("key", [12345678]),
    ("answer", ["perhaps", "NO", False]),
    ("seconds", [-0.1, 172_800, "1", True]),
    ("is_done", [True]),  # a field more
]
FIELDS: Table = {
    (422, f"{field} {value!r}"): answering(**{field: value})
    for field, values in ODD_FIELDS
    for value in values
} | {
    (422, "tab with a blank"): answering(tab="tab of ann"),
    (422, "tab empty"): answering(tab=""),
    (422, "tab as list"): answering(tab=[TAB]),
    (422, "a field more outside"): posting("/api/cards", annotator="Bob"),
    (422, "a field less"): posting("/api/answers"),
    (422, "no answers"): posting("/api/answers", answers=[]),
    (422, "301 answers"): posting(
        "/api/answers",
        answers=[{"card": k, "answer": "no", "key": f"{KEY}{k}"} for k in range(1, 302)],
    ),
    (422, "3001 cards at hand"): posting("/api/cards", has=list(range(1, 3002))),
    (422, "cards at hand as text"): posting("/api/cards", has="1"),
    (422, "cards in an unknown mode"): posting("/api/cards", mode="all"),
    (422, "release with card 0"): posting("/api/release", keep=[0]),
    (422, "release of all tabs"): posting("/api/release", tab=["a", "b"]),
    (422, "release of a closed tab"): posting("/api/release", tab="closed by Ann"),
    (422, "note of 2001 characters"): note("held", text="x" * 2001),
    (404, "note on no card"): posting("/api/notes", card=10_000, text=""),
    (422, "undo of nothing"): posting("/api/undo", keys=[]),
    (422, "undo of 301"): posting("/api/undo", keys=[f"{KEY}{k}" for k in range(301)]),
    (403, "history of nobody"): get("/api/history", Cookie=None),
    (403, "nobody"): answering(headers={"Cookie": None}),
    (403, "nobody asks for cards"): post("/api/cards", {"tab": "tab-of-eve"}, Cookie=None),
    (403, "name of blanks"): post("/api/cards", {"tab": "tab-of-eve"}, Cookie="comes_name=%20%20"),
    (403, "name of the lead"): post(
        "/api/cards", {"tab": "tab-of-eve"}, Cookie="comes_name=The%20Lead"
    ),
    (422, "joining with blanks"): joining("   "),
    (422, "joining with a number"): joining(7),
}
# These go to the server that wants a token.
TOKENS: Table = {
    (401, "no token"): answering(),
    (401, "no token, page"): get("/lead"),
    (401, "no token, picture"): get("/items/1"),
    (401, "no token, unknown path"): get("/admin"),
    **{
        (401, f"token {token}"): answering(
            headers={"Cookie": f"comes_name=Ann; comes_token={token}"}
        )
        for token in ("x", "", TOKEN[:-1], digest_token(TOKEN), "\xff")
    },
    (401, "wrong token in the address"): get("/?token=x"),
    (401, "empty token in the address"): get("/?token="),
    (401, "token in the body"): post("/api/join", {"name": "Ann", "token": TOKEN}),
    (401, "token in another header"): answering(headers={"Authorization": f"Bearer {TOKEN}"}),
    (401, "token in the address of a command"): replacing(
        answering(), b"/api/answers", f"/api/answers?token={TOKEN}".encode()
    ),
    (403, "token, from another site"): answering(headers={"Cookie": WITH_TOKEN, "Origin": EVIL}),
    (403, "token, origin null without a name of ours"): replacing(
        answering(headers={"Cookie": WITH_TOKEN, "Origin": "null", "Host": None}),
        b"HTTP/1.1",
        b"HTTP/1.0",
    ),
    (415, "token, text/plain"): answering(
        headers={"Cookie": WITH_TOKEN, "Content-Type": "text/plain"}
    ),
    (404, "token, up"): get("/static/%2e%2e%2fserver.py", Cookie=WITH_TOKEN),
}
# Refused by the database, or values that a database may choke on.
VALUES: Table = {
    (404, "no such card"): answering(card=10_000),
    **{
        (422, f"{field} {str(value)[:30]!r}"): answering(**{field: value})
        for field, values in (
            ("card", [2**31, 2**63, "1; DROP TABLE answers"]),
            (
                "key",
                ["key'; DROP--", "fresh-key\n", "fresh-key\0", "kéy-of-ann", "short", "k" * 65],
            ),
            ("tab", ["t" * 65]),
        )
        for value in values
    },
    **{
        (422, f"seconds {value}"): literally("seconds", value)
        for value in ("NaN", "Infinity", "1e999")
    },
    (409, "card of Bob"): answering("bobs"),
    (409, "card that nobody has"): answering(card=72),
    (409, "card that was Carol's"): answering(
        "stale", tab="tab-of-carol", headers={"Cookie": "comes_name=Carol"}
    ),
    (409, "card of Ann's, in the tab of Bob"): answering(tab="tab-of-bob"),
    (409, "card of Ann's, by Bob, in her tab"): answering(headers={"Cookie": "comes_name=Bob"}),
    (409, "card that is answered"): answering("answered"),
    (409, "key of another card"): answering(key="key-of-ann"),
    (409, "key of another answer"): answering("answered", key="key-of-ann", answer="maybe"),
    (409, "key of somebody else"): answering(key="key-of-bob"),
    (409, "key of what was taken back, for another card"): answering(key="key-undone"),
    (422, "a card twice"): answering("held", "held"),
    (422, "a key twice"): answering("held", "stale", key=KEY),
    (409, "a good answer beside one of Bob's cards"): answering("held", "bobs"),
    (404, "undo of Bob's answer"): posting("/api/undo", keys=["key-of-bob"]),
    (404, "undo of Bob's answer, beside one's own"): posting(
        "/api/undo", keys=["key-of-ann", "key-of-bob"]
    ),
    (404, "undo of Bob's answer in his tab"): posting(
        "/api/undo", tab="tab-of-bob", keys=["key-of-bob"]
    ),
    (404, "undo of what is not there"): posting("/api/undo", keys=["key-of-nobody"]),
    (422, "undo by a key with %"): posting("/api/undo", keys=["key-of-%"]),
    (422, "cards of a tab that is a pattern"): posting("/api/cards", tab="tab-of-%"),
    (409, "note on Bob's card"): note("bobs"),
    **{
        (403, f"name {name[:20]}"): post(
            "/api/cards", {"tab": "tab-of-eve"}, Cookie=f"comes_name={name}"
        )
        for name in ("Ann%00%0a", "%e2%80%aeAnn", LONG)
    },
    **{
        (422, f"joining as {name[:20]!r}"): joining(name)
        for name in ("Eve\x1b[2J", "Eve\r\nSet-Cookie: a=b", LONG)
    },
}
# Who may write about what, and under which name.
RIGHTS: Table = {
    (409, "note on a card that nobody has"): posting("/api/notes", card=72, text="x"),
    (409, "note on a card that Carol had"): note("stale", "tab-of-carol", name="Carol"),
    (409, "note on Ann's card in the tab of Bob"): note("held", "tab-of-bob"),
    (409, "note on Ann's card by Bob, in her tab"): note("held", name="Bob"),
    (409, "note on a card that is answered"): note("answered"),
    **{
        (422, f"joining as {name!r}"): joining(name)
        for name in ("the lead", "The Lead", " THE  LEAD ", "the\u00a0lead", "thelead")
    },
}


TABLES = {
    "paths": PATHS,
    "methods": METHODS,
    "origins": ORIGINS,
    "bodies": BODIES,
    "fields": FIELDS,
    "tokens": TOKENS,
    "values": VALUES,
    "rights": RIGHTS,
}


def check_refusals(site: Site, table: Table) -> None:
    """Every request of a table is refused with its status, and changes nothing."""
    before = dump(site.project)
    port = site.guarded if table is TOKENS else site.port
    for (status, name), build in table.items():
        reply = exchange(port, build(site))
        assert reply.status == status, name
        assert dump(site.project) == before, name
        assert {header: reply.headers.get(header.lower()) for header in HEADERS} == HEADERS, name
        assert "set-cookie" not in reply.headers, name
        if reply.content:
            assert set(json.loads(reply.content)) == {"error", "card"}, name


@pytest.mark.parametrize("name", TABLES)
def test_what_is_hostile_is_refused_and_changes_nothing(site: Site, name: str) -> None:
    check_refusals(site, TABLES[name])


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


def test_what_is_not_a_request_changes_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    errors = logging.getLogger("uvicorn.error")
    errors.addHandler(caplog.handler)
    before = dump(site.project)
    for name, build in BROKEN.items():
        assert exchange(site.port, build(site), breaks_off=True).status in (0, 400), name
        assert exchange(site.port, request("GET", "/join")).status == 200, name  # as before
        assert dump(site.project) == before, name
    errors.removeHandler(caplog.handler)
    assert [record for record in caplog.records if record.exc_info] == []  # no trace of a crash


def test_the_guard_relies_on_no_parser(project: Project) -> None:
    """Most servers refuse these before the guard sees them."""
    with TestClient(make_app(project), base_url=HERE) as client:
        for length in ("-1", "0x10", "9" * 5000, "1.5", "+2"):
            headers = {"Content-Length": length, "Content-Type": "application/json"}
            reply = client.post("/api/join", content=b"{}", headers=headers)
            assert reply.status_code == 413, length
        assert client.get("/join", headers={"Host": ""}).status_code == 421


def test_the_tables_hold_only_the_hostile_part(site: Site) -> None:
    """The same requests without what makes them hostile are stored."""
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


# The token


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = text_project(tmp_path)
    yield project
    project.engine.dispose()


def lead_token(project: Project) -> str:
    """Return the token of the lead's link, which is made now."""
    return (find_links(project, "0.0.0.0") or {})["lead"]


def test_a_loopback_address_needs_no_token(project: Project) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.0.0.2"):
        assert find_links(project, host) is None
        name = f"[{host}]" if ":" in host else host
        with TestClient(make_app(project), base_url=f"http://{name}") as client:
            assert client.get("/join").status_code == 200
    assert list_links(project) == []


def test_another_address_needs_tokens_which_are_kept_as_digests_only(project: Project) -> None:
    made = find_links(project, "0.0.0.0")
    assert made is not None and list(made) == ["annotator", "lead"]
    known = {link.role: link.digest for link in list_links(project)}
    assert known == {role: digest_token(token) for role, token in made.items()}
    assert find_links(project, "192.168.1.5") == {}  # the same ones, shown once
    for token in made.values():
        assert len(token) >= 40 and token not in repr(dump(project))
        for file in project.folder.iterdir():
            assert token.encode() not in file.read_bytes()


def test_the_address_with_the_token_lets_a_browser_in(project: Project) -> None:
    token = (find_links(project, "0.0.0.0") or {})["annotator"]
    app = make_app(project, needs_token=True)
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


def test_behind_a_proxy_loopback_wants_a_token_too(project: Project) -> None:
    assert find_links(project, "127.0.0.1", is_wanted=True)
    assert find_links(project, "127.0.0.1", is_wanted=True) == {}


def test_new_links_end_the_old(project: Project) -> None:
    old = lead_token(project)
    new = (find_links(project, "0.0.0.0", new=True) or {})["lead"]
    assert new != old
    with TestClient(make_app(project, needs_token=True), base_url="http://team.example") as team:
        team.cookies.set("comes_token", old)
        assert team.get("/join").status_code == 401
        assert team.get("/", params={"token": old}).status_code == 401
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

    tokens = list((find_links(project, "0.0.0.0") or {}).values())
    monkeypatch.setattr(hmac, "compare_digest", compare)
    app = make_app(project, needs_token=True)
    with TestClient(app, base_url="http://team.example") as client:
        client.cookies.set("comes_token", "wrong")
        assert client.get("/lead").status_code == 401
        compared_wrong, compared[:] = set(compared), []
        client.cookies.set("comes_token", tokens[0])
        assert client.get("/join").status_code == 200
    assert compared_wrong == {(digest_token("wrong"), digest_token(token)) for token in tokens}
    assert len(compared) == len(tokens)  # also after the right one


def test_the_command_says_who_opens_what_and_shows_tokens_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    monkeypatch.setattr(server, "_find_own", lambda: ["192.168.1.5"])

    def start(*options: str) -> str:
        command = ["annotate", "serve", str(project.folder), "--port", "0", *options]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0
        return re.sub(r":\d{4,5}\b", "", result.stdout)

    assert start() == (
        "For annotators: http://127.0.0.1/\n"
        "For the lead: http://127.0.0.1/lead\n"
        "Only this machine can open them, and there is no token: all may lead.\n"
    )
    first = start("--host", "0.0.0.0")
    tokens = re.findall(r"http://192.168.1.5/(?:lead)?\?token=([\w-]{40,})$", first, re.MULTILINE)
    assert "Everyone who reaches this address and has the link can open it." in first
    assert {digest_token(token) for token in tokens} == valid_digests(project)
    again = start("--host", "0.0.0.0")
    assert "token=" not in again and "Links from before are valid" in again
    renewed = start("--token", "--new-token", "--address", "https://photos.example/")
    assert "For the lead: https://photos.example/lead?token=" in renewed
    assert "Everyone who reaches this address and has the link can open it." in renewed
    valid = valid_digests(project)
    assert len(valid) == len(tokens) == 2 and not valid & {digest_token(one) for one in tokens}


def valid_digests(project: Project) -> set[str]:
    return {link.digest for link in list_links(project) if link.revoked_at is None}
