"""The question of a project: its wording, whether yes is an answer, and the language."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient
from typer.testing import CliRunner

from annotation_site import HERE, answer, join, lease
from comes.annotate import Project, create_project
from comes.annotate.asking import LANGUAGES, read_words
from comes.annotate.web.server import make_app
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
        return create_project(home, source, tmp_path / "classes.csv", rate=1, **asking)

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
            make(**asking)
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


def test_how_people_are_asked_is_changed(make: Make, tmp_path: Path) -> None:
    project = make()
    assert project.question == "Is this text about sport?"
    project.change_asking("Do you read {class}?", asks_yes=False, language="de")
    assert project.question == "Do you read sport?"
    (tmp_path / "sport.md").write_text("With a ball.")
    project.change_asking(asks_yes=True, guidelines=tmp_path)
    with TestClient(make_app(project), base_url=HERE) as client:
        join(client)
        card = lease(client)[0]
        assert card["question"] == "Do you read sport?"  # kept
        assert answer(client, card["card"], "yes", "key-of-a-yes").status_code == 200
        assert client.get("/api/guidelines/1").json()["text"] == "With a ball."
        assert '<html lang="de">' in client.get("/").text
    with pytest.raises(ComesError, match="must hold {class}"):
        project.change_asking("What is it?")


PACKAGE = files("comes.annotate")
SOURCES = [
    file.read_text(encoding="utf-8")
    for folder in ("static", "pages")
    for file in PACKAGE.joinpath("web", folder).iterdir()
    if file.name.endswith((".js", ".jinja"))
]
FORMS = (".one", ".other")


def places_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_every_language_has_the_same_keys_and_places(language: str) -> None:
    english, other = read_words("en"), read_words(language)
    assert list(english) == list(other)
    for key, sentence in english.items():
        places = places_in(other[key])
        assert places == places_in(sentence) or (key.startswith("question.") and "class" in places)
        assert other[key].strip()


def test_every_file_of_words_is_a_language() -> None:
    names = {file.name for file in PACKAGE.joinpath("words").iterdir()}
    assert names == {f"{code}.json" for code in LANGUAGES}


def test_the_pages_use_words_that_exist() -> None:
    """Keys that are put together on the page, as ``answer.${answer}``, are known by their start."""
    words = set(read_words("en"))
    known = words | {key.removesuffix(form) for key in words for form in FORMS}
    for source in SOURCES:
        plain = re.findall(r'word\("([^"]+)"|words\["([^"]+)"(?:\]| if)', source)
        for key in filter(None, (one or other for one, other in plain)):
            assert key in known, key
        for start in re.findall(r'word\(`([^`$]+)\$|words\["([^"]+)" ~', source):
            assert any(key.startswith("".join(start)) for key in words), start


def test_no_word_is_left_that_nothing_uses() -> None:
    text = "\n".join(SOURCES)
    starts = re.findall(r'(?:word\(|words\[|else )[`"]([\w.]+\.)(?:\$|" ~)', text)
    starts += ["question.", "answer.", "action.", "intro.right.", "intro.wrong."]
    quoted = set(re.findall(r'["`]([\w.-]+)["`]', text))
    unused = [
        key
        for key in read_words("en")
        if not {key, *(key.removesuffix(form) for form in FORMS)} & quoted
        and not key.startswith(tuple(starts))
    ]
    assert unused == []
