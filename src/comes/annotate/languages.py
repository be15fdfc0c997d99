"""The words of the page, a file per language; every file has the same keys."""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

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
