"""How a project asks: the sentence of the question, whether yes is an answer, and the language.

The sentence is made from a template with ``{class}``, the name of the class, and optionally
``{a}``, which is "a" or "an". A class may have a template of its own.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from comes.annotate.schema import classes, settings
from comes.errors import ComesError, listed
from comes.files import expanded

if TYPE_CHECKING:
    from comes.annotate.project import Project


LANGUAGES = {"en": "English", "de": "Deutsch"}


@lru_cache
def read_words(language: str) -> Mapping[str, str]:
    """Return the words of the page in a language.

    Examples
    --------
    >>> read_words("en")["answer.maybe"], read_words("de")["answer.maybe"]
    ('Cannot tell', 'Unklar')
    """
    file = files("comes.annotate").joinpath("words", f"{language}.json")
    return MappingProxyType(json.loads(file.read_text(encoding="utf-8")))


TEXTS = (".md", ".txt")
PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp")
LONGEST_TEXT = 50_000  # characters
LARGEST_FILE = 20 * 2**20  # bytes
MOST_PIXELS = 50_000_000
SHOWN_SIZE = 1000  # pixels of the longer side
MOST_PICTURES = 24


@dataclass(frozen=True)
class Guideline:
    """What there is about a class.

    Attributes
    ----------
    text : str
    is_markdown : bool
    pictures : list of Path
    """

    text: str
    is_markdown: bool
    pictures: list[Path]


def find_guideline(folder: Path, name: str) -> Guideline:
    """Return what a folder has about a class; nothing of it lies outside of the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "boat.md").write_text("Everything that *floats*.")
    >>> find_guideline(folder, "boat")
    Guideline(text='Everything that *floats*.', is_markdown=True, pictures=[])
    >>> find_guideline(folder, "../boat").text
    ''
    """
    home = folder.resolve()
    listed = _list_files(home, home)
    text = next(
        (path for path in listed if path.suffix.lower() in TEXTS and path.stem == name), None
    )
    pictures = [path for path in listed if path.stem.startswith(f"{name}-")]
    inside = [path for path in _list_folders(home) if path.name == name]
    pictures += [path for place in inside for path in _list_files(place, home)]
    return Guideline(
        _read_text(text) if text else "",
        text is not None and text.suffix.lower() == ".md",
        [path for path in pictures if path.suffix.lower() in PICTURES][:MOST_PICTURES],
    )


def check_guidelines(folder: Path, names: Sequence[str]) -> None:
    """Raise if a folder has guidelines for none of the classes."""
    if not folder.is_dir():
        raise ComesError(f"the guidelines must be in a folder; {folder} is none. Correct the path.")
    found = [find_guideline(folder, name) for name in names]
    if not any(guide.text or guide.pictures for guide in found):
        raise ComesError(
            f"{folder} must have guidelines named after classes, such as {names[0]}.md or "
            f"{names[0]}-1.jpg; it has none. Rename them."
        )


def read_picture(path: Path) -> bytes:
    """Return an example picture as a JPEG of moderate size."""
    from PIL import Image, ImageOps

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError
        with Image.open(path) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise ValueError
            opened.draft("RGB", (SHOWN_SIZE, SHOWN_SIZE))
            shown = ImageOps.exif_transpose(opened).convert("RGB")
            shown.thumbnail((SHOWN_SIZE, SHOWN_SIZE))
        file = io.BytesIO()
        shown.save(file, "JPEG", quality=85)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise ComesError(f"{path.name} cannot be read as a picture. Replace it.") from None
    return file.getvalue()


def _list_files(folder: Path, home: Path) -> list[Path]:
    """Return the files of a folder, sorted; a link out of the home is left out."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []
    return [path for path in found if path.resolve().is_relative_to(home)]


def _list_folders(home: Path) -> list[Path]:
    try:
        found = sorted(path for path in home.iterdir() if path.is_dir())
    except OSError:
        return []
    return [path for path in found if path.resolve().is_relative_to(home)]


def _read_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(LONGEST_TEXT)
    except OSError:
        return ""


QUESTION, ASKS_YES, LANGUAGE, GUIDELINES = "question", "asks_yes", "language", "guidelines"
LONGEST_QUESTION = 300  # characters
_PLACE = re.compile(r"\{(class|a)\}")


@dataclass(frozen=True)
class Asking:
    """How people are asked.

    Parameters
    ----------
    question : str, optional
        A sentence with ``{class}`` for the name of the class, and optionally ``{a}`` for "a" or
        "an". By default "Is there {a} {class} in this picture?" or "Is this text about {class}?",
        in the language of the page.
    asks_yes : bool
        Whether yes is an answer. Without it, no and cannot tell are.
    language : str
        Of the page: "en" or "de". Everybody may choose another one in the browser.
    guidelines : path, optional
        A folder with CLASS.md or CLASS.txt, and pictures CLASS/*.jpg or CLASS-*.jpg.

    Examples
    --------
    >>> Asking(question="Does this show {class}?", asks_yes=False).question
    'Does this show {class}?'
    """

    question: str | None = None
    asks_yes: bool = True
    language: str = "en"
    guidelines: str | Path | None = None

    def __post_init__(self) -> None:
        """Raise if the question, or the language, is none."""
        if self.question is not None:
            check_template(self.question)
            if "{class}" not in self.question:
                raise ComesError(
                    "the question must hold {class}, where the name of the class goes; got "
                    f"{self.question!r}. Write for example 'Does this show {{class}}?'."
                )
        if self.language not in LANGUAGES:
            raise ComesError(
                f"the language must be {' or '.join(LANGUAGES)}; got {self.language!r}."
            )


def describe_asking(asking: Asking, names: Sequence[str]) -> dict[str, str]:
    """Return the settings that say how a project asks; check the guidelines of these classes."""
    described = {ASKS_YES: str(int(asking.asks_yes)), LANGUAGE: asking.language}
    if asking.question is not None:
        described[QUESTION] = asking.question
    if asking.guidelines is not None:
        folder = expanded(asking.guidelines).resolve()
        if names:
            check_guidelines(folder, names)
        described[GUIDELINES] = str(folder)
    return described


def check_template(template: str) -> None:
    """Raise if a template has places that nothing goes into, or is too long."""
    unknown = [place for place in re.findall(r"\{[^{}]*\}", template) if not _PLACE.match(place)]
    if unknown:
        raise ComesError(
            f"a question may hold {{class}} and {{a}}; got {listed(unknown)}. Remove it."
        )
    if len(template) > LONGEST_QUESTION:
        raise ComesError(
            f"a question must have at most {LONGEST_QUESTION} characters; got {len(template)}. "
            "Write what is longer into the description of the class, or its guidelines."
        )


def word_question(template: str, name: str) -> tuple[str, int | None]:
    """Return the sentence about a class, and where the name begins in it (as JavaScript counts).

    Examples
    --------
    >>> word_question("Is there {a} {class} in this picture?", "owl")
    ('Is there an owl in this picture?', 12)
    >>> word_question("Is water to be seen?", "sea")
    ('Is water to be seen?', None)
    """
    article = "an" if name[:1].lower() in tuple("aeiou8") else "a"
    before, place, _ = template.partition("{class}")
    begin = len(before.replace("{a}", article).encode("utf-16-le")) // 2 if place else None
    values = {"class": name, "a": article}
    return _PLACE.sub(lambda found: values[found[1]], template), begin


def default_template(kind: str, language: str) -> str:
    """Return the question about an "image" or a "text" in a language."""
    return read_words(language)[f"question.{kind}"]


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
        sentence, begin = word_question(card["question"] or template, card["class"])
        rows.append({**card, "question": sentence, "class_at": begin})
    return rows


def refuses_yes(connection: Connection) -> bool:
    """Return whether a project does not take yes for an answer."""
    return read_asking(connection).get(ASKS_YES) == "0"


def read_question(project: "Project") -> str:
    """Return the question about the first class of a project, as people read it.

    Parameters
    ----------
    project : Project

    Returns
    -------
    sentence : str

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     print(read_question(project))
    Is this text about sport?
    """
    query = select(classes.c.name.label("class"), classes.c.question).order_by(classes.c.id)
    with project.reading() as connection:
        first = connection.execute(query.limit(1)).one()
        card = {**first._mapping, "text": None if project.kind == "image" else ""}
        return str(add_questions(connection, [card])[0]["question"])


def change_asking(
    project: "Project",
    question: str | None = None,
    asks_yes: bool | None = None,
    language: str | None = None,
    guidelines: str | Path | None = None,
) -> Asking:
    """Change how a project asks; what is None stays as it is. Return how it asks now.

    Answers that were given stay as they are, so change the meaning of a question only in a new
    project.

    Parameters
    ----------
    project : Project
    question, asks_yes, language, guidelines
        As in `Asking`.

    Returns
    -------
    asking : Asking

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     now = change_asking(project, "Does this cover {class}?", asks_yes=False)
    ...     print(now.asks_yes, now.language, read_question(project))
    False en Does this cover sport?
    """
    with project.reading() as connection:
        known = read_asking(connection)
        names = connection.execute(select(classes.c.name).order_by(classes.c.id)).scalars().all()
    stored = Asking(
        known.get(QUESTION),
        known.get(ASKS_YES) != "0",
        known.get(LANGUAGE, "en"),
        known.get(GUIDELINES),
    )
    given: dict[str, Any] = {
        QUESTION: question,
        ASKS_YES: asks_yes,
        LANGUAGE: language,
        GUIDELINES: guidelines,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    changed = replace(stored, **chosen)
    for name, value in describe_asking(changed, names if guidelines is not None else ()).items():
        if name in chosen:
            project.write_setting(name, value)
    return changed
