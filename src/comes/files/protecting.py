"""No command writes over what it reads, by whatever name that is given."""

import os
from pathlib import Path

from comes.errors import ComesError
from comes.files.folders import expanded


def refuse_inputs(output: str | Path, *inputs: object) -> None:
    """Raise if writing an output would replace one of the inputs, or a folder that holds one.

    Links, hard links and other spellings of a path are the same file.

    Parameters
    ----------
    output : path
        A file or folder that is to be written.
    *inputs : paths
        What is read. What is not a path, or does not exist, cannot be replaced.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> _ = path.write_text("red,has_sky")
    >>> refuse_inputs(path.with_name("made.csv"), path)
    >>> refuse_inputs(path.parent / "." / "photos.csv", path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: ...photos.csv is the file that is read, and would be replaced. ...
    """
    target = expanded(output)
    if not _exists(target):  # not yet; or by a way that leads through folders that are not there
        target = Path(os.path.normpath(target))
    if not _exists(target):
        return
    for source in inputs:
        if not isinstance(source, str | Path) or not _exists(read := expanded(source)):
            continue
        if target.samefile(read):
            kind = "folder" if read.is_dir() else "file"
            raise ComesError(
                f"{target} is the {kind} that is read, and would be replaced. Name another one."
            )
        if target.is_dir() and target.resolve() in read.resolve().parents:
            raise ComesError(
                f"{target} holds {read.name}, which is read and would be lost. Name another folder."
            )


def refuse_same(*outputs: str | Path | None) -> None:
    """Raise if two outputs would be one file.

    Examples
    --------
    >>> refuse_same("scores.csv", None, "./scores.csv")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: two results would go to scores.csv. Name another file for one of them.
    """
    seen: set[Path] = set()
    for output in outputs:
        if output is None:
            continue
        path = expanded(output).resolve()
        if path in seen:
            raise ComesError(
                f"two results would go to {path.name}. Name another file for one of them."
            )
        seen.add(path)


def _exists(path: Path) -> bool:
    """Return whether a path names something; a name that is too long names nothing."""
    try:
        return os.path.exists(path)
    except (OSError, ValueError):
        return False
