"""What jobs do with the columns of a table: what they are taken for, asked or found."""

import fnmatch
from collections import Counter
from typing import Any

import pandas as pd

from comes.datasets import Dataset, ReadOptions
from comes.errors import ComesError
from comes.tables import Column, ColumnEncoder, describe_columns
from comes.tables.columns import find_item_column, needs_encoding

ROLES = {
    "label": "labels",
    "truth": "true labels; nothing is trained on them",
    "item": "the names of the items",
    "ignored": "left out",
}
PLURALS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "booleans",
    "date": "dates",
    "text": "texts",
}


def make_encoder(
    dataset: Dataset, reading: ReadOptions | None, embedding: str | None = None
) -> ColumnEncoder | None:
    """Return an encoder that takes columns for what the reading says; None if nothing is said.

    Texts become vectors of the embedding, if one is named.
    """
    if embedding is not None:
        return _make_embedder(dataset, make_encoder(dataset, reading), embedding)
    asked = {kind: getattr(reading, kind, None) or () for kind in PLURALS}
    if not any(asked.values()):
        return None
    if not isinstance(dataset.X, pd.DataFrame):
        raise ComesError(
            "text, category, number and date (--text, --category, --number, --date) name columns "
            "of a table, and the features have no names. Leave them out."
        )
    names = [str(name) for name in dataset.X.columns]
    kinds: dict[str, str] = {}
    for kind, patterns in asked.items():
        for pattern in patterns:
            found = [pattern] if pattern in names else fnmatch.filter(names, pattern)
            twice = [name for name in found if kinds.get(name, kind) != kind]
            if twice:
                first = kinds[twice[0]]
                raise ComesError(
                    f"column {twice[0]!r} is named as a {first} and as a {kind}. Leave one out "
                    f"(--{first}, --{kind})."
                )
            kinds |= dict.fromkeys(found or [pattern], kind)  # one that is not there is refused
    return ColumnEncoder(kinds)


def _make_embedder(dataset: Dataset, given: ColumnEncoder | None, embedding: str) -> ColumnEncoder:
    """Return an encoder that embeds texts; raise if no column is one."""
    X, kinds = dataset.X, None if given is None else given.kinds
    columns = describe_columns(X, kinds) if isinstance(X, pd.DataFrame) else ()
    if not any(column.kind == "text" for column in columns):
        raise ComesError(
            f"the embedding {embedding!r} is for texts, and no column is taken for a text. Name "
            "it (--text), or leave the embedding out (--embedding)."
        )
    return ColumnEncoder(kinds, text=embedding)


def list_columns(dataset: Dataset, reading: ReadOptions | None = None) -> list[dict[str, Any]]:
    """Return a row per column of a table: what it is taken for, why, and what becomes of it.

    Columns of complete numbers, an id among them aside, are features as they are. Those that are no
    features come last.
    """
    rows = _list_features(dataset, reading)
    asked = {} if reading is None else {"label": reading.labels, "truth": reading.relevant}
    for name, (role, n_missing) in dataset.roles.items() if rows else ():
        why = "its name says so" if role == "item" or asked.get(role) is None else "asked for"
        if role == "ignored" or (reading is not None and name == reading.item):
            why = "asked for"
        column = Column(name, "ignored", why, n_missing)
        rows.append(_describe(column, taken_for=role, becomes=ROLES[role]))
    return rows


def _list_features(dataset: Dataset, reading: ReadOptions | None) -> list[dict[str, Any]]:
    """Return a row per feature column of a table."""
    encoder, X = make_encoder(dataset, reading), dataset.X
    if not isinstance(X, pd.DataFrame):
        return []
    if encoder is None and not needs_encoding(X):
        columns = [Column(str(name), "number", "numbers", n_features=1) for name in X.columns]
    else:
        columns = list((encoder or ColumnEncoder()).fit(X).columns_)
    rows = [_describe(column) for column in columns]
    item = None if dataset.items is None else find_item_column(X)
    return [
        row | {"becomes": "left out; it names the items"} if row["column"] == item else row
        for row in rows
    ]


def _describe(column: Column, **changes: str) -> dict[str, Any]:
    """Return a column as a row of a table."""
    row = {
        "column": column.name,
        "taken_for": column.kind,
        "why": column.why,
        "missing": column.n_missing,
        "becomes": column.becomes,
        "features": column.n_features or 0,
    }
    return row | changes


def name_item_column(dataset: Dataset, reading: ReadOptions | None) -> str | None:
    """Return the column that names the items, if it is not called "item"."""
    if reading is not None and reading.item is not None:
        return reading.item
    return find_item_column(dataset.X) if isinstance(dataset.X, pd.DataFrame) else None


def summarise_columns(columns: tuple[Column, ...]) -> dict[str, str]:
    """Return in a line each which columns of a table are used, and which are left out."""
    if not columns:
        return {}
    counts = Counter(column.kind for column in columns if column.is_used)
    said = ", ".join(f"{n} {PLURALS[kind] if n > 1 else kind}" for kind, n in counts.items())
    used = {"columns": f"{said}: {sum(column.n_features or 0 for column in columns)} features"}
    out = [f"{column.name!r} ({column.why})" for column in columns if not column.is_used]
    more = "" if len(out) <= 5 else f" and {len(out) - 5} more"
    return used | ({"left_out": ", ".join(out[:5]) + more} if out else {})
