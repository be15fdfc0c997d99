"""What jobs do with the columns of a table: what they are taken for, asked or found."""

import fnmatch
from collections import Counter
from typing import Any

import pandas as pd

from comes.columns import Column, ColumnEncoder, find_item_column, needs_encoding
from comes.datasets import Dataset, Reading
from comes.errors import ComesError

PLURALS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "booleans",
    "date": "dates",
    "text": "texts",
}


def make_encoder(dataset: Dataset, reading: Reading | None) -> ColumnEncoder | None:
    """Return an encoder that takes columns for what the reading says; None if it says nothing."""
    if reading is None or (reading.text is None and reading.category is None):
        return None
    if not isinstance(dataset.X, pd.DataFrame):
        raise ComesError(
            "text and category (--text, --category) name columns of a table, and the features "
            "have no names. Leave them out."
        )
    names = [str(name) for name in dataset.X.columns]
    kinds: dict[str, str] = {}
    for kind, patterns in (("text", reading.text or ()), ("category", reading.category or ())):
        for pattern in patterns:
            found = [pattern] if pattern in names else fnmatch.filter(names, pattern)
            kinds |= dict.fromkeys(found or [pattern], kind)  # one that is not there is refused
    return ColumnEncoder(kinds)


def list_columns(dataset: Dataset, reading: Reading | None = None) -> list[dict[str, Any]]:
    """Return a row per feature column of a table: what it is taken for, why, and what it becomes.

    Columns of complete numbers, an id among them aside, are features as they are.
    """
    encoder, X = make_encoder(dataset, reading), dataset.X
    if not isinstance(X, pd.DataFrame):
        return []
    if encoder is None and not needs_encoding(X):
        columns = [Column(str(name), "number", "numbers", n_features=1) for name in X.columns]
    else:
        columns = list((encoder or ColumnEncoder()).fit(X).columns_)
    return [
        {
            "column": column.name,
            "taken_for": column.kind,
            "why": column.why,
            "missing": column.n_missing,
            "becomes": column.becomes,
            "features": column.n_features,
        }
        for column in columns
    ]


def name_item_column(dataset: Dataset, reading: Reading | None) -> str | None:
    """Return the column that names the items, if it is not called "item"."""
    if reading is not None and reading.item is not None:
        return reading.item
    return find_item_column(dataset.X) if isinstance(dataset.X, pd.DataFrame) else None


def summarise_columns(columns: tuple[Column, ...]) -> str | None:
    """Return in one line what was done with the columns of a table; None if there is none."""
    if not columns:
        return None
    counts = Counter(column.kind for column in columns if column.is_used)
    said = ", ".join(f"{n} {PLURALS[kind] if n > 1 else kind}" for kind, n in counts.items())
    n_features = sum(column.n_features or 0 for column in columns)
    out = [f"{column.name!r} ({column.why})" for column in columns if not column.is_used]
    if not out:
        return f"{said}: {n_features} features"
    more = "" if len(out) <= 5 else f" and {len(out) - 5} more"
    return f"{said}: {n_features} features; left out: {', '.join(out[:5])}{more}"
