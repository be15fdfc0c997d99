"""Tables with features and labels in columns: csv and parquet.

Labels are either 0/1 columns, one per label, or one column of label names ("apple;plate").
An empty cell of label names is refused in a column of candidates: it could mean that nothing is
possible or that nobody was asked. ``(none)`` says the first, listing every label the second.
"""

import difflib
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets.dataset import Dataset
from comes.errors import ComesError
from comes.files import replacing_file
from comes.labels import BoolMatrix, as_candidates, from_complementary, from_sets, to_sets

LabelColumns = Sequence[str] | None

SEPARATOR = ";"
NOTHING = "(none)"


def read_table(path: Path) -> pd.DataFrame:
    """Read a csv or parquet file."""
    try:
        table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise ComesError(f"{path.name} cannot be read as {path.suffix[1:]}: {error}.") from None
    if table.empty:
        raise ComesError(f"{path.name} has columns but no rows; at least one was wanted.")
    table.columns = [str(name) for name in table.columns]
    return table


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a csv or parquet file, replacing it if the whole of it could be written."""
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ComesError(f"{path.name} should end in .csv or .parquet.")
    with replacing_file(path) as temporary:
        if path.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)


def prediction_table(
    scores: npt.ArrayLike, predictions: npt.ArrayLike, label_names: Sequence[str]
) -> pd.DataFrame:
    """Return one row per item: the predicted label names, and a column of scores per label.

    Examples
    --------
    >>> prediction_table([[1.5, -0.5]], [[1, 0]], ["apple", "plate"])
      predicted  score:apple  score:plate
    0     apple          1.5         -0.5
    """
    sets = to_sets(as_candidates(predictions, "predictions"), label_names)
    table = pd.DataFrame(
        np.asarray(scores), columns=pd.Index([f"score:{name}" for name in label_names])
    )
    table.insert(0, "predicted", [SEPARATOR.join(names) for names in sets])
    return table


def table_dataset(
    table: pd.DataFrame,
    *,
    labels: LabelColumns = None,
    relevant: LabelColumns = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Take features and labels from the columns of a table; see `read_dataset`."""
    if not labels and not relevant:
        raise ComesError(
            "which columns hold the labels? Name them (--labels on the command line): 0/1 columns "
            f"or one of label names. The columns are {_listed(table)}."
        )
    label_columns = find_columns(table, labels or ())
    truth_columns = find_columns(table, relevant or ())
    names = None if label_names is None else list(label_names)
    candidates = truth = None
    if label_columns:
        marked, names = _labels(table, label_columns, names, empty_is_known=complementary)
        candidates = from_complementary(marked) if complementary else marked
    if truth_columns:
        truth, names = _labels(table, truth_columns, names, empty_is_known=True)
    used = {*label_columns, *truth_columns, *find_columns(table, ignore)}
    X = table_features(table, features, ignore=sorted(used))
    return Dataset(X, names or [], candidates, truth)


def table_features(
    table: pd.DataFrame, features: Sequence[str] | None, ignore: Sequence[str]
) -> pd.DataFrame:
    """Return the feature columns: the named ones, or all that are not to be ignored."""
    if features is None:
        columns = [name for name in table.columns if name not in set(ignore)]
    else:
        columns = find_columns(table, features)
    if not columns:
        raise ComesError(f"no feature column is left of {_listed(table)}.")
    for name in columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ComesError(
                f"feature column {name!r} must be numeric; got {table[name].dtype}. Ignore it "
                "(--ignore on the command line), or turn it into numbers."
            )
    return table[columns].astype(float)


def find_columns(table: pd.DataFrame, patterns: Sequence[str]) -> list[str]:
    """Return the columns named, wildcards filled in, each once, in the order asked for."""
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = (
            [pattern]
            if pattern in table.columns
            else [name for name in table.columns if fnmatch.fnmatchcase(name, pattern)]
        )
        if not hits:
            near = difflib.get_close_matches(pattern, list(table.columns), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ComesError(f"there is no column {pattern!r}; there are {_listed(table)}.{hint}")
        found.update(dict.fromkeys(hits))
    return list(found)


def _labels(
    table: pd.DataFrame,
    columns: list[str],
    label_names: Sequence[str] | None,
    empty_is_known: bool,
) -> tuple[BoolMatrix, list[str]]:
    """Return the marked labels of every row, from 0/1 columns or one of label names."""
    if len(columns) == 1 and not pd.api.types.is_numeric_dtype(table[columns[0]]):
        return from_sets(_split(table[columns[0]], empty_is_known), label_names)
    empty = table[columns].isna()
    if empty.to_numpy().any():
        column = str(empty.any().idxmax())
        row = int(empty[column].to_numpy().argmax())
        raise ComesError(
            f"label column {column!r} must be 0 or 1; row {row} is empty. A label that nobody was "
            "asked about stays possible: write 1 (0 in a file of complementary labels)."
        )
    marked = as_candidates(table[columns].to_numpy(), f"label columns {_listed(table[columns])}")
    if label_names is None:
        return marked, columns
    if set(columns) == set(label_names):
        return marked[:, [columns.index(name) for name in label_names]], list(label_names)
    if len(columns) != len(label_names):
        raise ComesError(
            f"{len(label_names)} label columns were wanted, for {list(label_names)[:5]}...; "
            f"got {len(columns)}, {_listed(table[columns])}."
        )
    return marked, list(label_names)


def _split(cells: "pd.Series[Any]", empty_is_known: bool) -> list[list[str]]:
    """Return the label names in every cell."""
    texts = cells.fillna("").astype(str).str.strip()
    sets = [
        [name for part in text.split(SEPARATOR) if (name := part.strip()) and text != NOTHING]
        for text in texts
    ]
    empty = [row for row, text in enumerate(texts) if not text]
    if empty and not empty_is_known:
        raise ComesError(
            f"{len(empty)} cells of candidates are empty (first: row {empty[0]}). If no label is "
            f"possible there, write {NOTHING}; if nobody was asked, list every label."
        )
    return sets


def _listed(table: pd.DataFrame, most: int = 8) -> str:
    names = [str(name) for name in table.columns]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
