"""The API for scripts: what it gives, what it takes, and whom it lets in."""

import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from starlette.testclient import TestClient

from comes.annotate import (
    Project,
    export_raw_answers,
    make_app,
    make_link,
    post_webhook,
    read_raw_answers,
)
from comes.annotate.schema import notes, people
from comes.errors import ComesError
from databases import reserve_port
from projects import Desk, Projects, all_cards

ME = {"annotator": "model 7", "tab": "tab-of-model"}


@pytest.fixture
def of_eight(projects: Projects) -> Project:
    """A project of eight items."""
    return projects.make(8)


@pytest.fixture
def client(of_eight: Project) -> Iterator[TestClient]:
    with TestClient(make_app(of_eight), base_url="http://127.0.0.1") as client:
        yield client


def get(client: TestClient, path: str) -> Any:
    reply = client.get(f"/api/v1/{path}")
    assert reply.status_code == 200, reply.text
    return reply.json()


def post(client: TestClient, path: str, body: Any, status: int = 200) -> Any:
    reply = client.post(f"/api/v1/{path}", json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def answer_all(client: TestClient, said: str = "no") -> int:
    """Answer as a script does; return how many cards that were."""
    count = 0
    while cards := post(client, "cards/next", {**ME, "size": 5})["cards"]:
        given = [
            {"card": card["card"], "answer": said, "key": f"key-of-{card['card']}"}
            for card in cards
        ]
        post(client, "answers", {**ME, "answers": given})
        post(client, "answers", {**ME, "answers": given})  # sent twice, stored once
        count += len(cards)
    return count


def test_a_script_sees_the_project(client: TestClient) -> None:
    assert get(client, "project") == {
        "project": "project",
        "kind": "text",
        "items": 8,
        "classes": 2,
        "cards": 16,
        "done": 0,
        "answers": 0,
        "is_frozen": False,
    }
    first = get(client, "items?most=5")
    assert [one["name"] for one in first["items"]] == [f"t{k}" for k in range(5)]
    rest = get(client, f"items?after={first['next']}")
    assert [one["item"] for one in rest["items"]] == [6, 7, 8] and rest["next"] is None
    assert rest["items"][0]["text"] == "text of t5"
    names = [(one["name"], one["cards"], one["done"]) for one in get(client, "classes")["classes"]]
    assert names == [("sky", 8, 0), ("sea", 8, 0)]


def test_a_script_annotates_and_reads_the_answers_page_by_page(client: TestClient) -> None:
    assert answer_all(client, "yes") == 16
    first = get(client, "answers?most=10")
    rest = get(client, f"answers?most=10&after={first['next']}")
    rows = [*first["answers"], *rest["answers"]]
    assert len(rows) == 16 and rest["next"] is None
    assert {row["answer"] for row in rows} == {"yes"}
    assert {row["person"] for row in rows} == {"model 7"}
    assert rows[0]["at"].endswith("+00:00") and rows[0]["seconds"] is None
    at = rows[7]["at"]
    later = get(client, f"answers?since={at.replace('+', '%2B')}")["answers"]
    assert [row["number"] for row in later] == [row["number"] for row in rows if row["at"] >= at]
    assert get(client, "answers?since=4000000000")["answers"] == []
    assert get(client, "project")["answers"] == 16


def test_a_script_adds_items_classes_and_cards(client: TestClient, of_eight: Project) -> None:
    texts = [{"name": "new", "text": "a storm"}, {"name": "t1", "text": "known"}]
    added = post(client, "items", {"items": texts})
    assert added == {"items_added": 1, "left_out": 1, "cards_added": 2}
    added = post(client, "classes", {"classes": [{"name": "sun"}], "rate": 0.3})
    assert added == {"classes_added": 1, "left_out": 0, "cards_added": 3}
    asked = {card.item_id for card in all_cards(of_eight) if card.class_id == 3}
    free = next(k for k in range(1, 10) if k not in asked)
    pair = {"item": of_eight.item_names[free - 1], "label": "sun"}
    assert post(client, "cards", {"pairs": [pair]}) == {"cards_added": 1}
    assert get(client, "project")["cards"] == 16 + 2 + 3 + 1


def test_the_export_is_that_of_the_command(client: TestClient) -> None:
    assert client.get("/api/v1/export").status_code == 404  # no answers yet
    answer_all(client)
    readers: dict[str, Any] = {"csv": pd.read_csv, "parquet": pd.read_parquet}
    for kind, read in (readers | {"jsonl": partial(pd.read_json, lines=True)}).items():
        reply = client.get(f"/api/v1/export?format={kind}")
        assert reply.status_code == 200 and len(read(io.BytesIO(reply.content))) == 16, kind
    raw = pd.read_csv(io.BytesIO(client.get("/api/v1/export?raw=1").content))
    assert list(raw.columns[:5]) == ["number", "item", "label", "answer", "person"]


def test_what_cannot_be_taken_is_refused_with_a_reason(client: TestClient) -> None:
    cases: list[tuple[str, Any, int, str]] = [
        ("items", {"items": []}, 422, "items"),
        ("items", {"items": [{"name": "a", "text": "x"}] * 2}, 422, "its own name"),
        ("items", {"items": [{"name": "a", "text": "\0"}]}, 422, "not text"),
        ("items", {"items": [{"name": "a", "text": "x"}], "rate": 2}, 422, "rate"),
        ("classes", {"classes": [{"name": ""}]}, 422, "name"),
        ("classes", {"classes": [{"name": "a", "colour": "red"}]}, 422, "colour"),
        ("cards", {"pairs": [{"item": "none", "label": "sky"}]}, 422, "has no item 'none'"),
        ("cards", {"pairs": [{"item": "t1", "label": "moon"}]}, 422, "has no class 'moon'"),
        ("cards/next", {"annotator": "\x07", "tab": "tab-of-model"}, 422, "visible"),
        ("cards/next", {"annotator": "m", "tab": "x"}, 422, "tab"),
        ("answers", {**ME, "answers": [{"card": 1, "answer": "no", "key": "k" * 8}]}, 409, "not"),
    ]
    for path, body, status, message in cases:
        assert message in post(client, path, body, status)["error"], (path, body)


def test_a_query_that_cannot_be_read_is_refused_with_a_reason(client: TestClient) -> None:
    for path, message in (
        ("items?after=x", "after must be a whole number; got 'x'"),
        ("items?most=0", "most must be from 1 to 1000; got 0"),
        ("answers?since=soon", "since must be a time such as 2026-01-31T12:00:00+00:00"),
        ("answers?since=nan", "since must be a time"),
        ("export?format=exe", "format must be one of csv, parquet, jsonl; got 'exe'"),
        ("export?format=jsonl&raw=1", "raw answers come as csv or parquet"),
    ):
        reply = client.get(f"/api/v1/{path}")
        assert reply.status_code == 422 and message in reply.json()["error"], path


def test_only_scripts_and_leads_are_let_in(of_eight: Project) -> None:
    tokens = {role: make_link(of_eight, role, role) for role in ("annotator", "lead", "script")}
    app = make_app(of_eight, needs_token=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/api/v1/project").status_code == 401
        for role, token in tokens.items():
            headers = {"Authorization": f"Bearer {token}"}
            reply = client.get("/api/v1/project", headers=headers)
            assert reply.status_code == (403 if role == "annotator" else 200)


# Raw answers


def test_raw_answers_say_who_when_how_fast_and_what_was_written(
    of_eight: Project, tmp_path: Path
) -> None:
    desk = Desk(of_eight)
    first, second, *_ = desk.ask()
    desk.answer(first["card"], "yes", now=1_700_000_000.25, seconds=2.5)
    key = desk.answer(second["card"], "no", now=1_700_000_001.0)
    desk.undo(key)
    desk.answer(second["card"], "skip", now=1_700_000_002.0)
    with of_eight.writing() as connection:
        connection.execute(
            notes.insert().values(
                card_id=first["card"], annotator="Ann", text="is it one?", written_at=1.0
            )
        )
    counts = export_raw_answers(of_eight, tmp_path / "raw.csv")
    assert counts == {"answers": 2, "people": 1}
    rows = pd.read_csv(tmp_path / "raw.csv").to_dict("records")
    assert rows[0] | {"number": 1} == {
        "number": 1,
        "item": first["name"],
        "label": first["class"],
        "answer": "yes",
        "person": "Ann",
        "at": "2023-11-14T22:13:20.250+00:00",
        "seconds": 2.5,
        "source": "random",
        "round": 0,
        "probability": 1,
        "decision": rows[0]["decision"],
        "comment": "Ann: is it one?",
    }
    assert rows[1]["answer"] == "skip"


def test_raw_answers_leave_out_people_and_controls(of_eight: Project) -> None:
    for name in ("Ann", "Bob"):
        desk = Desk(of_eight, name, f"tab-{name}")
        desk.answer(desk.ask()[0]["card"], "no")
    assert len(read_raw_answers(of_eight)) == 2
    with of_eight.writing() as connection:
        connection.execute(people.insert().values(name="Bob", joined_at=0.0, left_out_at=1.0))
    assert set(read_raw_answers(of_eight)["person"]) == {"Ann"}


# Webhooks


class Hook(BaseHTTPRequestHandler):
    """Notes what is posted, and replies with the statuses that a test wants."""

    def do_POST(self) -> None:
        server: Any = self.server
        server.heard.append(self.rfile.read(int(self.headers["Content-Length"])))
        status = server.statuses.pop(0) if server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hook() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Hook)
    server.heard, server.statuses = [], []
    server.place = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_is_tried_again_while_it_may_come_back(hook: Any) -> None:
    pauses: list[float] = []
    hook.statuses = [500, 429, 503]
    assert post_webhook(hook.place, {"a": 1}, pause=pauses.append) == 4
    assert hook.heard == [b'{"a": 1}'] * 4 and pauses == [1, 2, 4]
    hook.statuses = [500] * 9
    with pytest.raises(ComesError, match=r"was not reached \(it replied 500\) in 4 attempts"):
        post_webhook(hook.place, {}, pause=pauses.append)


def test_a_webhook_that_refuses_or_points_elsewhere_is_left_alone(hook: Any) -> None:
    for count, status in enumerate((302, 404), 1):
        hook.statuses = [status]
        with pytest.raises(ComesError, match=rf"it replied {status}\) in 1 attempts"):
            post_webhook(hook.place, {}, pause=lambda _: None)
        assert len(hook.heard) == count


def test_an_address_that_does_not_answer_is_an_error_after_the_last_attempt() -> None:
    with reserve_port() as closed:  # nobody listens there
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/hook"
        with pytest.raises(
            ComesError, match=r"was not reached \(.*\) in 2 attempts. The file is w"
        ):
            post_webhook(address, {}, attempts=2, timeout=60, pause=lambda _: None)


def test_only_addresses_of_the_web_are_taken() -> None:
    for address in ("ftp://a/b", "file:///etc/passwd", "hook", "http://", ""):
        with pytest.raises(ComesError, match="must be an address of http or https"):
            post_webhook(address, {})
