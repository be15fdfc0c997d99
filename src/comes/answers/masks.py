"""Masks of "no", "yes" and "maybe", read in all their forms and combined."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from comes.answers.indicators import BoolMatrix, as_indicators, from_sets
from comes.answers.label_names import check_names, match_names
from comes.answers.paired_frames import check_paired
from comes.answers.people import Codes
from comes.answers.states import State
from comes.errors import ComesError

GIVEN = {"no": State.NO, "yes": State.YES, "maybe": State.MAYBE}


def read_masks(
    given: dict[str, Any], label_names: Sequence[str] | None
) -> tuple[dict[str, BoolMatrix], list[str] | None]:
    """Return the masks by name, with one order of labels, and the names of the labels."""
    as_sets = [name for name, values in given.items() if _is_sets(values)]
    as_sets += [name for name, values in given.items() if as_sets and _is_blank(values)]
    if as_sets and len(as_sets) < len(given):
        raise ComesError("no, yes and maybe must all be matrices or all be sets; got both.")
    if as_sets:
        occurring = {name for rows in given.values() for row in rows for name in row}
        names: list[str] | None = sorted(occurring) if label_names is None else list(label_names)
        matrices = {name: from_sets(rows, names)[0] for name, rows in given.items()}
    else:
        names = find_names(given, label_names)
        check_paired(**given)
        matrices = {name: _read_matrix(name, values, names) for name, values in given.items()}
    _, q = check_one_shape(matrices)
    return matrices, None if names is None else check_count(names, q)


def check_one_shape(matrices: dict[str, Any]) -> tuple[int, int]:
    """Return the shape that all masks have, or raise an error."""
    first, *_ = matrices
    n, q = matrices[first].shape
    for name, matrix in matrices.items():
        if matrix.shape != (n, q):
            raise ComesError(
                f"{first} and {name} must have one shape (n, q); got {(n, q)} and {matrix.shape}."
            )
    return n, q


def _is_sets(values: Any) -> bool:
    """Return whether values are a list of sets or lists of names."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not len(values):
        return False
    if any(isinstance(row, set | frozenset) for row in values):
        return True
    named = [row for row in values if isinstance(row, Sequence) and len(row)]
    return bool(named) and all(isinstance(name, str) for name in named[0])


def _is_blank(values: Any) -> bool:
    """Return whether values are a list of empty lists: sets, if others are."""
    return isinstance(values, Sequence) and all(row == [] for row in values)


def find_names(given: dict[str, Any], label_names: Sequence[str] | None) -> list[str] | None:
    """Return the names that are given, else those of the first DataFrame."""
    frames = [values for values in given.values() if hasattr(values, "columns")]
    if frames and label_names is not None:
        raise ComesError("label_names are for arrays; a DataFrame names its columns.")
    if frames:
        return [str(name) for name in frames[0].columns]
    return None if label_names is None else [str(name) for name in label_names]


def _read_matrix(name: str, values: Any, names: list[str] | None) -> BoolMatrix:
    """Return a mask, its columns in the order of the names if it names them."""
    advice = "1 means that somebody said so; a pair without this answer is 0."
    matrix = as_indicators(values, name, advice)
    if names is None or not hasattr(values, "columns"):
        return matrix
    return matrix[:, match_names([str(column) for column in values.columns], names)]


def check_count(label_names: Sequence[str], q: int) -> list[str]:
    """Return the names of q labels, or raise an error."""
    names = [str(name) for name in label_names]
    if len(names) != q:
        raise ComesError(f"label_names must name each of {q} labels; got {len(names)} names.")
    check_names(names)
    return names


def find_first(marked: BoolMatrix) -> tuple[int, int]:
    """Return row and label of the first pair that is marked."""
    row, label = (int(place) for place in np.argwhere(marked)[0])
    return row, label


def show_label(label: int, names: Sequence[str] | None) -> str:
    """Return how a message calls a label: by its name if it has one."""
    return str(label) if names is None else repr(names[label])


def combine_masks(matrices: dict[str, BoolMatrix], names: list[str] | None) -> Codes:
    """Return the state of every pair; raise if a pair has two."""
    codes = np.zeros(next(iter(matrices.values())).shape, dtype=np.int8)
    for name, matrix in matrices.items():
        if name not in GIVEN:
            continue
        both = matrix & (codes != State.NOT_ASKED)
        if both.any():
            row, label = find_first(both)
            other, shown = State(codes[row, label]).word, show_label(label, names)
            refuse_two_answers(int(both.sum()), row, shown, other, name)
        codes[matrix] = GIVEN[name]
    return codes


def refuse_two_answers(count: int, row: int, label: str, one: str, other: str) -> None:
    """Raise the error about pairs with two answers."""
    raise ComesError(
        f"{count} pairs have two answers; row {row}, label {label} has {one!r} and {other!r}. Keep "
        "one, or give who said it (comes.answers.LongAnswers)."
    )
