"""Data sets in tables: which columns are features, labels, the truth and the names of items."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from scipy import sparse

from comes.datasets.answers import LONG, long_dataset, long_table
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.label_columns import (
    ANSWER,
    CANDIDATE,
    EXCLUDED,
    NAMES_COLUMNS,
    PREFIXES,
    RELEVANT,
    are_answers,
    are_names,
    is_reserved,
    names_columns,
    names_of_cells,
    read_answers,
    read_labels,
    wide_columns,
)
from comes.datasets.tables import (
    check_table_name,
    find_columns,
    is_csv,
    item_names,
    no_column,
    read_columns,
    read_table,
    select_features,
    write_blocks,
    write_table,
)
from comes.errors import ComesError, listed
from comes.labels import BoolMatrix

LabelColumns = Sequence[str] | None
TableForm = Literal["wide", "names", "long"]

ITEM_COLUMNS = ("item", "image", "file", "filename", "path")
ROWS_AT_ONCE = 1000  # of a sparse matrix, written as a table


class Roles(NamedTuple):
    """What the columns of a table are."""

    labels: list[str]
    truth: list[str]
    ignored: list[str]
    item: str | None
    complementary: bool


class Labels(NamedTuple):
    """What a table says about labels."""

    candidates: BoolMatrix | None
    truth: BoolMatrix | None
    asked: BoolMatrix | None
    names: list[str]


def read_table_dataset(
    path: Path,
    *,
    labels: LabelColumns = None,
    relevant: LabelColumns = None,
    ignore: Sequence[str] = (),
    feature_columns: Sequence[str] | None = None,
    item: str | None = None,
    long: Sequence[str] | None = None,
    answers: Mapping[str, str] | None = None,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
    without_features: bool = False,
) -> Dataset:
    """Take features and labels from the columns of a table; see `read_dataset`."""
    columns = read_columns(path)
    if long is None and not labels and not relevant and set(LONG) <= set(columns):
        long = LONG
    if long is not None:
        long = find_columns(columns, long)
        if len(long) != 3 or labels or relevant or complementary or item or ignore:
            raise ComesError(
                f"{path.name} is read as answers: item, label, answer. Name three columns, and "
                "leave other options of columns and --complementary out; 'no' is what excludes."
            )
        return long_dataset(read_table(path, long), long, answers, label_names)
    if not labels and not relevant:
        labels, relevant, complementary = _self_described(columns, complementary)
    ignored = find_columns(columns, ignore)
    found = [c for c in find_columns(columns, labels or ()) if c not in ignored]
    say_excluded = [c for c in found if c.startswith(EXCLUDED) or c == "complementary"]
    if 0 < len(say_excluded) < len(found):
        raise ComesError(f"labels are candidates or complementary; got both: {listed(found)}.")
    roles = Roles(
        found,
        [c for c in find_columns(columns, relevant or ()) if c not in ignored],
        ignored,
        None if item is None else find_columns(columns, [item])[0],
        complementary or bool(say_excluded),
    )
    if not found and (complementary or answers is not None):
        raise ComesError(
            "--complementary and --answers are about candidates, and only the truth is named. "
            "Name the columns of the candidates (--labels)."
        )
    if item is None:
        roles = roles._replace(item=_likely_item(columns, roles, without_features))
    return _dataset_of_roles(path, roles, feature_columns, answers, label_names, without_features)


def _dataset_of_roles(
    path: Path,
    roles: Roles,
    feature_columns: Sequence[str] | None,
    answers: Mapping[str, str] | None,
    label_names: Sequence[str] | None,
    without_features: bool,
) -> Dataset:
    """Read a table whose columns are known."""
    in_states = answers is not None or any(c.startswith(ANSWER) for c in roles.labels)
    text = {c for group in (roles.labels, roles.truth) if len(group) == 1 for c in group}
    text.update(roles.labels if in_states else (), [roles.item] if roles.item else ())
    table = read_table(path, text)
    found = _read_roles(table, roles, answers, label_names, in_states)
    X = None
    if not without_features:
        if feature_columns is None:
            used = {*roles.labels, *roles.truth, *roles.ignored, roles.item}
            ours = {c for c in table.columns if c.startswith(PREFIXES) or c in NAMES_COLUMNS}
            feature_columns = [name for name in table.columns if name not in used | ours]
        X = select_features(table, feature_columns) if feature_columns else None
    return Dataset(
        X,
        found.names,
        found.candidates,
        found.truth,
        found.asked,
        None if roles.item is None else item_names(table, roles.item),
        from_complementary=roles.complementary,
    )


def _read_roles(
    table: pd.DataFrame,
    roles: Roles,
    answers: Mapping[str, str] | None,
    label_names: Sequence[str] | None,
    in_states: bool,
) -> Labels:
    """Return what the columns say about labels."""
    of_labels, of_truth = table[roles.labels], table[roles.truth]
    names = None if label_names is None else list(label_names)
    if names is None and are_names(of_labels) and are_names(of_truth):
        cells = [*of_labels.iloc[:, 0], *of_truth.iloc[:, 0]]  # names of either are labels
        sets = names_of_cells(pd.Series(cells, dtype=object), empty_is_none=True)
        names = sorted({name for row in sets for name in row})
    candidates = truth = asked = None
    if roles.labels and (in_states or are_answers(of_labels)):
        if roles.complementary:
            raise ComesError(
                "the labels are answers, of which 'no' is what excludes; leave --complementary "
                "out, or say with --answers what the words mean."
            )
        candidates, asked, names = read_answers(of_labels, names, answers)
    elif roles.labels:
        marked, names = read_labels(of_labels, names, empty_is_none=roles.complementary)
        candidates = ~marked if roles.complementary else marked
    if roles.truth:
        truth, names = read_labels(of_truth, names, empty_is_none=False, is_truth=True)
    return Labels(candidates, truth, asked, names or [])


def _likely_item(columns: Sequence[str], roles: Roles, without_features: bool) -> str | None:
    """Return the column that names the items by its own name; with images, there are more."""
    taken = {*roles.ignored, *roles.labels, *roles.truth}
    possible = ITEM_COLUMNS if without_features else ITEM_COLUMNS[:1]
    return next((name for name in possible if name in columns and name not in taken), None)


def write_table_dataset(dataset: Dataset, path: Path, form: TableForm = "wide") -> None:
    """Write a data set as a table that `read_table_dataset` reads without being told anything."""
    check_table_name(path)
    if form == "long":
        write_table(long_table(dataset), path)
        return
    labels = wide_columns(dataset) if form == "wide" else names_columns(dataset)
    if dataset.items is not None:
        labels.insert(0, "item", dataset.items)
    X = None if isinstance(dataset.X, Images) else dataset.X
    names = list(labels.columns)
    if X is not None:
        is_table = isinstance(X, pd.DataFrame)
        names += [str(c) for c in X.columns] if is_table else [f"x{j}" for j in range(X.shape[1])]
    clashes = [name for name, count in Counter(names).items() if count > 1]
    clashes += [
        name for name in names[len(labels.columns) :] if is_reserved(name) or name == "item"
    ]
    if clashes:
        raise ComesError(
            f"a feature called {clashes[0]!r} would be taken for something else in a table. Rename "
            "it, or write an .npz file."
        )
    texts = [*names, *(dataset.items or ()), *dataset.label_names]
    if is_csv(path) and any("\r" in text for text in texts):
        raise ComesError("a name has a carriage return in it, which a csv file would lose.")
    write_blocks(_blocks(labels, X, names), path)


def read_table_features(
    path: Path, columns: Sequence[str] | None, item: str | None = None
) -> tuple[Any, list[str] | None]:
    """Return the named columns, and the names of the items.

    By default every column is a feature but the item and what we call labels in our own tables.
    """
    there = read_columns(path)
    if item is None or item not in there:
        item = "item" if "item" in there and "item" not in (columns or ()) else None
    table = read_table(path, [item] if item else [])
    if columns is None:
        columns = [c for c in table.columns if c != item and not is_reserved(c)]
    X = select_features(table, columns)
    return X, None if item is None else item_names(table, item)


def _self_described(
    columns: Sequence[str], complementary: bool
) -> tuple[list[str], list[str], bool]:
    """Return the label columns and the truth columns of a table that names them our way."""
    ours = ("candidates", "relevant")
    if complementary and any(c.startswith((CANDIDATE, RELEVANT)) or c in ours for c in columns):
        raise ComesError(
            "the columns say themselves what they are; leave --complementary out, or name the "
            "columns (--labels)."
        )

    def called(prefix: str, name: str | None) -> list[str]:
        return [c for c in columns if c.startswith(prefix)] or [c for c in columns if c == name]

    truth = called(RELEVANT, "relevant")
    for prefix, name in ((CANDIDATE, "candidates"), (EXCLUDED, "complementary"), (ANSWER, None)):
        if labels := called(prefix, name):
            return labels, truth, complementary or prefix == EXCLUDED
    if not truth:
        if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
            raise no_column("labels", columns)
        raise ComesError(
            "which columns hold the labels? Name them (--labels, or --relevant for the truth, on "
            "the command line): 0/1 columns or one of label names. The columns are "
            f"{listed(list(columns))}."
        )
    return [], truth, complementary


def _blocks(labels: pd.DataFrame, X: Any, names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table, so that a sparse matrix is never dense as a whole."""
    step = ROWS_AT_ONCE if sparse.issparse(X) else max(len(labels), 1)
    for start in range(0, len(labels), step):
        parts = [labels.iloc[start : start + step].reset_index(drop=True)]
        if X is not None and sparse.issparse(X):
            parts.append(pd.DataFrame(X[start : start + step].toarray()))
        elif X is not None:
            parts.append(pd.DataFrame(X).reset_index(drop=True))
        yield pd.concat(parts, axis=1).set_axis(list(names), axis=1)
