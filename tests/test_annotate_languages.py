"""The words of the page: every language has all of them, every one is used, none is left out."""

import re
from importlib.resources import files
from string import Formatter

import pytest

from comes.annotate.asking import LANGUAGES, read_words

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
