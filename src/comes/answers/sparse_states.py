"""States of pairs as a sparse matrix: memory for what was said, none for what was not.

A CSR matrix of int8 holds the `State` of every pair with an answer, in sorted order; what it does
not hold is NOT_ASKED. Ten answers about each of a million rows take 54 MB, whatever the number of
labels, where a matrix of all pairs with 100000 labels would take 100 GB.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.indicators import refuse_huge
from comes.answers.masks import (
    GIVEN,
    check_count,
    check_one_shape,
    find_names,
    refuse_two_answers,
    show_label,
)
from comes.answers.states import State
from comes.errors import ComesError

MOST_SMALL = np.iinfo(np.int32).max


def is_sparse(values: Any) -> bool:
    """Return whether values are a sparse matrix of scipy's."""
    return hasattr(values, "tocsr") and hasattr(values, "nnz")


def as_states(values: Any, label_names: Sequence[str] | None = None) -> Any:
    """Return a matrix of `State` numbers as a checked CSR matrix without stored zeros."""
    from scipy import sparse

    given: Any = values if is_sparse(values) else np.asarray(values)
    if given.ndim != 2 or 0 in given.shape:
        raise ComesError(f"states must be a matrix with rows and labels; got {given.shape}.")
    states: Any = sparse.csr_array(given)
    if is_sparse(given) and states.nnz < given.nnz:  # which adds up what is stored twice
        _refuse_twice(given.nnz - states.nnz)
    wrong = (states.data < State.NOT_ASKED) | (states.data > State.MAYBE)
    wrong |= states.data != np.floor(states.data)
    if wrong.any():
        place = int(np.argmax(wrong))
        row = int(np.searchsorted(states.indptr, place, side="right")) - 1
        label = show_label(int(states.indices[place]), label_names)
        raise ComesError(
            "states must be 0 not asked, 1 no, 2 yes or 3 maybe; got "
            f"{states.data[place]} at row {row}, label {label}."
        )
    if not (states.has_canonical_format and states.data.all()):
        states = states.copy()  # its arrays may be shared with what was given
        _refuse_repeated(states)
        states.eliminate_zeros()
    return _with_small_places(states.astype(np.int8, copy=False))


def _with_small_places(states: Any) -> Any:
    """Return states whose places take four bytes each, where these are enough."""
    if states.indices.dtype == np.int32 or max(states.nnz, *states.shape) > MOST_SMALL:
        return states
    from scipy import sparse

    places = (states.indices.astype(np.int32), states.indptr.astype(np.int32))
    return sparse.csr_array((states.data, *places), shape=states.shape)


def _refuse_repeated(states: Any) -> None:
    """Sort the pairs of every row; raise an error if a pair is stored twice."""
    n_stored = states.nnz
    states.sum_duplicates()
    if states.nnz < n_stored:
        _refuse_twice(n_stored - states.nnz)


def _refuse_twice(count: int) -> None:
    """Raise the error about pairs that are stored twice."""
    raise ComesError(
        f"a pair may have one state; {count} are stored twice. Keep one, or give who said it "
        "(comes.answers.LongAnswers)."
    )


def combine_sparse_masks(
    given: dict[str, Any], label_names: Sequence[str] | None
) -> tuple[Any, list[str] | None]:
    """Return the states of sparse masks of "no", "yes" and "maybe", and the names of labels."""
    names = find_names(given, label_names)
    masks = {name: _read_mask(name, values, names) for name, values in given.items()}
    _, q = check_one_shape(masks)
    states = sum(mask * np.int8(GIVEN[name]) for name, mask in masks.items())
    if states.nnz < sum(mask.nnz for mask in masks.values()):
        _refuse_overlap(masks, names)
    return states, None if names is None else check_count(names, q)


def _read_mask(name: str, values: Any, names: Sequence[str] | None) -> Any:
    """Return a sparse mask of 0 and 1 as int8."""
    if values.ndim != 2 or 0 in values.shape:
        raise ComesError(
            f"{name} must have at least one row and one label; got shape {values.shape}."
        )
    mask = values.tocsr()
    wrong = ~((mask.data == 1) | (mask.data == 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        row = int(np.searchsorted(mask.indptr, place, side="right")) - 1
        label = show_label(int(mask.indices[place]), names)
        raise ComesError(
            f"{name} must be 0 or 1; got {mask.data[place]} at row {row}, label {label}. 1 means "
            "that somebody said so; a pair without this answer is 0."
        )
    return as_states(mask)


def _refuse_overlap(masks: dict[str, Any], names: Sequence[str] | None) -> None:
    """Raise the error about the first pair with two answers."""
    seen: list[str] = []
    for name, mask in masks.items():
        for other in seen:
            both = (mask != 0).multiply(masks[other] != 0).tocoo()
            if both.nnz:
                row, label = int(both.row[0]), show_label(int(both.col[0]), names)
                refuse_two_answers(both.nnz, row, label, other, name)
        seen.append(name)


def as_dense(states: Any) -> npt.NDArray[np.int8]:
    """Return the states of all pairs, (n, q); refuse more than memory should be spent on."""
    refuse_huge(states.shape, "Take answers.states, or some rows: answers[:1000].")
    return np.asarray(states.toarray())


def keep_states(states: Any, kept: npt.NDArray[np.bool_]) -> Any:
    """Return the states of some of the pairs that are stored."""
    from scipy import sparse

    starts = np.concatenate([[0], kept.cumsum()])[states.indptr]
    parts = (states.data[kept], states.indices[kept], starts.astype(states.indptr.dtype))
    return sparse.csr_array(parts, shape=states.shape)


def count_states(states: Any, state: State) -> npt.NDArray[np.int64]:
    """Return how many pairs of each label are in a state, (q,)."""
    return np.bincount(states.indices[states.data == state], minlength=states.shape[1])
