"""Data sets written to files: the ending says the format, and a warning what it cannot hold."""

from pathlib import Path
from warnings import warn

import numpy as np
import pandas as pd

from comes.datasets import formats
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import is_table
from comes.datasets.formats import FORMATS, Writer, find_format
from comes.datasets.images import Images
from comes.datasets.label_columns import named_labels
from comes.datasets.sparse_marks import count_marks
from comes.datasets.table_datasets import TableForm
from comes.datasets.tables import find_ending
from comes.errors import ComesError, ComesWarning, listed


def write_dataset(dataset: Dataset, path: str | Path, form: TableForm = "wide") -> None:
    """Write a data set in the format that the ending of the name says.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path
        What the format cannot hold is named in a warning; .npz holds everything.
    form : {"wide", "names", "long"}
        The form of the labels in a .csv or .parquet file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two.csv"
    >>> write_dataset(Dataset(np.eye(2), ["sky"], np.array([[True], [False]])), path)
    >>> print(path.read_text().strip())
    candidate:sky,x0,x1
    1,1.0,0.0
    0,0.0,1.0
    """
    path = Path(path)
    writer = _find_writer(path, form)
    lost = [part for part in _list_parts(dataset) if part not in writer.holds]
    if lost:
        warn(f"{path.name} cannot hold {' and '.join(lost)}; left out.", ComesWarning, stacklevel=2)
    if "feature_columns" not in find_format(path).fields:
        _refuse_table(dataset, path)
    if form == "names":
        _warn_of_labels_not_shown(dataset, path)
    writer.write(dataset, path)


def check_writable(path: str | Path, form: TableForm = "wide") -> None:
    """Raise unless a data set can be written to a file of that name, in that form.

    Examples
    --------
    >>> check_writable("photos.npz")
    >>> check_writable("photos.npz", "long")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: .npz files do not have the form 'long'; expected wide.
    """
    _find_writer(Path(path), form)


def _find_writer(path: Path, form: str) -> Writer:
    """Return what writes files of that ending and form, else raise."""
    ending = find_ending(path)
    writable = [name for name, found in FORMATS.items() if found.writers]
    if ending not in writable:
        raise ComesError(
            f"{path.name} should end in {', '.join(writable[:-1])} or {writable[-1]}; got "
            f"{ending or 'no ending'}."
        )
    writers = FORMATS[ending].writers
    if form not in writers:
        raise ComesError(
            f"{ending} files do not have the form {form!r}; expected {' or '.join(writers)}."
        )
    return writers[form]


def _list_parts(dataset: Dataset) -> list[str]:
    """Return the parts that a data set has, of those that a file may lose."""
    answers = dataset.answers
    is_answered = answers is not None and answers.kind == "answers"
    parts = {
        formats.FEATURES: not isinstance(dataset.X, Images) and dataset.X is not None,
        formats.FEATURE_NAMES: isinstance(dataset.X, pd.DataFrame),
        formats.CANDIDATES: answers is not None,
        formats.RELEVANT: dataset.relevant is not None,
        formats.ASKED: is_answered,
        formats.ITEMS: dataset.items is not None,
        formats.COMPLEMENTARY: dataset.from_complementary and not is_answered,
        formats.COMPLEMENTARY_ANSWERS: dataset.from_complementary and is_answered,
        formats.TICKED: answers is not None and answers.kind == "positives",
        formats.PEOPLE: answers is not None and answers.annotations is not None,
        formats.CHOSEN: answers is not None and answers.chosen is not None,
    }
    return [part for part, is_there in parts.items() if is_there]


def _refuse_table(dataset: Dataset, path: Path) -> None:
    """Raise if features are a table that is more than complete numbers."""
    if is_table(dataset.X):
        raise ComesError(
            f"{path.name} can hold complete numbers, and the features have missing values, words, "
            "dates or an id. Write .csv or .parquet."
        )


def _warn_of_labels_not_shown(dataset: Dataset, path: Path) -> None:
    """Warn of labels that no cell of names would show."""
    shown = np.zeros(len(dataset.label_names), dtype=bool)
    for marked in named_labels(dataset).values():
        shown |= count_marks(marked, axis=0) > 0
    hidden = [name for name, seen in zip(dataset.label_names, shown, strict=True) if not seen]
    if len(hidden) == len(shown):
        raise ComesError(f"no cell of {path.name} would show a label. Write another form.")
    if hidden:
        warn(
            f"a column of names shows the labels that occur: {path.name} loses {listed(hidden)}. "
            "Give all of them (--label-names) when it is read.",
            ComesWarning,
            stacklevel=3,
        )
