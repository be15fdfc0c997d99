"""What the columns of a table say about labels.

Labels come in one of three forms:

- wide: a column per label, 0/1, or "no", "maybe" and nothing for not asked;
- names: one column of label names ("apple;plate");
- long: the columns item, label and answer, a row per answer (`comes.datasets.answer_tables`).

One column is taken for names unless all its cells are 0 or 1, or answers. An empty cell of names is
refused in candidates and in the truth, where it could mean that nothing applies or that nobody was
asked: ``(none)`` says the first. Among complementary labels an empty cell excludes nothing.

In a table that we write, names say what columns are: ``item``; ``candidate:NAME``,
``excluded:NAME`` or ``answer:NAME``, and ``relevant:NAME``; or ``candidates``, ``complementary``,
``relevant`` with names. Every other column is a feature.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import BoolMatrix, as_indicators, from_sets, match_names, to_sets
from comes.datasets.answer_tables import NO, NOT_ASKED, WORDS, answers_of, as_states, as_text
from comes.datasets.dataset import Dataset
from comes.datasets.tables import NAMELESS, is_numeric
from comes.errors import ComesError

SEPARATOR = ";"
NOTHING = "(none)"
INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
TRUTHS = {**INDICATORS, "no": 0, "yes": 1}
PREFIXES = CANDIDATE, EXCLUDED, ANSWER, RELEVANT = "candidate:", "excluded:", "answer:", "relevant:"
NAMES_COLUMNS = ("candidates", "complementary", "relevant")


def is_reserved(name: str) -> bool:
    """Return whether a name is not for features: one of our label columns, or empty."""
    return name in NAMES_COLUMNS or name.startswith(PREFIXES) or bool(NAMELESS.fullmatch(name))


def read_labels(
    cells: pd.DataFrame,
    wanted: Sequence[str] | None,
    *,
    empty_is_none: bool = False,
    is_truth: bool = False,
    separator: str | None = None,
) -> tuple[BoolMatrix, list[str]]:
    """Return the marked labels of every row, from 0/1 columns or one of label names."""
    words = TRUTHS if is_truth else INDICATORS
    if are_names(cells, words):
        return from_sets(names_of_cells(cells.iloc[:, 0], empty_is_none, separator), wanted)
    columns = list(cells.columns)
    cells = _convert_words(cells, words)
    _refuse_empty_cells(cells, is_truth)
    advice = "Say what other values mean (words; --answers 0=no,1=maybe on the command line)."
    if is_truth:
        advice = "The truth is 0 or 1, or yes or no."
    return _order_labels(as_indicators(cells, "label columns", advice), columns, wanted)


def _convert_words(cells: pd.DataFrame, words: Mapping[str, int]) -> pd.DataFrame:
    """Return columns of text with 0 and 1 in the place of their words; other text stays."""
    for name in cells.columns:
        if not is_numeric(cells[name]):
            as_numbers = cells[name].map(lambda cell: _read_indicator(cell, words))
            gaps = cells[name].isna() | (cells[name].astype(object) == "")
            cells = cells.assign(**{name: as_numbers.where(as_numbers.notna() | gaps, cells[name])})
    return cells


def _refuse_empty_cells(cells: pd.DataFrame, is_truth: bool) -> None:
    """Raise at the first label column with an empty cell."""
    empty = cells.isna() | (cells.astype(object) == "")
    if not empty.to_numpy().any():
        return
    name = str(empty.any().idxmax())
    row = int(empty[name].to_numpy().argmax())
    advice = "A label that nobody was asked about stays possible: write 1 (0 in a file of "
    advice += "complementary labels)."
    if is_truth:
        advice = "The truth must be known: fill it in, or leave the row out."
    raise ComesError(f"label column {name!r} must be 0 or 1; row {row} is empty. {advice}")


def are_names(cells: pd.DataFrame, words: Mapping[str, int] = INDICATORS) -> bool:
    """Return whether labels are one column of names: by its own name, or not all cells 0 or 1."""
    if cells.shape[1] != 1:
        return False
    as_numbers = cells.iloc[:, 0].map(lambda cell: _read_indicator(cell, words))
    return cells.columns[0] in NAMES_COLUMNS or bool(as_numbers.isna().any())


def are_answers(cells: pd.DataFrame) -> bool:
    """Return whether columns hold words of the three states; a single one, nothing else."""
    if cells.columns[0] in NAMES_COLUMNS:
        return False
    texts = [cells[name].dropna() for name in cells if not is_numeric(cells[name])]
    found = {cell.strip().lower() for column in texts for cell in column.map(str).unique()}
    words = {word for word in WORDS if word}
    return bool(found & words) and (cells.shape[1] > 1 or found <= {*words, ""})


def read_answers(
    cells: pd.DataFrame, wanted: Sequence[str] | None, words: Mapping[str, str] | None
) -> tuple[BoolMatrix, BoolMatrix, list[str]]:
    """Return the candidates, and where somebody was asked, of columns in three states."""
    columns = list(cells.columns)
    states = [as_states(cells[c], f"column {c!r}", words) for c in columns]
    state = np.stack(states, axis=1)
    candidates, names = _order_labels(state != NO, columns, wanted)
    return candidates, _order_labels(state != NOT_ASKED, columns, wanted)[0], names


def wide_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as a column each, named so that they can be read without options."""
    parts = []
    if dataset.asked is not None:
        candidates, asked = answers_of(dataset)
        words = np.where(asked, np.where(candidates, "maybe", "no"), "")
        parts.append(_make_frame(words, ANSWER, dataset))
    elif dataset.candidates is not None and dataset.from_complementary:
        parts.append(_make_frame((~dataset.candidates).astype(np.int8), EXCLUDED, dataset))
    elif dataset.candidates is not None:
        parts.append(_make_frame(dataset.candidates.astype(np.int8), CANDIDATE, dataset))
    if dataset.relevant is not None:
        parts.append(_make_frame(dataset.relevant.astype(np.int8), RELEVANT, dataset))
    return pd.concat(parts, axis=1)


def names_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as columns of names; raise if they would not be read as they are."""
    for name in dataset.label_names:
        if SEPARATOR in name or name != name.strip() or name.lower() in ("", NOTHING):
            raise ComesError(
                f"the label {name!r} cannot be one of names joined by {SEPARATOR!r}. Write another "
                "form."
            )
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


def _read_indicator(cell: Any, words: Mapping[str, int]) -> float:
    """Return the 0 or 1 that a cell says, or NaN."""
    return words.get(str(cell).strip().lower(), np.nan)


def _order_labels(
    marked: BoolMatrix, columns: Sequence[str], wanted: Sequence[str] | None
) -> tuple[BoolMatrix, list[str]]:
    """Return the labels in the order wanted, and their names."""
    names = _strip_prefix(columns)
    if wanted is None:
        return marked, names
    return marked[:, match_names(names, wanted)], list(wanted)


def _strip_prefix(columns: Sequence[str]) -> list[str]:
    """Return the names of columns without our prefix, if all of them have the same."""
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in columns):
            return [name.removeprefix(prefix) for name in columns]
    return list(columns)


def names_of_cells(
    cells: "pd.Series[Any]", empty_is_none: bool, separator: str | None = None
) -> list[list[str]]:
    """Return the label names in every cell."""
    sets, unclear = [], []
    for row, cell in enumerate(cells):
        is_list = isinstance(cell, (list, tuple, np.ndarray))
        names = _read_name_list(cell, row) if is_list else _split_names(cell, row, separator)
        if not names and not is_list and not empty_is_none:
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


def _read_name_list(cell: Any, row: int) -> list[str]:
    """Return the names in a cell of a parquet file that is a list."""
    names = [as_text(name) for name in cell]
    if "" in names or not all(isinstance(name, (str, int, float, np.integer)) for name in cell):
        raise ComesError(f"row {row} has a list of something other than names: {cell!r}.")
    return names


def _split_names(cell: Any, row: int, separator: str | None) -> list[str]:
    """Return the names in a cell of text."""
    if isinstance(cell, (dict, bytes)):
        raise ComesError(f"row {row} has {cell!r}; expected names of labels.")
    parts = as_text(cell).split(SEPARATOR if separator is None else separator)
    return [name for part in parts if (name := part.strip())]


def _make_frame(values: npt.NDArray[Any], prefix: str, dataset: Dataset) -> pd.DataFrame:
    """Return a column per label, named after it with a prefix."""
    return pd.DataFrame(values, columns=[prefix + name for name in dataset.label_names])
