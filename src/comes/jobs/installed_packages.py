"""Which packages are installed, beside those that the installed comes asks for."""

import platform
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import comes
from comes.errors import first_line
from comes.jobs.doctor_findings import Extra, Problem

EXTRAS = {
    "annotate": "the web page that asks people (comes annotate)",
    "chem": "features of molecules (Tox21)",
    "hub": "data sets of the Hugging Face Hub",
    "images": "images, and networks of timm",
    "onnx": "models for programs without Python (comes export)",
    "recipes": "the worked recipes: Lightning, transformers, FastAPI",
    "remote": "data in object stores, such as s3://",
    "scale": "Dask and Ray clusters",
    "text": "vectors of texts, in place of TF-IDF",
}
IMPORTED_AS = {"liac-arff": "arff", "scikit-learn": "sklearn"}


def list_requirements(extra: str = "") -> Iterator[Any]:
    """Give what comes asks for, or what one of its extras does."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires("comes") or ()):
        is_extra = requirement.marker is not None and "extra" in str(requirement.marker)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if applies and is_extra == bool(extra):
            requirement.marker = None
            yield requirement


def find_version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def find_versions() -> dict[str, str | None]:
    """Return the versions of comes, Python, the system, and every package that comes needs."""
    try:
        names = [requirement.name for requirement in list_requirements()]
    except PackageNotFoundError:
        names = []
    here = {
        "comes": comes.__version__,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    return here | {name: find_version(name) for name in names}


def find_package_problems() -> list[Problem]:
    """Return what is missing, too old, or cannot be imported, of what comes needs."""
    try:
        requirements = list(list_requirements())
    except PackageNotFoundError:
        return [
            Problem(
                "comes is imported from a folder, and not installed: its requirements are unknown.",
                "In the folder that has its pyproject.toml: pip install -e .",
            )
        ]
    found = (_check_package(requirement) for requirement in requirements)
    return [problem for problem in found if problem is not None]


def _check_package(requirement: Any) -> Problem | None:
    """Return what is wrong with a package that comes needs."""
    name, installed = requirement.name, find_version(requirement.name)
    cure = f"pip install '{requirement}'"
    if installed is None:
        return Problem(f"{name} is not installed; comes needs {requirement}.", cure)
    if not is_met(requirement):
        return Problem(f"{name} is {installed}; comes needs {requirement}.", cure)
    try:
        import_module(IMPORTED_AS.get(name, name.replace("-", "_")))
    except Exception as error:  # whatever a broken package raises
        return Problem(
            f"{name} {installed} cannot be imported: {first_line(error)}.",
            f"pip install --force-reinstall '{requirement}'",
        )
    return None


def is_met(requirement: Any) -> bool:
    """Return whether an installed package is in the range that is asked for."""
    installed = find_version(requirement.name)
    return installed is not None and requirement.specifier.contains(installed, prereleases=True)


def find_extras() -> list[Extra]:
    """Return the extras with what they lack."""
    try:
        return [
            Extra(name, gives, tuple(str(r) for r in list_requirements(name) if not is_met(r)))
            for name, gives in EXTRAS.items()
        ]
    except PackageNotFoundError:
        return []
