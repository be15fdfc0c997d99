"""Folders of results, as `comes bench` leaves them: ``KEY/result.json``, or ``KEY/error.txt``."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from comes.errors import ComesError
from comes.files import replacing_file
from comes.results.result import Names, Result
from comes.results.task_spec import as_json, hash_json

RESULT_FILE = "result.json"  # is there if and only if the task has finished
ERROR_FILE = "error.txt"  # the name of a task that failed, and its traceback
NAMES = tuple(part.name for part in fields(Names))


def write_result(result: Result, folder: str | Path) -> Path:
    """Write ``result.json`` into a folder, whole or not at all.

    Parameters
    ----------
    result : Result
    folder : path
        An existing folder; `comes bench` names it by the key of the spec.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from comes.results import DataSpec, Degenerate, HammingByCut, RepeatResult, Size, TaskSpec
    >>> cuts, coverage = HammingByCut(zero=0.2, minmax=0.3), {"coverage": 0.4}
    >>> repeat = RepeatResult(pml=coverage, sklearn=coverage, hamming_loss=cuts, risk=(1.0,))
    >>> result = Result(
    ...     names=Names("smoke", "scenes", "plain BCE"),
    ...     spec=TaskSpec(data=DataSpec(name="scenes"), method="bce", label_seeds=1),
    ...     size=Size(n=2000, d=256, q=10),
    ...     degenerate=Degenerate(rows_without_relevant=0, rows_all_relevant=0),
    ...     repeats=(repeat,),
    ...     seconds=1.5,
    ...     versions={"comes": "1.0"},
    ...     device="cpu",
    ... )
    >>> path = write_result(result, tempfile.mkdtemp())
    >>> path.name, read_results([path.parent]) == [result]
    ('result.json', True)
    """
    values = as_json(result)
    names = values.pop("names") | {"sweep": result.names.sweep or ""}  # files say "" for none
    path = Path(folder) / RESULT_FILE
    with replacing_file(path) as temporary:
        text = json.dumps({"key": result.spec.key} | names | values)
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return path


def read_results(
    folders: Iterable[str | Path], names: Mapping[str, Names] | None = None
) -> list[Result]:
    """Read the results in folders, and in folders of such folders.

    Parameters
    ----------
    folders : paths
        As `comes bench` wrote them.
    names : mapping of str to Names, optional
        Only results of these keys, under these names in the place of the stored ones.

    Returns
    -------
    results : list of Result
        The same work under the same names appears once.

    Examples
    --------
    See `write_result`; a folder without results is an error:

    >>> import tempfile
    >>> read_results([tempfile.mkdtemp()])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    comes.errors.ComesError: ... holds no result.json: give a folder that `comes bench` wrote.
    """
    found: dict[tuple[Names, float | None], tuple[Result, Path]] = {}
    for folder in map(Path, folders):
        paths = sorted(folder.rglob(RESULT_FILE)) if folder.is_dir() else []
        if names is not None:
            paths = [path for path in paths if path.parent.name in names]
        if not paths:
            raise ComesError(
                f"{folder} holds no {RESULT_FILE}: give a folder that `comes bench` wrote."
            )
        for path in paths:
            result = _read_result(path)
            if names is not None:
                result = replace(result, names=names[path.parent.name])
            place = (replace(result.names, sweep=None), result.at)
            if place in found and found[place][0].spec != result.spec:
                raise ComesError(_describe_clash(*found[place], result, path))
            found[place] = (result, path)
    return [result for result, _ in found.values()]


def read_errors(folders: Iterable[str | Path]) -> list[str]:
    r"""Return the name and the last line of the error of every task that failed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> text = "bce on scenes\nTraceback\nComesError: epochs must be more\n"
    >>> _ = (folder / "error.txt").write_text(text)
    >>> read_errors([folder])
    ['bce on scenes: ComesError: epochs must be more']
    """
    found = []
    for folder in map(Path, folders):
        for path in sorted(folder.rglob(ERROR_FILE)):
            lines = path.read_text(encoding="utf-8").strip().splitlines() or ["no message"]
            found.append(f"{lines[0]}: {lines[-1]}")
    return found


def _read_result(path: Path) -> Result:
    """Return the result in a file, checked."""
    try:
        values = json.loads(path.read_bytes())
        names = {name: values[name] for name in NAMES if values.get(name) != ""}
        result: Result = _make_adapter().validate_python(values | {"names": names})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ComesError(
            f"{path} is not a result of `comes bench`: remove its folder and run it again."
        ) from None
    if result.spec.key != hash_json(values["spec"]):
        raise ComesError(
            f"{path} has a spec that this version of comes cannot read: "
            f"{_find_difference(values['spec'], as_json(result.spec))}. "
            "Use the version that wrote it, or remove its folder and run it again."
        )
    return result


@cache
def _make_adapter() -> Any:
    """Return what checks results. pydantic is imported late, as tasks run without it."""
    from pydantic import TypeAdapter

    return TypeAdapter(Result)


def _describe_clash(one: Result, one_path: Path, other: Result, other_path: Path) -> str:
    difference = _find_difference(as_json(one.spec), as_json(other.spec))
    return (
        f"two results are both {other.name}: {one_path} and {other_path}. They differ in "
        f"{difference}; remove one, or give the method its own label."
    )


def _find_difference(one: Any, other: Any) -> str:
    """Return the first place at which two specs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                inner = _find_difference(one.get(key), other.get(key))
                return f"{key}.{inner}" if isinstance(one.get(key), dict) else f"{key} ({inner})"
    return f"{one} and {other}"
