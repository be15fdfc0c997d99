"""Answers about (item, label) pairs in long form: a row per answer.

"no" excludes a label, "yes" confirms it, and "maybe" leaves it possible, as does "not asked". Where
only "no" occurs it is not known who was asked, so the answers are candidates. Where people differ
about a pair, all that they said is kept, and the pair counts as "maybe".

`LONG` are the columns of a table with a row per answer, beside `PERSON`, who said it, and `SOURCE`,
who chose the question; one of `BY_MODEL` there means that a model did, by itself or by chance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers, State
from comes.answers.convert import BoolMatrix, check_names
from comes.answers.matrix import Kind
from comes.datasets.answer_words import STATES, Codes, as_states, as_texts
from comes.datasets.dataset import Dataset
from comes.datasets.dataset_parts import check_item_names, check_size
from comes.datasets.sparse_marks import marks_of_state, stays_sparse
from comes.errors import ComesError, ComesWarning, listed

LONG = ("item", "label", "answer")
PERSON, SOURCE, MODEL = "person", "source", "model"
BY_MODEL = (MODEL, "active")  # sources that are no fair sample: chosen, or drawn, by a model


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
        Who said it. Several people may answer about a pair; one of them may not say both "yes" and
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
    if not len(np.asarray(items)) == len(np.asarray(labels)) == len(np.asarray(states)):
        raise ComesError(
            "items, labels and states must have one length; got "
            f"{len(np.asarray(items))}, {len(np.asarray(labels))} and {len(np.asarray(states))}."
        )
    words, found = pd.factorize(np.asarray(states, dtype=object), use_na_sentinel=False)
    unknown = [word for word in found if word not in STATES]
    if unknown:
        raise ComesError(f"an answer must be no, yes, maybe or not asked; got {unknown[0]!r}.")
    codes = np.array([State.of_word(word) for word in found], dtype=np.int8)[words]
    check_names(label_names or ())
    check_item_names(item_names)
    row, rows = _number_names(items, item_names, "item")
    column, columns = _number_names(labels, label_names, "label")
    check_size(len(rows), len(columns))
    is_answer = codes != State.NOT_ASKED
    names = np.full(len(codes), "") if people is None else as_texts(pd.Series(people))
    person, everybody = pd.factorize(names[is_answer], sort=True)
    said = LongAnswers(
        row[is_answer], column[is_answer], person, codes[is_answer], tuple(map(str, everybody))
    )
    _refuse_contradictions(said, rows, columns)
    by_model = np.zeros(len(codes), dtype=bool) if chosen is None else np.asarray(chosen, bool)
    answers = _combine_said(
        said, by_model[is_answer], (len(rows), len(columns)), warn_of_disagreements
    )
    return Dataset(None, columns, answers=answers, items=rows)


def _refuse_contradictions(said: LongAnswers, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Raise if somebody said both yes and no about a pair."""
    place = (said.row * len(columns) + said.label) * len(said.people) + said.person
    no, yes = (place[said.code == state] for state in (State.NO, State.YES))
    both = np.isin(yes, no)
    if not both.any():
        return
    pair, person = divmod(int(yes[both.argmax()]), len(said.people))
    name = said.people[person]
    raise ComesError(
        f"item {rows[pair // len(columns)]!r} has both 'yes' and 'no' about the label "
        f"{columns[pair % len(columns)]!r}"
        + (f", said by {name!r}. " if name else f" (a column {PERSON!r} may say who said it). ")
        + "Keep one of them."
    )


def _combine_said(
    said: LongAnswers, by_model: BoolMatrix, shape: tuple[int, int], warn_of_disagreements: bool
) -> Answers:
    """Return answers in long form as answers about pairs."""
    if stays_sparse(len(said), shape) and said.people in ((), ("",)) and not by_model.any():
        return _combine_sparse(said, shape, warn_of_disagreements)
    codes = said.combine(shape)
    if find_kind(codes) == "candidates":
        drawn = mark_pairs(said.row[~by_model], said.label[~by_model], shape)
        if by_model.any():
            warn(
                f"{by_model.sum()} answers to questions that a model chose are left out: all "
                "answers are 'no', which are candidates, and these need questions drawn at random.",
                ComesWarning,
                stacklevel=3,
            )
        return Answers.from_candidates(~drawn)
    chosen = None
    if by_model.any():
        drawn = mark_pairs(said.row[~by_model], said.label[~by_model], shape)
        chosen = mark_pairs(said.row, said.label, shape) & ~drawn
    if said.people != ("",):
        return Answers.from_long(said, shape, chosen=chosen)
    _warn_of_disagreements(_count_disagreements(said, shape[1]) if warn_of_disagreements else 0)
    return Answers.from_codes(codes, chosen=chosen)


def _warn_of_disagreements(n_pairs: int) -> None:
    """Warn of pairs about which nobody in particular gave different answers."""
    if n_pairs:
        warn(
            f"{n_pairs} pairs of item and label have different answers; they count as 'maybe', "
            f"and the labels stay candidates. A column {PERSON!r} would keep who said what.",
            ComesWarning,
            stacklevel=5,
        )


def _combine_sparse(
    said: LongAnswers, shape: tuple[int, int], warn_of_disagreements: bool
) -> Answers:
    """Return few answers about many pairs as sparse ones, given by nobody in particular."""
    pair, place = np.unique(said.row * shape[1] + said.label, return_inverse=True)
    lowest = np.full(len(pair), State.MAYBE, dtype=np.int8)
    highest = np.zeros(len(pair), dtype=np.int8)
    np.minimum.at(lowest, place, said.code)
    np.maximum.at(highest, place, said.code)
    disagree = lowest != highest
    _warn_of_disagreements(int(disagree.sum()) if warn_of_disagreements else 0)
    code = np.where(disagree, np.int8(State.MAYBE), highest)
    row, label = np.divmod(pair, shape[1])
    return Answers.from_codes(sparse.csr_array((code, (row, label)), shape=shape), find_kind(code))


def _count_disagreements(said: LongAnswers, q: int) -> int:
    """Return how many pairs have different answers."""
    distinct = pd.DataFrame(
        {"pair": said.row * q + said.label, "code": said.code}
    ).drop_duplicates()
    return int(distinct.loc[distinct["pair"].duplicated(), "pair"].nunique())


def find_kind(codes: Codes) -> Kind:
    """Return what a pair without an answer means: not asked, or still possible if all say no."""
    return "answers" if np.isin(codes, (State.YES, State.MAYBE)).any() else "candidates"


def as_ticked(dataset: Dataset) -> Dataset:
    """Return a data set whose answers are all yes with them as ticked labels."""
    answers = answers_to_write(dataset)
    if any(answers.count_state(state).any() for state in (State.NO, State.MAYBE)):
        raise ComesError(
            "ticked labels are all 'yes', and the data has other answers too. Leave out labels_are "
            "(--positives)."
        )
    ticked = marks_of_state(answers, State.YES)
    return replace(dataset, answers=Answers.from_positives(ticked, dataset.label_names))


def warn_of_ticks(answers: Answers) -> None:
    """Warn if all answers are yes: then nobody could say no, perhaps."""
    if (
        answers.kind == "answers"
        and not answers.count_state(State.NO).any()
        and not answers.count_state(State.MAYBE).any()
    ):
        warn(
            "every answer is 'yes'. If labels were ticked and nobody could say no, read them as "
            "such (labels_are='positives'; --positives on the command line).",
            ComesWarning,
            stacklevel=3,
        )


def long_dataset(
    table: pd.DataFrame,
    columns: Sequence[str],
    words: Mapping[str, str] | None = None,
    label_names: Sequence[str] | None = None,
) -> Dataset:
    """Return the answers of a table with the columns item, label and answer.

    A fourth column says who said it and a fifth who chose the question; where they are not named,
    columns called ``person`` and ``source`` do, if there are any.
    """
    items, labels = (as_texts(table[name]) for name in columns[:2])
    for name, cells in zip(columns[:2], (items, labels), strict=True):
        empty = cells == ""
        if empty.any():
            raise ComesError(f"column {name!r} is empty at row {int(empty.argmax())}. Fill it in.")
    codes = as_states(table[columns[2]], f"column {columns[2]!r}", words)
    more = dict(zip((PERSON, SOURCE), columns[3:], strict=False))
    for name in (PERSON, SOURCE):
        if name in table and name not in columns:
            more.setdefault(name, name)
    chosen = np.isin(as_texts(table[more[SOURCE]]), BY_MODEL) if SOURCE in more else None
    return combine_answers(
        items,
        labels,
        np.array([State(code).word for code in range(4)], dtype=object)[codes],
        label_names,
        people=table[more[PERSON]] if PERSON in more else None,
        chosen=chosen,
    )


def answers_of(dataset: Dataset) -> tuple[BoolMatrix, BoolMatrix]:
    """Return the candidates, and the pairs about which there is an answer.

    Where the data does not say who was asked, these are the excluded or the ticked pairs.

    Returns
    -------
    candidates, asked : bool arrays of shape (n_samples, n_labels)

    Examples
    --------
    >>> candidates, asked = answers_of(Dataset(None, ["sky"], np.array([[True], [False]])))
    >>> asked.tolist()
    [[False], [True]]
    """
    answers = answers_to_write(dataset)
    return answers.candidates, np.asarray(answers.codes != State.NOT_ASKED)


def answers_to_write(dataset: Dataset) -> Answers:
    """Return the answers; raise if there are only true labels."""
    if dataset.answers is None:
        raise ComesError("answers are candidates or complementary labels, and the data has none.")
    return dataset.answers


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


def mark_pairs(
    row: npt.NDArray[np.int64], column: npt.NDArray[np.int64], shape: tuple[int, int]
) -> BoolMatrix:
    """Return the matrix that is True at these pairs of row and column."""
    marked = np.zeros(shape, dtype=bool)
    marked[row, column] = True
    return marked
