"""Checksums of a saved model: weights that rot and descriptions that are edited are noticed.

``model.json`` holds the checksum of the weights' file, and that of all else it says. Models that
were saved without them load as before.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from comes.errors import ComesError

CHECKSUMS = "checksums"
BLOCK = 1 << 20  # bytes


def add_checksums(description: dict[str, Any], weights: Path) -> dict[str, Any]:
    """Return the description of a model with checksums of itself and of the weights."""
    found = {"weights": hash_file(weights), "description": hash_description(description)}
    return {**description, CHECKSUMS: found}


def check_checksums(description: dict[str, Any], path: Path, weights: Path) -> None:
    """Raise an error if the weights or the description of a model are not what was saved."""
    known = description.get(CHECKSUMS)
    if known is None:
        return
    if not isinstance(known, dict):
        raise ComesError(f"{path} is damaged: its checksums are {known!r}. Fit the model again.")
    if known.get("weights") != hash_file(weights):
        raise ComesError(
            f"{weights} is damaged: its bytes are not those that were saved. Take another copy of "
            "the model, or fit it again."
        )
    if known.get("description") != hash_description(description):
        raise ComesError(
            f"{path} was changed after it was saved, so what it says may not belong to the weights "
            "(such as the order of features and labels). Take another copy of the model, or fit it "
            "again."
        )


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def hash_description(description: dict[str, Any]) -> str:
    """Return the SHA-256 of what a description says, however its json is laid out."""
    content = {name: value for name, value in description.items() if name != CHECKSUMS}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def find_system_error(message: str) -> OSError | None:
    """Return the error of the system that a message of safetensors quotes: a full disk, say."""
    found = re.search(r"(?:I/O error: )?([^:()]+) \(os error (\d+)\)", message)
    return None if found is None else OSError(int(found[2]), found[1].strip())
