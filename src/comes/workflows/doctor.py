"""What `check_installation` finds: problems with their cures, extras and folders."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import comes
from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder


@dataclass(frozen=True)
class Problem:
    """Something that is broken, and what to do about it."""

    what: str
    cure: str


@dataclass(frozen=True)
class Extra:
    """A group of packages that are installed on demand."""

    name: str
    gives: str
    missing: tuple[str, ...]  # requirements that nothing installed meets

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install 'comes[{self.name}]'"


@dataclass(frozen=True)
class Folder:
    """A folder that comes reads from or writes to."""

    name: str
    path: str  # ~ in place of the home of the user
    exists: bool
    is_writable: bool  # or can be made
    free_gigabytes: float | None


def show_path(path: Path) -> str:
    """Return a path without the name of the user."""
    try:
        return str("~" / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


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


SECONDS_TO_ANSWER = 20  # of nvidia-smi


def describe_devices() -> tuple[dict[str, Any], list[Problem]]:
    """Return what torch can train on, and whether it misses a GPU that the driver sees."""
    facts: dict[str, Any] = {"cores": os.cpu_count()}
    try:
        import torch

        from comes.training.rows import choose_device
    except Exception:  # told where packages are imported
        return facts, []
    facts["threads"] = torch.get_num_threads()
    facts["gpus"] = [
        f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
        for gpu in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    ]
    facts["mps"] = torch.backends.mps.is_available()
    facts["auto"] = str(choose_device("auto"))
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if torch.cuda.is_available() or is_hidden or not (names := _ask_driver()):
        return facts, []
    if torch.version.cuda is None:
        cure = "It is built without CUDA: install one with it, as pytorch.org/get-started says."
    else:
        cure = f"It is built for CUDA {torch.version.cuda}: update the driver, or install another."
    return facts, [Problem(f"torch {torch.__version__} does not see the GPU: {names[0]}.", cure)]


def _ask_driver() -> list[str]:
    """Return the names of the GPUs that nvidia-smi lists."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r"^GPU \d+: (.+?)(?: \(UUID.*)?$", done.stdout, re.MULTILINE)


def describe_folders() -> tuple[list[Folder], list[Problem]]:
    """Return the folders of data and of downloads, and what is wrong with them."""
    folders, problems = [], []
    try:
        data = data_folder()
    except ComesError:
        named = Path(os.environ["COMES_DATA"])
        problems.append(
            Problem(
                f"COMES_DATA names {show_path(named)}, which is not a folder.",
                "Correct the variable, or unset it.",
            )
        )
        folders.append(Folder("COMES_DATA", show_path(named), False, False, None))
    else:
        if data is not None:
            folders.append(_describe_folder("COMES_DATA", data))
    try:
        cache = _describe_folder("cache", cache_folder())
    except (ComesError, ImportError) as error:
        problems.append(Problem(f"There is no cache: {first_line(error)}", "Set COMES_CACHE."))
        return folders, problems
    folders.append(cache)
    if not cache.is_writable:
        problems.append(
            Problem(
                f"The cache {cache.path} cannot be written, so nothing can be downloaded.",
                "Let COMES_CACHE name a folder of yours.",
            )
        )
    return folders, problems


def _describe_folder(name: str, path: Path) -> Folder:
    """Return what can be done with a folder, or with the nearest one above it that exists."""
    there = next(folder for folder in (path, *path.absolute().parents) if os.path.exists(folder))
    is_writable = os.path.isdir(there) and os.access(there, os.W_OK)
    free = round(shutil.disk_usage(there).free / 1e9, 1)
    return Folder(name, show_path(path), os.path.isdir(path), is_writable, free)


@dataclass(frozen=True)
class Installation:
    """What is installed, where, and what is wrong with it.

    Parameters
    ----------
    problems : tuple of Problem
        What is broken (``what``), and what to do about it (``cure``).
    versions : mapping of str to str or None
        Of comes, Python, the system, and the packages that comes needs; None where one is missing.
    devices : mapping of str to any
        cores, threads, gpus, mps, and the device that "auto" takes.
    folders : tuple of Folder
        ``$COMES_DATA``, if it is set, and the cache.
    datasets : tuple of str or None
        The data sets by name that are at hand; None if problems keep them from being looked for.
    extras : tuple of Extra
        Each with what it gives, and which of its packages are missing or too old.

    Examples
    --------
    >>> Installation((), {"comes": "1.0.0"}, {}, (), (), ()).is_healthy
    True
    """

    problems: tuple[Problem, ...]
    versions: Mapping[str, str | None]
    devices: Mapping[str, Any]
    folders: tuple[Folder, ...]
    datasets: tuple[str, ...] | None
    extras: tuple[Extra, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken; extras may be missing."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as json can hold it."""
        values = asdict(self) | {"versions": dict(self.versions), "devices": dict(self.devices)}
        values["extras"] = [
            asdict(extra) | {"installed": not extra.missing, "command": extra.command}
            for extra in self.extras
        ]
        return values


def check_installation() -> Installation:
    """Look at what is installed, what it can compute on and where data lies; change nothing.

    Returns
    -------
    installation : Installation

    Examples
    --------
    >>> import comes
    >>> found = check_installation()
    >>> found.versions["comes"] == comes.__version__
    True
    >>> [extra.command for extra in found.extras if extra.name == "chem"]
    ["pip install 'comes[chem]'"]
    """
    broken = find_package_problems()
    folders, misplaced = describe_folders()
    devices, unseen = describe_devices()
    return Installation(
        (*broken, *misplaced, *unseen),
        find_versions(),
        devices,
        tuple(folders),
        None if broken or misplaced else _find_datasets(),
        tuple(find_extras()),
    )


def _find_datasets() -> tuple[str, ...]:
    from comes.workflows.data import list_datasets

    return tuple(row["name"] for row in list_datasets() if row["at_hand"])
