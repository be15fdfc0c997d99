"""Answers about (item, label) pairs, in three states: no, maybe, not asked.

Only "no" (surely irrelevant) excludes a label. "maybe" and "not asked" both leave it a candidate;
that somebody was asked is kept apart, so that it survives a round trip. Where one person says "no"
and another "maybe", the label stays a candidate: a false exclusion is the one thing that the risks
cannot forgive.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets.dataset import Dataset
from comes.errors import ComesError, ComesWarning, listed
from comes.labels import BoolMatrix, check_names

NO, MAYBE, NOT_ASKED = "no", "maybe", "not asked"
STATES = (NO, MAYBE, NOT_ASKED)
WORDS = {
    **dict.fromkeys(("no", "surely not", "reject"), NO),
    **dict.fromkeys(("maybe", "yes", "accept"), MAYBE),
    **dict.fromkeys(("not asked", "", "skip", "ignore"), NOT_ASKED),
}
LONG = ("item", "label", "answer")
SOURCE, MODEL = "source", "model"  # a column of long tables: who chose what to ask


def combine_answers(
    items: npt.ArrayLike,
    labels: npt.ArrayLike,
    states: npt.ArrayLike,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Return the data set of answers, one per (item, label), without features.

    Parameters
    ----------
    items, labels, states : sequences or arrays of str, as many each
        A state is "no", "maybe" or "not asked". A pair may occur more than once.
    label_names : sequence of str, optional
        All labels there are. By default those that occur, in the order of their first occurrence.

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
    row, item_names = pd.factorize(np.asarray(items, dtype=object))
    if label_names is None:
        column, found = pd.factorize(np.asarray(labels, dtype=object))
        names = [str(name) for name in found]
    else:
        check_names(label_names)
        names = list(label_names)
        asked_about = pd.Index(np.asarray(labels, dtype=object))
        column = pd.Index(names, dtype=object).get_indexer(asked_about)
        if (column < 0).any():
            unknown = asked_about[int(np.argmax(column < 0))]
            raise ComesError(
                f"label {unknown!r} occurs in an answer but is none of the label names, "
                f"{listed(names)}. Add it there, or correct the answer."
            )
    state = np.asarray(states, dtype=object)
    no, maybe = (_marked(row, column, state == word, names, len(item_names)) for word in STATES[:2])
    torn = int((no & maybe).sum())
    if torn:
        warn(
            f"{torn} labels of items have both 'no' and 'maybe'; they stay candidates.",
            ComesWarning,
            stacklevel=2,
        )
    return Dataset(
        None, names, ~no | maybe, asked=no | maybe, items=[str(name) for name in item_names]
    )


def long_dataset(
    table: pd.DataFrame,
    columns: Sequence[str],
    answers: Mapping[str, str] | None = None,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Take the answers of a table with the columns item, label and answer.

    Where a column ``source`` says that a model chose the question, the answer is left out: the
    risks need questions that were drawn at random.
    """
    items, labels = (_as_texts(table[name]) for name in columns[:2])
    for name, cells in zip(columns[:2], (items, labels), strict=True):
        empty = cells == ""
        if empty.any():
            raise ComesError(f"column {name!r} is empty at row {int(empty.argmax())}. Fill it in.")
    states = as_states(table[columns[2]], f"column {columns[2]!r}", answers)
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
    """Return one row per answer, and what is needed for every item and label to occur.

    The first item has a row for every label, in their order; an item that nobody was asked about
    has a single row that says so.
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
    """Return the candidates, and where somebody was asked: at least where a label is excluded."""
    if dataset.candidates is None:
        raise ComesError("answers are candidates or complementary labels, and the data has none.")
    asked = ~dataset.candidates if dataset.asked is None else dataset.asked
    return dataset.candidates, asked


def as_states(
    cells: "pd.Series[Any]", place: str, answers: Mapping[str, str] | None = None
) -> npt.NDArray[Any]:
    """Return the state that each cell says; raise at the first unknown word."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    words = [as_text(cell).strip() for cell in found]
    states = np.array([_state(word, answers) for word in words], dtype=object)
    unknown = np.array([state is None for state in states])
    if unknown.any():
        row = int(unknown[codes].argmax())
        known = sorted(WORDS if answers is None else answers)
        raise ComesError(
            f"{place} has the answer {words[codes[row]]!r} at row {row}; "
            f"{listed([word for word in known if word])} or nothing (not asked) were wanted. Say "
            "what other words mean (--answers 0=no,1=maybe on the command line)."
        )
    return np.asarray(states[codes])


def _state(word: str, answers: Mapping[str, str] | None) -> str | None:
    """Return what a word says; a number means the same however it is written, 0 or 0.0."""
    if answers is None:
        return WORDS.get(word.lower())
    if word in answers or not word:
        return answers.get(word, NOT_ASKED)
    try:
        return {float(known): state for known, state in answers.items()}.get(float(word))
    except ValueError:
        return None


def check_answers(answers: Mapping[str, str] | None) -> None:
    """Raise unless every word is said to mean one of the three states."""
    for word, state in (answers or {}).items():
        if state not in STATES:
            raise ComesError(
                f"the answer {word!r} must mean 'no', 'maybe' or 'not asked'; got {state!r}."
            )


def as_text(cell: Any) -> str:
    """Return a cell as a person would write it: 3.0 in a column with gaps is 3, a gap nothing."""
    if pd.isna(cell):
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def _as_texts(cells: "pd.Series[Any]") -> npt.NDArray[Any]:
    """Return cells as text, each different one turned once."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    return np.array([as_text(cell) for cell in found], dtype=object)[codes]


def _marked(
    row: npt.NDArray[np.int64],
    column: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_],
    names: Sequence[str],
    n: int,
) -> BoolMatrix:
    marked = np.zeros((n, len(names)), dtype=bool)
    marked[row[chosen], column[chosen]] = True
    return marked
