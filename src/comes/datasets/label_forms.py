"""The form of the labels in a table, found once, and the labels that rows of that form hold."""

from typing import NamedTuple

import pandas as pd

from comes.answers import Answers
from comes.datasets.answer_tables import warn_of_ticks
from comes.datasets.column_roles import Roles
from comes.datasets.label_columns import (
    TRUTHS,
    are_answers,
    are_names,
    names_of_cells,
    read_answers,
    read_labels,
    read_state_sets,
)
from comes.datasets.reading import Reading
from comes.datasets.separators import check_given, find_separator
from comes.datasets.similar_names import warn_of_similar
from comes.datasets.sparse_marks import Marks, answers_of_marks
from comes.errors import ComesError


class LabelForm(NamedTuple):
    """How the cells of a table say what the labels are."""

    in_words: bool  # no, yes, maybe and nothing, in a column for each label
    by_name: bool  # names of labels, in one column or in those called no, yes and maybe
    truth_by_name: bool
    separator: str | None  # of names of labels
    truth_separator: str | None


class Labels(NamedTuple):
    """What a table says about labels."""

    answers: Answers | None
    truth: Marks | None
    names: list[str]


def find_form(table: pd.DataFrame, roles: Roles, reading: Reading) -> LabelForm:
    """Return the form of the labels in a table, from the reading or from its cells."""
    of_labels, of_truth = table[roles.labels], table[roles.truth]
    in_words = bool(roles.labels) and (roles.in_states or are_answers(of_labels))
    by_name = roles.are_state_sets or (are_names(of_labels) and not in_words)
    truth_by_name = are_names(of_truth, TRUTHS)
    separator, truth_separator = (
        (reading.separator or find_separator([columns[c] for c in columns], reading.label_names))
        if is_names
        else None
        for columns, is_names in ((of_labels, by_name), (of_truth, truth_by_name))
    )
    if reading.separator is not None:
        named = [of_labels] * by_name + [of_truth] * truth_by_name
        check_given(reading.separator, [columns[c] for columns in named for c in columns])
    return LabelForm(in_words, by_name, truth_by_name, separator, truth_separator)


def list_names(table: pd.DataFrame, roles: Roles, form: LabelForm) -> set[str]:
    """Return every label name in the columns of names."""
    found: set[str] = set()
    for columns, is_names, separator in (
        (roles.labels, form.by_name, form.separator),
        (roles.truth, form.truth_by_name, form.truth_separator),
    ):
        if is_names:
            cells = pd.Series([cell for name in columns for cell in table[name]], dtype=object)
            found.update(name for row in names_of_cells(cells, True, separator) for name in row)
    return found


def read_label_cells(
    table: pd.DataFrame, roles: Roles, reading: Reading, form: LabelForm
) -> Labels:
    """Return what the columns say about labels."""
    names = None if reading.label_names is None else list(reading.label_names)
    if names is None and form.by_name and form.truth_by_name:  # names of either are labels
        names = sorted(list_names(table, roles, form))
    answers = truth = None
    if roles.labels:
        answers = _read_answers(table[roles.labels], names, roles, reading, form)
        names = answers.label_names
    if roles.truth:
        truth, names = read_labels(
            table[roles.truth],
            names,
            is_truth=True,
            by_name=form.truth_by_name,
            separator=form.truth_separator,
        )
    return Labels(answers, truth, names or [])


def warn_of_labels(labels: Labels, reading: Reading, form: LabelForm) -> None:
    """Warn of answers that are all yes, and of names that are nearly the same."""
    if labels.answers is not None:
        warn_of_ticks(labels.answers)
    if reading.label_names is None and (form.by_name or form.truth_by_name):
        warn_of_similar(labels.names)


def _read_answers(
    cells: pd.DataFrame,
    names: list[str] | None,
    roles: Roles,
    reading: Reading,
    form: LabelForm,
) -> Answers:
    """Return what the columns of labels say, with the names of the labels."""
    if (form.in_words or roles.are_state_sets) and roles.labels_are != "candidates":
        raise ComesError(
            "the labels are answers, and 'no' excludes a label; leave out labels_are "
            f"(--{roles.labels_are}), or say what the words mean (words; --answers)."
        )
    if form.in_words:
        return read_answers(cells, names, reading.words)
    if roles.are_state_sets:
        return read_state_sets(cells, names, form.separator)
    is_possible = roles.labels_are == "candidates"
    if roles.labels_are == "positives" and not form.by_name:
        empty = cells.isna() | (cells.astype(object) == "")
        cells = cells.astype(object).mask(empty, 0)  # what is not ticked
    marked, names = read_labels(
        cells,
        names,
        empty_is_none=not is_possible,
        by_name=form.by_name,
        separator=form.separator,
    )
    return answers_of_marks(marked, roles.labels_are, names)
