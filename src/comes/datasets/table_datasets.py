"""Data sets in tables: features, labels, the truth and the names of items, by column."""

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from scipy import sparse

from comes.answers import Answers, BoolMatrix
from comes.columns import find_item_column
from comes.datasets.answer_tables import (
    PERSON,
    SOURCE,
    as_ticked,
    long_dataset,
    long_table,
    warn_of_ticks,
)
from comes.datasets.column_roles import Roles, find_long_columns, find_roles
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.label_columns import (
    TRUTHS,
    are_answers,
    are_names,
    is_reserved,
    names_columns,
    names_of_cells,
    read_answers,
    read_labels,
    read_state_sets,
    wide_columns,
)
from comes.datasets.reading import Reading
from comes.datasets.separators import check_given, find_separator
from comes.datasets.similar_names import warn_of_similar
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


class Labels(NamedTuple):
    """What a table says about labels."""

    answers: Answers | None
    truth: BoolMatrix | None
    names: list[str]


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
    labels = _read_roles(table, roles, reading)
    X = None
    if not reading.has_labels_alone:
        features = reading.feature_columns or _find_features(table, roles, labels.names, words)
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


def _find_features(
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


def _read_roles(table: pd.DataFrame, roles: Roles, reading: Reading) -> Labels:
    """Return what the columns say about labels."""
    of_labels, of_truth = table[roles.labels], table[roles.truth]
    names = None if reading.label_names is None else list(reading.label_names)
    by_name = roles.are_state_sets or (are_names(of_labels) and not _are_words(of_labels, roles))
    truth_by_name = are_names(of_truth, TRUTHS)
    of_names, of_true_names = (
        (reading.separator or find_separator([columns[c] for c in columns], names))
        if is_names
        else None
        for columns, is_names in ((of_labels, by_name), (of_truth, truth_by_name))
    )
    if reading.separator is not None:
        named = [of_labels] * by_name + [of_truth] * truth_by_name
        check_given(reading.separator, [columns[c] for columns in named for c in columns])
    if names is None and by_name and truth_by_name:  # names of either are labels
        found = _list_names(of_labels, of_names) | _list_names(of_truth, of_true_names)
        names = sorted(found)
    answers = truth = None
    if roles.labels:
        answers = _read_answers(of_labels, names, roles, reading, of_names)
        names = answers.label_names
    if roles.truth:
        truth, names = read_labels(of_truth, names, is_truth=True, separator=of_true_names)
    if reading.label_names is None and (by_name or truth_by_name):
        warn_of_similar(names or [])
    return Labels(answers, truth, names or [])


def _are_words(cells: pd.DataFrame, roles: Roles) -> bool:
    """Return whether columns of labels hold answers in words."""
    return roles.in_states or are_answers(cells)


def _list_names(columns: pd.DataFrame, separator: str | None) -> set[str]:
    """Return every label name in columns of names."""
    cells = pd.Series([cell for name in columns for cell in columns[name]], dtype=object)
    return {name for row in names_of_cells(cells, True, separator) for name in row}


def _read_answers(
    cells: pd.DataFrame,
    names: list[str] | None,
    roles: Roles,
    reading: Reading,
    separator: str | None,
) -> Answers:
    """Return what the columns of labels say, with the names of the labels."""
    is_in_words = _are_words(cells, roles)
    if (is_in_words or roles.are_state_sets) and roles.labels_are != "candidates":
        raise ComesError(
            "the labels are answers, and 'no' excludes a label; leave out labels_are "
            f"(--{roles.labels_are}), or say what the words mean (words; --answers)."
        )
    if is_in_words or roles.are_state_sets:
        if is_in_words:
            answers = read_answers(cells, names, reading.words)
        else:
            answers = read_state_sets(cells, names, separator)
        warn_of_ticks(answers)
        return answers
    is_possible = roles.labels_are == "candidates"
    if roles.labels_are == "positives" and not are_names(cells):
        empty = cells.isna() | (cells.astype(object) == "")
        cells = cells.astype(object).mask(empty, 0)  # what is not ticked
    marked, names = read_labels(cells, names, empty_is_none=not is_possible, separator=separator)
    if roles.labels_are == "positives":
        return Answers.from_positives(marked, names)
    return Answers.from_candidates(marked if is_possible else ~marked, names)


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
