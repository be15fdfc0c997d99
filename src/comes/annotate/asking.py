"""How a project asks: the sentence of the question, whether yes is an answer, and the language.

The sentence is made from a template with ``{class}``, the name of the class, and optionally
``{a}``, which is "a" or "an". A class may have a template of its own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from comes.annotate.schema import settings
from comes.errors import ComesError, listed
from comes.files import expanded

LANGUAGES = {"en": "English", "de": "Deutsch"}
# The settings of a project that say how it asks.
QUESTION, ASKS_YES, LANGUAGE, GUIDELINES = "question", "asks_yes", "language", "guidelines"
LONGEST_QUESTION = 300  # characters


@lru_cache
def read_words(language: str) -> Mapping[str, str]:
    """Return the words of the page in a language."""
    file = files("comes.annotate").joinpath("words", f"{language}.json")
    words: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return words


def describe_asking(
    question: str | None,
    asks_yes: bool | None,
    language: str | None,
    guidelines: str | Path | None,
    names: Sequence[str],
) -> dict[str, str]:
    """Return the settings of what is given; raise where it is wrong. The names are the classes'."""
    described = {}
    if question is not None:
        check_template(question)
        if "{class}" not in question:
            raise ComesError(
                "the question must hold {class}, where the name of the class goes; got "
                f"{question!r}. Write for example 'Does this show {{class}}?'."
            )
        described[QUESTION] = question
    if asks_yes is not None:
        described[ASKS_YES] = str(int(asks_yes))
    if language is not None:
        if language not in LANGUAGES:
            raise ComesError(f"the language must be {' or '.join(LANGUAGES)}; got {language!r}.")
        described[LANGUAGE] = language
    if guidelines is not None:
        folder = expanded(guidelines).resolve()
        if not folder.is_dir():
            raise ComesError(
                f"the guidelines must be in a folder; {folder} is none. Correct the path."
            )
        found = [find_guideline(folder, name) for name in names]
        if not any(guide.text or guide.pictures for guide in found):
            raise ComesError(
                f"{folder} must have guidelines named after classes, such as {names[0]}.md or "
                f"{names[0]}-1.jpg; it has none. Rename them."
            )
        described[GUIDELINES] = str(folder)
    return described


def check_template(template: str) -> None:
    """Raise if a template has places that nothing goes into, or is too long."""
    places = re.findall(r"\{[^{}]*\}", template)
    unknown = [place for place in places if place not in ("{class}", "{a}")]
    if unknown:
        raise ComesError(
            f"a question may hold {{class}} and {{a}}; got {listed(unknown)}. Remove it."
        )
    if len(template) > LONGEST_QUESTION:
        raise ComesError(
            f"a question must have at most {LONGEST_QUESTION} characters; got {len(template)}. "
            "Write what is longer into the description of the class, or its guidelines."
        )


def read_asking(connection: Connection) -> dict[str, str]:
    """Return what is stored of how a project asks: question, asks_yes, language, guidelines."""
    names = QUESTION, ASKS_YES, LANGUAGE, GUIDELINES
    query = select(settings.c.name, settings.c.value).where(settings.c.name.in_(names))
    return {row.name: row.value for row in connection.execute(query) if row.value}


def add_questions(connection: Connection, shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cards with the sentence that each asks, and where the name of the class is in it."""
    asked, rows = read_asking(connection), []
    for card in shown:
        kind = "image" if card["text"] is None else "text"
        template = asked.get(QUESTION) or default_template(kind, asked.get(LANGUAGE, "en"))
        article = "an" if card["class"][:1].lower() in tuple("aeiou8") else "a"
        sentence = (card["question"] or template).replace("{a}", article)
        before, place, _ = sentence.partition("{class}")
        begin = len(before.encode("utf-16-le")) // 2 if place else None  # as JavaScript counts
        question = sentence.replace("{class}", card["class"])
        rows.append({**card, "question": question, "class_at": begin})
    return rows


def default_template(kind: str, language: str) -> str:
    """Return the question about an "image" or a "text" in a language."""
    return read_words(language)[f"question.{kind}"]


class Guideline(NamedTuple):
    """What a folder has about a class: CLASS.md or CLASS.txt, CLASS/*.jpg and CLASS-*.jpg."""

    text: str
    is_markdown: bool
    pictures: list[Path]


TEXTS = (".md", ".txt")
PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp")
LONGEST_TEXT = 50_000  # characters
MOST_PICTURES = 24


def find_guideline(folder: Path, name: str) -> Guideline:
    """Return what a folder has about a class; nothing of it lies outside of the folder."""
    home = folder.resolve()
    found = _list_inside(home, home)
    beside = [path for path in found if path.is_file() and path.stem.startswith(f"{name}-")]
    folders = [path for path in found if path.is_dir() and path.name == name]
    inside = [path for place in folders for path in _list_inside(place, home) if path.is_file()]
    pictures = [path for path in beside + inside if path.suffix.lower() in PICTURES]
    texts = [path for path in found if path.stem == name and path.suffix.lower() in TEXTS]
    text, is_markdown = "", False
    if texts:
        with suppress(OSError), texts[0].open(encoding="utf-8-sig", errors="replace") as file:
            text, is_markdown = file.read(LONGEST_TEXT), texts[0].suffix.lower() == ".md"
    return Guideline(text, is_markdown, pictures[:MOST_PICTURES])


def _list_inside(folder: Path, home: Path) -> list[Path]:
    """Return what lies in a folder, sorted, but for links that lead out of the home."""
    try:
        return [path for path in sorted(folder.iterdir()) if path.resolve().is_relative_to(home)]
    except OSError:
        return []
