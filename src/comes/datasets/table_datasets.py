"""Data sets in tables: features, labels, the truth and the names of items, by column."""

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from scipy import sparse

from comes.columns import find_item_column
from comes.datasets.answer_tables import (
    PERSON,
    SOURCE,
    as_ticked,
    long_dataset,
    warn_of_ticks,
)
from comes.datasets.column_roles import Roles, find_long_columns, find_roles
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.label_columns import is_reserved, names_columns, wide_columns
from comes.datasets.label_forms import find_form, read_label_cells, warn_of_labels
from comes.datasets.long_writing import long_table
from comes.datasets.reading import Reading
from comes.datasets.tables import (
    check_table_name,
    find_code_columns,
    find_columns,
    is_csv,
    is_table_name,
    item_names,
    read_columns,
    read_table,
    select_features,
    write_blocks,
    write_table,
)
from comes.datasets.telling_columns import find_telling, warn_of_telling
from comes.errors import ComesError
from comes.files import expanded

TableForm = Literal["wide", "names", "long"]

ROWS_AT_ONCE = 1000  # of a sparse matrix, written as a table


def read_table_dataset(path: Path, reading: Reading) -> Dataset:
    """Read features and labels from the columns of a csv or parquet file."""
    columns = read_columns(path)
    long = find_long_columns(columns, reading, path)
    if long is not None:
        table = read_table(path, [*long, PERSON, SOURCE])
        answers = long_dataset(table, long, reading.words, reading.label_names)
        if reading.is_positive:
            return as_ticked(answers)
        warn_of_ticks(answers.known_answers())
        return answers
    roles = find_roles(columns, reading)
    words = []
    if not reading.has_labels_alone:
        words = find_columns(columns, reading.word_columns) + find_code_columns(path)
    table = read_table(path, {*roles.text_columns, *words})
    form = find_form(table, roles, reading)
    labels = read_label_cells(table, roles, reading, form)
    warn_of_labels(labels, reading, form)
    X = None
    if not reading.has_labels_alone:
        features = reading.feature_columns or find_features(table, roles, labels.names, words)
        X = select_features(table, features) if features else None
    item = roles.item
    if item is None and X is not None:
        item = find_item_column(table[roles.find_features(list(table.columns))])
    return Dataset(
        X,
        labels.names,
        relevant=labels.truth,
        items=None if item is None else item_names(table, item),
        from_complementary=roles.labels_are == "complementary",
        answers=labels.answers,
    )


def find_features(
    table: pd.DataFrame, roles: Roles, label_names: Sequence[str], words: Sequence[str]
) -> list[str]:
    """Return the columns to learn from: not those that give the labels away, unless asked for."""
    features = roles.find_features(list(table.columns))
    telling = find_telling(table, [c for c in features if c not in words], label_names)
    warn_of_telling(telling)
    return [column for column in features if column not in telling]


def list_roles(which: str | Path, reading: Reading | None = None) -> dict[str, str]:
    r"""Return the columns of a table that are no features, and what they are.

    Parameters
    ----------
    which : str or Path
        A file, or anything else: then nothing is returned.
    reading : Reading, optional

    Returns
    -------
    roles : dict of str to str
        "label", "truth", "item" or "ignored", by column.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> _ = path.write_text("photo,red,maybe\np1,0.1,sky;sea\np2,0.7,sky\n")
    >>> list_roles(path, Reading(labels=["maybe"], item="photo"))
    {'photo': 'item', 'maybe': 'label'}
    """
    path, reading = expanded(which), reading or Reading()
    if not path.is_file() or not is_table_name(path):
        return {}
    columns = read_columns(path)
    if find_long_columns(columns, reading, path) is not None:
        return {}
    roles = find_roles(columns, reading)
    found = {} if roles.item is None else {roles.item: "item"}
    found |= dict.fromkeys(roles.ignored, "ignored")
    found |= dict.fromkeys(roles.truth, "truth") | dict.fromkeys(roles.labels, "label")
    return {name: found[name] for name in columns if name in found}


def read_table_features(path: Path, reading: Reading) -> tuple[Any, list[str] | None]:
    """Return the feature columns, and the names of the items.

    By default every column is a feature, except the item and label columns that we write.
    """
    columns = read_columns(path)
    wanted, item = reading.feature_columns, reading.item
    given = reading.word_columns
    words = [c for c in columns if c in given or any(fnmatch.fnmatchcase(c, w) for w in given)]
    if item is None or item not in columns:
        item = "item" if "item" in columns and "item" not in (wanted or ()) else None
    others = [] if wanted is None else [c for c in columns if c not in wanted]
    table = read_table(path, [*others, *words, *([item] if item else [])])
    others = [c for c in table.columns if c not in (wanted or ()) and not is_reserved(c)]
    item = item or find_item_column(table[others])
    if wanted is None:
        wanted = [c for c in others if c != item]
    return select_features(table, wanted), None if item is None else item_names(table, item)


def write_table_dataset(dataset: Dataset, path: Path, form: TableForm = "wide") -> None:
    """Write a data set as a table that `read_table_dataset` reads without a `Reading`."""
    check_table_name(path)
    if form == "long":
        write_table(long_table(dataset), path)
        return
    labels = wide_columns(dataset) if form == "wide" else names_columns(dataset)
    if dataset.items is not None:
        labels.insert(0, "item", dataset.items)
    X = None if isinstance(dataset.X, Images) else dataset.X
    features = _name_features(X)
    _refuse_clashes(list(labels.columns), features)
    names = [*labels.columns, *features]
    texts = [*names, *(dataset.items or ()), *dataset.label_names]
    if is_csv(path) and any("\r" in text for text in texts):
        raise ComesError(
            "a name has a carriage return in it, which a csv file would lose. Write .parquet."
        )
    write_blocks(_split_rows(labels, X, names), path)


def _name_features(X: Any) -> list[str]:
    """Return the names of the feature columns."""
    if X is None:
        return []
    if isinstance(X, pd.DataFrame):
        return [str(name) for name in X.columns]
    return [f"x{j}" for j in range(X.shape[1])]


def _refuse_clashes(labels: Sequence[str], features: Sequence[str]) -> None:
    """Raise if the name of a feature is reserved, or another column has it."""
    clashes = [name for name, count in Counter([*labels, *features]).items() if count > 1]
    clashes += [name for name in features if is_reserved(name) or name == "item"]
    if clashes:
        raise ComesError(
            f"a feature called {clashes[0]!r} would be taken for something else in a table. Rename "
            "it, or write an .npz file."
        )


def _split_rows(labels: pd.DataFrame, X: Any, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield blocks of rows of a table, so that a sparse matrix is never dense as a whole."""
    step = ROWS_AT_ONCE if sparse.issparse(X) else max(len(labels), 1)
    for start in range(0, len(labels), step):
        parts = [labels.iloc[start : start + step].reset_index(drop=True)]
        if X is not None and sparse.issparse(X):
            parts.append(pd.DataFrame(X[start : start + step].toarray()))
        elif X is not None:
            parts.append(pd.DataFrame(X).reset_index(drop=True))
        yield pd.concat(parts, axis=1).set_axis(list(names), axis=1)
