"""What ``comes doctor`` tells: problems with their cures, versions, devices, folders and extras."""

import os
import platform
import re
import shutil
import subprocess
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import comes
from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder

Problem = dict[str, str]  # what is wrong, and its cure
EXTRAS = {
    "annotate": "the web page that asks people (comes annotate)",
    "chem": "features of molecules (Tox21)",
    "images": "images, and networks of timm",
    "onnx": "models for programs without Python (comes export)",
    "recipes": "the worked recipes: Lightning, transformers, FastAPI",
    "remote": "data in object stores, such as s3://",
    "scale": "Dask and Ray clusters",
    "text": "vectors of texts, in place of TF-IDF",
    "trees": "files of any classifier of scikit-learn (CorrectedClassifier)",
}
IMPORTED_AS = {"liac-arff": "arff", "scikit-learn": "sklearn"}


def check_installation() -> dict[str, Any]:
    """Return what is installed, what it computes on, where data lies, and what is wrong with it."""
    versions: dict[str, str | None] = {
        "comes": comes.__version__,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    problems: list[Problem] = []
    extras = []
    try:
        requirements = [Requirement(text) for text in requires("comes") or ()]
    except PackageNotFoundError:
        what = "comes is imported from a folder, and not installed: its requirements are unknown."
        cure = "In the folder that has its pyproject.toml: pip install -e ."
        problems.append({"what": what, "cure": cure})
    else:
        for needed in requirements:
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                versions[needed.name] = find_version(needed.name)
                problems += check_package(needed)
        for name, gives in EXTRAS.items():
            missing = [
                without_marker(needed)
                for needed in requirements
                if "extra" in str(needed.marker)
                and needed.marker.evaluate({"extra": name})  # type: ignore[union-attr]
                and not is_met(needed)
            ]
            extra = {"name": name, "gives": gives, "missing": missing, "installed": not missing}
            extras.append(extra | {"command": f"pip install 'comes[{name}]'"})
    folders, misplaced = describe_folders()
    datasets = None
    if not problems and not misplaced:
        from comes.workflows.data import list_datasets  # needs packages that may be broken

        datasets = [row["name"] for row in list_datasets() if row["at_hand"]]
    devices, unseen = describe_devices()
    return {
        "problems": [*problems, *misplaced, *unseen],
        "versions": versions,
        "devices": devices,
        "folders": folders,
        "datasets": datasets,
        "extras": extras,
    }


def find_version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def without_marker(requirement: Requirement) -> str:
    """Return a requirement as pip takes it."""
    return str(requirement).partition(";")[0].strip()


def is_met(requirement: Requirement) -> bool:
    """Return whether an installed package is in the range that is asked for."""
    installed = find_version(requirement.name)
    return installed is not None and requirement.specifier.contains(installed, prereleases=True)


def check_package(requirement: Requirement) -> list[Problem]:
    """Return what is wrong with a package that comes needs: missing, too old, or broken."""
    name, installed = requirement.name, find_version(requirement.name)
    wanted = without_marker(requirement)
    if not is_met(requirement):
        state = "is not installed" if installed is None else f"is {installed}"
        what = f"{name} {state}; comes needs {wanted}."
        return [{"what": what, "cure": f"pip install '{wanted}'"}]
    try:
        import_module(IMPORTED_AS.get(name, name.replace("-", "_")))
    except Exception as error:  # whatever a broken package raises
        what = f"{name} {installed} cannot be imported: {first_line(error)}."
        return [{"what": what, "cure": f"pip install --force-reinstall '{wanted}'"}]
    return []


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
    if torch.cuda.is_available() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return facts, []
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):  # no driver
        return facts, []
    names = re.findall(r"^GPU \d+: (.+?)(?: \(UUID.*)?$", done.stdout, re.MULTILINE)
    if not names:
        return facts, []
    what = f"torch {torch.__version__} does not see the GPU: {names[0]}."
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    cure = (
        f"It is built {built}: install one that fits the driver, as pytorch.org/get-started says."
    )
    return facts, [{"what": what, "cure": cure}]


def describe_folders() -> tuple[list[dict[str, Any]], list[Problem]]:
    """Return the folders of data and of downloads, and what is wrong with them."""
    folders, problems = [], []
    try:
        if (data := data_folder()) is not None:
            folders.append(describe_folder("COMES_DATA", data))
    except ComesError as error:
        what, cure = str(error).rsplit(". ", 1)
        problems.append({"what": f"{what}.", "cure": cure})
    try:
        cache = describe_folder("cache", cache_folder())
    except (ComesError, ImportError) as error:
        what = f"There is no cache: {first_line(error)}"
        return folders, [*problems, {"what": what, "cure": "Set COMES_CACHE."}]
    folders.append(cache)
    if not cache["is_writable"]:
        what = f"The cache {cache['path']} cannot be written, so nothing can be downloaded."
        problems.append({"what": what, "cure": "Let COMES_CACHE name a folder of yours."})
    return folders, problems


def describe_folder(name: str, path: Path) -> dict[str, Any]:
    """Return what can be done with a folder, or with the nearest one above it that exists."""
    there = next(folder for folder in (path, *path.absolute().parents) if os.path.exists(folder))
    home = Path.home()
    return {
        "name": name,  # and the path without the name of the user
        "path": str("~" / path.relative_to(home) if path.is_relative_to(home) else path),
        "exists": os.path.isdir(path),
        "is_writable": os.path.isdir(there) and os.access(there, os.W_OK),
        "free_gigabytes": round(shutil.disk_usage(there).free / 1e9, 1),
    }
