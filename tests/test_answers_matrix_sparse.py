"""Sparse answers: memory for what was said, and the same views as dense ones."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes.answers import Answers, State
from comes.errors import ComesError

CODES = np.array([[1, 0, 0, 3], [0, 0, 0, 0], [2, 1, 0, 0]], dtype=np.int8)
NAMES = ["sea", "sky", "sun", "ice"]
VIEWS = ("codes", "excluded", "candidates", "confirmed", "doubtful", "filled_codes")


def mask(state: State) -> Any:
    return sparse.csr_array(state == CODES)


def both(kind: Any = "answers") -> tuple[Answers, Answers]:
    return Answers.from_codes(sparse.csr_array(CODES), kind, NAMES), Answers.from_codes(
        CODES, kind, NAMES
    )


def assert_same(one: Answers, other: Answers) -> None:
    assert one.is_sparse
    assert not other.is_sparse
    assert (one.kind, one.shape, one.label_names) == (other.kind, other.shape, other.label_names)
    for view in VIEWS:
        np.testing.assert_array_equal(getattr(one, view), getattr(other, view), strict=True)
    np.testing.assert_array_equal(one.states.toarray(), other.states.toarray(), strict=True)
    assert (one.asked is None) == (other.asked is None)
    assert repr(one) == repr(other)
    assert one.count().equals(other.count())


def test_sparse_answers_show_what_dense_ones_show() -> None:
    for kind in ("answers", "candidates", "positives"):
        assert_same_views(kind)


def assert_same_views(kind: str) -> None:
    sparse_ones, dense = both(kind)
    assert_same(sparse_ones, dense)
    assert_same(sparse_ones[[2, 0, 2]], dense[[2, 0, 2]])
    assert_same(sparse_ones[CODES[:, 0] > 0], dense[CODES[:, 0] > 0])
    assert_same(sparse_ones.select_labels(["ice", "sea"]), dense.select_labels(["ice", "sea"]))
    assert_same(sparse_ones.rename_labels(list("abcd")), dense.rename_labels(list("abcd")))
    assert_same(sparse_ones.without_maybe(), dense.without_maybe())
    assert_same(sparse_ones.without_chosen(), dense.without_chosen())
    assert_same(pickle.loads(pickle.dumps(sparse_ones)), dense)


def test_masks_that_are_all_sparse_stay_sparse() -> None:
    answers = Answers(mask(State.NO), mask(State.YES), mask(State.MAYBE), label_names=NAMES)
    assert_same(answers, both()[1])
    assert Answers(no=mask(State.NO)).kind == "candidates"
    assert Answers.from_positives(mask(State.YES)).kind == "positives"
    assert not Answers(mask(State.NO), (CODES == State.YES)).is_sparse


def test_memory_grows_with_what_was_said() -> None:
    n, q, each = 20_000, 100_000, 10
    starts = np.arange(0, n * each + 1, each)  # 64 bits, as numpy counts
    labels = np.sort(np.random.default_rng(0).integers(0, q, (n, each)), axis=1).ravel()
    no = sparse.csr_array((np.ones(n * each, dtype=bool), labels, starts), shape=(n, q))
    no.sum_duplicates()
    states = Answers(no=no).states
    held = states.data.nbytes + states.indices.nbytes + states.indptr.nbytes
    assert held < 1.2 * states.nnz * (4 + 1)  # a number of a label and a state


def test_a_huge_matrix_is_not_made() -> None:
    answers = Answers(no=sparse.csr_array(([True], ([3], [5])), shape=(10**6, 10**5)))
    with pytest.raises(ComesError, match=r"would take 93 GB. Take answers.states"):
        _ = answers.codes
    assert "1 of 100000000000 pairs excluded" in repr(answers)
    assert answers[:10].codes.sum() == State.NO
    assert answers.count_state(State.NO)[5] == 1


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Answers.from_codes(sparse.csr_array([[0, 4]])), "got 4 at row 0, label 1"),
    (lambda: Answers.from_codes(sparse.csr_array([[0, 1.5]])), "got 1.5 at row 0, label 1"),
    (lambda: Answers.from_codes(sparse.csr_array((0, 2))), r"rows and labels; got \(0, 2\)"),
    (lambda: Answers(no=sparse.csr_array([[0, 2]])), "no must be 0 or 1; got 2 at row 0"),
    (
        lambda: Answers(no=sparse.csr_array([[0, 1]]), yes=sparse.csr_array([[0, 1]])),
        "1 pairs have two answers; row 0, label 1 has 'no' and 'yes'",
    ),
    (
        lambda: Answers(no=sparse.csr_array([[0, 1]]), yes=sparse.csr_array([[0, 1, 0]])),
        r"no and yes must have one shape \(n, q\); got \(1, 2\) and \(1, 3\)",
    ),
    (
        lambda: Answers.from_codes(sparse.csr_array(([1, 1], [0, 0], [0, 2]), shape=(1, 2))),
        "1 are stored twice",
    ),
    (
        lambda: Answers.from_codes(sparse.coo_array(([1, 1], ([0, 0], [0, 0])), shape=(1, 2))),
        "1 are stored twice",
    ),
    (
        lambda: Answers.from_candidates(sparse.csr_array((10**6, 10**5))),
        "would take 93 GB. Give sparse no=",
    ),
]


def test_what_cannot_be_is_refused() -> None:
    for make, message in REFUSED:
        with pytest.raises(ComesError, match=message):
            make()


def test_stored_zeros_are_not_answers_and_what_is_given_stays_as_it_is() -> None:
    given = sparse.csr_array(([0, 1], [1, 0], [0, 2]), shape=(1, 2), dtype=np.int8)
    answers = Answers.from_codes(given)
    assert answers.states.nnz == 1
    assert given.indices.tolist() == [1, 0]


def test_labels_of_every_row_stay_sorted() -> None:
    states = both()[0].select_labels(NAMES[::-1]).states
    for start, end in zip(states.indptr, states.indptr[1:], strict=False):
        assert (np.diff(states.indices[start:end]) > 0).all()


def test_chosen_questions_make_answers_dense() -> None:
    answers = Answers(mask(State.NO), mask(State.YES), chosen=mask(State.YES))
    assert not answers.is_sparse
    np.testing.assert_array_equal(answers.chosen, CODES == State.YES, strict=True)
