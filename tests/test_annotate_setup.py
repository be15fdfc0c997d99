"""A project that is started in the browser, over HTTP: files, checks, who may, and what is left."""

import asyncio
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from PIL import Image
from starlette.testclient import TestClient

from annotation_site import HERE
from comes.annotate import Project, open_project
from comes.annotate.links import list_links
from comes.annotate.web import app as web_app
from comes.annotate.web import setup as web_setup
from comes.annotate.web.app import clean_file_name
from comes.annotate.web.setup import Setup

OCTETS = {"content-type": "application/octet-stream"}
TOKEN = "the-token-of-the-lead"
TEXTS = "item,text\na,It rains.\nb,They scored.\nc,=1+1\n"
FIELDS = {
    "place": "",
    "text_column": "",
    "skip_broken": False,
    "classes": "sport: games, and who wins them\n\n weather \n",
    "question": "Is this about {class}?",
    "asks_yes": False,
    "language": "de",
    "rate": 1.0,
    "overlap": 0.0,
    "by": "class",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "news"


@pytest.fixture
def lead(folder: Path) -> Iterator[TestClient]:
    """The browser of a lead, on the machine that serves a folder without a project."""
    with TestClient(Setup(folder), base_url=HERE) as client:
        yield client


def draw(colour: str = "red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "PNG")
    return file.getvalue()


def put(client: TestClient, name: str, content: Any = b"x", **headers: str) -> Any:
    return client.put(f"/api/setup/files/{name}", content=content, headers={**OCTETS, **headers})


def make(client: TestClient, **changed: Any) -> Any:
    return client.post("/api/setup/project", json={**FIELDS, **changed})


def open_made(folder: Path) -> Project:
    project = open_project(folder)
    project.engine.dispose()
    return project


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.rglob("*"))


# ---- a project from files that were sent


def test_a_table_of_texts_becomes_a_project_that_the_same_server_serves(
    lead: TestClient, folder: Path
) -> None:
    assert lead.get("/").url.path == lead.get("/lead").url.path == "/setup"
    assert put(lead, "texts.csv", TEXTS.encode()).json() == {
        "name": "texts.csv",
        "size": len(TEXTS),
    }
    counted = lead.post("/api/setup/items", json={"place": ""}).json()
    assert counted == {"count": 3, "kind": "text"}
    assert make(lead).json() == {"next": "/lead/people", "warnings": []}
    project = open_made(folder)
    assert project.item_names == ["a", "b", "c"]
    assert project.class_names == ["sport", "weather"]
    assert project.count_cards() == 6 and project.question == "Is this about sport?"
    assert project.read_setting("language") == "de" and project.read_setting("asks_yes") == "0"
    assert "Nobody has answered yet" in lead.get("/lead/people").text
    assert lead.get("/setup").url.path == "/lead"
    assert lead.post("/api/join", json={"name": "Ada"}).status_code == 200
    assert not (folder.parent / ".news-files").exists()


def test_pictures_that_were_sent_lie_beside_the_project(lead: TestClient, folder: Path) -> None:
    for name, colour in (("a.png", "red"), ("b.png", "blue"), ("c é.png", "green")):
        assert put(lead, name, draw(colour)).status_code == 200
    assert make(lead, overlap=0.5, by="item").status_code == 200
    project = open_made(folder)
    assert project.kind == "image" and project.item_names == ["a.png", "b.png", "c é.png"]
    assert project.source == folder.with_name("news-items")
    assert lead.get("/items/2?width=160").status_code == 200
    assert left_over(folder) == sorted(
        ["news", "news-items", "a.png", "b.png", "c é.png", "answers.db", "project.json"]
        + [name for name in left_over(folder) if name.startswith("answers.db-")]
    )


def test_a_zip_that_was_sent_and_a_folder_on_the_server(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("in/a.png", draw())
    with TestClient(Setup(tmp_path / "zipped"), base_url=HERE) as client:
        put(client, "pictures.zip", file.getvalue())
        assert make(client).status_code == 200
    assert open_made(tmp_path / "zipped").item_names == ["in/a.png"]
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(draw())
    with TestClient(Setup(tmp_path / "named"), base_url=HERE) as client:
        reply = client.post("/api/setup/items", json={"place": str(tmp_path / "photos")})
        assert reply.json() == {"count": 1, "kind": "image"}
        assert make(client, place=str(tmp_path / "photos")).status_code == 200
    assert open_made(tmp_path / "named").source == tmp_path / "photos"
    assert (tmp_path / "photos" / "a.png").exists()


def test_broken_pictures_are_told_or_left_out(lead: TestClient, folder: Path) -> None:
    put(lead, "a.png", draw())
    put(lead, "b.png", b"no picture")
    [warning] = make(lead).json()["warnings"]
    assert "b.png" in warning and "cannot be shown" in warning
    assert open_made(folder).item_names == ["a.png", "b.png"]


# ---- what is wrong stands beside its field, and nothing is lost


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"classes": "\n \n"}, "classes", "name of a class on every line"),
        ({"classes": "sky\nsky"}, "classes", "sky"),
        ({"question": "What is it?"}, "question", "must hold {class}"),
        ({"question": "{x} {class}?"}, "question", "may hold {class} and {a}"),
        ({"rate": 0.0}, "rate", "rate must be in"),
        ({"rate": 0.1}, "rate", "asks about none of 3 items"),
        ({"place": "/nowhere/at/all"}, "items", "does not exist on the server"),
        ({"place": "~nobody-here/x"}, "items", "cannot be found"),
        ({"text_column": "body"}, "items", "body"),
    ],
)
def test_errors_name_their_field_and_what_was_sent_stays(
    lead: TestClient, folder: Path, changed: dict[str, Any], field: str, message: str
) -> None:
    put(lead, "texts.csv", TEXTS.encode())
    reply = make(lead, **changed)
    assert reply.status_code == 422 and reply.json()["field"] == field
    assert message in reply.json()["error"]
    assert not folder.exists() and left_over(folder) == [".news-files", "texts.csv"]
    assert make(lead).status_code == 200  # once it is right


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "send files, or name a folder"),
        (["a.png", "texts.csv"], "not several of these together"),
        (["a.csv", "b.csv"], "not several of these together"),
        (["a.png"], "can be shown"),  # which holds an x
    ],
)
def test_what_makes_no_items_is_said(
    lead: TestClient, folder: Path, names: list[str], message: str
) -> None:
    for name in names:
        assert put(lead, name).status_code == 200
    reply = make(lead)
    assert (reply.status_code, reply.json()["field"]) == (422, "items")
    assert message in reply.json()["error"] and not folder.exists()
    uploads = folder.parent / ".news-files"
    assert sorted(path.name for path in uploads.glob("*")) == sorted(names)


def test_files_stay_when_the_server_is_started_again_and_can_be_removed(folder: Path) -> None:
    with TestClient(Setup(folder), base_url=HERE) as client:
        put(client, "a.png", draw())
        put(client, "b.png", draw())
    with TestClient(Setup(folder), base_url=HERE) as client:
        assert "a.png" in client.get("/setup").text
        assert put(client, "A.PNG").status_code == 409  # the same file on some systems
        assert client.post("/api/setup/remove", json={"name": "a.png"}).json() == {"removed": 1}
        assert client.post("/api/setup/remove", json={"name": "../x"}).json() == {"removed": 0}
        assert left_over(folder) == [".news-files", "b.png"]
        assert client.post("/api/setup/remove", json={"name": None}).json() == {"removed": 1}
        assert left_over(folder) == [".news-files"]


# ---- files that are not taken


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("..%2Fa.png", 404),
        ("%2e%2e%2fa.png", 404),
        ("..%5Ca.png", 422),
        (".a.png", 422),
        ("a%00.png", 422),
        ("a%0A.png", 422),
        ("a%3Ab.png", 422),
        ("a.png%20", 422),
        ("a" * 250 + ".png", 422),
        ("a.exe", 422),
        ("a", 422),
        ("a.png.sh", 422),
    ],
)
def test_names_that_lead_elsewhere_or_are_no_items_are_refused(
    lead: TestClient, folder: Path, name: str, status: int
) -> None:
    assert put(lead, name).status_code == status
    assert left_over(folder) in ([], [".news-files"])


def test_names_are_composed() -> None:
    assert clean_file_name("Cafe\u0301.png") == "Caf\u00e9.png"


def endless() -> Iterator[bytes]:
    for _ in range(40):
        yield b"x" * 1000


def test_large_files_are_refused_and_nothing_of_them_stays(lead: TestClient, folder: Path) -> None:
    with patch.object(web_setup, "LARGEST_UPLOAD", 10_000):
        reply = put(lead, "a.png", endless())  # in chunks, without a length
        assert reply.status_code == 413 and "bytes are read" in reply.json()["error"]
    with patch.object(web_app, "LARGEST_UPLOAD", 10_000):
        assert put(lead, "a.png", b"x" * 10_001).status_code == 413
    with patch.object(web_setup, "MOST_BYTES", 1500):
        assert put(lead, "a.png", b"x" * 1000).status_code == 200
        assert put(lead, "b.png", b"x" * 1000).status_code == 413
        assert put(lead, "b.png", b"x" * 500).status_code == 200
        assert put(lead, "c.png", b"x").status_code == 413
    with patch.object(web_setup, "MOST_UPLOADS", 2):
        assert "as a .zip" in put(lead, "c.png", b"x").json()["error"]
    assert left_over(folder) == [".news-files", "a.png", "b.png"]


def test_a_file_that_breaks_off_leaves_nothing(folder: Path) -> None:
    """The name is free again, too."""
    setup = Setup(folder)
    headers = {**OCTETS, "host": "127.0.0.1", "transfer-encoding": "chunked"}
    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/api/setup/files/a.png",
        "query_string": b"",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    messages = [
        {"type": "http.request", "body": b"x" * 100, "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(setup(scope, receive, send))
    assert sent[0]["status"] == 400 and left_over(folder) == [".news-files"]
    with TestClient(setup, base_url=HERE) as client:
        assert put(client, "a.png", draw()).status_code == 200


# ---- who may


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 415),
        ({"content-type": "text/csv"}, 415),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "evil.example"}, 421),
        ({"content-length": "9" * 12}, 413),
    ],
)
def test_pages_of_other_sites_send_no_files(
    lead: TestClient, folder: Path, headers: dict[str, str], status: int
) -> None:
    assert put(lead, "a.png", b"x", **headers).status_code == status
    assert left_over(folder) == []


def test_octets_are_taken_as_files_alone(lead: TestClient) -> None:
    for path in ("/api/setup/project", "/api/setup/remove", "/api/setup/items"):
        assert lead.post(path, content=b"{}", headers=OCTETS).status_code == 415


def test_others_need_the_token_of_the_lead_which_becomes_the_leads_link(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And paths of the server lie where it was started, since others can reach it."""
    (tmp_path / "started" / "photos").mkdir(parents=True)
    (tmp_path / "started" / "photos" / "a.png").write_bytes(draw())
    (tmp_path / "secret").mkdir()
    monkeypatch.chdir(tmp_path / "started")
    setup = Setup(folder, TOKEN, addresses=["http://10.1.2.3:8000"])
    with TestClient(setup, base_url="http://team.example") as client:
        for path in ("/setup", "/", "/setup?token=wrong"):
            assert client.get(path).status_code == 401
        assert put(client, "a.png").status_code == 401 and make(client).status_code == 401
        assert "token" in client.get(f"/setup?token={TOKEN}").headers["set-cookie"]
        assert client.get("/setup").status_code == 200
        for place in (str(tmp_path / "secret"), "/etc", "../secret", "photos/../../secret"):
            reply = make(client, place=place)
            assert reply.status_code == 422 and "where the server was started" in reply.text
        (tmp_path / "started" / "out").symlink_to(tmp_path / "secret")
        assert "where the server was started" in make(client, place="out").text
        assert make(client, place="photos").status_code == 200
        assert client.get("/lead/people").status_code == 200  # with the same token
        made = client.post("/api/lead/link", json={"role": "annotator", "name": "Ada"}).json()
        assert made["links"][0].startswith("http://10.1.2.3:8000/?token=")
        client.cookies.clear()
        assert client.get("/lead").status_code == 401
    project = open_project(folder)
    assert [(link.role, link.label) for link in list_links(project)] == [
        ("lead", "the lead"),
        ("annotator", "Ada"),
    ]
    project.engine.dispose()


def test_what_is_on_the_page_is_text(tmp_path: Path) -> None:
    with TestClient(Setup(tmp_path / "<b>new"), base_url=HERE) as client:
        put(client, "'\u003cimg src=x\u003e.png".replace("<", "(").replace(">", ")"), draw())
        page = client.get("/setup").text
    assert "<b>new" not in page and "&lt;b&gt;new" in page and 'style="' not in page
