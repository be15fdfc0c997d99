"""What a candidate matrix is, and how to get one.

A candidate matrix is a bool array of shape (n_samples, n_labels): True where a label is
still possible, False where it is surely irrelevant (*excluded*). Complementary labels are
the same fact seen from the other side: True where a label is surely irrelevant. Which of the
two a matrix holds is never guessed: `as_candidates` reads one, `from_complementary` the other.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, ComesWarning

BoolMatrix = npt.NDArray[np.bool_]


def as_indicators(values: Any, name: str, advice: str = "") -> BoolMatrix:
    """Return 0/1 values as a bool matrix, checked.

    Parameters
    ----------
    values : array, DataFrame or sparse matrix of shape (n_samples, n_labels)
        bool or 0/1.
    name, advice : str
        What an error message calls the values, and what it says to do.

    Returns
    -------
    indicators : bool array of shape (n_samples, n_labels)
    """
    if np.ma.is_masked(values):
        raise ComesError(f"{name} must not have masked entries. {advice}")
    try:
        array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    except ValueError as error:
        raise ComesError(f"{name} must be a matrix of 0 and 1; {error}.") from None
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
    try:
        ones, zeros = array == 1, array == 0
    except TypeError:  # pandas' missing value, which is neither
        raise ComesError(f"{name} must be 0 or 1; some entries are missing. {advice}") from None
    wrong = ~(ones | zeros)
    if wrong.any():
        row, label = (int(index) for index in np.argwhere(wrong)[0])
        shown = repr(values.columns[label]) if hasattr(values, "columns") else label
        value = array[row : row + 1, label].tolist()[0]
        place = f"at row {row}, label {shown}"
        raise ComesError(f"{name} must be 0 or 1; got {value!r} {place}. {advice}".rstrip())
    return np.asarray(ones, dtype=bool)


def as_candidates(values: Any) -> BoolMatrix:
    """Return 0/1 values as a candidate matrix, checked.

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
    """Return 0/1 values as true labels, checked.

    Examples
    --------
    >>> as_relevant([[1, 0]])
    array([[ True, False]])
    """
    return as_indicators(values, "relevant labels", "1 means relevant.")


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
    rows = [list(row) for row in sets if not isinstance(row, str)]
    if len(rows) != len(sets):
        raise ComesError("sets must hold a set of names per row; got text. Split it into names.")
    names = sorted({name for row in rows for name in row}) if label_names is None else label_names
    check_names(names)
    column = {name: index for index, name in enumerate(names)}
    indicators = np.zeros((len(rows), len(column)), dtype=bool)
    try:
        labels = [column[name] for row in rows for name in row]
    except KeyError as unknown:
        raise ComesError(
            f"label {unknown.args[0]!r} occurs in a set but is none of the label names, "
            f"{listed(names)}. Add it there, or correct the set."
        ) from None
    indicators[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), labels] = True
    return indicators, list(names)


def to_sets(indicators: npt.ArrayLike, label_names: Sequence[str]) -> list[list[str]]:
    """Return the label names of every row: the inverse of `from_sets`.

    Examples
    --------
    >>> import numpy as np
    >>> to_sets(np.array([[True, True], [False, False]]), ["apple", "plate"])
    [['apple', 'plate'], []]
    """
    names = np.asarray(label_names, dtype=object)
    return [list(names[row]) for row in as_indicators(indicators, "indicators")]


def keep_one_excluded(candidates: npt.ArrayLike, seed: int | np.random.Generator = 0) -> BoolMatrix:
    """Return candidates in which every row excludes at most one of the labels that it did.

    The one is drawn uniformly: the setting of methods for a single complementary label.

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


def check_names(names: Sequence[str]) -> None:
    """Raise if a label name is empty or occurs more than once."""
    if "" in names:
        raise ComesError(f"label names must not be empty; number {list(names).index('')} is.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ComesError(f"label names must differ; got {repeated[0]!r} more than once.")


def match_names(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return where to find each wanted label among names.

    The same names in any order are matched by name, also if all of one list begin or end alike;
    quite other names, as many, by position, with a warning. Names that only partly agree are
    refused: one of the two lists must be wrong.

    Examples
    --------
    >>> match_names(["sea", "sky"], ["sky", "sea"])
    [1, 0]
    >>> match_names(["is_sky", "is_sea"], ["has_sea", "has_sky"])
    [1, 0]
    """
    for these, those in (
        (names, wanted),
        (_without_common_ends(names), _without_common_ends(wanted)),
    ):
        if set(these) == set(those):
            return [list(these).index(name) for name in those]
    missing = [name for name in wanted if name not in set(names)]
    if len(names) != len(wanted) or len(missing) < len(wanted):
        raise ComesError(
            f"the labels {listed(wanted)} were wanted; got {listed(names)}. Give the same names, "
            "in any order, or as many other names in the same order."
        )
    numbers = [str(number) for number in range(len(names))]
    if list(names) != numbers and list(wanted) != numbers:
        pairs = ", ".join(f"{a!r} for {b!r}" for a, b in list(zip(names, wanted, strict=True))[:4])
        warn(
            f"labels are matched by position, as no name agrees: {pairs}"
            f"{' ...' if len(names) > 4 else ''}.",
            ComesWarning,
            stacklevel=2,
        )
    return list(range(len(wanted)))


def _without_common_ends(names: Sequence[str]) -> list[str]:
    """Return names without what all of them begin and end with: is_sky, is_sea are sky, sea."""
    if len(names) < 2:
        return list(names)
    start = _common_start(names)
    shorter = [name[start:] for name in names]
    end = _common_start([name[::-1] for name in shorter])
    return [name[: len(name) - end] for name in shorter]


def _common_start(names: Sequence[str]) -> int:
    """Return how many letters all names begin with: those of the first and the last in order."""
    pairs = zip(min(names), max(names), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names as a message shows them: the first few, and how many more."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
