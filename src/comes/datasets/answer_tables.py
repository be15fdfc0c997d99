"""Answers about (item, label) pairs, in three states: no, maybe, not asked.

Only "no" (surely irrelevant) excludes a label. "maybe" and "not asked" both leave it a candidate;
who was asked is kept separately, so that it survives a round trip. Where one person says "no" and
another "maybe", the label stays a candidate: a false exclusion is the one mistake that the risks
cannot correct.

`NO`, `MAYBE` and `NOT_ASKED` are the states, `LONG` the columns of a table with a row per answer.
`SOURCE` is the column that says who chose a question; `MODEL` there means that a model did.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import BoolMatrix, check_names
from comes.datasets.dataset import Dataset
from comes.datasets.dataset_parts import check_item_names
from comes.errors import ComesError, ComesWarning, listed

NO, MAYBE, NOT_ASKED = "no", "maybe", "not asked"
STATES = (NO, MAYBE, NOT_ASKED)
WORDS = {
    **dict.fromkeys(("no", "surely not", "reject"), NO),
    **dict.fromkeys(("maybe", "yes", "accept"), MAYBE),
    **dict.fromkeys(("not asked", "", "skip", "ignore"), NOT_ASKED),
}
LONG = ("item", "label", "answer")
SOURCE, MODEL = "source", "model"


def combine_answers(
    items: npt.ArrayLike,
    labels: npt.ArrayLike,
    states: npt.ArrayLike,
    label_names: Sequence[str] | None = None,
    *,
    item_names: Sequence[str] | None = None,
    warn_of_torn: bool = True,
) -> Dataset:
    """Return the data set that answers about (item, label) pairs make, without features.

    Several people may answer about a pair. Where one says "no" and another "maybe", the answers
    are torn, and the label stays a candidate.

    Parameters
    ----------
    items, labels, states : array-like of str, of shape (n_answers,)
        A state is "no", "maybe" or "not asked".
    label_names, item_names : sequence of str, optional
        All labels and all items, in the order wanted. By default those that occur, in the order
        of their first occurrence.
    warn_of_torn : bool
        Whether torn answers are a warning.

    Returns
    -------
    dataset : Dataset
        With `candidates`, `asked` and `items`.

    Examples
    --------
    >>> answers = combine_answers(["p", "p", "q"], ["sky", "sea", "sea"], ["no", "maybe", "no"])
    >>> answers.candidates
    array([[False,  True],
           [ True, False]])
    >>> answers.asked
    array([[ True,  True],
           [False,  True]])
    """
    check_names(label_names or ())
    check_item_names(item_names)
    row, rows = _number_names(items, item_names, "item")
    column, columns = _number_names(labels, label_names, "label")
    state = np.asarray(states, dtype=object)
    no, maybe = (
        _mark_pairs(row[state == word], column[state == word], (len(rows), len(columns)))
        for word in (NO, MAYBE)
    )
    torn = int((no & maybe).sum())
    if torn and warn_of_torn:
        warn(
            f"{torn} pairs of item and label have both 'no' and 'maybe'; the labels stay "
            "candidates.",
            ComesWarning,
            stacklevel=2,
        )
    return Dataset(None, columns, ~no | maybe, asked=no | maybe, items=rows)


def long_dataset(
    table: pd.DataFrame,
    columns: Sequence[str],
    words: Mapping[str, str] | None = None,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Return the answers of a table with the columns item, label and answer.

    Where a column ``source`` says that a model chose the question, the answer is left out: the
    risks need questions that were drawn at random.
    """
    items, labels = (_as_texts(table[name]) for name in columns[:2])
    for name, cells in zip(columns[:2], (items, labels), strict=True):
        empty = cells == ""
        if empty.any():
            raise ComesError(f"column {name!r} is empty at row {int(empty.argmax())}. Fill it in.")
    states = as_states(table[columns[2]], f"column {columns[2]!r}", words)
    if SOURCE in table and SOURCE not in columns:
        chosen = (table[SOURCE] == MODEL).to_numpy()
        if chosen.any():
            warn(
                f"{chosen.sum()} answers to questions that a model chose are left out: the risks "
                "need questions drawn at random.",
                ComesWarning,
                stacklevel=2,
            )
        states = np.where(chosen, NOT_ASKED, states)
    return combine_answers(items, labels, states, label_names)


def long_table(dataset: Dataset) -> pd.DataFrame:
    """Return a table with one row per answer, in which every item and every label occurs.

    The first item has a row for every label, in their order; an item that nobody was asked about
    has a single row that says so.

    Parameters
    ----------
    dataset : Dataset
        With candidates.

    Returns
    -------
    table : DataFrame
        The columns are `LONG`: item, label and answer.

    Examples
    --------
    >>> long_table(combine_answers(["p", "q"], ["sky", "sea"], ["no", "maybe"]))
      item label     answer
    0    p   sky         no
    1    p   sea  not asked
    2    q   sea      maybe
    """
    candidates, asked = answers_of(dataset)
    written = asked.copy()
    written[0] = True
    written[~written.any(axis=1), 0] = True
    row, column = np.nonzero(written)
    items = dataset.items or [str(number) for number in range(len(dataset))]
    state = np.where(asked, np.where(candidates, MAYBE, NO), NOT_ASKED)
    values = (
        np.asarray(items, dtype=object)[row],
        np.asarray(dataset.label_names, dtype=object)[column],
        state[row, column],
    )
    return pd.DataFrame(dict(zip(LONG, values, strict=True)))


def answers_of(dataset: Dataset) -> tuple[BoolMatrix, BoolMatrix]:
    """Return the candidates, and the pairs about which there is an answer.

    Where the data does not say who was asked, these are the excluded pairs.

    Returns
    -------
    candidates, asked : bool arrays of shape (n_samples, n_labels)

    Examples
    --------
    >>> candidates, asked = answers_of(Dataset(None, ["sky"], np.array([[True], [False]])))
    >>> asked.tolist()
    [[False], [True]]
    """
    if dataset.candidates is None:
        raise ComesError("answers are candidates or complementary labels, and the data has none.")
    asked = ~dataset.candidates if dataset.asked is None else dataset.asked
    return dataset.candidates, asked


def as_states(
    cells: "pd.Series[Any]", place: str, words: Mapping[str, str] | None = None
) -> npt.NDArray[Any]:
    """Return the state that each cell says; raise at the first unknown word."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    texts = [as_text(cell).strip() for cell in found]
    states = np.array([_find_state(text, words) for text in texts], dtype=object)
    unknown = np.array([state is None for state in states])
    if unknown.any():
        row = int(unknown[codes].argmax())
        known = sorted(WORDS if words is None else words)
        raise ComesError(
            f"{place} has the answer {texts[codes[row]]!r} at row {row}; "
            f"expected {listed([word for word in known if word])} or nothing (not asked). Say "
            "what other words mean (words; --answers 0=no,1=maybe on the command line)."
        )
    return np.asarray(states[codes])


def _find_state(text: str, words: Mapping[str, str] | None) -> str | None:
    """Return what a word says; a number means the same however it is written, 0 or 0.0."""
    if words is None:
        return WORDS.get(text.lower())
    if text in words or not text:
        return words.get(text, NOT_ASKED)
    try:
        return {float(word): state for word, state in words.items()}.get(float(text))
    except ValueError:
        return None


def as_text(cell: Any) -> str:
    """Return a cell as a person would write it: 3.0 in a column with gaps is 3, a gap is "".

    Examples
    --------
    >>> as_text(3.0), as_text(float("nan"))
    ('3', '')
    """
    if pd.isna(cell):
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def _as_texts(cells: "pd.Series[Any]") -> npt.NDArray[Any]:
    """Return cells as text, each distinct one converted once."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    return np.array([as_text(cell) for cell in found], dtype=object)[codes]


def _number_names(
    values: npt.ArrayLike, names: Sequence[str] | None, what: str
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the place of every value among the names, and the names."""
    found = np.asarray(values, dtype=object)
    if names is None:
        places, occurring = pd.factorize(found)
        return places, [str(name) for name in occurring]
    places = pd.Index(np.asarray(names, dtype=object)).get_indexer(pd.Index(found))
    if (places < 0).any():
        raise ComesError(
            f"{what} {found[int(np.argmax(places < 0))]!r} occurs in an answer but is none of the "
            f"{what} names, {listed(list(names))}. Add it there, or correct the answer."
        )
    return places, list(names)


def _mark_pairs(
    row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], shape: tuple[int, int]
) -> BoolMatrix:
    """Return the matrix that is True at these pairs of row and column."""
    marked = np.zeros(shape, dtype=bool)
    marked[row, column] = True
    return marked
