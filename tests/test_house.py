"""The walls of the house: sizes that stay small, and one meaning for each module name."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "comes"
FILES = sorted(HOUSE.rglob("*.py"))
MOST_LINES, MOST_BODY, MOST_PARAMETERS = 350, 60, 12
# scikit-learn wants every setting as a parameter; a command has its options.
MANY_PARAMETERS = {"CandidateClassifier.__init__", "ImageClassifier.__init__"}


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Give the functions of a file with their names, those of classes with the class before."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for parent in ast.walk(tree):
        prefix = f"{parent.name}." if isinstance(parent, ast.ClassDef) else ""
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_files_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for name, function in functions(path):
        assert body_length(function) <= MOST_BODY, name
        arguments = function.args
        n_parameters = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
        if name not in MANY_PARAMETERS and path.parent.name != "cli":
            assert n_parameters <= MOST_PARAMETERS, name


def test_a_module_name_has_one_meaning() -> None:
    names = [path.stem for path in FILES if not path.stem.startswith("__")]
    names += [path.name for path in HOUSE.iterdir() if (path / "__init__.py").exists()]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_room_has_a_door_that_is_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    doors = [c for c in contracts if c["type"] == "protected"]
    rooms = sorted(path.parent.name for path in HOUSE.glob("*/__init__.py"))
    assert sorted(door["protected_modules"] for door in doors) == [[f"comes.{r}.*"] for r in rooms]
    for door in doors:  # and no other room has a key
        assert door["protected_modules"] == [f"{name}.*" for name in door["allowed_importers"]]
