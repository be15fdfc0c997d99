"""Labels in every form, names of labels, and frames that are paired by position."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers, from_complementary, from_sets
from comes.answers.convert import (
    as_candidates,
    as_relevant,
    check_names,
    check_paired,
    check_relevant_inside,
    keep_one_excluded,
    match_names,
    to_sets,
)
from comes.errors import ComesError, ComesWarning
from comes.generation import simulate_answers

MATRIX = np.array([[True, False, True], [True, True, True]])


def test_a_candidate_matrix_comes_from_anything_with_0_and_1() -> None:
    forms: list[Any] = [
        MATRIX,
        MATRIX.astype(int),
        MATRIX.astype(float),
        MATRIX.tolist(),
        pd.DataFrame(MATRIX),
        pd.DataFrame(MATRIX.astype(int)),
        sparse.csr_array(MATRIX.astype(int)),
        sparse.csr_matrix(MATRIX),
    ]
    for values in forms:
        result = as_candidates(values)
        assert result.dtype == bool
        np.testing.assert_array_equal(result, MATRIX)
        np.testing.assert_array_equal(from_complementary(values), ~MATRIX)


def test_anything_else_is_refused_with_its_place() -> None:
    cases: list[tuple[Any, str]] = [
        ([1, 0], "two dimensions.*shape .2,.*from_sets"),
        (np.zeros((0, 3)), "at least one row"),
        (np.zeros((3, 0)), "at least one row and one label"),
        ([[1, 2]], "0 or 1; got 2 at row 0, label 1"),
        ([[1, -1]], "0 or 1; got -1"),
        ([[1.0, np.nan]], "got nan at row 0, label 1"),
        ([["yes", "no"]], "got 'yes'"),
    ]
    for values, message in cases:
        with pytest.raises(ComesError, match=message):
            as_candidates(values)


def test_sets_become_a_matrix_and_come_back() -> None:
    sets = [["b", "a"], [], ["c"]]
    matrix, names = from_sets(sets)
    assert names == ["a", "b", "c"]
    assert to_sets(matrix, names) == [["a", "b"], [], ["c"]]
    wider, names = from_sets(sets, ["c", "b", "a", "never"])
    np.testing.assert_array_equal(wider[:, [2, 1, 0]], matrix)
    assert not wider[:, 3].any()
    assert to_sets(matrix.astype(int), ["a", "b", "c"]) == to_sets(matrix, ["a", "b", "c"])
    with pytest.raises(ComesError, match="a set of names per row; got strings"):
        from_sets(["apple", "plum"])


def test_a_label_that_is_not_among_the_names_is_named() -> None:
    with pytest.raises(ComesError, match="'plum' occurs in a set but is not one of the"):
        from_sets([["plum"]], ["apple"])
    with pytest.raises(ComesError, match="must differ; got 'apple' more than once"):
        from_sets([["apple"]], ["apple", "pear", "apple"])


def test_relevant_outside_the_candidates_names_the_first() -> None:
    relevant = np.array([[True, False, False], [False, False, True]])
    candidates = np.array([[True, True, False], [True, True, False]])
    message = r"1 rows have a relevant label outside .*row 1, label 'sky'"
    with pytest.raises(ComesError, match=message):
        check_relevant_inside(relevant, candidates, ["sea", "sun", "sky"])
    with pytest.raises(ComesError, match=r"shape of the candidates, \(2, 3\); got \(2, 2\)"):
        check_relevant_inside(relevant[:, :2], candidates)
    check_relevant_inside(relevant, candidates | relevant)
    with pytest.raises(ComesError, match="^1 rows"):  # rows are counted, not entries
        check_relevant_inside(np.array([[True, True]]), np.array([[False, False]]))


def test_the_advice_fits_the_view() -> None:
    """Following the advice for candidates would exclude what nobody was asked about."""
    with pytest.raises(ComesError, match="stays 1"):
        as_candidates([[1, -1]])
    with pytest.raises(ComesError, match="surely irrelevant.*stays 0"):
        from_complementary([[1, -1]])


def test_answers_are_not_read_as_a_matrix_of_0_and_1() -> None:
    answers = Answers.from_candidates([[1, 0], [1, 1]])
    readers: list[Any] = [as_candidates, as_relevant, from_complementary, Answers.from_candidates]
    for read in readers:
        with pytest.raises(ComesError, match=r"got Answers. Pass them as answers="):
            read(answers)


def test_one_excluded_label_per_row_is_drawn_uniformly() -> None:
    candidates = np.tile([False, True, False, False], (30000, 1))
    kept = keep_one_excluded(candidates, seed=0)
    excluded = ~kept
    assert (excluded.sum(axis=1) == 1).all() and not excluded[:, 1].any()
    assert abs(excluded.mean(axis=0)[[0, 2, 3]] - 1 / 3).max() < 0.012
    assert (keep_one_excluded(candidates, seed=0) == kept).all()
    assert (keep_one_excluded(candidates, seed=1) != kept).any()
    everything = np.ones((5, 3), dtype=bool)
    assert keep_one_excluded(everything).all()


def test_names_are_matched_by_name_or_by_position() -> None:
    assert match_names(["a", "b", "c"], ["c", "a", "b"]) == [2, 0, 1]
    assert match_names(["has_b!", "has_a!"], ["a", "b"]) == [1, 0]
    assert match_names(["0", "1"], ["b", "a"]) == match_names(["b", "a"], ["0", "1"]) == [0, 1]
    with pytest.warns(ComesWarning, match="matched by position.*'x' for 'a', 'y' for 'b'"):
        assert match_names(["x", "y"], ["a", "b"]) == [0, 1]
    for names in (["a", "x"], ["a"], ["x", "y", "z"], ["a", "b", "c"]):
        with pytest.raises(ComesError, match="expected the labels 'a', 'b'"):
            match_names(names, ["a", "b"])


def test_names_must_differ_and_not_be_empty() -> None:
    check_names(["a", "b"])
    with pytest.raises(ComesError, match="must differ; got 'a' more than once"):
        check_names(["a", "b", "a"])
    with pytest.raises(ComesError, match="must not be empty; number 1 is"):
        check_names(["a", ""])


ROWS = ["a", "b", "c"]
FRAME = pd.DataFrame({"sea": [1, 0, 1], "sky": [0, 0, 1]}, index=ROWS)
FEATURES = pd.DataFrame({"red": [0.1, 0.2, 0.3]}, index=ROWS)


def paired_forms(frame: pd.DataFrame) -> list[Any]:
    """Return labels in every form that has the rows of a frame."""
    return [
        frame,
        Answers(no=frame),
        Answers(no=frame, yes=1 - frame),
        Answers(no=frame.to_numpy(), yes=1 - frame),
        Answers.from_candidates(frame),
        Answers.from_positives(frame),
        simulate_answers(frame, asked_rate=1.0),
        simulate_answers(frame, asked_rate=1.0, people={"ann": (0.9, 0.9)}),
    ]


def test_the_same_rows_in_the_same_order_are_paired() -> None:
    for labels in paired_forms(FRAME):
        check_paired(X=FEATURES, labels=labels)
        check_paired(X=FEATURES.to_numpy(), labels=labels)
        check_paired(X=FEATURES.iloc[:2], labels=labels)  # others complain of the length
    for labels in paired_forms(FRAME.reset_index(drop=True)):
        check_paired(X=FEATURES.reset_index(drop=True), labels=labels)
    check_paired(X=FEATURES, labels=Answers(no=FRAME.to_numpy()), more=None)
    check_paired(X=FEATURES, labels=[["sea"], [], ["sky"]])  # a list has a method index


def test_other_rows_and_another_order_are_not_paired() -> None:
    for labels in paired_forms(FRAME.iloc[[2, 0, 1]]):
        message = "X and labels must have their rows in the same order"
        write = "labels" if isinstance(labels, pd.DataFrame) else "frame"
        with pytest.raises(ComesError, match=rf"{message}.*Write {write}.loc\[X.index\]"):
            check_paired(X=FEATURES, labels=labels)
    for labels in paired_forms(FRAME.set_axis(["a", "b", "d"])):
        with pytest.raises(ComesError, match="must have the same rows.*'c' and 'd' at row 2"):
            check_paired(X=FEATURES, labels=labels)


def test_answers_between_frames_do_not_hide_other_labels() -> None:
    answers = Answers(no=FRAME)
    check_paired(same_labels=True, scores=FRAME, answers=answers, predictions=FRAME)
    with pytest.raises(ComesError, match="scores and predictions must have the same labels"):
        check_paired(
            same_labels=True, scores=FRAME, answers=answers, predictions=FRAME[["sky", "sea"]]
        )
