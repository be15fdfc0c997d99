"""An annotation project as data: what was answered, with the texts or images that it is about."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from comes.datasets import Dataset, ReadOptions, join_features, read_features
from comes.errors import ComesError
from comes.files import expanded

if TYPE_CHECKING:
    from comes.annotate import Project

DESCRIPTION = "project.json"
FIELDS = ("features", "feature_columns", "n_features", "text")  # of a reading that may be given


def is_project(data: str | Path) -> bool:
    """Return whether data are the folder of an annotation project."""
    return os.path.isfile(expanded(data) / DESCRIPTION)


def read_project(folder: str | Path, reading: ReadOptions | None = None) -> Dataset:
    """Return what was answered in a project; other features may be given for its items."""
    reading = reading or ReadOptions()
    foreign = [name for name in reading.given if name not in FIELDS]
    if foreign:
        raise ComesError(
            f"{folder} is an annotation project, which says itself what its items and labels are. "
            f"Leave {foreign[0]!r} out."
        )
    from comes.annotate import collect_answers, collect_data

    project = _open(folder)
    try:
        if reading.features is None:
            return collect_data(project)
        found = read_features(reading.features, reading.feature_columns, reading.n_features)
        return join_features(collect_answers(project), *found)
    finally:
        project.engine.dispose()


def open_if_project(data: Dataset | str | Path) -> Dataset | str | Path:
    """Return the data of a project, and anything else as it is."""
    if isinstance(data, Dataset) or not is_project(data):
        return data
    return read_project(data)


def with_text_column(data: Dataset | str | Path, reading: ReadOptions | None) -> ReadOptions | None:
    """Return the reading, which for a project of texts says that they are texts."""
    is_read = reading is not None and bool(reading.given)
    if is_read or isinstance(data, Dataset) or not is_project(data):
        return reading
    project = _open(data)
    project.engine.dispose()
    return ReadOptions(text=["text"]) if project.kind == "text" else reading


def _open(folder: str | Path) -> "Project":
    """Open a project; the packages that this needs are imported only here."""
    from comes.annotate import open_project

    return open_project(folder)
