"""Rooms are used through their doors: what a door shows is there, and shows how it is used."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import comes

# The command line is called from a shell, not from Python.
ROOMS = sorted(
    room.name
    for room in pkgutil.iter_modules(comes.__path__)
    if room.name[0] != "_" and room.name != "cli"
)
each_room = pytest.mark.parametrize("room", ROOMS)


def open_room(room: str) -> ModuleType:
    return importlib.import_module(f"comes.{room}")


def exported(room: str) -> dict[str, Any]:
    module = open_room(room)
    return {name: getattr(module, name) for name in module.__all__}


def names_of(module: ModuleType) -> set[str]:
    """Return the public names that a file defines or, of a package, that its door imports."""
    assert module.__file__ is not None
    is_package = hasattr(module, "__path__")
    names: set[str] = set()
    body = ast.parse(Path(module.__file__).read_text()).body
    for block in [node for node in body if isinstance(node, ast.If)]:  # of names loaded on use
        body += [node for node in block.body if is_package]
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif is_package and isinstance(node, ast.ImportFrom) and "comes." in str(node.module):
            names.update(alias.asname or alias.name for alias in node.names)
    return {name for name in names if not name.startswith("_")}


def is_function_or_class(what: object) -> bool:
    return inspect.isfunction(what) or inspect.isclass(what)


def has_example(what: object) -> bool:
    """Return whether the docstring, not that of a parent, has an example that is run."""
    doc = what.__doc__ or ""
    return "Examples\n" in doc and ">>> " in doc


@each_room
def test_a_door_shows_what_is_there(room: str) -> None:
    module = open_room(room)
    shown = list(module.__all__)
    assert len(shown) == len(set(shown))
    missing = [name for name in shown if not hasattr(module, name)]
    assert not missing, f"comes.{room} has no {missing}"
    there = names_of(module)
    if hasattr(module, "__path__"):  # a door imports nothing but what it shows
        assert there == set(shown)
    else:  # a file may keep types and constants to itself
        assert set(shown) <= there
        usable = {name for name in there if is_function_or_class(getattr(module, name))}
        assert usable <= set(shown)


@each_room
def test_functions_and_classes_come_with_an_example(room: str) -> None:
    without = [
        name
        for name, what in exported(room).items()
        if is_function_or_class(what) and not has_example(what)
    ]
    assert not without, f"comes.{room}: no example for {', '.join(without)}"


@each_room
def test_constants_and_types_are_named_in_the_docstring_of_their_room(room: str) -> None:
    module = open_room(room)
    unexplained = [
        name
        for name, what in exported(room).items()
        if not is_function_or_class(what) and f"`{name}`" not in (module.__doc__ or "")
    ]
    assert not unexplained, f"comes.{room}: {', '.join(unexplained)}"
