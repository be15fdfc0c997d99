"""The question of a project: its wording, whether yes is an answer, and the language."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient
from typer.testing import CliRunner

from annotation_site import HERE, answer, join, lease
from comes.annotate import Asking, Project, create_project, make_app
from comes.cli import app
from comes.errors import ComesError

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a project of two texts, or of two pictures."""

    def make_project(classes: str = "class\nsport\n", kind: str = "text", **asking: Any) -> Project:
        (tmp_path / "classes.csv").write_text(classes)
        (tmp_path / "items.csv").write_text("item,text\n1,a goal\n2,it rains\n")
        (tmp_path / "pictures").mkdir(exist_ok=True)
        for number in "12":
            Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / f"{number}.png")
        source = tmp_path / ("items.csv" if kind == "text" else "pictures")
        home = tmp_path / f"project-{len(list(tmp_path.iterdir()))}"
        return create_project(
            home, source, tmp_path / "classes.csv", rate=1, asking=Asking(**asking)
        )

    return make_project


def ask(project: Project) -> list[dict[str, Any]]:
    """Return the first cards of a project."""
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        return lease(client)


def test_the_plain_question_of_each_kind_and_language(make: Make) -> None:
    for kind, language, name, expected in (
        ("image", "en", "boat", "Is there a boat in this picture?"),
        ("image", "en", "Owl", "Is there an Owl in this picture?"),
        ("text", "en", "sport", "Is this text about sport?"),
        ("image", "de", "Boot", "Ist auf diesem Bild Boot zu sehen?"),
        ("text", "de", "Sport", "Geht es in diesem Text um Sport?"),
    ):
        card = ask(make(f"class\n{name}\n", kind, language=language))[0]
        assert card["question"] == expected
        assert card["question"][card["class_at"] :].startswith(name)
        assert card["class_number"] == 1


def test_a_project_and_a_class_may_ask_in_their_own_words(make: Make) -> None:
    table = "class,question\nsport,\nrain,Does it rain?\nanger,Is {a} {class} to be felt?\n"
    project = make(table, question="Does this show {class}, {a} {class}?")
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        cards = lease(client, mode="grid")
    asked = {card["class_number"]: (card["question"], card["class_at"]) for card in cards}
    assert asked == {
        1: ("Does this show sport, a sport?", 15),
        2: ("Does it rain?", None),
        3: ("Is an anger to be felt?", 6),
    }


def test_where_the_name_begins_is_counted_in_utf_16_as_browsers_count(make: Make) -> None:
    card = ask(make(question="🙂 {class}?"))[0]
    assert (card["question"], card["class_at"]) == ("🙂 sport?", 3)


def test_a_question_or_language_that_is_none_is_refused(make: Make) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"question": "Is this it?"}, r"must hold \{class\}.*'Is this it\?'.*Write"),
        ({"question": "Is {class} {item.name}?"}, r"may hold \{class\} and \{a\}; got.*item.name"),
        ({"question": "{class}" + "x" * 400}, "at most 300 characters; got 407"),
        ({"language": "fr"}, "en or de; got 'fr'"),
    ]
    for asking, message in cases:
        with pytest.raises(ComesError, match=message):
            Asking(**asking)
    with pytest.raises(ComesError, match=r"got.*\{kind\}"):
        make("class,question\nsport,Is this {kind}?\n")


def test_yes_is_taken_unless_the_project_does_not_ask_for_it(make: Make) -> None:
    for asks_yes, status in ((True, 200), (False, 422)):
        with TestClient(make_app(make(asks_yes=asks_yes)), base_url=HERE) as client:
            join(client)
            card = lease(client)[0]["card"]
            reply = answer(client, card, "yes", "key-of-a-yes")
            assert reply.status_code == status
            if not asks_yes:
                assert "does not take yes: say no, or maybe" in reply.json()["error"]
                assert reply.json()["card"] == card
                assert answer(client, card, "maybe", "key-of-a-maybe").status_code == 200


def test_init_prints_the_question_of_the_first_class(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,text\n1,a goal\n")
    (tmp_path / "classes.txt").write_text("sport\nrain\n")
    sources = ["--items", str(tmp_path / "items.csv"), "--classes", str(tmp_path / "classes.txt")]
    command = ["annotate", "init", str(tmp_path / "project"), *sources, "--rate", "1"]
    result = CliRunner().invoke(app, [*command, "--question", "Is it {class}?", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["question"] == "Is it sport?"


def test_how_people_are_asked_is_shown_and_changed(make: Make, tmp_path: Path) -> None:
    project = make()
    command = ["annotate", "ask", str(project.folder)]
    shown = CliRunner().invoke(app, command)
    assert "question: Is this text about sport?" in shown.output
    assert "answers: no, cannot tell, yes" in shown.output
    changes = ["--question", "Do you read {class}?", "--no-yes", "--language", "de", "--json"]
    changed = CliRunner().invoke(app, [*command, *changes])
    assert json.loads(changed.output) == {
        "question": "Do you read sport?",
        "answers": "no, cannot tell",
        "language": "de",
        "guidelines": "none",
    }
    (tmp_path / "sport.md").write_text("With a ball.")
    CliRunner().invoke(app, [*command, "--guidelines", str(tmp_path), "--yes"])
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        card = lease(client)[0]
        assert card["question"] == "Do you read sport?"  # kept
        assert answer(client, card["card"], "yes", "key-of-a-yes").status_code == 200
        assert client.get("/api/guidelines/1").json()["text"] == "With a ball."
        assert '<html lang="de">' in client.get("/").text
    wrong = CliRunner().invoke(app, [*command, "--question", "What is it?"])
    assert wrong.exit_code == 1 and "must hold {class}" in str(wrong.exception)
