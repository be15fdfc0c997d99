"""Golden files: written, read and compared. A text with a file's name lies in a file of its own."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent
TOLERANCE = 1e-5
DIGITS = 8  # significant ones, of a stored number
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def plain(value: Any) -> Any:
    """Return a value as json stores it."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (np.ndarray, list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{DIGITS}g}")
    return value


def path_of(group: str, name: str) -> Path:
    """Return the file of a golden."""
    return HOME / group / (re.sub(r"[^\w.]+", "_", name) + ".json")


def differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, float, str]]:
    """Yield where two values differ: the place, by how much, and both as text."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new:
                yield f"{place}/{key}", math.inf, "is new" if key in new else "is gone"
            else:
                yield from differences(old[key], new[key], f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield place, math.inf, f"{len(old)} values became {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif _is_number(old) and _is_number(new):
        if not (old == new or (math.isnan(old) and math.isnan(new))):
            yield place, abs(new - old) / max(1.0, abs(old)), f"{old} became {new}"
    elif isinstance(old, str) and isinstance(new, str):
        yield from _text_differences(old, new, place)
    elif old != new:
        yield place, math.inf, f"{old!r} became {new!r}"


def _text_differences(old: str, new: str, place: str) -> Iterator[tuple[str, float, str]]:
    """Compare texts line by line: their numbers as numbers, all else exactly."""
    if len(old.splitlines()) != len(new.splitlines()):
        yield place, math.inf, f"{len(old.splitlines())} lines became {len(new.splitlines())}"
    for number, (one, other) in enumerate(zip(old.splitlines(), new.splitlines(), strict=False)):
        if NUMBER.sub("0", one) != NUMBER.sub("0", other):
            yield f"{place}:{number + 1}", math.inf, f"{one!r} became {other!r}"
            continue
        for was, became in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            yield from differences(float(was), float(became), f"{place}:{number + 1}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read(group: str, name: str) -> dict[str, Any]:
    """Return a golden."""
    path = path_of(group, name)
    golden: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for part in path.parent.glob(f"{path.stem}.*.*"):
        golden[part.name.removeprefix(f"{path.stem}.")] = part.read_text(encoding="utf-8")
    return golden


def compare(group: str, name: str, numbers: dict[str, Any]) -> list[str]:
    """Return what differs from a golden by more than the tolerance, one line each."""
    return [
        f"{name}{place}: {what}"
        for place, far, what in differences(read(group, name), plain(numbers))
        if not far <= TOLERANCE
    ]


def write(group: str, name: str, numbers: dict[str, Any]) -> str:
    """Write a golden; return one line that says what moved."""
    path, now = path_of(group, name), plain(numbers)
    path.parent.mkdir(exist_ok=True)
    moved = list(differences(read(group, name), now)) if path.exists() else None
    texts = {key for key in now if key.endswith((".csv", ".tex"))}
    stored = {key: value for key, value in now.items() if key not in texts}
    path.write_text(_dump(stored) + "\n", encoding="utf-8")
    for key in texts:
        path.with_name(f"{path.stem}.{key}").write_text(now[key], encoding="utf-8")
    if moved is None:
        return f"{group}/{name}: new"
    if not moved:
        return f"{group}/{name}: the same"
    place, far, what = max(moved, key=_distance)
    return f"{group}/{name}: {len(moved)} values moved, by at most {far:.2g}: {place} {what}"


def _distance(difference: tuple[str, float, str]) -> float:
    return difference[1]


def _dump(value: Any, indent: int = 0) -> str:
    """Return json with one key, or one row of a matrix, in a line."""
    margin = " " * (indent + 1)
    if isinstance(value, dict) and value:
        parts = [f"{margin}{json.dumps(k)}: {_dump(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        parts = [f"{margin}{_dump(part, indent + 1)}" for part in value]
        return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
    return json.dumps(value, ensure_ascii=False)
