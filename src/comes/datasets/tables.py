"""Tables with features and labels in columns: csv and parquet.

Labels come in one of three forms:

- wide: a column per label, 0/1, or "no", "maybe" and nothing for not asked;
- names: one column of label names ("apple;plate");
- long: the columns item, label and answer, a row per answer (`comes.datasets.answers`).

One column is taken for names unless all its cells are 0 or 1. An empty cell of names is refused in
candidates and in the truth, where it could mean that nothing applies or that nobody was asked:
``(none)`` says the first. Among complementary labels an empty cell excludes nothing.

A table that we write says itself what its columns are: ``item``; ``candidate:NAME``,
``excluded:NAME`` or ``answer:NAME``, and ``relevant:NAME``; or ``candidates``, ``complementary``,
``relevant`` with names. Every other column is a feature.
"""

import difflib
import fnmatch
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from comes.datasets.answers import (
    LONG,
    NO,
    NOT_ASKED,
    WORDS,
    answers_of,
    as_states,
    as_text,
    long_dataset,
    long_table,
)
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.errors import ComesError
from comes.files import replacing_file
from comes.labels import BoolMatrix, as_indicators, from_sets, listed, match_names, to_sets

LabelColumns = Sequence[str] | None
TableForm = Literal["wide", "names", "long"]

ENDINGS = (".csv", ".parquet")
SEPARATOR = ";"
NOTHING = "(none)"
INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
TRUTHS = {**INDICATORS, "no": 0, "yes": 1}
NAMELESS = re.compile(r"Unnamed: \d+|")
ITEM_COLUMNS = ("item", "image", "file", "filename", "path")
CANDIDATE, EXCLUDED, ANSWER, RELEVANT = "candidate:", "excluded:", "answer:", "relevant:"
NAMES_COLUMNS = ("candidates", "complementary", "relevant")
ROWS_AT_ONCE = 1000  # of a sparse matrix, written as a table


def read_table(path: Path, text_columns: Collection[str] = ()) -> pd.DataFrame:
    """Read a csv or parquet file; some columns of a csv as they are written: a label may be NA."""
    with _told(path):
        table = _read_csv(path, text_columns) if _is_csv(path) else _read_parquet(path)
    if table.empty:
        raise ComesError(f"{path.name} has columns but no rows; at least one was wanted.")
    return table.set_axis([str(name) for name in table.columns], axis=1)


def read_columns(path: Path) -> list[str]:
    """Return the names of the columns of a csv or parquet file."""
    with _told(path):
        if not _is_csv(path):
            names = [str(name) for name in pq.read_schema(path).names]
            return [name for name in names if not re.fullmatch(r"__index_level_\d+__", name)]
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    return [str(name) or f"Unnamed: {j}" for j, name in enumerate(header.iloc[0])]


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a csv or parquet file, replacing it if the whole of it could be written."""
    _write_blocks(iter([table]), path)


def check_table_name(path: str | Path) -> None:
    """Raise unless the name ends as a table's."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise ComesError(f"{Path(path).name} should end in .csv or .parquet.")


def prediction_table(
    scores: npt.ArrayLike,
    predictions: npt.ArrayLike,
    label_names: Sequence[str],
    items: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return one row per item: its name, the predicted labels, and a column of scores per label.

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
    if items is not None:
        table.insert(0, "item", list(items))
    return table


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
    if not labels and not relevant:
        if complementary and any(c.startswith((CANDIDATE, RELEVANT)) for c in columns):
            raise ComesError(
                f"the columns of {path.name} say themselves what they are; leave --complementary "
                "out, or name the columns (--labels)."
            )
        if long is None and set(LONG) <= set(columns):
            long = LONG
        if long is None:
            labels, relevant, complementary = _self_described(columns, complementary)
    if long is not None:
        long = find_columns(columns, long)
        if len(long) != 3 or labels or relevant or complementary or item or ignore:
            raise ComesError(
                f"{path.name} is read as answers: item, label, answer. Name three columns, and "
                "leave other options of columns and --complementary out; 'no' is what excludes."
            )
        return long_dataset(read_table(path, long), long, answers, label_names)

    ignored = find_columns(columns, ignore)
    label_columns = [c for c in find_columns(columns, labels or ()) if c not in ignored]
    truth_columns = [c for c in find_columns(columns, relevant or ()) if c not in ignored]
    possible = ITEM_COLUMNS if without_features else ITEM_COLUMNS[:1]
    if item is not None:
        (item,) = find_columns(columns, [item])[:1]
    else:
        taken = {*ignored, *label_columns, *truth_columns}
        item = next((c for c in possible if c in columns and c not in taken), None)
    in_states = answers is not None or any(c.startswith(ANSWER) for c in label_columns)
    text = {c for group in (label_columns, truth_columns) if len(group) == 1 for c in group}
    text.update(label_columns if in_states else (), find_columns(columns, [item] if item else []))
    table = read_table(path, text)

    names = None if label_names is None else list(label_names)
    if names is None and _are_names(table[label_columns]) and _are_names(table[truth_columns]):
        cells = [*table[label_columns].iloc[:, 0], *table[truth_columns].iloc[:, 0]]
        sets = _names_of_cells(pd.Series(cells, dtype=object), empty_is_none=True)
        names = sorted({name for row in sets for name in row})
    candidates = truth = asked = None
    if label_columns and (in_states or _are_answers(table[label_columns])):
        if complementary:
            raise ComesError(
                f"the labels in {path.name} are answers, of which 'no' is what excludes; leave "
                "--complementary out, or say with --answers what the words mean."
            )
        candidates, asked, names = _answers(table[label_columns], names, answers)
    elif label_columns:
        complementary = complementary or label_columns[0].startswith(EXCLUDED)
        marked, names = _labels(table[label_columns], names, empty_is_none=complementary)
        candidates = ~marked if complementary else marked
    if truth_columns:
        truth, names = _labels(table[truth_columns], names, empty_is_none=False, is_truth=True)
    X = None
    if not without_features:
        if feature_columns is None:
            used = {*label_columns, *truth_columns, *ignored, item}
            feature_columns = [name for name in table.columns if name not in used]
        X = select_features(table, feature_columns) if feature_columns else None
    return Dataset(
        X,
        names or [],
        candidates,
        truth,
        asked,
        None if item is None else item_names(table, item),
        from_complementary=complementary,
    )


def write_table_dataset(dataset: Dataset, path: Path, form: TableForm = "wide") -> None:
    """Write a data set as a table that `read_table_dataset` reads without being told anything."""
    check_table_name(path)
    if form == "long":
        write_table(long_table(dataset), path)
        return
    labels = _wide_labels(dataset) if form == "wide" else _label_sets(dataset)
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
    if _is_csv(path) and any("\r" in text for text in texts):
        raise ComesError("a name has a carriage return in it, which a csv file would lose.")
    _write_blocks(_blocks(labels, X, names), path)


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


def select_features(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the named columns as numbers; raise if one is missing or something else."""
    if not columns:
        raise ComesError(f"no feature column is left of {listed(list(table.columns))}.")
    for name in columns:
        if name not in table.columns:
            raise _no_column(name, list(table.columns))
        if NAMELESS.fullmatch(name):
            raise ComesError(
                "a column without a name is not taken for a feature. Ignore it "
                f"(--ignore '{name}' on the command line), or name it."
            )
        if not _is_numeric(table[name]):
            raise ComesError(
                f"feature column {name!r} must be numeric; got {table[name].dtype}. Ignore it "
                "(--ignore on the command line), or turn it into numbers."
            )
    return table[list(columns)].astype(float)


def item_names(table: pd.DataFrame, column: str) -> list[str]:
    """Return the names of the items; raise if one is empty."""
    names = [as_text(cell) for cell in table[column]]
    if "" in names:
        raise ComesError(
            f"column {column!r} is empty at row {names.index('')}; the name of an item was wanted."
        )
    return names


def find_columns(columns: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the columns named, wildcards filled in, each once, in the order asked for."""
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = [pattern] if pattern in columns else fnmatch_all(columns, pattern)
        if not hits:
            raise _no_column(pattern, columns)
        found.update(dict.fromkeys(hits))
    return list(found)


def fnmatch_all(columns: Sequence[str], pattern: str) -> list[str]:
    """Return the columns that a pattern with wildcards matches."""
    return [name for name in columns if fnmatch.fnmatchcase(name, pattern)]


def _self_described(
    columns: Sequence[str], complementary: bool
) -> tuple[list[str], list[str], bool]:
    """Return the label columns and the truth columns of a table that names them our way."""

    def called(prefix: str, name: str | None) -> list[str]:
        return [c for c in columns if c.startswith(prefix)] or [c for c in columns if c == name]

    truth = called(RELEVANT, "relevant")
    for prefix, name in ((CANDIDATE, "candidates"), (EXCLUDED, "complementary"), (ANSWER, None)):
        if labels := called(prefix, name):
            return labels, truth, complementary or prefix == EXCLUDED
    if not truth:
        if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
            raise _no_column("labels", columns)
        raise ComesError(
            "which columns hold the labels? Name them (--labels, or --relevant for the truth, on "
            "the command line): 0/1 columns or one of label names. The columns are "
            f"{listed(list(columns))}."
        )
    return [], truth, complementary


def _without_prefix(columns: Sequence[str]) -> list[str]:
    for prefix in (CANDIDATE, EXCLUDED, ANSWER, RELEVANT):
        if all(name.startswith(prefix) for name in columns):
            return [name.removeprefix(prefix) for name in columns]
    return list(columns)


def is_reserved(name: str) -> bool:
    """Return whether a column of that name is no feature: a label in our tables, or nameless."""
    prefixes = (CANDIDATE, EXCLUDED, ANSWER, RELEVANT)
    return name in NAMES_COLUMNS or name.startswith(prefixes) or bool(NAMELESS.fullmatch(name))


def _no_column(name: str, columns: Sequence[str]) -> ComesError:
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        hint = " Columns of a csv are separated by commas, and here they seem not to be."
    return ComesError(f"there is no column {name!r}; there are {listed(columns)}.{hint}")


def _labels(
    cells: pd.DataFrame,
    wanted: Sequence[str] | None,
    empty_is_none: bool,
    is_truth: bool = False,
) -> tuple[BoolMatrix, list[str]]:
    """Return the marked labels of every row, from 0/1 columns or one of label names."""
    words = TRUTHS if is_truth else INDICATORS
    if _are_names(cells, words):
        return from_sets(_names_of_cells(cells.iloc[:, 0], empty_is_none), wanted)
    columns = list(cells.columns)
    for name in columns:
        if not _is_numeric(cells[name]):  # text that says 0 and 1
            as_numbers = cells[name].map(lambda cell: _as_indicator(cell, words))
            gaps = cells[name].isna() | (cells[name].astype(object) == "")
            cells = cells.assign(**{name: as_numbers.where(as_numbers.notna() | gaps, cells[name])})
    empty = cells.isna() | (cells.astype(object) == "")
    if empty.to_numpy().any():
        name = str(empty.any().idxmax())
        row = int(empty[name].to_numpy().argmax())
        advice = "A label that nobody was asked about stays possible: write 1 (0 in a file of "
        advice += "complementary labels)."
        if is_truth:
            advice = "The truth must be known: fill it in, or leave the row out."
        raise ComesError(f"label column {name!r} must be 0 or 1; row {row} is empty. {advice}")
    advice = "Say what other values mean (--answers 0=no,1=maybe on the command line)."
    if is_truth:
        advice = "The truth is 0 or 1, or yes or no."
    return _in_order(as_indicators(cells, "label columns", advice), columns, wanted)


def _are_names(cells: pd.DataFrame, words: Mapping[str, int] = INDICATORS) -> bool:
    """Return whether labels are one column of names: not all cells are 0 or 1, or it says so."""
    if cells.shape[1] != 1:
        return False
    as_numbers = cells.iloc[:, 0].map(lambda cell: _as_indicator(cell, words))
    return cells.columns[0] in NAMES_COLUMNS or bool(as_numbers.isna().any())


def _as_indicator(cell: Any, words: Mapping[str, int]) -> float:
    return words.get(str(cell).strip().lower(), np.nan)


def _are_answers(cells: pd.DataFrame) -> bool:
    """Return whether columns hold words of the three states; a single one, nothing else."""
    if cells.columns[0] in NAMES_COLUMNS:
        return False
    texts = [cells[name].dropna() for name in cells if not _is_numeric(cells[name])]
    found = {cell.strip().lower() for column in texts for cell in column.map(str).unique()}
    words = {word for word in WORDS if word}
    return bool(found & words) and (cells.shape[1] > 1 or found <= {*words, ""})


def _answers(
    cells: pd.DataFrame, wanted: Sequence[str] | None, answers: Mapping[str, str] | None
) -> tuple[BoolMatrix, BoolMatrix, list[str]]:
    """Return the candidates, and where somebody was asked, of columns in three states."""
    columns = list(cells.columns)
    states = [as_states(cells[c], f"column {c!r}", answers) for c in columns]
    state = np.stack(states, axis=1)
    candidates, names = _in_order(state != NO, columns, wanted)
    return candidates, _in_order(state != NOT_ASKED, columns, wanted)[0], names


def _in_order(
    marked: BoolMatrix, columns: Sequence[str], wanted: Sequence[str] | None
) -> tuple[BoolMatrix, list[str]]:
    names = _without_prefix(columns)
    if wanted is None:
        return marked, names
    return marked[:, match_names(names, wanted)], list(wanted)


def _names_of_cells(cells: "pd.Series[Any]", empty_is_none: bool) -> list[list[str]]:
    """Return the label names in every cell."""
    sets, unclear = [], []
    for row, cell in enumerate(cells):
        if isinstance(cell, (list, tuple, np.ndarray)):
            names = [as_text(name) for name in cell]
            if not all(isinstance(name, (str, int, float)) for name in cell) or "" in names:
                raise ComesError(f"row {row} has a list of something else than names: {cell!r}.")
        elif isinstance(cell, (dict, bytes)):
            raise ComesError(f"row {row} has {cell!r}, and names of labels were wanted.")
        else:
            text = as_text(cell)
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


def _wide_labels(dataset: Dataset) -> pd.DataFrame:
    parts = []
    if dataset.asked is not None:
        candidates, asked = answers_of(dataset)
        words = np.where(asked, np.where(candidates, "maybe", "no"), "")
        parts.append(_frame(words, ANSWER, dataset))
    elif dataset.candidates is not None and dataset.from_complementary:
        parts.append(_frame((~dataset.candidates).astype(np.int8), EXCLUDED, dataset))
    elif dataset.candidates is not None:
        parts.append(_frame(dataset.candidates.astype(np.int8), CANDIDATE, dataset))
    if dataset.relevant is not None:
        parts.append(_frame(dataset.relevant.astype(np.int8), RELEVANT, dataset))
    return pd.concat(parts, axis=1)


def _frame(values: npt.NDArray[Any], prefix: str, dataset: Dataset) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[prefix + name for name in dataset.label_names])


def _label_sets(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as columns of names; raise if they would not be read as they are."""
    for name in dataset.label_names:
        if SEPARATOR in name or name != name.strip() or name.lower() in ("", NOTHING):
            raise ComesError(f"the label {name!r} cannot be one of names joined by {SEPARATOR!r}.")
    columns = {}
    if dataset.candidates is not None and dataset.from_complementary:
        columns["complementary"] = ~dataset.candidates
    elif dataset.candidates is not None:
        columns["candidates"] = dataset.candidates
    if dataset.relevant is not None:
        columns["relevant"] = dataset.relevant
    return pd.DataFrame(
        {
            column: [SEPARATOR.join(s) or NOTHING for s in to_sets(marked, dataset.label_names)]
            for column, marked in columns.items()
        }
    )


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


def _write_blocks(blocks: Iterator[pd.DataFrame], path: str | Path) -> None:
    check_table_name(path)
    with replacing_file(path) as temporary:
        if _is_csv(Path(path)):
            for number, block in enumerate(blocks):
                block.to_csv(temporary, mode="a" if number else "w", header=not number, index=False)
            return
        first = pa.Table.from_pandas(next(blocks), preserve_index=False)
        with pq.ParquetWriter(temporary, first.schema) as writer:
            writer.write_table(first)
            for block in blocks:
                writer.write_table(pa.Table.from_pandas(block, first.schema, preserve_index=False))


def _read_csv(path: Path, text_columns: Collection[str]) -> pd.DataFrame:
    names = read_columns(path)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} occurs more than once")
    missing = ["", "NA", "N/A", "NaN", "nan", "null", "None", "n/a", "<NA>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more cells than column names
        table = pd.read_csv(
            path,
            index_col=False,
            dtype=dict.fromkeys(text_columns, str),
            keep_default_na=False,
            na_values={name: missing for name in names if name not in text_columns},
        )
    return table.drop(columns=[c for c in table.columns if _says_nothing(str(c), table[c])])


def _says_nothing(name: str, cells: "pd.Series[Any]") -> bool:
    """Return whether a column without a name is empty, or counts the rows."""
    if not NAMELESS.fullmatch(name):
        return False
    numbers = pd.api.types.is_integer_dtype(cells)
    return bool(cells.isna().all() or (numbers and (cells == np.arange(len(cells))).all()))


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a parquet file; an index with a name is a column."""
    table = pd.read_parquet(path)
    named = [name for name in table.index.names if name is not None]
    return table.reset_index(named) if named else table


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what pandas and pyarrow raise into a sentence that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise ComesError(f"{path.name} is not text in UTF-8; save it as UTF-8.") from None
    except (ValueError, OSError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        ending = path.suffix[1:].lower()
        raise ComesError(f"{path.name} cannot be read as {ending}: {reason}.") from None


def _is_numeric(cells: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(cells)


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"
