"""Guidelines of classes: found by listing a folder, served by number, never by path."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from annotation_site import HERE, decoding_in_threads, join
from comes.annotate import Project, create_project
from comes.annotate.asking import find_guideline
from comes.annotate.web.server import make_app
from comes.errors import ComesError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "guide"
    (home / "boat").mkdir(parents=True)
    (home / "boat.md").write_text("What **floats**.")
    (home / "owl.txt").write_text("What hoots.")
    for name in ("boat-1.jpg", "boat/2.png", "boat/notes.html", "boathouse-1.jpg"):
        Image.new("RGB", (3000, 40), (9, 90, 160)).save(home / name, "PNG")
    return home


def make(home: Path, guidelines: Path, classes: str = "boat\nowl\nhouse\n") -> Project:
    (home / "texts.csv").write_text("item,text\n1,words\n")
    (home / "classes.txt").write_text(classes)
    sources = home / "texts.csv", home / "classes.txt"
    return create_project(home / "project", *sources, rate=1, guidelines=guidelines)


def test_a_class_has_a_text_and_pictures(folder: Path) -> None:
    found = find_guideline(folder, "boat")
    assert (found.text, found.is_markdown) == ("What **floats**.", True)
    assert [path.name for path in found.pictures] == ["boat-1.jpg", "2.png"]
    assert not find_guideline(folder, "owl").is_markdown
    assert find_guideline(folder, "house").pictures == []


def test_they_are_served_by_number(folder: Path, tmp_path: Path) -> None:
    app = make_app(make(tmp_path, folder))
    with decoding_in_threads(), TestClient(app, base_url=HERE) as client:
        join(client)
        told = client.get("/api/guidelines/1").json()
        assert told == {"text": "What **floats**.", "is_markdown": True, "pictures": 2}
        for k in (1, 2):
            reply = client.get(f"/guidelines/1/{k}")
            assert reply.headers["content-type"] == "image/jpeg"
            assert Image.open(io.BytesIO(reply.content)).width == 1600
        for wrong in ("1/3", "1/0", "1/boat-1.jpg", "9/1", "1/%2e%2e", "-1/1", "x/1"):
            assert client.get(f"/guidelines/{wrong}").status_code == 404
        assert client.get("/api/guidelines/4").status_code == 404
        (folder / "boat.md").write_text("Changed.")  # as the lead learns
        assert client.get("/api/guidelines/1").json()["text"] == "Changed."


def test_what_lies_outside_of_the_folder_is_not_served(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    os.symlink(secret, folder / "house.txt")
    os.symlink(tmp_path, folder / "house")
    Image.new("RGB", (8, 8)).save(tmp_path / "private.png")
    found = find_guideline(folder, "house")
    assert (found.text, found.pictures) == ("", [])
    for name in ("../secret", "/etc/passwd", "..", "boat/../../secret"):
        assert find_guideline(folder, name).text == ""


def test_a_picture_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "boat-1.jpg").write_bytes(b"no picture")
    app = make_app(make(tmp_path, folder))
    with decoding_in_threads(), TestClient(app, base_url=HERE) as client:
        join(client)
        reply = client.get("/guidelines/1/1")
        assert reply.status_code == 422
        assert reply.json()["error"] == "this picture is not an image"


def test_a_folder_without_guidelines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("nowhere", "must be in a folder"),
        ("empty", r"named after classes.*boat\.md"),
    ):
        with pytest.raises(ComesError, match=message):
            make(tmp_path, tmp_path / name)
        assert not (tmp_path / "project").exists()


def test_a_project_without_guidelines_has_none(tmp_path: Path, folder: Path) -> None:
    project: Any = make(tmp_path, folder)
    project.write_setting("guidelines", "")
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        assert client.get("/api/guidelines/1").status_code == 404
        assert 'id="guide"' not in client.get("/").text
