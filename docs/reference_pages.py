"""Pages of the reference, a page per room, made from the docstrings of what it exports."""

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import comes
from comes.risks import MarginLoss
from docstring_markdown import docstring_to_markdown, summary_of, text_to_markdown

SOURCES = Path(comes.__file__).parents[2]
LONGEST_LINE, LONGEST_VALUE = 88, 400
PROPERTIES = (property, functools.cached_property)
KEYWORD = inspect.Parameter.KEYWORD_ONLY
# Beside private names, what scikit-learn adds to every estimator is left out.
OWN_NAME = re.compile(r"(?!_|set_\w+_request$)")


def list_rooms() -> list[str]:
    """Return the names of the rooms that export something."""
    modules = [module.name for module in pkgutil.iter_modules(comes.__path__)]
    return [name for name in modules if name[0] != "_" and hasattr(_room(name), "__all__")]


def find_names() -> dict[str, str]:
    """Return where each exported name is: 'comes.risks.bce_risk' and, if unique, 'bce_risk'.

    The place is the page, relative to the pages of rooms, with the anchor.
    """
    places = {f"comes.{r}.{n}": f"{r}.md#{n}" for r in list_rooms() for n in _room(r).__all__}
    short = [name.rpartition(".")[2] for name in places]
    unique = {name.rpartition(".")[2]: place for name, place in places.items()}
    return places | {name: place for name, place in unique.items() if short.count(name) == 1}


def top_page() -> str:
    """Return the page of `comes` itself, with the names that are short for those of rooms."""
    names = find_names()
    rows = []
    for name in comes.__all__:
        room = getattr(comes, name).__module__.split(".")[1]
        rows.append((name, names[f"comes.{room}.{name}"], getattr(comes, name).__doc__))
    rooms = [(f"comes.{room}", f"{room}.md", _room(room).__doc__) for room in list_rooms()]
    text = text_to_markdown(inspect.getdoc(comes) or "")
    return (
        f"# comes\n\n{text}\n\n{_table('name', rows)}\n\n## Rooms\n\n"
        f"What a room exports is public; what lies in its files is its own.\n\n"
        f"{_table('room', rooms)}\n"
    )


def room_page(room: str, repository: str) -> str:
    """Return the page of a room: what it is for, its names, and their docstrings."""
    module = _room(room)
    names = sorted(module.__all__, key=lambda name: (not name.islower(), name))  # functions first
    exported = {name: getattr(module, name) for name in names}
    rows = [(name, f"#{name}", _docstring(value)) for name, value in exported.items()]
    parts = [f"# comes.{room}", docstring_to_markdown(inspect.getdoc(module) or "")]
    parts += [f"```py\nfrom comes.{room} import {_first_of(exported)}\n```", _table("name", rows)]
    for name, value in exported.items():
        parts += _entry(name, value, repository)
    return "\n\n".join(parts) + "\n"


def _room(name: str) -> ModuleType:
    return importlib.import_module(f"comes.{name}")


def _table(head: str, rows: Sequence[tuple[str, str, str | None]]) -> str:
    lines = [f"| {head} | meaning |", "| --- | --- |"]
    for name, place, docstring in rows:
        summary = summary_of(inspect.cleandoc(docstring)) if docstring else ""
        lines.append(f"| [`{name}`]({place}) | {summary.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def _docstring(value: Any) -> str:
    """Return what is said of a class or function; of other values, nothing is theirs."""
    is_told = inspect.isclass(value) or _is_function(value) or isinstance(value, PROPERTIES)
    return (inspect.getdoc(value) or "") if is_told else ""


def _is_function(value: Any) -> bool:
    return inspect.isfunction(inspect.unwrap(value)) or inspect.ismethod(value)


def _first_of(exported: dict[str, Any]) -> str:
    """Return the name to show in an import: a class or function, where there is one."""
    told = [name for name, value in exported.items() if _docstring(value)]
    return [*told, *exported][0]


def _entry(name: str, value: Any, repository: str) -> Iterator[str]:
    yield f"## {name} {{ #{name} }}"
    if not (inspect.isclass(value) or _is_function(value)):
        yield _constant_text(name, value)
        return
    yield f"```py\n{_signature_text(name, value)}\n```"
    yield docstring_to_markdown(_docstring(value))
    if inspect.isclass(value):
        for member, function in sorted(_members(value).items()):
            yield f"### {name}.{member} {{ #{name}.{member} }}"
            if not isinstance(function, PROPERTIES):
                called = f"{name}.{member}" if inspect.ismethod(function) else member
                yield f"```py\n{_signature_text(called, function)}\n```"
            yield docstring_to_markdown(_docstring(function))
    source = Path(inspect.getsourcefile(inspect.unwrap(value)) or "").relative_to(SOURCES)
    yield f"Source: [{source}]({repository}/blob/main/{source})"


def _members(owner: type) -> dict[str, Any]:
    """Return the documented methods and properties that classes of comes give a class."""
    found: dict[str, Any] = {}
    for cls in reversed(owner.__mro__):
        if cls.__module__.startswith("comes."):
            found |= {name: getattr(owner, name) for name in vars(cls) if OWN_NAME.match(name)}
    return {n: v for n, v in found.items() if not inspect.isclass(v) and _docstring(v)}


def _signature_text(name: str, value: Any) -> str:
    """Return a call with the names of parameters and their defaults, in lines that are short."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"{name}(message)"
    if inspect.isclass(value) and issubclass(value, Enum):
        return "\n".join(f"{name}.{member.name} = {member.value!r}" for member in value)
    parameters = [
        p.replace(
            annotation=p.empty,
            default=p.empty if p.default is p.empty else _Shown(_value_text(p.default)),
        )
        for p in inspect.signature(value).parameters.values()
        if p.name != "self"
    ]
    text = f"{name}{inspect.Signature(parameters)}"
    if len(text) <= LONGEST_LINE:
        return text
    parts = [str(inspect.Signature([p]))[1:-1].removeprefix("*, ") for p in parameters]
    kinds = [p.kind for p in parameters]
    if KEYWORD in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(KEYWORD), "*")
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


class _Shown:
    """A default that is printed as a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _value_text(value: Any) -> str:
    """Return a value as code; of what has no short code, its name or its keys."""
    if isinstance(value, MarginLoss):
        return value.name
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__name__)
    text = re.sub(r"<(?:function|class) '?([\w.]+)'?[^>]*>", r"\1", repr(value))
    text = re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text)  # the modules of types
    return "..." if " at 0x" in text or len(text) > LONGEST_VALUE else text


def _constant_text(name: str, value: Any) -> str:
    """Return what an exported value is that has no docstring of its own."""
    if isinstance(value, MarginLoss):
        return f"```py\n{name}(scores, target)\n```\n\nA `MarginLoss`."
    if isinstance(value, dict):
        return "A dict with the keys " + ", ".join(f"`{key}`" for key in value) + "."
    return f"```py\n{name} = {_value_text(value)}\n```"
