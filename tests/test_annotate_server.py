"""The annotation page over HTTP: what it shows and what it stores."""

import io
import re
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from annotation_site import (
    HERE,
    KEY,
    SCRIPT,
    TAB,
    answer,
    decoding_in_threads,
    dump,
    exchange,
    join,
    lease,
    port_of,
    request,
    standing,
    text_project,
)
from comes.annotate import Project, create_project, serve_in_thread
from comes.annotate.cards import ITEMS_AT_ONCE
from comes.annotate.summary import AnswerColumns, Summary, summarise_said
from comes.annotate.web import annotate, lead
from comes.annotate.web.app import HEADERS
from comes.annotate.web.server import make_app
from comes.errors import ComesWarning

LEAD_PAGES = ("/lead", *(f"/lead/{tab}" for tab in ("answers", "disagreements", "notes", "people")))


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


# Pages


def test_who_has_no_name_is_asked_for_one_first(client: TestClient) -> None:
    for page in ("/", "/grid"):
        reply = client.get(page)
        assert (reply.status_code, reply.headers["location"]) == (303, "/join")
    assert "What is your name?" in client.get("/join").text
    assert "/join" in client.post("/api/cards", json={"tab": TAB}).json()["error"]


def test_the_name_is_kept_where_no_script_and_no_other_site_gets_it(client: TestClient) -> None:
    reply = client.post("/api/join", json={"name": "  Zoë; Ö'Neil "})
    assert reply.json() == {"name": "Zoë; Ö'Neil"}
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    for page in ("/", "/grid", "/join", "/lead"):
        assert "Zoë; Ö&#39;Neil" in client.get(page).text


def test_pages_need_nothing_from_elsewhere_and_run_no_inline_script(client: TestClient) -> None:
    join(client)
    for page in ("/", "/grid", "/join", *LEAD_PAGES):
        reply = client.get(page)
        assert reply.status_code == 200 and reply.headers["cache-control"] == "no-store", page
        for address in re.findall(r'(?:src|href)="([^"]*)"', reply.text):
            assert re.match(r"/(?!/)|#|\?", address), (page, address)
            if address.startswith("/static/"):
                sent = client.get(address)
                kind = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
                assert sent.content
                assert sent.headers["content-type"].startswith(kind[address.rpartition(".")[2]])
        ran = r"<script(?![^>]*(?:src=|type=\"application/json\"))|<style|\bon\w+=|style="
        assert re.findall(ran, reply.text) == [], page


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
    monkeypatch.setattr(annotate, "lease_cards", fail)
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
    assert "There is no such page." in as_page.text
    as_json = client.get("/nowhere", headers={"accept": "application/json"})
    assert (as_json.status_code, as_json.json()) == (
        404,
        {"error": "there is no such page", "card": None},
    )
    elsewhere = client.get("/", headers={"host": "evil.example", "accept": "text/html"})
    assert elsewhere.status_code == 421 and "<h1>Sorry</h1>" in elsewhere.text
    wrong_method = client.get("/api/cards")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")


# Names and texts are text


def test_markup_in_names_and_texts_stays_text(client: TestClient) -> None:
    join(client, f"Ann {SCRIPT}")
    cards = lease(client)
    assert all(SCRIPT in card["name"] and SCRIPT in card["text"] for card in cards)
    for number, card in enumerate(cards):
        assert answer(client, card["card"], "no", f"{KEY}{number}").status_code == 200
    for page in ("/", "/grid", "/join", *LEAD_PAGES):
        reply = client.get(page)
        assert SCRIPT not in reply.text and "Ann &lt;script&gt;alert(1)" in reply.text, page
        assert reply.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    escaped = "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"  # the class
    assert escaped in client.get("/lead").text
    assert "<bdi>item " in client.get("/lead/answers").text


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
    counted = {"total": 72, "done": 0, "mine": 0, "seconds": 0.0, "left": 72}
    assert reply["progress"] == counted and reply["waiting"] == 0 and not reply["frozen"]
    assert len({card["class"] for card in reply["cards"]}) == 1
    told = {"card", "item", "name", "text", "class", "description"}
    assert set(reply["cards"][0]) == told | {"question", "class_at", "class_number"}
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


def test_a_grid_holds_the_classes_of_a_few_items(client: TestClient) -> None:
    join(client)
    cards = lease(client, mode="grid")
    by_item = [cards[k : k + 3] for k in range(0, len(cards), 3)]
    assert all(len({card["item"] for card in three}) == 1 for three in by_item)
    assert [card["class"] for card in cards] == ["plain", SCRIPT, "third"] * ITEMS_AT_ONCE


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
        tabs = (f"tab-number-{k}" for k in count())
        while lease(client, next(tabs)):
            pass
        reply = client.post("/api/cards", json={"tab": "one-tab-more"}).json()
    project.engine.dispose()
    assert (reply["cards"], reply["waiting"]) == ([], 6)


def test_the_page_of_the_lead_counts(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    monkeypatch.setattr(lead, "FRESH", 0.0)
    assert "0 of 72 cards are done" in client.get("/lead").text  # a lead needs no name
    join(client)
    answer(client, lease(client)[0]["card"], "no", KEY)
    assert "1 of 72 cards are done" in client.get("/lead").text
    assert "<bdi>Ann</bdi>" in client.get("/lead/answers").text


def test_the_page_of_the_lead_is_made_once_in_a_while(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Project] = []

    def summarise_and_count(project: Project, said: AnswerColumns) -> Summary:
        made.append(project)
        return summarise_said(project, said)

    monkeypatch.setattr(lead, "summarise_said", summarise_and_count)
    for _ in range(5):
        assert client.get("/lead").status_code == 200
    assert len(made) == 1


def test_a_database_that_does_not_answer_is_a_reason_to_try_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("SELECT secret", {}, Exception("gone"))

    join(client)
    monkeypatch.setattr(annotate, "lease_cards", fail)
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
    with pytest.warns(ComesWarning, match="2 of 11 pictures cannot be shown: page.png"):
        project = create_project(home / "project", folder, home / "classes.txt", rate=1)
    (folder / "gone.png").unlink()
    yield project, folder
    project.engine.dispose()


def picture(client: TestClient, project: Project, name: str) -> Any:
    return client.get(f"/items/{project.item_names.index(name) + 1}")


def test_pictures_that_browsers_show_come_as_they_are_and_others_as_png(
    pictures: tuple[Project, Path],
) -> None:
    project, folder = pictures
    with Image.open(folder / "a.png") as image:
        expected = np.asarray(image)
    with decoding_in_threads(), TestClient(make_app(project), base_url=HERE) as client:
        for name, kind in (
            ("a.jpg", "image/jpeg"),
            ("camera.jpg", "image/jpeg"),
            ("a.png", "image/png"),
            ("a.gif", "image/gif"),
            ("a.webp", "image/webp"),
        ):
            reply = picture(client, project, name)
            assert (reply.status_code, reply.headers["content-type"]) == (200, kind), name
            assert reply.content == (folder / name).read_bytes()
            assert reply.headers["cache-control"].startswith("private")
        for name in ("a.tiff", "a.bmp", "deep.tiff"):
            reply = picture(client, project, name)
            assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png"), name
            shown = np.asarray(Image.open(io.BytesIO(reply.content)))
            assert (shown == (expected[:, :, :1] if name == "deep.tiff" else expected)).all(), name
        for name in ("page.png", "short.png", "gone.png"):
            reply = picture(client, project, name)
            assert reply.status_code == 422 and "script" not in reply.text, name
            assert str(folder) not in reply.text


ODD_NUMBERS = ["0", "12", "-1", "1.0", "1e0", "9" * 5000, str(2**64), "1x", "1%20OR%201=1", "1%00"]
ODD_NUMBERS += ["a.png", "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/etc/passwd"]
ODD_NUMBERS += ["%252e%252e%252fproject.json", "..%5c..%5canswers.db"]


def test_pictures_are_sent_by_number_only(pictures: tuple[Project, Path]) -> None:
    project, _ = pictures
    with decoding_in_threads(), serve_in_thread(project) as address:
        statuses = {
            number: exchange(port_of(address), request("GET", f"/items/{number}")).status
            for number in ("11", *ODD_NUMBERS)
        }
    assert statuses == {"11": 422, **dict.fromkeys(ODD_NUMBERS, 404)}  # the last is short.png


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

    with decoding_in_threads(), serve_in_thread(project) as address:

        def fetch(row: int) -> bytes:
            return exchange(port_of(address), request("GET", f"/items/{row + 1}")).content

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(fetch, [*range(8)] * 5))
    project.engine.dispose()
    assert got == expected * 5


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


def test_a_name_that_looks_like_a_known_one_is_asked_about(client: TestClient) -> None:
    join(client, "Anna Bell")  # who need not have answered
    for other in ("anna bell", "  ANNA   Bell ", "AnnaBell", "\uff21nna Bell"):
        asked = client.post("/api/join", json={"name": other})
        assert (asked.status_code, asked.json()["known"]) == (409, "Anna Bell")
        assert "set-cookie" not in asked.headers
        same = client.post("/api/join", json={"name": other, "is_same": True})
        assert same.json() == {"name": "Anna Bell"}
    join(client, "Anna Bell")  # the same spelling is the same person
    join(client, "Anna Ball")
    assert client.post("/api/join", json={"name": "Anna", "is_same": True}).json() == {
        "name": "Anna"
    }


def test_who_joined_is_kept_with_the_time(client: TestClient, project: Project) -> None:
    before = time.time()
    for name in ("Zoë", "Ann", "Zoë"):
        join(client, name)
    rows = dump(project)["people"]
    assert [row.name for row in rows] == ["Ann", "Zoë"]
    assert all(before <= row.joined_at <= time.time() and row.left_out_at is None for row in rows)


# A closed tab, and what a new one finds


def test_a_closed_tab_gives_its_cards_back_and_its_person_finds_them(client: TestClient) -> None:
    join(client)
    mine = lease(client)
    assert answer(client, mine[0]["card"], "no", KEY).status_code == 200
    kept = mine[1]["card"]
    closed = client.post("/api/release", json={"tab": TAB, "keep": [kept]})
    assert closed.json() == {"released": len(mine) - 2}
    again = lease(client, "another-tab")
    assert again == mine[2:]
    assert answer(client, kept, "no", "key-on-its-way").status_code == 200


def test_the_history_lets_one_undo_in_another_browser(client: TestClient, project: Project) -> None:
    join(client)
    assert client.get("/api/history").json() == {"history": []}
    cards = lease(client)[:3]
    for number, card in enumerate(cards):
        answer(client, card["card"], "maybe", f"{KEY}-{number}")
    assert client.post("/api/undo", json={"tab": TAB, "keys": [f"{KEY}-1"]}).status_code == 200
    with TestClient(client.app, base_url=HERE) as elsewhere:
        join(elsewhere)
        told = elsewhere.get("/api/history").json()["history"]
        assert [(one["card"], one["key"], one["answer"]) for one in told] == [
            (cards[0], f"{KEY}-0", "maybe"),
            (cards[2], f"{KEY}-2", "maybe"),
        ]
        undone = elsewhere.post("/api/undo", json={"tab": "new-tab-1", "keys": [told[-1]["key"]]})
        assert undone.json()["cards"] == [cards[2]]
        join(elsewhere, "Bob")
        assert elsewhere.get("/api/history").json() == {"history": []}
    assert len(standing(project)) == 1


def test_the_next_block_is_asked_for_while_one_is_open(client: TestClient) -> None:
    join(client)
    first = lease(client)
    has = [card["card"] for card in first]
    second = lease(client, has=has)
    assert second and not {card["card"] for card in second} & set(has)
    assert lease(client, has=has) == second  # the reply was lost on its way
    third = lease(client, has=[card["card"] for card in first + second])
    assert not {card["card"] for card in third} & {card["card"] for card in first + second}


def test_progress_has_the_numbers_of_oneself(client: TestClient) -> None:
    join(client)
    cards = lease(client)
    for number, card in enumerate(cards[:3]):
        answer(client, card["card"], "no", f"{KEY}-{number}")  # 1.5 seconds each
    counted = client.post("/api/cards", json={"tab": TAB}).json()["progress"]
    assert counted == {"total": 72, "done": 3, "mine": 3, "seconds": 4.5, "left": 69}
    answer(client, cards[0]["card"], "no", f"{KEY}-0")  # sent again
    client.post("/api/undo", json={"tab": TAB, "keys": [f"{KEY}-1"]})
    counted = client.post("/api/cards", json={"tab": TAB}).json()["progress"]
    assert counted == {"total": 72, "done": 2, "mine": 2, "seconds": 3.0, "left": 70}


def test_a_frozen_project_gives_no_cards_and_takes_what_is_on_its_way(
    client: TestClient, project: Project
) -> None:
    join(client)
    cards = lease(client)
    answer(client, cards[0]["card"], "no", f"{KEY}-0")
    project.write_setting("frozen_at", str(time.time()))
    reply = client.post("/api/cards", json={"tab": "another-tab"}).json()
    assert (reply["cards"], reply["frozen"]) == ([], True)
    assert answer(client, cards[1]["card"], "maybe", f"{KEY}-1").status_code == 200
    refused = client.post("/api/undo", json={"tab": TAB, "keys": [f"{KEY}-0"]})
    assert refused.status_code == 409 and "frozen" in refused.json()["error"]
    assert len(standing(project)) == 2
    project.write_setting("frozen_at", "")
    assert lease(client, "another-tab")


def test_yes_is_refused_where_it_is_not_asked_for(client: TestClient, project: Project) -> None:
    join(client)
    first, second, third = (card["card"] for card in lease(client)[:3])
    assert answer(client, first, "yes", f"{KEY}-0").status_code == 200
    project.write_setting("asks_yes", "0")
    refused = answer(client, second, "yes", f"{KEY}-1")
    assert (refused.status_code, refused.json()["card"]) == (422, second)
    assert answer(client, third, "maybe", f"{KEY}-2").status_code == 200
    assert answer(client, first, "yes", f"{KEY}-0").status_code == 200  # sent again
    assert [word for _, _, word in standing(project)] == ["yes", "maybe"]


# Notes


def note(client: TestClient, card: int, **more: Any) -> Any:
    return client.post("/api/notes", json={"tab": TAB, "card": card, **more})


def test_notes_are_about_own_cards_stored_once_short_and_few(
    client: TestClient, project: Project
) -> None:
    join(client)
    held, flagged = (card["card"] for card in lease(client)[:2])
    assert note(client, held, text=" blurred ").json() == {"is_new": True}
    assert note(client, held, text="blurred").json() == {"is_new": False}
    assert note(client, flagged).json() == {"is_new": True}  # a flag
    answer(client, flagged, "no", KEY)
    assert note(client, flagged, text="too late").status_code == 409
    join(client, "Bob")
    assert note(client, held, text="not mine").status_code == 409
    join(client, "Ann")
    assert [(row.card_id, row.annotator, row.text) for row in dump(project)["notes"]] == [
        (held, "Ann", "blurred"),
        (flagged, "Ann", ""),
    ]
    statuses = [note(client, held, text=f"{k:04d}" * 500).status_code for k in range(12)]
    assert statuses[:8] == [200] * 8 and statuses[-3:] == [429] * 3
