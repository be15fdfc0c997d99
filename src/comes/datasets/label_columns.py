"""What the columns of a table say about labels.

Labels come in one of three forms:

- wide: a column per label, 0/1, or "no", "yes", "maybe" and nothing for not asked;
- names: one column of label names ("apple;plate"), or one for each of no, yes and maybe;
- long: the columns item, label and answer, a row per answer (`comes.datasets.answer_tables`).

One column is taken for names unless all its cells are 0 or 1, or answers. An empty cell of names is
refused in candidates and in the truth, where it could mean that nothing applies or that nobody was
asked: ``(none)`` says the first. Elsewhere an empty cell says nothing.

In a table that we write, names say what columns are: ``item``; ``candidate:NAME``,
``excluded:NAME``, ``positive:NAME`` or ``answer:NAME``, and ``relevant:NAME``; or, with names,
``candidates``, ``complementary``, ``positives``, or ``no``, ``yes`` and ``maybe``, and
``relevant``. Every other column is a feature.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import as_indicators, match_names
from comes.datasets.answer_tables import find_kind
from comes.datasets.answer_words import ADVICE, WORDS, as_states, as_text
from comes.datasets.dataset import Dataset
from comes.datasets.separators import LIST, NOTHING, SEPARATOR, find_separator, split_cell
from comes.datasets.sparse_marks import (
    Marks,
    fill_marks,
    find_sets,
    marks_of_sets,
    marks_of_state,
)
from comes.datasets.tables import NAMELESS, is_numeric
from comes.errors import ComesError

Scalar = TypeVar("Scalar", bound=np.generic)

FORMS = "Write .npz, or the form 'names' or 'long' (--form)."
INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
TRUTHS = {**INDICATORS, "no": 0, "yes": 1}
PREFIXES = CANDIDATE, EXCLUDED, POSITIVE, ANSWER, RELEVANT = (
    "candidate:",
    "excluded:",
    "positive:",
    "answer:",
    "relevant:",
)
NAMES_COLUMNS = ("candidates", "complementary", "positives", "relevant")
STATE_COLUMNS = ("no", "yes", "maybe")


def is_reserved(name: str) -> bool:
    """Return whether a name is not for features: one of our label columns, or empty."""
    return name in NAMES_COLUMNS or name.startswith(PREFIXES) or bool(NAMELESS.fullmatch(name))


def read_labels(
    cells: pd.DataFrame,
    wanted: Sequence[str] | None,
    *,
    empty_is_none: bool = False,
    is_truth: bool = False,
    by_name: bool = False,
    separator: str | None = None,
) -> tuple[Marks, list[str]]:
    """Return the marked labels of every row, from 0/1 columns or one of label names."""
    words = TRUTHS if is_truth else INDICATORS
    if by_name:
        sets = names_of_cells(cells.iloc[:, 0], empty_is_none, separator, is_truth)
        return marks_of_sets(sets, wanted)
    columns = list(cells.columns)
    cells = _convert_words(cells, words)
    _refuse_empty_cells(cells, is_truth)
    advice = f"Say what other values mean ({ADVICE})."
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
    advice = "If 1 and 0 are answers, and nobody was asked where nothing stands, say so: "
    advice += "words={'1': 'yes', '0': 'no'} (--answers 1=yes,0=no on the command line)."
    if is_truth:
        advice = "The truth must be known: fill it in, or leave the row out."
    raise ComesError(f"label column {name!r} must be 0 or 1; row {row} is empty. {advice}")


def are_names(cells: pd.DataFrame, words: Mapping[str, int] = INDICATORS) -> bool:
    """Return whether labels are one column of names: by its own name, or not all cells 0 or 1.

    Empty cells among 0 and 1 do not make names of them.
    """
    if cells.shape[1] != 1:
        return False
    column = cells.iloc[:, 0]
    as_numbers = column.map(lambda cell: _read_indicator(cell, words))
    is_name = as_numbers.isna()
    if not is_name.all():
        gaps = column.map(lambda cell: isinstance(cell, str) and not cell.strip())
        is_name &= ~(column.isna() | gaps.astype(bool))
    return cells.columns[0] in NAMES_COLUMNS or bool(is_name.any())


def are_answers(cells: pd.DataFrame) -> bool:
    """Return whether columns hold words of the states; a single one, nothing else."""
    if cells.columns[0] in NAMES_COLUMNS:
        return False
    texts = [cells[name].dropna() for name in cells if not is_numeric(cells[name])]
    found = {cell.strip().lower() for column in texts for cell in column.map(str).unique()}
    words = {word for word in WORDS if word}
    return bool(found & words) and (cells.shape[1] > 1 or found <= {*words, ""})


def are_state_sets(columns: Sequence[str]) -> bool:
    """Return whether columns are called no, yes and maybe, two of them at least."""
    return len(columns) > 1 and set(columns) <= set(STATE_COLUMNS)


def read_answers(
    cells: pd.DataFrame, wanted: Sequence[str] | None, words: Mapping[str, str] | None
) -> Answers:
    """Return the answers of columns in words, with the names of their labels.

    In columns with our prefix a pair without an answer was not asked, even if all answers are no.
    """
    columns = list(cells.columns)
    states = [as_states(cells[c], f"column {c!r}", words) for c in columns]
    codes, names = _order_labels(np.stack(states, axis=1), columns, wanted)
    is_ours = all(name.startswith(ANSWER) for name in columns)
    return Answers.from_codes(codes, "answers" if is_ours else find_kind(codes), names)


def read_state_sets(
    cells: pd.DataFrame, wanted: Sequence[str] | None, separator: str | None
) -> Answers:
    """Return the answers of columns of label names that are called no, yes and maybe."""
    sets = {
        name: [set(row) for row in names_of_cells(cells[name], True, separator)]
        for name in cells.columns
    }
    names = wanted or sorted({name for rows in sets.values() for row in rows for name in row})
    if not names:
        raise ComesError(f"no label stands in the columns {', '.join(sets)}; expected names.")
    nothing: list[set[str]] = [set() for _ in range(len(cells))]
    masks = [marks_of_sets(sets.get(name, nothing), names)[0] for name in STATE_COLUMNS]
    if not all(map(sparse.issparse, masks)):
        masks = [fill_marks(mask, "answers", "List fewer labels.") for mask in masks]
    return Answers(*masks, label_names=names)


def wide_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as a column each, named so that they can be read without options."""
    parts, answers = [], dataset.answers
    if answers is not None and answers.kind == "answers":
        words = np.array(["", *(State(code).word for code in (1, 2, 3))], dtype=object)
        parts.append(_make_frame(words[answers.codes], ANSWER, dataset))
    elif answers is not None and answers.kind == "positives":
        parts.append(_make_frame(answers.confirmed.astype(np.int8), POSITIVE, dataset))
    elif answers is not None and dataset.from_complementary:
        parts.append(_make_frame(answers.excluded.astype(np.int8), EXCLUDED, dataset))
    elif answers is not None:
        parts.append(_make_frame(answers.candidates.astype(np.int8), CANDIDATE, dataset))
    if dataset.relevant is not None:
        relevant = fill_marks(dataset.relevant, "a column for each label", FORMS)
        parts.append(_make_frame(relevant.astype(np.int8), RELEVANT, dataset))
    return pd.concat(parts, axis=1)


def named_labels(dataset: Dataset) -> dict[str, Marks]:
    """Return the labels that each column of names marks; of sparse candidates, the others."""
    columns, answers = {}, dataset.answers
    if answers is not None and answers.kind == "answers":
        states = (State.NO, State.YES, State.MAYBE)
        columns = {s.word: marks_of_state(answers, s) for s in states}
    elif answers is not None and answers.kind == "positives":
        columns["positives"] = marks_of_state(answers, State.YES)
    elif answers is not None and (dataset.from_complementary or answers.is_sparse):
        columns["complementary"] = marks_of_state(answers, State.NO)
    elif answers is not None:
        columns["candidates"] = answers.candidates
    if dataset.relevant is not None:
        columns["relevant"] = dataset.relevant
    return columns


def names_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as columns of names; raise if they would not be read as they are."""
    for name in dataset.label_names:
        if split_cell(name, SEPARATOR) != [name] or name.lower() == NOTHING:
            raise ComesError(
                f"the label {name!r} cannot be one of names joined by {SEPARATOR!r}. Write another "
                "form."
            )
    table = pd.DataFrame(
        {
            column: [SEPARATOR.join(s) or NOTHING for s in find_sets(marked, dataset.label_names)]
            for column, marked in named_labels(dataset).items()
        }
    )
    _check_readable(table)
    return table


def _check_readable(table: pd.DataFrame) -> None:
    """Raise unless names that we join are split again as they were."""
    groups = [list(STATE_COLUMNS)] if "no" in table else [[c] for c in table if c != "relevant"]
    groups += [["relevant"]] if "relevant" in table else []
    try:
        is_clear = all(find_separator([table[c] for c in g]) == SEPARATOR for g in groups)
    except ComesError:
        is_clear = False
    if not is_clear:
        raise ComesError(
            "the names of the labels would not be told apart in one cell: something else than "
            f"{SEPARATOR!r} seems to separate them. Write another form."
        )


def _read_indicator(cell: Any, words: Mapping[str, int]) -> float:
    """Return the 0 or 1 that a cell says, or NaN."""
    return words.get(str(cell).strip().lower(), np.nan)


def _order_labels(
    marked: npt.NDArray[Scalar], columns: Sequence[str], wanted: Sequence[str] | None
) -> tuple[npt.NDArray[Scalar], list[str]]:
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
    cells: "pd.Series[Any]",
    empty_is_none: bool,
    separator: str | None = None,
    is_truth: bool = False,
) -> list[list[str]]:
    """Return the label names in every cell."""
    sets, unclear = [], []
    for row, cell in enumerate(cells):
        is_list = isinstance(cell, (list, tuple, np.ndarray))
        if separator == LIST and isinstance(cell, str) and cell.strip():
            is_list = True  # an empty one says that nothing applies
            cell = split_cell(cell, LIST)
        names = _read_name_list(cell, row) if is_list else _split_names(cell, row, separator)
        if not names and not is_list and not empty_is_none:
            unclear.append(row)
        if NOTHING in (lowered := [name.lower() for name in names]):
            if len(lowered) > 1:
                raise ComesError(f"row {row} has {NOTHING} beside other labels; keep one of them.")
            names = []
        sets.append(names)
    if unclear:
        otherwise = "if nobody was asked, list every label"
        if is_truth:
            otherwise = "if the truth is not known, leave the rows out"
        raise ComesError(
            f"{len(unclear)} cells of label names are empty (first: row {unclear[0]}). If no label "
            f"applies there, write {NOTHING}; {otherwise}."
        )
    _refuse_indicators(sets, cells, separator)
    return sets


def _refuse_indicators(
    sets: Sequence[Sequence[str]], cells: "pd.Series[Any]", separator: str | None
) -> None:
    """Raise if lists hold a 0 or 1 for every label, which are not names."""
    are_lists = separator == LIST or any(isinstance(c, (list, tuple, np.ndarray)) for c in cells)
    lengths = {len(names) for names in sets}
    if not are_lists or len(lengths) > 1 or max(lengths, default=0) < 2:
        return
    if all(name in ("0", "1", "0.0", "1.0") for names in sets for name in names):
        raise ComesError(
            f"expected names of labels; got lists of {max(lengths)} numbers, 0 or 1. Write a "
            "column for every label."
        )


def _read_name_list(cell: Any, row: int) -> list[str]:
    """Return the names in a cell of a parquet file that is a list."""
    names = [as_text(name).strip() for name in cell]
    if "" in names or not all(isinstance(name, (str, int, float, np.integer)) for name in cell):
        raise ComesError(f"row {row} has a list of something other than names: {cell!r}.")
    return names


def _split_names(cell: Any, row: int, separator: str | None) -> list[str]:
    """Return the names in a cell of text."""
    if isinstance(cell, (dict, bytes)):
        raise ComesError(f"row {row} has {cell!r}; expected names of labels.")
    return split_cell(as_text(cell), separator)


def _make_frame(values: npt.NDArray[Any], prefix: str, dataset: Dataset) -> pd.DataFrame:
    """Return a column per label, named after it with a prefix."""
    return pd.DataFrame(values, columns=[prefix + name for name in dataset.label_names])
