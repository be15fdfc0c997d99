"""What a machine has for comes: processors, GPUs, and the folders of data."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder
from comes.jobs.doctor_findings import Folder, Problem, show_path

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
