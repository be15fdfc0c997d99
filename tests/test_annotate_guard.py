"""What the annotation page refuses: hostile and broken requests, and all without the token."""

import hmac
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
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
from comes import annotate
from comes.annotate import (
    Project,
    list_links,
    make_app,
    serve_in_thread,
)
from comes.annotate.cards import Asker, SentAnswer, lease_cards, store_answers, undo_answers
from comes.annotate.links import digest_token
from comes.annotate.schema import answers
from comes.annotate.web.app import HEADERS
from comes.annotate.web.server import find_links
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

Table = dict[str, tuple[Build, int]]  # requests, and the status that each gets
PATHS: Table = {
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
}
METHODS: Table = {
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
}
ORIGINS: Table = {
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
}
BODIES: Table = {
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
    "70 kB": (post("/api/answers", b" " * 70_000), 413),
    "70 kB in chunks": (chunked(70_000), 413),
    "9 GB, as it says": (post("/api/answers", b"{}", Content_Length="9000000000"), 413),
}
FIELDS: Table = {
    "card as text": (answering(card="1"), 422),
    "card as bool": (answering(card=True), 422),
    "card as float": (answering(card=1.0), 422),
    "card as null": (answering(card=None), 422),
    "card as list": (answering(card=[1]), 422),
    "key as number": (answering(key=12345678), 422),
    "tab with a blank": (answering(tab="tab of ann"), 422),
    "tab empty": (answering(tab=""), 422),
    "tab as list": (answering(tab=[TAB]), 422),
    "unknown word": (answering(answer="perhaps"), 422),
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
    "3001 cards at hand": (
        post("/api/cards", {"tab": TAB, "has": list(range(1, 3002))}),
        422,
    ),
    "cards at hand as text": (post("/api/cards", {"tab": TAB, "has": "1"}), 422),
    "release with card 0": (post("/api/release", {"tab": TAB, "keep": [0]}), 422),
    "release of all tabs": (post("/api/release", {"tab": ["a", "b"]}), 422),
    "release of a closed tab": (post("/api/release", {"tab": "closed by Ann"}), 422),
    "note of 2001 characters": (
        lambda site: request(
            "POST", "/api/notes", {"tab": TAB, "card": site.held, "text": "x" * 2001}
        ),
        422,
    ),
    "note on another's card": (
        lambda site: request("POST", "/api/notes", {"tab": TAB, "card": site.bobs, "text": "x"}),
        409,
    ),
    "note on no card": (post("/api/notes", {"tab": TAB, "card": 10_000, "text": ""}), 404),
    "history of nobody": (lambda site: request("GET", "/api/history", Cookie=None), 403),
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
}
TOKENS: Table = {
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
VALUES: Table = {
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


TABLES = {
    "paths": PATHS,
    "methods": METHODS,
    "origins": ORIGINS,
    "bodies": BODIES,
    "fields": FIELDS,
    "tokens": TOKENS,
    "values": VALUES,
}


def check_refusals(site: Site, table: Table) -> None:
    """Every request of a table is refused with its status, and changes nothing."""
    before = dump(site.project)
    for name, (build, status) in table.items():
        port = site.guarded if isinstance(build, _Guarded) else site.port
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


def test_the_command_shows_tokens_once_and_makes_new_ones_on_demand(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[bool] = []

    def note(project: Project, listener: socket.socket, needs_token: bool, **_: Any) -> None:
        listener.close()
        project.engine.dispose()
        served.append(needs_token)

    def start(*options: str) -> list[str]:
        """Return the tokens that the command prints."""
        command = ["annotate", "serve", str(project.folder), "--host", "0.0.0.0", "--port", "0"]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0
        return re.findall(r"\?token=([\w-]{40,})$", result.stdout, re.MULTILINE)

    monkeypatch.setattr(annotate, "serve", note)
    first, again, renewed = start(), start(), start("--new-token")
    assert (len(first), again, len(renewed)) == (2, [], 2) and served == [True] * 3
    valid = {link.digest for link in list_links(project) if link.revoked_at is None}
    assert valid == {digest_token(token) for token in renewed}
    assert not valid & {digest_token(token) for token in first}
