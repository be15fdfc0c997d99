"""Data sets as files: the ending says the format, and a warning what it cannot hold."""

from collections.abc import Callable, Mapping
from pathlib import Path
from warnings import warn

import numpy as np
import pandas as pd

from comes.datasets.annotation_tools import write_prodigy
from comes.datasets.archive import write_npz
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.pml import write_pml_mat
from comes.datasets.table_datasets import TableForm, write_table_dataset
from comes.errors import ComesError, ComesWarning, listed

WRITERS: Mapping[str, Callable[[Dataset, Path], None]] = {
    ".npz": write_npz,
    ".mat": write_pml_mat,
    ".jsonl": write_prodigy,
}
# What a written file holds of a data set; npz holds everything, a wide table all but one thing.
COMPLEMENTARY = "that the labels were complementary"
HOLDS = {
    "wide": {"features", "feature names", "candidates", "relevant", "asked", "items"},
    "names": {"features", "feature names", "candidates", "relevant", "items", COMPLEMENTARY},
    "long": {"candidates", "asked", "items"},
    ".mat": {"features", "candidates", "relevant"},
    ".jsonl": {"candidates", "asked", "items"},
}


def write_dataset(dataset: Dataset, path: str | Path, form: TableForm = "wide") -> None:
    """Write a data set in the format that the ending of the name says.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path
        .npz, .csv, .parquet, .mat or .jsonl. What the format cannot hold is named in a warning.
    form : {"wide", "names", "long"}
        The form of the labels in a .csv or .parquet file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "two.csv"
    >>> write_dataset(Dataset(np.eye(2), ["sky"], np.array([[True], [False]])), path)
    >>> print(path.read_text().strip())
    candidate:sky,x0,x1
    1,1.0,0.0
    0,0.0,1.0
    """
    path = Path(path)
    ending = check_writable(path, form)
    held = HOLDS.get(form if ending in (".csv", ".parquet") else ending)
    if held is not None:
        parts = {
            "features": not isinstance(dataset.X, Images) and dataset.X is not None,
            "feature names": isinstance(dataset.X, pd.DataFrame),
            "candidates": dataset.candidates is not None,
            "relevant": dataset.relevant is not None,
            "asked": dataset.asked is not None,
            "items": dataset.items is not None,
            COMPLEMENTARY: dataset.from_complementary,
        }
        if ending not in WRITERS and form == "wide" and dataset.asked is None:
            held = held | {COMPLEMENTARY}  # in the names of the columns
        lost = [name for name, there in parts.items() if there and name not in held]
        if lost:
            warn(
                f"{path.name} cannot hold {' and '.join(lost)}; left out.",
                ComesWarning,
                stacklevel=2,
            )
    if form == "names":
        _warn_of_labels_not_shown(dataset, path)
    if ending in WRITERS:
        WRITERS[ending](dataset, path)
    else:
        write_table_dataset(dataset, path, form)


def check_writable(path: Path, form: TableForm = "wide") -> str:
    """Return the ending of a name that a data set can be written to, else raise."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".parquet", *WRITERS):
        raise ComesError(
            f"{path.name} should end in .csv, .parquet, {' or '.join(WRITERS)}; got "
            f"{ending or 'no ending'}."
        )
    if form not in ("wide", "names", "long") or (form != "wide" and ending in WRITERS):
        raise ComesError(
            f"the form {form!r} is none of a {ending} file; wide, names and long are forms of .csv "
            "and .parquet files."
        )
    return ending


def _warn_of_labels_not_shown(dataset: Dataset, path: Path) -> None:
    """Warn of labels that no cell of names would show."""
    shown = np.zeros(len(dataset.label_names), dtype=bool)
    if dataset.candidates is not None:
        marked = ~dataset.candidates if dataset.from_complementary else dataset.candidates
        shown |= marked.any(axis=0)
    if dataset.relevant is not None:
        shown |= dataset.relevant.any(axis=0)
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
