"""What a candidate matrix is, and how to get one.

A candidate matrix is a bool array of shape (n_samples, n_labels): True where a label is
still possible, False where it is surely irrelevant (*excluded*). Complementary labels are
the same fact seen from the other side: True where a label is surely irrelevant. Which of the
two a matrix holds is never guessed: `as_candidates` reads one, `from_complementary` the other.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

BoolMatrix = npt.NDArray[np.bool_]

# The methods by name, here so that the command line can list them without importing torch.
METHODS = ("comes-hl", "comes-rl", "bce")


def as_candidates(values: Any, name: str = "candidates") -> BoolMatrix:
    """Return 0/1 values as a candidate matrix, checked.

    Parameters
    ----------
    values : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1; 1 where the label is still possible.
    name : str
        What the error message calls the values.

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> as_candidates([[1, 0], [1, 1]])
    array([[ True, False],
           [ True,  True]])
    """
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.ndim != 2:
        raise ComesError(
            f"Unknown label type: {name} must have two dimensions, a row per sample and a column "
            f"per label; got shape {array.shape}. comes.labels.from_sets makes a matrix of sets."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ComesError(
            f"{name} must have at least one row and one label; got shape {array.shape}."
        )
    if array.dtype == np.bool_:
        return array
    ones = array == 1
    wrong = ~(ones | (array == 0))
    if wrong.any():
        row, label = (int(index) for index in np.argwhere(wrong)[0])
        raise ComesError(
            f"{name} must be 0 or 1; got {array[row, label]} at row {row}, label {label}. "
            "1 means still possible; a label that nobody was asked about stays 1."
        )
    return np.asarray(ones)


def from_complementary(complementary: Any) -> BoolMatrix:
    """Return the candidate matrix of complementary labels: everything that is not excluded.

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
    return ~as_candidates(complementary, "complementary labels")


def from_sets(
    sets: Iterable[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[BoolMatrix, list[str]]:
    """Return the indicator matrix of label sets, and the names of its columns.

    Parameters
    ----------
    sets : iterable of n_samples iterables of label names
    label_names : sequence of str, optional
        All labels there are, in the order wanted. By default every name that occurs, sorted.

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
    rows = [list(row) for row in sets]
    names = sorted({name for row in rows for name in row}) if label_names is None else label_names
    column = {name: index for index, name in enumerate(names)}
    if len(column) != len(names):
        raise ComesError(f"label names must differ; got {_repeated(names)!r} more than once.")
    indicators = np.zeros((len(rows), len(column)), dtype=bool)
    try:
        labels = [column[name] for row in rows for name in row]
    except KeyError as unknown:
        raise ComesError(
            f"label {unknown.args[0]!r} occurs in a set but not in label_names {list(names)}. "
            "Add it there, or correct the set."
        ) from None
    indicators[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), labels] = True
    return indicators, list(names)


def to_sets(indicators: BoolMatrix, label_names: Sequence[str]) -> list[list[str]]:
    """Return the label names of every row: the inverse of `from_sets`.

    Examples
    --------
    >>> import numpy as np
    >>> to_sets(np.array([[True, True], [False, False]]), ["apple", "plate"])
    [['apple', 'plate'], []]
    """
    names = np.asarray(label_names, dtype=object)
    return [list(names[row]) for row in indicators]


def check_relevant_inside(
    relevant: BoolMatrix, candidates: BoolMatrix, label_names: Sequence[str] | None = None
) -> None:
    """Raise if a relevant label is not a candidate: the one assumption without slack."""
    if relevant.shape != candidates.shape:
        raise ComesError(
            f"relevant labels must have the shape of the candidates, {candidates.shape}; "
            f"got {relevant.shape}."
        )
    outside = relevant & ~candidates
    if outside.any():
        row, label = (int(index) for index in np.argwhere(outside)[0])
        shown = label if label_names is None else repr(label_names[label])
        raise ComesError(
            f"{np.count_nonzero(outside.any(axis=1))} rows have a relevant label outside their "
            f"candidates (first: row {row}, label {shown}). Candidates must contain every relevant "
            "label: correct them, or pass complementary labels as such if they are that."
        )


def _repeated(names: Sequence[str]) -> str:
    """Return the first name that occurs more than once."""
    return next(name for index, name in enumerate(names) if name in names[:index])
