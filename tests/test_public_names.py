"""What the reference documents is what can be imported."""

import importlib
import inspect
import re
from pathlib import Path

import comes
from build_site import list_packages

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
DOTTED = re.compile(r"`comes\.(\w+)\.(\w+)[(`]")


def exported() -> dict[str, list[str]]:
    """Return the names that the reference has an entry for, by package."""
    return {name: importlib.import_module(f"comes.{name}").__all__ for name in list_packages()}


def test_exported_names_can_be_imported_and_say_what_they_are() -> None:
    for package, names in exported().items():
        module = importlib.import_module(f"comes.{package}")
        for name in names:
            value = getattr(module, name)
            is_told = inspect.isclass(value) or inspect.isfunction(value)
            assert inspect.getdoc(value) or not is_told, f"comes.{package}.{name}"
    assert all(hasattr(comes, name) for name in comes.__all__)


def test_names_in_documents_are_in_the_reference() -> None:
    names = exported()
    for path in DOCUMENTS:
        for package, name in DOTTED.findall(path.read_text(encoding="utf-8")):
            if package in names:
                assert name in names[package], f"{path.name}: comes.{package}.{name}"
