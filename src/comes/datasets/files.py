"""One door for files: the reader is chosen by the ending of the name."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from comes.datasets.archive import read_npz, read_npz_features
from comes.datasets.dataset import Dataset, check_features
from comes.datasets.pml import read_pml_mat
from comes.datasets.tables import LabelColumns, read_table, table_dataset, table_features
from comes.errors import ComesError

TABLES = (".csv", ".parquet")


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
        Columns of a table that are neither label nor feature, by name or with wildcards.
    features : list of str, optional
        Feature columns of a table; by default every other column.
    complementary : bool
        The label columns mark what is surely irrelevant.
    label_names : list of str, optional
        All labels there are, in order, where a column of label names may not show them all.

    Returns
    -------
    dataset : Dataset
    """
    path = _existing(path)
    if path.suffix in TABLES:
        table = read_table(path)
        return table_dataset(
            table,
            labels=labels,
            relevant=relevant,
            ignore=ignore,
            features=features,
            complementary=complementary,
            label_names=label_names,
        )
    if labels or relevant or ignore:
        raise ComesError(
            f"{path.name} names its own labels; columns can be chosen in .csv and .parquet files."
        )
    dataset = _reader(path)(path)
    if label_names is not None and list(label_names) != dataset.label_names:
        raise ComesError(
            f"{path.name} has the labels {dataset.label_names[:5]}..., and "
            f"{list(label_names)[:5]}... were wanted."
        )
    return dataset


def read_features(path: str | Path, features: Sequence[str] | None = None) -> Any:
    """Read features alone, for prediction; of a table, the named columns."""
    path = _existing(path)
    if path.suffix in TABLES:
        X = table_features(read_table(path), features, ignore=())
    elif path.suffix == ".npz":
        X = read_npz_features(path)
    else:
        X = _reader(path)(path).X
    check_features(X)
    return X


def _reader(path: Path) -> Callable[[Path], Dataset]:
    if path.suffix == ".npz":
        return read_npz
    if path.suffix == ".mat":
        return read_pml_mat
    raise ComesError(
        f"{path.name} should end in .npz, .csv, .parquet or .mat; got {path.suffix or 'no ending'}."
    )


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, names, n=1)
        hint = f" Did you mean {path.parent / near[0]}?" if near else " Check the path."
        raise ComesError(f"{path} does not exist or is not a file.{hint}")
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; a data set with at least one row was wanted.")
    return path
