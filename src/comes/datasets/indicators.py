"""Which labels are marked in every row, (n, q): a bool array, or a CSR matrix if few are."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, set_members
from comes.datasets.options import LabelsAre
from comes.errors import ComesError

MANY_PAIRS = 2**24  # of which at most the share FEW is marked: a sparse matrix
FEW = 0.05
MOST_DENSE = 2**30  # pairs of a bool matrix that is made of a sparse one

Marks = Any  # bool (n, q): an array, or a CSR matrix
Places = npt.NDArray[np.int64]


def stays_sparse(n_marked: int, shape: tuple[int, int]) -> bool:
    """Return whether so many marked pairs are stored as a sparse matrix of this shape."""
    n_pairs = shape[0] * shape[1]
    return n_pairs > MANY_PAIRS and n_marked <= FEW * n_pairs


def mark_places(row: Places, label: Places, shape: tuple[int, int]) -> Marks:
    """Return the marks at these pairs, sparse if they are few among many."""
    if not stays_sparse(len(row), shape):
        marked = np.zeros(shape, dtype=bool)
        marked[row, label] = True
        return marked
    marks = sparse.csr_array((np.ones(len(row), dtype=bool), (row, label)), shape=shape)
    marks.sum_duplicates()
    return marks


def marks_of_sets(
    sets: Collection[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[Marks, list[str]]:
    """Return the marks of label sets, and the names of the labels, as `from_sets` does."""
    row, label, names = set_members(sets, label_names)
    return mark_places(row, label, (len(sets), len(names))), names


def answers_of_marks(
    marked: Marks, labels_are: LabelsAre, names: Sequence[str] | None = None
) -> Answers:
    """Return answers from marks of candidates, complementary or ticked labels."""
    if labels_are == "positives":
        return Answers.from_positives(marked, names)
    if labels_are == "complementary":
        if sparse.issparse(marked):
            return Answers(no=marked, label_names=names)
        return Answers.from_candidates(~marked, names)
    advice = "Read them as complementary or ticked labels (labels_are)."
    possible = fill_marks(marked, "candidates, which exclude all other labels,", advice)
    return Answers.from_candidates(possible, names)


def fill_marks(marked: Marks, what: str, advice: str) -> BoolMatrix:
    """Return marks as an array; refuse what memory should not be spent on."""
    if not sparse.issparse(marked):
        return np.asarray(marked)
    n, q = marked.shape
    if n * q > MOST_DENSE:
        raise ComesError(
            f"{what} would be a matrix of {n} rows and {q} labels, {n * q / 2**30:.0f} GB. {advice}"
        )
    return np.asarray(marked.toarray())


def marks_of_state(answers: Answers, state: State) -> Marks:
    """Return where answers have a state, sparse if they are."""
    if not answers.is_sparse:
        return np.asarray(answers.codes == state)
    marked = answers.states == state
    return sparse.csr_array(marked, dtype=bool)


def count_marks(marked: Marks, axis: int) -> npt.NDArray[np.int64]:
    """Return how many pairs are marked in each column (axis 0) or row (axis 1)."""
    return np.asarray(marked.sum(axis=axis, dtype=np.int64)).ravel()


def find_sets(marked: Marks, names: Sequence[str]) -> list[list[str]]:
    """Return the names of the marked labels of every row."""
    known = np.asarray(names, dtype=object)
    if not sparse.issparse(marked):
        return [list(known[row]) for row in marked]
    marks = sparse.csr_array(marked)
    marks.sort_indices()
    return [list(part) for part in np.split(known[marks.indices], marks.indptr[1:-1])]
