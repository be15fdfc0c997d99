"""Matrices of 0 and 1 about (row, label) pairs, and sets of names, converted and checked.

A candidate matrix is a bool array of shape (n_samples, n_labels): True where a label is
still possible, False where it is surely irrelevant (*excluded*). Complementary labels state the
same fact the other way round: True where a label is surely irrelevant. Which of the two a matrix
holds is never guessed: `as_candidates` reads one, `from_complementary` the other.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.label_names import check_names
from comes.errors import ComesError, listed

BoolMatrix = npt.NDArray[np.bool_]
MOST_DENSE_PAIRS = 2**30  # a matrix of more pairs than these is not made
Places = npt.NDArray[np.int64]


def as_indicators(values: Any, name: str, advice: str = "") -> BoolMatrix:
    """Check that values are 0 or 1 and return them as a bool matrix.

    Parameters
    ----------
    values : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1.
    name : str
        What error messages call the values.
    advice : str
        What error messages tell the reader to do.

    Returns
    -------
    indicators : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> as_indicators([[1, 0], [0, 0]], "predictions")
    array([[ True, False],
           [False, False]])
    """
    if hasattr(values, "filled_codes"):  # their 1 is "no", so they would be read inverted
        raise ComesError(
            f"{name} must be a matrix of 0 and 1; got Answers. Pass them as answers=, or take "
            "answers.candidates, .excluded or .confirmed."
        )
    if np.ma.is_masked(values):
        raise ComesError(f"{name} must not have masked entries. {advice}")
    if hasattr(values, "toarray"):
        refuse_huge(values.shape, "Give sparse no=, yes= and maybe= to comes.Answers.")
    try:
        array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    except ValueError as error:
        raise ComesError(f"{name} must be a matrix of 0 and 1; {error}.") from None
    if array.ndim != 2:
        raise ComesError(
            f"Unknown label type: {name} must have two dimensions, a row per sample and a column "
            f"per label; got shape {array.shape}. comes.answers.from_sets turns sets into a matrix."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ComesError(
            f"{name} must have at least one row and one label; got shape {array.shape}."
        )
    if array.dtype == np.bool_:
        return array
    try:
        ones, zeros = array == 1, array == 0
    except TypeError:  # pandas.NA equals nothing
        raise ComesError(f"{name} must be 0 or 1; some entries are missing. {advice}") from None
    wrong = ~(ones | zeros)
    if wrong.any():
        row, label = (int(index) for index in np.argwhere(wrong)[0])
        shown = repr(values.columns[label]) if hasattr(values, "columns") else label
        value = array[row : row + 1, label].tolist()[0]
        place = f"at row {row}, label {shown}"
        raise ComesError(f"{name} must be 0 or 1; got {value!r} {place}. {advice}".rstrip())
    return np.asarray(ones, dtype=bool)


def refuse_huge(shape: tuple[int, ...], advice: str) -> None:
    """Raise an error if a matrix of all pairs of this shape would fill the memory."""
    if math.prod(shape) > MOST_DENSE_PAIRS:
        n, q = shape
        raise ComesError(
            f"a matrix of {n} rows and {q} labels would take {n * q / 2**30:.0f} GB. {advice}"
        )


def as_candidates(values: Any) -> BoolMatrix:
    """Check that values are 0 or 1 and return them as a candidate matrix.

    Parameters
    ----------
    values : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1; 1 where the label is still possible.

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> as_candidates([[1, 0], [1, 1]])
    array([[ True, False],
           [ True,  True]])
    """
    advice = "1 means still possible; a label that nobody was asked about stays 1."
    return as_indicators(values, "candidates", advice)


def as_relevant(values: Any) -> BoolMatrix:
    """Check that values are 0 or 1 and return them as relevant labels.

    Parameters
    ----------
    values : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1; 1 where the label is relevant.

    Returns
    -------
    relevant : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> as_relevant([[1, 0]])
    array([[ True, False]])
    """
    return as_indicators(values, "relevant labels", "1 means relevant.")


def from_complementary(complementary: Any) -> BoolMatrix:
    """Return the candidate matrix of complementary labels: every label that they leave possible.

    Parameters
    ----------
    complementary : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1; 1 where the label is surely irrelevant.

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> from_complementary([[0, 1], [0, 0]])
    array([[ True, False],
           [ True,  True]])
    """
    advice = "1 means surely irrelevant; a label that nobody was asked about stays 0."
    return ~as_indicators(complementary, "complementary labels", advice)


def from_sets(
    sets: Collection[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[BoolMatrix, list[str]]:
    """Return the indicator matrix of label sets, and the names of its columns.

    Parameters
    ----------
    sets : collection of n_samples iterables of label names
    label_names : sequence of str, optional
        All labels, in the order of the columns. By default every name that occurs, sorted.

    Returns
    -------
    indicators : bool array of shape (n_samples, n_labels)
        True where the set contains the label: a candidate matrix if the sets are candidate
        sets, complementary labels if they are those (see `from_complementary`).
    label_names : list of str

    Examples
    --------
    >>> from_sets([{"apple", "plate"}, {"plate"}])
    (array([[ True,  True],
           [False,  True]]), ['apple', 'plate'])
    """
    rows, labels, names = place_sets(sets, label_names)
    indicators = np.zeros((len(sets), len(names)), dtype=bool)
    indicators[rows, labels] = True
    return indicators, names


def place_sets(
    sets: Collection[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[Places, Places, list[str]]:
    """Return the row and the label of every name in sets, and the names of the labels.

    Parameters
    ----------
    sets : collection of n_samples iterables of label names
    label_names : sequence of str, optional
        All labels, in the order of the columns. By default every name that occurs, sorted.

    Returns
    -------
    rows, labels : int arrays of shape (n_names,)
    label_names : list of str

    Examples
    --------
    >>> rows, labels, names = place_sets([{"plate"}, {"apple"}])
    >>> rows.tolist(), labels.tolist(), names
    ([0, 1], [1, 0], ['apple', 'plate'])
    """
    rows = [list(row) for row in sets if not isinstance(row, str)]
    if len(rows) != len(sets):
        raise ComesError(
            "sets must hold a set of names per row; got strings. Split them into names."
        )
    names = sorted({name for row in rows for name in row}) if label_names is None else label_names
    check_names(names)
    column = {name: index for index, name in enumerate(names)}
    try:
        labels = [column[name] for row in rows for name in row]
    except KeyError as unknown:
        raise ComesError(
            f"label {unknown.args[0]!r} occurs in a set but is not one of the label names, "
            f"{listed(names)}. Add it to the names, or correct the set."
        ) from None
    lengths = [len(row) for row in rows]
    return (
        np.repeat(np.arange(len(rows)), np.asarray(lengths, dtype=np.int64)),
        np.asarray(labels, dtype=np.int64),
        list(names),
    )


def to_sets(indicators: npt.ArrayLike, label_names: Sequence[str]) -> list[list[str]]:
    """Return the label names of every row: the inverse of `from_sets`.

    Parameters
    ----------
    indicators : bool array of shape (n_samples, n_labels)
    label_names : sequence of n_labels str

    Examples
    --------
    >>> to_sets(np.array([[True, True], [False, False]]), ["apple", "plate"])
    [['apple', 'plate'], []]
    """
    names, marked = np.asarray(label_names, dtype=object), as_indicators(indicators, "indicators")
    if len(names) != marked.shape[1]:
        raise ComesError(
            f"label_names must name each of {marked.shape[1]} labels; got {len(names)} names."
        )
    return [list(names[row]) for row in marked]


def keep_one_excluded(candidates: npt.ArrayLike, seed: int | np.random.Generator = 0) -> BoolMatrix:
    """Keep one excluded label per row, drawn uniformly, and make the others candidates again.

    This is the setting of methods for a single complementary label.

    Parameters
    ----------
    candidates : bool array of shape (n_samples, n_labels)
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> kept = keep_one_excluded([[0, 0, 1], [1, 1, 1], [1, 0, 1]])
    >>> (~kept).sum(axis=1)
    array([1, 0, 1])
    """
    candidates = as_candidates(candidates)
    draws = np.where(candidates, -1.0, np.random.default_rng(seed).random(candidates.shape))
    kept = draws.argmax(axis=1)[:, None] == np.arange(candidates.shape[1])
    return np.asarray(candidates | ~kept)


def check_relevant_inside(
    relevant: BoolMatrix, candidates: BoolMatrix, label_names: Sequence[str] | None = None
) -> None:
    """Raise an error if a relevant label is not a candidate: no method tolerates that.

    Parameters
    ----------
    relevant, candidates : bool arrays of shape (n_samples, n_labels)
    label_names : sequence of str, optional
        For the error message.

    Examples
    --------
    >>> check_relevant_inside(np.array([[True, False]]), np.array([[True, True]]))
    >>> check_relevant_inside(np.array([[False, True]]), np.array([[True, False]]), ["sea", "sky"])
    Traceback (most recent call last):
    comes.errors.ComesError: 1 rows have a relevant label outside their candidates (first: row 0...
    """
    if relevant.shape != candidates.shape:
        raise ComesError(
            f"relevant labels must have the shape of the candidates, {candidates.shape}; "
            f"got {relevant.shape}."
        )
    outside = relevant & ~candidates
    if outside.any():
        rows, labels = np.nonzero(outside)
        refuse_outside(rows, labels, label_names)


def refuse_outside(rows: Places, labels: Places, label_names: Sequence[str] | None = None) -> None:
    """Raise the error that relevant labels are excluded, at these pairs in the order of rows.

    Examples
    --------
    >>> refuse_outside(np.array([3]), np.array([0]), ["sea"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    comes.errors.ComesError: 1 rows have a relevant label outside their candidates (first: row 3...
    """
    shown = int(labels[0]) if label_names is None else repr(label_names[labels[0]])
    raise ComesError(
        f"{len(np.unique(rows))} rows have a relevant label outside their candidates (first: row "
        f"{int(rows[0])}, label {shown}). Candidates must contain every relevant label. Correct "
        "them; if they are complementary labels, pass them as such."
    )
