"""Data sets in tables: features, labels, the truth and the names of items, by column."""

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import State
from comes.datasets.dataset import (
    ColumnRole,
    Dataset,
    Marks,
    check_features,
    check_item_names,
    check_none_excluded,
    fill_marks,
    find_sets,
    marks_of_state,
)
from comes.datasets.images import Images
from comes.datasets.labels import (
    ANSWER,
    KINDS,
    RELEVANT,
    STATE_COLUMNS,
    LabelReader,
    Labels,
    Roles,
    find_long_columns,
    find_roles,
    is_reserved,
)
from comes.datasets.long import PERSON, SOURCE, long_table, read_long
from comes.datasets.options import ReadOptions
from comes.datasets.separators import NOTHING, SEPARATOR, are_all_names, find_separator, split_cell
from comes.datasets.table import (
    NAMELESS,
    TEXT_ENDINGS,
    Table,
    as_texts,
    find_columns,
    find_ending,
    no_column,
    write_blocks,
    write_table,
)
from comes.errors import ComesError, counted, listed, warn_user
from comes.tables.columns import find_item_column, needs_encoding

TableForm = Literal["wide", "names", "long"]

FORMS = "Write .npz, or the form 'names' or 'long' (--form)."
ROWS_AT_ONCE = 1000  # of a sparse matrix, written as a table


def read_table_dataset(path: Path, options: ReadOptions) -> Dataset:
    """Read features and labels from the columns of a table."""
    with Table(path) as table:
        return table_dataset(table, options)


def table_dataset(table: Table, options: ReadOptions) -> Dataset:
    """Return the features and labels of an open table."""
    long = find_long_columns(table.columns, options)
    if long is not None:
        return read_long(table.read([*long, PERSON, SOURCE]), long, options)
    roles = find_roles(table.columns, options)
    words = find_words(table.columns, table.codes, options)
    frame = table.read({*roles.text_columns, *words})
    reader, labels, X, item = look_at(frame, roles, words, options)
    answers = labels.answers
    if labels.truth is not None and answers is not None and answers.kind == "candidates":
        check_none_excluded(labels.truth, answers, labels.names, table.first_row)
    if X is not None and answers is not None and reader.in_words:
        counts = answers.count()
        silent = [str(name) for name in counts.loc[counts["asked"] == 0, "label"]]
        if silent:
            warn_user(
                f"{counted(len(silent), 'label', 'have no answer in any row')}: {listed(silent)}. "
                "Nothing can be learned about such a label."
            )
    items = None if item is None else item_names(frame, item)
    check_item_names(items or (), table.first_row)
    others = {} if roles.item is None else {roles.item: "item"}
    others |= dict.fromkeys(roles.ignored, "ignored") | dict.fromkeys(roles.truth, "truth")
    others |= dict.fromkeys(roles.labels, "label")
    return Dataset(
        X,
        labels.names,
        relevant=labels.truth,
        items=items,
        from_complementary=roles.labels_are == "complementary",
        answers=answers,
        roles={
            name: ColumnRole(others[name], _count_empty(frame[name]))
            for name in frame.columns
            if name in others
        },
    )


def find_words(columns: Sequence[str], codes: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the columns whose cells are kept as they are written, codes such as 00123 too."""
    if options.has_labels_alone:
        return []
    numbers = find_columns(columns, options.number or ())
    words = find_columns(columns, options.word_columns)
    return words + [name for name in codes if name not in numbers]


def look_at(
    frame: pd.DataFrame, roles: Roles, words: Sequence[str], options: ReadOptions
) -> tuple[LabelReader, Labels, pd.DataFrame | None, str | None]:
    """Return the labels of a table, its features, and the column that names the items."""
    reader = LabelReader.find(frame, roles, options)
    labels = reader.read(frame)
    reader.warn(labels)
    X, item = None, roles.item
    if not options.has_labels_alone:
        features = options.feature_columns or find_features(frame, roles, labels.names, words)
        X = select_features(frame, features) if features else None
        if item is None and X is not None:
            item = find_item_column(frame[roles.find_features(list(frame.columns))])
    return reader, labels, X, item


def _count_empty(cells: "pd.Series[Any]") -> int:
    is_empty = cells.isna()
    if pd.api.types.is_string_dtype(cells):
        is_empty |= cells == ""
    return int(is_empty.sum())


def find_features(
    frame: pd.DataFrame, roles: Roles, label_names: Sequence[str], words: Sequence[str]
) -> list[str]:
    """Return the columns to learn from: not those of label names, unless their kind is given."""
    features, names = roles.find_features(list(frame.columns)), set(label_names)
    leaking = [
        column
        for column in features
        if column not in words
        and not pd.api.types.is_numeric_dtype(frame[column].dtype)
        and are_all_names(frame[column], names)
    ]
    if leaking:
        which = f"columns {listed(leaking)} hold" if leaking[1:] else f"column {leaking[0]!r} holds"
        warn_user(
            f"{which} nothing but label names, which would give the labels away: left out of the "
            f"features. To judge with it, name it as the truth (--relevant {leaking[0]}); to learn "
            f"from it all the same, say what it is (--category {leaking[0]})."
        )
    return [column for column in features if column not in leaking]


def select_features(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the named columns, as floats if all are complete numbers; raise if one is missing."""
    if not columns:
        raise ComesError(f"no feature column is left of {listed(list(frame.columns))}.")
    for name in columns:
        if name not in frame.columns:
            raise no_column(name, list(frame.columns))
        if NAMELESS.fullmatch(name):
            raise ComesError(
                "a column without a name is not taken for a feature. Ignore it "
                f"(--ignore '{name}' on the command line), or name it."
            )
    chosen = frame[list(columns)].reset_index(drop=True)
    if not needs_encoding(chosen):
        chosen = chosen.astype(float)
        check_features(chosen, int(frame.index[0]))
    return chosen


def item_names(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the names of the items; raise if one is empty."""
    names = as_texts(frame[column])
    if (is_empty := names == "").any():
        row = frame.index[is_empty.argmax()]
        raise ComesError(f"column {column!r} is empty at row {row}; expected the name of an item.")
    return list(map(str, names))


def read_table_features(
    path: Path, options: ReadOptions, item: str | None = None
) -> tuple[Any, list[str] | None]:
    """Return the feature columns, and the names of the items.

    By default every column is a feature, except the item and label columns that we write. The
    column of the items in the options is used if it is there; the other one must be.
    """
    with Table(path) as table:
        columns, wanted = table.columns, options.feature_columns
        if item is not None and item not in columns:
            raise no_column(item, columns)
        item = item or options.item
        words = [c for c in columns if any(fnmatch.fnmatchcase(c, w) for w in options.word_columns)]
        words += [c for c in columns if c in options.word_columns]
        if item is None or item not in columns:
            item = "item" if "item" in columns and "item" not in (wanted or ()) else None
        others = [] if wanted is None else [c for c in columns if c not in wanted]
        frame = table.read([*others, *words, *([item] if item else [])])
    others = [c for c in frame.columns if c not in (wanted or ()) and not is_reserved(c)]
    item = item or find_item_column(frame[others])
    if wanted is None:
        wanted = [c for c in others if c != item]
    X = select_features(frame, wanted)
    return X, None if item is None else item_names(frame, item)


def write_table_dataset(dataset: Dataset, path: Path, form: TableForm = "wide") -> None:
    """Write a data set as a table that `read_table_dataset` reads without options."""
    if form == "long":
        write_table(long_table(dataset), path)
        return
    labels = wide_columns(dataset) if form == "wide" else names_columns(dataset, path.name)
    if dataset.items is not None:
        labels.insert(0, "item", dataset.items)
    X = None if isinstance(dataset.X, Images) else dataset.X
    features: list[str] = []
    if X is not None:
        is_frame = isinstance(X, pd.DataFrame)
        features = [str(c) for c in X.columns] if is_frame else [f"x{j}" for j in range(X.shape[1])]
    names = [*labels.columns, *features]
    clashes = [name for name, count in Counter(names).items() if count > 1]
    clashes += [name for name in features if is_reserved(name) or name == "item"]
    if clashes:
        raise ComesError(
            f"a feature called {clashes[0]!r} would be taken for something else in a table. Rename "
            "it, or write an .npz file."
        )
    texts = [*names, *(dataset.items or ()), *dataset.label_names]
    if find_ending(path) in TEXT_ENDINGS and any("\r" in text for text in texts):
        raise ComesError(
            "a name has a carriage return in it, which a csv file would lose. Write .parquet."
        )
    write_blocks(_split_rows(labels, X, names), path)


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


def named_labels(dataset: Dataset, form: TableForm) -> dict[str, Marks]:
    """Return what columns mark; in columns of names, sparse candidates are what is excluded."""
    columns, answers = {}, dataset.answers
    if answers is not None and answers.kind == "answers":
        states = (State.NO, State.YES, State.MAYBE)
        columns = {state.word: marks_of_state(answers, state) for state in states}
    elif answers is not None and answers.kind == "positives":
        columns["positives"] = marks_of_state(answers, State.YES)
    elif answers is not None and (
        dataset.from_complementary or (form == "names" and answers.is_sparse)
    ):
        columns["complementary"] = marks_of_state(answers, State.NO)
    elif answers is not None:
        columns["candidates"] = answers.candidates
    if dataset.relevant is not None:
        columns["relevant"] = dataset.relevant
    return columns


def wide_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as a column each, named so that they can be read without options."""
    parts, named = {}, named_labels(dataset, "wide")
    if dataset.answers is not None and dataset.answers.kind == "answers":
        words = np.array([state.word for state in sorted(State)], dtype=object)
        words[State.NOT_ASKED] = ""
        parts[ANSWER] = words[dataset.answers.codes]
    for name, prefix in (*KINDS.items(), ("relevant", RELEVANT)):
        if (marked := named.get(name)) is not None:
            parts[prefix] = fill_marks(marked, "a column for each label", FORMS).astype(np.int8)
    frames = [
        pd.DataFrame(values, columns=[prefix + name for name in dataset.label_names])
        for prefix, values in parts.items()
    ]
    return pd.concat(frames, axis=1)


def names_columns(dataset: Dataset, file: str) -> pd.DataFrame:
    """Return the labels as columns of names; raise if they would not be read as they are."""
    for name in dataset.label_names:
        if split_cell(name, SEPARATOR) != [name] or name.lower() == NOTHING:
            raise ComesError(
                f"the label {name!r} cannot be one of names joined by {SEPARATOR!r}. Write another "
                "form."
            )
    named = named_labels(dataset, "names")
    columns = {name: find_sets(marked, dataset.label_names) for name, marked in named.items()}
    shown = {name for sets in columns.values() for names in sets for name in names}
    hidden = [name for name in dataset.label_names if name not in shown]
    if not shown:
        raise ComesError(f"no cell of {file} would show a label. Write another form.")
    if hidden:
        warn_user(
            f"a column of names shows the labels that occur: {file} loses {listed(hidden)}. Give "
            "all of them (--label-names) when it is read."
        )
    frame = pd.DataFrame(
        {name: [SEPARATOR.join(s) or NOTHING for s in sets] for name, sets in columns.items()}
    )
    states = [name for name in columns if name in STATE_COLUMNS]
    groups = [states] * bool(states) + [[name] for name in columns if name not in states]
    try:
        is_clear = all(find_separator([frame[c] for c in g]) == SEPARATOR for g in groups)
    except ComesError:
        is_clear = False
    if not is_clear:
        raise ComesError(
            "the names of the labels would not be told apart in one cell: something else than "
            f"{SEPARATOR!r} seems to separate them. Write another form."
        )
    return frame
