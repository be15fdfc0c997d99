"""Labels in the forms that users have them: matrices of 0 and 1, sets of names, DataFrames.

A candidate matrix is a bool array of shape (n_samples, n_labels): True where a label is still
possible, False where it is surely irrelevant (*excluded*). Complementary labels state the same
fact the other way round: True where a label is surely irrelevant. Which of the two a matrix holds
is never guessed: `as_candidates` reads one, `from_complementary` the other.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, takewhile
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, ComesWarning, listed

BoolMatrix = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
MOST_DENSE_PAIRS = 2**30  # a larger dense matrix is refused


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
    rows, labels, names = set_members(sets, label_names)
    indicators = np.zeros((len(sets), len(names)), dtype=bool)
    indicators[rows, labels] = True
    return indicators, names


def set_members(
    sets: Collection[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[IntArray, IntArray, list[str]]:
    """Return the row and the label of every member of the sets, and the label names."""
    rows = [list(row) for row in sets if not isinstance(row, str)]
    if len(rows) != len(sets):
        raise ComesError(
            "sets must hold a set of names per row; got strings. Split them into names."
        )
    names = sorted({name for row in rows for name in row}) if label_names is None else label_names
    check_names(names)
    column = {name: number for number, name in enumerate(names)}
    try:
        labels = [column[name] for row in rows for name in row]
    except KeyError as unknown:
        raise ComesError(
            f"label {unknown.args[0]!r} occurs in a set but is not one of the label names, "
            f"{listed(names)}. Add it to the names, or correct the set."
        ) from None
    sizes = np.asarray([len(row) for row in rows], dtype=np.int64)
    return np.repeat(np.arange(len(rows)), sizes), np.asarray(labels, dtype=np.int64), list(names)


def to_sets(indicators: npt.ArrayLike, label_names: Sequence[str]) -> list[list[str]]:
    """Return the label names of every row: the inverse of `from_sets`."""
    marked = as_indicators(indicators, "indicators")
    names = np.asarray(check_names(label_names, marked.shape[1]), dtype=object)
    return [list(names[row]) for row in marked]


def as_candidates(values: Any) -> BoolMatrix:
    """Return a 0/1 matrix, 1 where the label is still possible, as a bool array."""
    advice = "1 means still possible; a label that nobody was asked about stays 1."
    return as_indicators(values, "candidates", advice)


def as_relevant(values: Any) -> BoolMatrix:
    """Return a 0/1 matrix, 1 where the label is relevant, as a bool array."""
    return as_indicators(values, "relevant labels", "1 means relevant.")


def as_indicators(values: Any, name: str, advice: str = "") -> BoolMatrix:
    """Return a 0/1 array, DataFrame or sparse matrix (n, q) as bool; errors call it by the name."""
    if _is_answers(values):  # their 1 is "no", so they would be read inverted
        raise ComesError(
            f"{name} must be a matrix of 0 and 1; got Answers. Pass them as answers=, or take "
            "answers.candidates, .excluded or .confirmed."
        )
    if np.ma.is_masked(values):
        raise ComesError(f"{name} must not have masked entries. {advice}")
    if hasattr(values, "toarray"):
        check_indices(values, name)
        refuse_huge(values.shape, "Give sparse no=, yes= and maybe= to comes.Answers.")
    try:
        array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ComesError(f"{name} must be a matrix of 0 and 1; {error}.") from None
    if array.ndim != 2:
        raise ComesError(
            f"Unknown label type: {name} must have two dimensions, a row per sample and a column "
            f"per label; got shape {array.shape}. comes.answers.from_sets turns sets into a matrix."
        )
    if 0 in array.shape:
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
        row, label = (int(number) for number in np.argwhere(wrong)[0])
        value = array[row : row + 1, label].tolist()[0]
        shown = repr(values.columns[label]) if hasattr(values, "columns") else label
        raise ComesError(
            f"{name} must be 0 or 1; got {value!r} at row {row}, label {shown}. {advice}".rstrip()
        )
    return np.asarray(ones, dtype=bool)


def check_indices(matrix: Any, name: str) -> None:
    """Raise an error if a sparse matrix has an index outside of its shape, which scipy trusts."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif getattr(matrix, "format", "") == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
    except ValueError as error:
        raise ComesError(
            f"{name} must be a sound sparse matrix; scipy says: {error}. Make it anew, from its "
            "rows, columns and values."
        ) from None


def refuse_huge(shape: tuple[int, ...], advice: str) -> None:
    """Raise an error if a dense matrix of this shape would fill the memory."""
    if math.prod(shape) > MOST_DENSE_PAIRS:
        n, q = shape
        raise ComesError(
            f"a matrix of {n} rows and {q} labels would take {n * q / 2**30:.0f} GB. {advice}"
        )


def keep_one_excluded(candidates: npt.ArrayLike, seed: int | np.random.Generator = 0) -> BoolMatrix:
    """Keep one excluded label per row, drawn uniformly; the others become candidates again."""
    candidates = as_candidates(candidates)
    draws = np.where(candidates, -1.0, np.random.default_rng(seed).random(candidates.shape))
    kept = draws.argmax(axis=1)[:, None] == np.arange(candidates.shape[1])
    return np.asarray(candidates | ~kept)


def check_relevant_inside(
    relevant: BoolMatrix, candidates: BoolMatrix, label_names: Sequence[str] | None = None
) -> None:
    """Raise an error if a relevant label is not a candidate: no method tolerates that."""
    if relevant.shape != candidates.shape:
        raise ComesError(
            f"relevant labels must have the shape of the candidates, {candidates.shape}; "
            f"got {relevant.shape}."
        )
    outside = relevant & ~candidates
    if outside.any():
        rows, labels = np.nonzero(outside)
        raise outside_candidates_error(rows, labels, label_names)


def outside_candidates_error(
    rows: IntArray, labels: IntArray, label_names: Sequence[str] | None = None
) -> ComesError:
    """Return the error about relevant labels that are excluded, at these pairs."""
    return ComesError(
        f"{len(np.unique(rows))} rows have a relevant label outside their candidates (first: row "
        f"{int(rows[0])}, label {show_label(int(labels[0]), label_names)}). Candidates must "
        "contain every relevant label. Correct them; if they are complementary labels, pass them "
        "as such."
    )


def show_label(label: int, label_names: Sequence[str] | None) -> str:
    """Return how a message calls a label: by its name if it has one."""
    return str(label) if label_names is None else repr(label_names[label])


def check_names(names: Sequence[str], q: int | None = None) -> list[str]:
    """Return label names; raise unless they are q, differ, and can be written."""
    names = [str(name) for name in names]
    if q is not None and len(names) != q:
        raise ComesError(f"label_names must name each of {q} labels; got {len(names)} names.")
    if "" in names:
        raise ComesError(f"label names must not be empty; number {names.index('')} is.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ComesError(f"label names must differ; got {repeated[0]!r} more than once.")
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        broken = next(name for name in names if error.object[error.start] in name)
        raise ComesError(
            f"label names must be text that a file can hold; {broken!r} has half of a character (a "
            "lone surrogate). Rename it."
        ) from None
    return names


def match_names(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the position of each wanted label among names.

    The same names in any order are matched by name; a prefix or suffix that a whole list shares is
    ignored. As many entirely different names are matched by position, with a warning. Names that
    agree only in part raise an error, since one of the two lists must be wrong.
    """
    stripped = _strip_common_ends(names), _strip_common_ends(wanted)
    for these, those in ((names, wanted), stripped):
        if set(these) == set(those):
            position = {name: number for number, name in reversed(list(enumerate(these)))}
            return [position[name] for name in those]
    names_set, wanted_set = set(names), set(wanted)
    missing = [name for name in wanted if name not in names_set]
    if len(names) != len(wanted) or len(missing) < len(wanted):
        unknown = [name for name in names if name not in wanted_set]
        differences = {"missing": missing, "not among them": unknown}
        shown = "; ".join(f"{what}: {listed(some)}" for what, some in differences.items() if some)
        raise ComesError(
            f"expected the labels {listed(wanted)}; got {listed(names)} ({shown}). Give the same "
            "names, in any order, or as many different names in the same order."
        )
    numbers = [str(number) for number in range(len(names))]
    if list(names) != numbers and list(wanted) != numbers:
        pairs = [f"{a!r} for {b!r}" for a, b in zip(names, wanted, strict=True)]
        shown = ", ".join(pairs[:4]) + (" ..." if len(pairs) > 4 else "")
        message = f"labels are matched by position, as no name agrees: {shown}."
        warn(message, ComesWarning, stacklevel=2)
    return list(range(len(wanted)))


def _strip_common_ends(names: Sequence[str]) -> list[str]:
    """Return names without the prefix and suffix that all share: is_sky, is_sea are sky, sea."""
    if len(names) < 2:
        return list(names)
    start = _common_start(names)
    backward = [name[start:][::-1] for name in names]
    end = _common_start(backward)
    return [name[end:][::-1] for name in backward]


def _common_start(names: Sequence[str]) -> int:
    """Return the length of the prefix that all names share: that of the first and last, sorted."""
    pairs = zip(min(names), max(names), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def check_paired(*, same_labels: bool = False, **values: Any) -> None:
    """Raise an error if DataFrames, or answers made from them, do not have the same rows in order.

    Rows are paired by position, so the index of all must be the same. Arrays have none, and values
    of other lengths are not compared. With ``same_labels`` the columns must agree, too. Errors call
    the values by their keywords.
    """
    indexed = {name: value for name, value in values.items() if row_index(value) is not None}
    for (first, one), (second, other) in pairwise(indexed.items()):
        if len(one) == len(other) and not one.index.equals(other.index):
            raise _row_order_error(first, second, one.index, other)
    frames = {name: value for name, value in indexed.items() if hasattr(value, "columns")}
    for (first, one), (second, other) in pairwise(frames.items() if same_labels else ()):
        labels, others = ([str(name) for name in frame.columns] for frame in (one, other))
        if labels != others:
            raise ComesError(
                f"{first} and {second} must have the same labels in the same order; got "
                f"{listed(labels)} and {listed(others)}. Write {second}[{first}.columns]."
            )


def row_index(values: Any) -> Any:
    """Return the index of a DataFrame, or of answers that were made from one; else None."""
    is_table = hasattr(values, "columns") or _is_answers(values)
    return getattr(values, "index", None) if is_table else None


def _is_answers(values: Any) -> bool:
    """Return whether values are `Answers`, which cannot be imported here."""
    return hasattr(values, "select_labels")


def _row_order_error(first: str, second: str, index: Any, other: Any) -> ComesError:
    """Return the error for two indexes that differ."""
    if hasattr(other, "loc"):
        frame, which = second, ""
    else:
        frame, which = "frame", f" for the frames of which {second} are made"
    if set(index) == set(other.index):
        return ComesError(
            f"{first} and {second} must have their rows in the same order; got DataFrames with the "
            f"same index in another order. Write {frame}.loc[{first}.index]{which}, or reset both "
            "(reset_index(drop=True))."
        )
    pairs = enumerate(zip(index, other.index, strict=True))
    row, (here, there) = next((row, pair) for row, pair in pairs if pair[0] != pair[1])
    return ComesError(
        f"{first} and {second} must have the same rows; got DataFrames with different indexes, "
        f"{here!r} and {there!r} at row {row}. Write {frame}.loc[{first}.index] or, if they belong "
        f"together as they stand, {frame}.set_index({first}.index){which}."
    )
