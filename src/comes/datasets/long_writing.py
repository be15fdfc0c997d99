"""Answers about (item, label) pairs written in long form: a row per answer."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers, LongAnswers, State
from comes.datasets.answer_tables import MODEL, PERSON, SOURCE, answers_to_write
from comes.datasets.answer_words import Codes
from comes.datasets.dataset import Dataset


def long_table(dataset: Dataset) -> pd.DataFrame:
    """Return a table with one row per answer, in which every item and every label occurs.

    The first item has a row for every label, in their order; an item that nobody was asked about
    has a single row that says so.

    Parameters
    ----------
    dataset : Dataset
        With answers.

    Returns
    -------
    table : DataFrame
        The columns are `LONG`: item, label and answer; `PERSON` where it is known who said it; and
        `SOURCE`, which is "model" where a model chose the question, if it ever did.

    Examples
    --------
    >>> from comes.datasets import combine_answers
    >>> long_table(combine_answers(["p", "q"], ["sky", "sea"], ["no", "maybe"]))
      item label     answer
    0    p   sky         no
    1    p   sea  not asked
    2    q   sea      maybe
    """
    answers = answers_to_write(dataset)
    row, column, code = _list_pairs(answers)
    silent = _list_silent(row, column, answers)
    said = answers.annotations
    if said is None:
        said = LongAnswers(row, column, np.zeros_like(row), code, ("",))
    row, column = (
        np.concatenate([own, more])
        for own, more in zip((said.row, said.label), silent, strict=True)
    )
    order = np.lexsort((column, row))
    gaps = np.zeros(len(row) - len(said), dtype=np.int8)
    words = np.array([State(code).word for code in range(4)], dtype=object)
    items = dataset.items or [str(number) for number in range(len(dataset))]
    values = {
        "item": np.asarray(items, dtype=object)[row],
        "label": np.asarray(dataset.label_names, dtype=object)[column],
        "answer": words[np.concatenate([said.code, gaps])],
    }
    if answers.annotations is not None:
        people = np.asarray(said.people, dtype=object)[said.person]
        values[PERSON] = np.concatenate([people, np.full(len(gaps), "", dtype=object)])
    if answers.chosen is not None:
        values[SOURCE] = np.where(answers.chosen[row, column], MODEL, "").astype(object)
    return pd.DataFrame({name: cells[order] for name, cells in values.items()})


def _list_pairs(answers: Answers) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Codes]:
    """Return row, label and state of every pair with an answer, in this order."""
    if answers.is_sparse:
        states = answers.states.tocoo()
        return states.row.astype(np.int64), states.col.astype(np.int64), states.data
    row, column = np.nonzero(answers.codes != State.NOT_ASKED)
    return row, column, answers.codes[row, column]


def _list_silent(
    row: npt.NDArray[Any], column: npt.NDArray[Any], answers: Answers
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return pairs without an answer that let every item and every label occur."""
    n, q = answers.shape
    labels = np.setdiff1d(np.arange(q), column[row == 0])  # of the first item
    items = np.setdiff1d(np.arange(1, n), row)
    return (
        np.concatenate([np.zeros_like(labels), items]),
        np.concatenate([labels, np.zeros_like(items)]),
    )
