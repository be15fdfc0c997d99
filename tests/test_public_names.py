"""What the reference documents is what can be imported."""

import importlib
import re
from pathlib import Path

import comes
from reference_pages import list_rooms, room_page

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
HEADING = re.compile(r"^## (\w+) \{", re.MULTILINE)
DOTTED = re.compile(r"`comes\.(\w+)\.(\w+)[(`]")


def documented() -> dict[str, set[str]]:
    """Return the names that the reference has an entry for, by package."""
    return {name: set(HEADING.findall(room_page(name, ""))) for name in list_rooms()}


def test_the_reference_documents_what_can_be_imported() -> None:
    for package, names in documented().items():
        module = importlib.import_module(f"comes.{package}")
        assert names == set(module.__all__), package
        assert [name for name in names if not hasattr(module, name)] == [], package
    assert all(hasattr(comes, name) for name in comes.__all__)


def test_names_in_documents_are_in_the_reference() -> None:
    names = documented()
    for path in DOCUMENTS:
        for package, name in DOTTED.findall(path.read_text(encoding="utf-8")):
            if package in names:
                assert name in names[package], f"{path.name}: comes.{package}.{name}"
