"""The parts of a data set: how many rows they have, and whether they fit together."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, check_relevant_inside, outside_candidates_error
from comes.errors import ComesError

LabelsAre = Literal["candidates", "complementary", "positives"]


def count_rows(known: Sequence[Any]) -> int:
    """Return the number of rows of the first part that is known."""
    first = next((part for part in known if part is not None), None)
    if first is None:
        raise ComesError("a data set needs features, candidates or true labels; got none.")
    return int(first.shape[0])


def check_size(n: int, q: int) -> None:
    """Raise if there are no rows or no labels."""
    if not (n and q):
        raise ComesError(
            f"a data set needs at least one row and one label; got {n} rows and {q} labels."
        )


def check_shape(matrix: Any, name: str, shape: tuple[int, int]) -> None:
    """Raise unless a matrix of labels, where there is one, has this shape."""
    if matrix is not None and matrix.shape != shape:
        raise ComesError(
            f"there are {shape[0]} rows and {shape[1]} labels, so {name} must have shape {shape}; "
            f"got {matrix.shape}."
        )


def combine_candidates(
    candidates: BoolMatrix | None, asked: BoolMatrix | None, shape: tuple[int, int]
) -> Answers | None:
    """Return candidates as answers, "maybe" where a candidate was asked about."""
    check_shape(candidates, "candidates", shape)
    check_shape(asked, "asked", shape)
    if candidates is None:
        if asked is not None:
            raise ComesError("asked needs candidates, which hold the answers; got none.")
        return None
    if asked is None:
        return Answers.from_candidates(candidates)
    if not (asked | candidates).all():
        raise ComesError(
            "a label is excluded where nobody was asked; candidates or asked must be wrong."
        )
    return Answers.from_codes(np.where(candidates, np.where(asked, State.MAYBE, 0), State.NO))


def check_none_excluded(relevant: Any, answers: Answers, label_names: Sequence[str]) -> None:
    """Raise if a relevant label is excluded; nothing that is sparse becomes dense."""
    if not answers.is_sparse and not sparse.issparse(relevant):
        check_relevant_inside(relevant, answers.candidates, label_names)
        return
    excluded = sparse.csr_array(answers.states == State.NO)
    outside = excluded.multiply(sparse.csr_array(relevant)).tocoo()
    if outside.nnz:
        order = np.lexsort((outside.col, outside.row))
        raise outside_candidates_error(outside.row[order], outside.col[order], label_names)


def describe_answers(answers: Answers) -> str:
    """Return what was said, in a few words."""
    n, q = answers.shape
    if answers.kind == "candidates":
        return f"{(n * q - answers.count_state(State.NO).sum()) / n:.2f} candidates per row"
    if answers.kind == "positives":
        return f"{answers.count_state(State.YES).sum() / n:.2f} ticked labels per row"
    count = answers.count()[["asked", "no", "yes", "maybe"]].sum()
    text = f"{count['asked']} of {n * q} pairs asked: "
    text += f"{count['no']} no, {count['yes']} yes, {count['maybe']} maybe"
    if answers.annotations is not None:
        text += f"; {len(answers.annotations.people)} people"
    return text


def check_item_names(items: Sequence[str] | None) -> None:
    """Raise if the name of an item occurs more than once."""
    if items is None:
        return
    seen: set[str] = set()
    for row, name in enumerate(items):
        if name in seen:
            raise ComesError(
                f"the names of items must differ; {name!r} occurs again at row {row}. Keep one "
                "row per item."
            )
        seen.add(name)
