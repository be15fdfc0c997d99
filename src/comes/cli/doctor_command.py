"""``comes doctor``: what is installed, what it runs on, and what is wrong."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from comes.cli.options import Json
from comes.cli.printing import print_json, print_rows

if TYPE_CHECKING:
    from comes.jobs import Installation


def doctor(as_json: Json = False) -> None:
    """Tell versions, devices, data folders and extras, and what is wrong with them.

    The exit code is 1 if something is broken, and 0 if only extras are missing.

    Example: comes doctor
    """
    from comes.jobs import check_installation

    found = check_installation()
    if as_json:
        print_json(found.as_dict())
    else:
        _print_installation(found)
    if not found.is_healthy:
        raise typer.Exit(1)


def _print_installation(found: "Installation") -> None:
    """Print problems first, then everything that may help to understand them."""
    for problem in found.problems:
        print(f"Problem: {problem.what}\n  {problem.cure}")
    if found.is_healthy:
        print("Nothing is broken.")
    versions = (f"{name} {version or 'missing'}" for name, version in found.versions.items())
    _print_list("Versions", versions)
    devices = {name: value for name, value in found.devices.items() if name not in ("gpus", "mps")}
    devices["gpus"] = "; ".join(found.devices.get("gpus", ())) or "none that torch sees"
    if found.devices.get("mps"):
        devices["mps"] = "there; give it as --device mps"
    _print_list("Devices", (f"{name} {value}" for name, value in devices.items()))
    for folder in found.folders:
        state = "there" if folder.exists else "not there yet" if folder.is_writable else "missing"
        free = "" if folder.free_gigabytes is None else f", {folder.free_gigabytes:.0f} GB free"
        writable = "" if folder.is_writable else ", cannot be written"
        print(f"Folder {folder.name}: {folder.path}, {state}{writable}{free}")
    if found.datasets is not None:
        _print_list("Data sets at hand", found.datasets or ("none",))
    if found.extras:
        print_rows(
            [
                {"extra": e.name, "gives": e.gives, "": e.command if e.missing else "installed"}
                for e in found.extras
            ]
        )


def _print_list(title: str, parts: Iterable[str]) -> None:
    """Print parts after a title, over as many lines as they need."""
    text = f"{title}: {', '.join(parts)}"
    print(textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False))
