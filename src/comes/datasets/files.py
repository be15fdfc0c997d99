"""One door for files: the reader is chosen by the ending of the name."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from comes.datasets.archive import read_npz, read_npz_features
from comes.datasets.dataset import Dataset, check_features
from comes.datasets.pml import read_pml_mat
from comes.datasets.tables import ENDINGS as TABLES
from comes.datasets.tables import LabelColumns, read_table, select_features, table_dataset
from comes.errors import ComesError


def read_dataset(
    path: str | Path,
    *,
    labels: LabelColumns = None,
    relevant: LabelColumns = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Read features and labels from .npz, .csv, .parquet or a PML .mat file.

    Parameters
    ----------
    path : str or Path
    labels, relevant : list of str, optional
        Columns of a table with the candidates and with the truth: 0/1 columns, one per label, by
        name or with wildcards (``["has_*"]``), or one column of label names ("apple;plate").
        Other formats name them inside the file.
    ignore : list of str
        Columns of a table that are neither label nor feature, by name or with wildcards; they
        are left out of ``labels`` and ``relevant`` too.
    features : list of str, optional
        Feature columns of a table; by default every other column.
    complementary : bool
        The label columns mark what is surely irrelevant.
    label_names : list of str, optional
        All labels there are, in the order wanted. A column of label names may not show them all;
        others are matched by name, or by position where no name agrees.

    Returns
    -------
    dataset : Dataset
    """
    path = _existing(path)
    if path.suffix.lower() in TABLES:
        return table_dataset(
            path,
            labels=labels,
            relevant=relevant,
            ignore=ignore,
            features=features,
            complementary=complementary,
            label_names=label_names,
        )
    dataset = _reader(path)(path)
    if labels or relevant or ignore:
        raise ComesError(
            f"{path.name} says itself what its labels are; columns can be named in .csv and "
            ".parquet files."
        )
    if complementary and not dataset.from_complementary:
        raise ComesError(
            f"{path.name} says itself that its labels are candidates. Complementary labels are an "
            "array 'complementary' in an .npz file, or columns of a .csv or .parquet file."
        )
    return dataset if label_names is None else dataset.with_labels(label_names)


def read_features(path: str | Path, features: Sequence[str] | None = None) -> Any:
    """Read features alone, for prediction; of a table, the named columns."""
    path = _existing(path)
    if path.suffix.lower() in TABLES:
        table = read_table(path)
        X = select_features(table, list(table.columns) if features is None else features)
    elif path.suffix.lower() == ".npz":
        X = read_npz_features(path)
    else:
        X = _reader(path)(path).X
    check_features(X)
    return X


def _reader(path: Path) -> Callable[[Path], Dataset]:
    if path.suffix.lower() == ".npz":
        return read_npz
    if path.suffix.lower() == ".mat":
        return read_pml_mat
    raise ComesError(
        f"{path.name} should end in .npz, .csv, .parquet or .mat; got {path.suffix or 'no ending'}."
    )


def _existing(path: str | Path) -> Path:
    path = Path(path).expanduser()
    if path.is_dir():
        raise ComesError(f"{path} is a folder; a .npz, .csv, .parquet or .mat file was wanted.")
    if not path.is_file():
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, names, n=1)
        hint = f" Did you mean {path.parent / near[0]}?" if near else " Check the path."
        raise ComesError(f"{path} does not exist.{hint}")
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; a data set with at least one row was wanted.")
    return path
