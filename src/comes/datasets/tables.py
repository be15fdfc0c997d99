"""Tables with features and labels in columns: csv and parquet.

Labels are either 0/1 columns, one per label, or one column of label names ("apple;plate"). One
column is taken for names unless all its cells are 0 or 1. An empty cell of names is refused in
candidates and in the truth, where it could mean that nothing applies or that nobody was asked:
``(none)`` says the first. Among complementary labels an empty cell excludes nothing.
"""

import difflib
import fnmatch
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets.dataset import Dataset
from comes.errors import ComesError
from comes.files import replacing_file
from comes.labels import BoolMatrix, as_indicators, from_sets, listed, match_names, to_sets

LabelColumns = Sequence[str] | None

ENDINGS = (".csv", ".parquet")
SEPARATOR = ";"
NOTHING = "(none)"
INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1, "false": 0, "true": 1}


def read_table(path: Path, label_patterns: Sequence[Sequence[str]] = ()) -> pd.DataFrame:
    """Read a csv or parquet file.

    Where the patterns of some labels name a single column, it may hold label names, and its cells
    come as they are written: a label may be called NA.
    """
    try:
        if path.suffix.lower() == ".csv":
            table = _read_csv(path, label_patterns)
        else:
            table = pd.read_parquet(path)
    except (ValueError, OSError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        raise ComesError(f"{path.name} cannot be read as {path.suffix[1:]}: {reason}.") from None
    if table.empty:
        raise ComesError(f"{path.name} has columns but no rows; at least one was wanted.")
    return table.set_axis([str(name) for name in table.columns], axis=1)


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a csv or parquet file, replacing it if the whole of it could be written."""
    check_table_name(path)
    with replacing_file(path) as temporary:
        if Path(path).suffix.lower() == ".csv":
            table.to_csv(temporary, index=False)
        else:
            table.to_parquet(temporary, index=False)


def check_table_name(path: str | Path) -> None:
    """Raise unless the name ends as a table's."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise ComesError(f"{Path(path).name} should end in .csv or .parquet.")


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
    sets = to_sets(as_indicators(predictions, "predictions"), label_names)
    columns = pd.Index([f"score:{name}" for name in label_names])
    table = pd.DataFrame(np.asarray(scores), columns=columns)
    table.insert(0, "predicted", [SEPARATOR.join(names) or NOTHING for names in sets])
    return table


def table_dataset(
    path: Path,
    *,
    labels: LabelColumns = None,
    relevant: LabelColumns = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Take features and labels from the columns of a table; see `read_dataset`."""
    table = read_table(path, [labels or (), relevant or ()])
    if not labels and not relevant:
        raise ComesError(
            "which columns hold the labels? Name them (--labels, or --relevant for the truth, on "
            "the command line): 0/1 columns or one of label names. The columns are "
            f"{listed(list(table.columns))}."
        )
    ignored = find_columns(table, ignore)
    label_columns = [c for c in find_columns(table, labels or ()) if c not in ignored]
    truth_columns = [c for c in find_columns(table, relevant or ()) if c not in ignored]
    names = None if label_names is None else list(label_names)
    candidates = truth = None
    if label_columns:
        marked, names = _labels(table[label_columns], names, empty_is_none=complementary)
        candidates = ~marked if complementary else marked
    if truth_columns:
        truth, names = _labels(table[truth_columns], names, empty_is_none=False)
    if features is None:
        used = {*label_columns, *truth_columns, *ignored}
        features = [name for name in table.columns if name not in used]
    X = select_features(table, features)
    return Dataset(X, names or [], candidates, truth, from_complementary=complementary)


def select_features(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the named columns as numbers; raise if one is missing or something else."""
    if not columns:
        raise ComesError(f"no feature column is left of {listed(list(table.columns))}.")
    for name in columns:
        if name not in table.columns:
            raise _no_column(name, table)
        if re.fullmatch(r"Unnamed: \d+", name):
            raise ComesError(
                f"a column without a name, probably row numbers, is not taken for a feature. "
                f"Ignore it (--ignore '{name}' on the command line), or name it."
            )
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ComesError(
                f"feature column {name!r} must be numeric; got {table[name].dtype}. Ignore it "
                "(--ignore on the command line), or turn it into numbers."
            )
    return table[list(columns)].astype(float)


def find_columns(table: pd.DataFrame, patterns: Sequence[str]) -> list[str]:
    """Return the columns named, wildcards filled in, each once, in the order asked for."""
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = _matching(list(table.columns), pattern)
        if not hits:
            raise _no_column(pattern, table)
        found.update(dict.fromkeys(hits))
    return list(found)


def _read_csv(path: Path, label_patterns: Sequence[Sequence[str]]) -> pd.DataFrame:
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    names = [str(name) for name in header.iloc[0]]
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} occurs more than once")
    matched = [[c for p in patterns for c in _matching(names, p)] for patterns in label_patterns]
    text = {columns[0] for columns in matched if len(columns) == 1}
    missing = ["", "NA", "N/A", "NaN", "nan", "null", "None", "n/a", "<NA>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more cells than column names
        return pd.read_csv(
            path,
            index_col=False,
            dtype=dict.fromkeys(text, str),
            keep_default_na=False,
            na_values={name: missing for name in names if name not in text},
        )


def _matching(columns: list[str], pattern: str) -> list[str]:
    if pattern in columns:
        return [pattern]
    return [name for name in columns if fnmatch.fnmatchcase(name, pattern)]


def _no_column(name: str, table: pd.DataFrame) -> ComesError:
    columns = list(table.columns)
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        hint = " Columns of a csv are separated by commas, and here they seem not to be."
    return ComesError(f"there is no column {name!r}; there are {listed(columns)}.{hint}")


def _labels(
    cells: pd.DataFrame, wanted: Sequence[str] | None, empty_is_none: bool
) -> tuple[BoolMatrix, list[str]]:
    """Return the marked labels of every row, from 0/1 columns or one of label names."""
    columns = list(cells.columns)
    if len(columns) == 1:
        column = cells.iloc[:, 0]
        as_numbers = column.astype(object).astype(str).str.strip().map(INDICATORS)
        if as_numbers.isna().any():
            return from_sets(_names_of_cells(column, empty_is_none), wanted)
        cells = as_numbers.to_frame(columns[0])
    empty = cells.isna()
    if empty.to_numpy().any():
        name = str(empty.any().idxmax())
        row = int(empty[name].to_numpy().argmax())
        raise ComesError(
            f"label column {name!r} must be 0 or 1; row {row} is empty. A label that nobody was "
            "asked about stays possible: write 1 (0 in a file of complementary labels)."
        )
    marked = as_indicators(cells, "label columns")
    if wanted is None:
        return marked, columns
    return marked[:, match_names(columns, wanted)], list(wanted)


def _names_of_cells(cells: "pd.Series[Any]", empty_is_none: bool) -> list[list[str]]:
    """Return the label names in every cell."""
    sets, unclear = [], []
    for row, cell in enumerate(cells):
        if isinstance(cell, (list, tuple, np.ndarray)):
            names = [str(name) for name in cell]
        else:
            text = "" if pd.isna(cell) else f"{cell:g}" if isinstance(cell, float) else str(cell)
            names = [name for part in text.split(SEPARATOR) if (name := part.strip())]
            if not names and not empty_is_none:
                unclear.append(row)
        if NOTHING in (lowered := [name.lower() for name in names]):
            if len(lowered) > 1:
                raise ComesError(f"row {row} has {NOTHING} beside other labels; keep one of them.")
            names = []
        sets.append(names)
    if unclear:
        raise ComesError(
            f"{len(unclear)} cells of label names are empty (first: row {unclear[0]}). If no label "
            f"applies there, write {NOTHING}; if nobody was asked, list every label."
        )
    return sets
