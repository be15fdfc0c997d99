"""Answers about (item, label) pairs in long form, a row per answer, read and written.

"no" excludes a label, "yes" confirms it, and "maybe" leaves it possible, as does "not asked". Where
only "no" occurs it is not known who was asked, so the answers are candidates. Where people differ
about a pair, all their answers are kept, and the pair counts as "maybe".
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers, State
from comes.answers.convert import check_names
from comes.datasets.dataset import (
    Dataset,
    check_item_names,
    check_size,
    marks_of_state,
    stays_sparse,
)
from comes.datasets.labels import find_kind, read_states, warn_of_ticks
from comes.datasets.options import ReadOptions
from comes.datasets.table import as_texts
from comes.errors import ComesError, listed, warn_user

PERSON, SOURCE, MODEL = "person", "source", "model"  # who answered, and who chose the question
HINT = "hint"  # the source of an answer to a question that showed what a model thinks
BY_MODEL = (MODEL, "active", HINT)  # sources whose answers are no fair sample of people or items


def combine_answers(
    items: npt.ArrayLike,
    labels: npt.ArrayLike,
    states: npt.ArrayLike,
    label_names: Sequence[str] | None = None,
    *,
    item_names: Sequence[str] | None = None,
    people: npt.ArrayLike | None = None,
    chosen: npt.ArrayLike | None = None,
    warn_of_disagreements: bool = True,
) -> Dataset:
    """Return the data set that answers about (item, label) pairs make, without features.

    Parameters
    ----------
    items, labels, states : array-like of str, of shape (n_answers,)
        A state is "no", "yes", "maybe" or "not asked".
    label_names, item_names : sequence of str, optional
        All labels and all items, in the order wanted. By default those that occur, in the order
        of their first occurrence.
    people : array-like of str, of shape (n_answers,), optional
        Who answered. Several people may answer about a pair; one of them may not say both "yes" and
        "no" about it.
    chosen : array-like of bool, of shape (n_answers,), optional
        Whether a model chose the question. A pair that was drawn at random too counts as drawn.
    warn_of_disagreements : bool
        Whether it is a warning that a pair has different answers and nobody's name.

    Returns
    -------
    dataset : Dataset
        With `answers` and `items`.

    Examples
    --------
    >>> made = combine_answers(["p", "p", "q"], ["sky", "sea", "sea"], ["no", "maybe", "yes"])
    >>> made.answers
    Answers about 2 rows and 2 labels: 3 of 4 pairs asked, 1 no, 1 yes, 1 maybe
    >>> made.candidates
    array([[False,  True],
           [ True,  True]])
    """
    lengths = [len(np.asarray(values)) for values in (items, labels, states)]
    if len(set(lengths)) > 1:
        raise ComesError(
            f"items, labels and states must have one length; got {lengths[0]}, {lengths[1]} and "
            f"{lengths[2]}."
        )
    places, words = pd.factorize(np.asarray(states, dtype=object), use_na_sentinel=False)
    known = {state.word: int(state) for state in State}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ComesError(f"an answer must be no, yes, maybe or not asked; got {unknown[0]!r}.")
    codes = np.array([known[word] for word in words], dtype=np.int8)[places]
    check_names(label_names or ())
    check_item_names(item_names or ())
    row, rows = _number_names(items, item_names, "item")
    column, columns = _number_names(labels, label_names, "label")
    check_size(len(rows), len(columns))
    is_answer = codes != State.NOT_ASKED
    names = np.full(len(codes), "") if people is None else as_texts(pd.Series(people))
    person, everybody = pd.factorize(names[is_answer], sort=True)
    given = LongAnswers(
        row[is_answer], column[is_answer], person, codes[is_answer], tuple(map(str, everybody))
    )
    by_model = np.zeros(len(codes), dtype=bool) if chosen is None else np.asarray(chosen, bool)
    return combine_long(
        given, by_model[is_answer], rows, columns, warn_of_disagreements=warn_of_disagreements
    )


def combine_long(
    given: LongAnswers,
    by_model: npt.NDArray[np.bool_],
    items: list[str],
    label_names: list[str],
    *,
    warn_of_disagreements: bool = True,
) -> Dataset:
    """Return the data set that answers make whose items and labels are numbered already."""
    _refuse_contradictions(given, items, label_names)
    shape = len(items), len(label_names)
    answers = _combine(given, by_model, shape, warn_of_disagreements)
    return Dataset(None, label_names, answers=answers, items=items)


def _number_names(
    values: npt.ArrayLike, names: Sequence[str] | None, what: str
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the place of every value among the names, and the names."""
    cells = np.asarray(values, dtype=object)
    if names is None:
        places, occurring = pd.factorize(cells)
        return places, [str(name) for name in occurring]
    places = pd.Index(np.asarray(names, dtype=object)).get_indexer(pd.Index(cells))
    if (places < 0).any():
        raise ComesError(
            f"{what} {cells[int(np.argmax(places < 0))]!r} occurs in an answer but is none of the "
            f"{what} names, {listed(list(names))}. Add it there, or correct the answer."
        )
    return places, list(names)


def _refuse_contradictions(given: LongAnswers, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Raise if somebody said both yes and no about a pair."""
    place = (given.row * len(columns) + given.label) * len(given.people) + given.person
    no, yes = (place[given.code == state] for state in (State.NO, State.YES))
    both = np.isin(yes, no)
    if not both.any():
        return
    pair, person = divmod(int(yes[both.argmax()]), len(given.people))
    name = given.people[person]
    raise ComesError(
        f"item {rows[pair // len(columns)]!r} has both 'yes' and 'no' about the label "
        f"{columns[pair % len(columns)]!r}"
        + (f", said by {name!r}. " if name else f" (a column {PERSON!r} may say who said it). ")
        + "Keep one of them."
    )


def _combine(
    given: LongAnswers,
    by_model: npt.NDArray[np.bool_],
    shape: tuple[int, int],
    warn_of_disagreements: bool,
) -> Answers:
    """Return answers in long form as answers about pairs, sparse if they are few among many."""
    kind = find_kind(given.code)
    if kind == "candidates" and by_model.any():
        warn_user(
            f"{by_model.sum()} answers to questions that a model chose are left out: all answers "
            "are 'no', which are candidates, and these need questions drawn at random."
        )
        given, by_model = given.select(~by_model), np.zeros(0, dtype=bool)
    is_anonymous = kind == "candidates" or given.people in ((), ("",))
    pair, place = np.unique(given.row * shape[1] + given.label, return_inverse=True)
    row, label = np.divmod(pair, shape[1])
    lowest = np.full(len(pair), State.MAYBE, dtype=np.int8)
    highest = np.zeros(len(pair), dtype=np.int8)
    np.minimum.at(lowest, place, given.code)
    np.maximum.at(highest, place, given.code)
    disagree = lowest != highest
    if disagree.any() and is_anonymous and warn_of_disagreements:
        warn_user(
            f"{disagree.sum()} pairs of item and label have different answers; they count as "
            f"'maybe', and the labels stay candidates. A column {PERSON!r} would keep who said "
            "what."
        )
    code = np.where(disagree, np.int8(State.MAYBE), highest)
    states, chosen = sparse.csr_array((code, (row, label)), shape=shape), None
    if by_model.any():
        are_chosen = np.ones(len(pair), dtype=bool)
        np.logical_and.at(are_chosen, place, by_model)
        chosen = np.zeros(shape, dtype=bool)
        chosen[row, label] = are_chosen
    if chosen is not None or not is_anonymous or not stays_sparse(len(given), shape):
        states = states.toarray()
    return Answers.from_codes(
        states, kind, annotations=None if is_anonymous else given, chosen=chosen
    )


def read_long(table: pd.DataFrame, columns: Sequence[str], options: ReadOptions) -> Dataset:
    """Return the answers of a table with the columns item, label and answer.

    A fourth column says who answered and a fifth who chose the question; where they are not named,
    columns called ``person`` and ``source`` do, if there are any.
    """
    items, labels = (as_texts(table[name]) for name in columns[:2])
    for name, cells in zip(columns[:2], (items, labels), strict=True):
        if (is_empty := cells == "").any():
            row = table.index[is_empty.argmax()]
            raise ComesError(f"column {name!r} is empty at row {row}. Fill it in.")
    codes = read_states(table[[columns[2]]], options.words)[:, 0]
    more = dict(zip((PERSON, SOURCE), columns[3:], strict=False))
    for name in (PERSON, SOURCE):
        if name in table and name not in columns:
            more.setdefault(name, name)
    dataset = combine_answers(
        items,
        labels,
        np.array([State(code).word for code in range(4)], dtype=object)[codes],
        options.label_names,
        people=table[more[PERSON]] if PERSON in more else None,
        chosen=np.isin(as_texts(table[more[SOURCE]]), BY_MODEL) if SOURCE in more else None,
    )
    if options.labels_are == "positives":
        return as_ticked(dataset)
    warn_of_ticks(dataset.known_answers())
    return dataset


def as_ticked(dataset: Dataset) -> Dataset:
    """Return a data set whose answers are all yes with them as ticked labels."""
    answers = dataset.known_answers()
    if answers.has(State.NO) or answers.has(State.MAYBE):
        raise ComesError(
            "ticked labels are all 'yes', and the data has other answers too. Leave out labels_are "
            "(--positives)."
        )
    ticked = marks_of_state(answers, State.YES)
    return replace(dataset, answers=Answers.from_positives(ticked, dataset.label_names))


def long_table(dataset: Dataset) -> pd.DataFrame:
    """Return a table with one row per answer, in which every item and every label occurs.

    The first item has a row for every label, in their order; an item that nobody was asked about
    has a single row that says so.
    """
    answers = dataset.known_answers()
    states = answers.states.tocoo()
    row, column, code = states.row.astype(np.int64), states.col.astype(np.int64), states.data
    # Pairs without an answer that let every item and every label occur.
    more_labels = np.setdiff1d(np.arange(answers.shape[1]), column[row == 0])  # of the first item
    more_items = np.setdiff1d(np.arange(1, len(answers)), row)
    given = answers.annotations
    if given is None:
        given = LongAnswers(row, column, np.zeros_like(row), code, ("",))
    row = np.concatenate([given.row, np.zeros_like(more_labels), more_items])
    column = np.concatenate([given.label, more_labels, np.zeros_like(more_items)])
    n_silent = len(row) - len(given)
    words = np.array([State(code).word for code in range(4)], dtype=object)
    items = dataset.items or [str(number) for number in range(len(dataset))]
    values = {
        "item": np.asarray(items, dtype=object)[row],
        "label": np.asarray(dataset.label_names, dtype=object)[column],
        "answer": words[np.concatenate([given.code, np.zeros(n_silent, dtype=np.int8)])],
    }
    if answers.annotations is not None:
        people = np.asarray(given.people, dtype=object)[given.person]
        values[PERSON] = np.concatenate([people, np.full(n_silent, "", dtype=object)])
    if answers.chosen is not None:
        values[SOURCE] = np.where(answers.chosen[row, column], MODEL, "").astype(object)
    order = np.lexsort((column, row))
    return pd.DataFrame({name: cells[order] for name, cells in values.items()})
