"""`Answers`: read in every form, seen from every side, and refused in one sentence."""

import pickle
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError

NAMES = ["sea", "sky", "sun"]
NO = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
YES = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1]])
MAYBE = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
CODES = NO * State.NO + YES * State.YES + MAYBE * State.MAYBE


def frame(matrix: Any, order: list[str]) -> pd.DataFrame:
    return pd.DataFrame(matrix, columns=NAMES)[order]


def sets(matrix: Any) -> list[set[str]]:
    return [{NAMES[j] for j in range(3) if row[j]} for row in matrix]


FORMS: dict[str, tuple[Any, Any, Any]] = {
    "int": (NO, YES, MAYBE),
    "bool": (NO == 1, YES == 1, MAYBE == 1),
    "float": (NO.astype(float), YES, MAYBE),
    "lists": (NO.tolist(), YES.tolist(), MAYBE.tolist()),
    "sparse": (sparse.csr_array(NO), sparse.coo_array(YES), sparse.csc_matrix(MAYBE)),
    "frames in other orders": (
        frame(NO, ["sea", "sky", "sun"]),
        frame(YES, ["sun", "sea", "sky"]),
        frame(MAYBE, ["sky", "sun", "sea"]),
    ),
    "one frame": (NO, frame(YES, NAMES), MAYBE),
    "sets": (sets(NO), sets(YES), sets(MAYBE)),
    "lists of names": ([list(row) for row in sets(NO)], sets(YES), [*map(list, sets(MAYBE))]),
}


def test_masks_come_in_every_form() -> None:
    for form, masks in FORMS.items():
        answers = Answers(*masks)
        assert answers.codes.dtype == np.int8
        np.testing.assert_array_equal(answers.codes, CODES, err_msg=form)
        is_named = "frame" in form or "sets" in form or "names" in form
        assert answers.label_names == (NAMES if is_named else None), form
        found = (answers.kind, answers.shape, len(answers), answers.ndim)
        assert found == ("answers", (3, 3), 3, 2), form


def test_names_are_given_for_arrays_and_give_the_order_of_sets() -> None:
    assert Answers(NO, label_names=NAMES).label_names == NAMES
    order = ["sun", "never", "sea", "sky"]
    answers = Answers(sets(NO), sets(YES), label_names=order)
    assert answers.label_names == order
    expected = np.where(MAYBE == 1, 0, CODES)
    np.testing.assert_array_equal(answers.select_labels(NAMES).codes, expected)
    assert not answers.select_labels(["never"]).codes.any()


def test_lists_without_a_name_are_empty_sets_beside_others() -> None:
    answers = Answers(no=[[], []], yes=[["sea"], []])
    assert answers.label_names == ["sea"]
    assert answers.codes.tolist() == [[State.YES], [State.NOT_ASKED]]


def test_only_no_is_candidates() -> None:
    answers = Answers(NO)
    assert answers.kind == "candidates"
    assert answers.asked is None
    np.testing.assert_array_equal(answers.candidates, NO == 0)
    np.testing.assert_array_equal(answers.filled_codes, np.where(NO, State.NO, State.MAYBE))
    same = Answers.from_candidates(frame(1 - NO, ["sun", "sea", "sky"]))
    assert (same.kind, same.label_names) == ("candidates", ["sun", "sea", "sky"])
    np.testing.assert_array_equal(same.select_labels(NAMES).codes, answers.codes)
    assert Answers.from_candidates(1 - NO, NAMES).label_names == NAMES


def test_with_yes_or_maybe_a_silent_pair_was_not_asked() -> None:
    for answers in (Answers(NO, yes=0 * NO), Answers(NO, maybe=0 * NO)):
        assert answers.kind == "answers"
        np.testing.assert_array_equal(answers.asked, NO == 1)
        np.testing.assert_array_equal(answers.filled_codes, NO)


def test_positives_are_ticked_or_not() -> None:
    for yes in (YES, frame(YES, NAMES), sets(YES)):
        answers = Answers.from_positives(yes)
        assert answers.kind == "positives"
        assert answers.asked is None
        named = (
            answers if answers.label_names is None else answers.align_labels(answers.label_names)
        )
        np.testing.assert_array_equal(named.confirmed.sum(), 2)
        assert answers.candidates.all() and not answers.excluded.any()
        assert set(answers.filled_codes.flatten()) == {State.YES, State.MAYBE}
    np.testing.assert_array_equal(Answers.from_positives(YES).confirmed, YES == 1)


def test_views_say_what_was_said() -> None:
    answers = Answers(NO, YES, MAYBE)
    np.testing.assert_array_equal(answers.excluded, NO == 1)
    np.testing.assert_array_equal(answers.confirmed, YES == 1)
    np.testing.assert_array_equal(answers.doubtful, MAYBE == 1)
    np.testing.assert_array_equal(answers.candidates, NO == 0)
    np.testing.assert_array_equal(answers.asked, CODES != 0)
    np.testing.assert_array_equal(np.asarray(answers), CODES)


SAID = LongAnswers.read(
    [0, 0, 2, 2, 2], [0, 0, 1, 1, 2], ["no", "yes", "no", "no", "maybe"], list("abaab")
)
CHOSEN = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1]]) == 1


def of_people() -> Answers:
    return Answers.from_long(SAID, (3, 3), NAMES, chosen=CHOSEN)


def same(one: Answers, two: Answers) -> bool:
    """Return whether two answers hold the same, with the same people."""
    said = [
        None
        if each.annotations is None
        else sorted(
            (int(r), int(j), each.annotations.people[p], int(c))
            for r, j, p, c in zip(
                *(getattr(each.annotations, name) for name in ("row", "label", "person", "code")),
                strict=True,
            )
        )
        for each in (one, two)
    ]
    return (
        np.array_equal(one.codes, two.codes)
        and (one.kind, one.label_names) == (two.kind, two.label_names)
        and said[0] == said[1]
        and (one.chosen is None) == (two.chosen is None)
        and (one.chosen is None or two.chosen is None or np.array_equal(one.chosen, two.chosen))
    )


def test_rows_are_those_of_the_matrices() -> None:
    every_form: list[Any] = [slice(1, None), slice(None, None, -1), [2, 0], [-1]]
    every_form += [np.array([0, 2, 2, 0]), np.array([True, False, True])]
    for rows in every_form:
        numbers = np.arange(3)[rows]
        for answers in (Answers(NO, YES, MAYBE, label_names=NAMES), Answers(NO), of_people()):
            part = answers[rows]
            np.testing.assert_array_equal(part.codes, answers.codes[numbers])
            assert (part.kind, part.label_names) == (answers.kind, answers.label_names)
        part = of_people()[rows]
        assert part.annotations is not None and part.chosen is not None
        np.testing.assert_array_equal(part.annotations.combine(part.shape), part.codes)
        np.testing.assert_array_equal(part.chosen, CHOSEN[numbers])
        assert len(part.annotations) == sum({0: 2, 1: 0, 2: 3}[int(number)] for number in numbers)


def test_labels_are_taken_by_name() -> None:
    answers = of_people().select_labels(["sun", "sea"])
    assert answers.label_names == ["sun", "sea"]
    np.testing.assert_array_equal(answers.codes, of_people().codes[:, [2, 0]])
    assert answers.annotations is not None and answers.chosen is not None
    np.testing.assert_array_equal(answers.annotations.combine((3, 2)), answers.codes)
    np.testing.assert_array_equal(answers.chosen, CHOSEN[:, [2, 0]])
    np.testing.assert_array_equal(Answers(NO).select_labels(["2", "0"]).codes, NO[:, [2, 0]])


def test_labels_are_matched_to_names() -> None:
    answers = Answers(NO, YES, label_names=NAMES)
    matched = answers.align_labels(["sun", "sky", "sea"])
    np.testing.assert_array_equal(matched.codes, answers.codes[:, ::-1])
    assert matched.label_names == ["sun", "sky", "sea"]
    named = Answers(NO).align_labels(NAMES)
    assert named.label_names == NAMES
    np.testing.assert_array_equal(named.codes, NO)


def test_drawn_leaves_out_what_a_model_chose() -> None:
    answers = of_people().without_chosen()
    expected = np.where(CHOSEN, 0, of_people().codes)
    np.testing.assert_array_equal(answers.codes, expected)
    assert answers.annotations is not None and answers.chosen is None
    np.testing.assert_array_equal(answers.annotations.combine((3, 3)), expected)
    plain = Answers(NO, YES)
    assert plain.without_chosen() is plain


def test_count_is_by_label() -> None:
    counted = Answers(NO, YES, MAYBE, label_names=NAMES).count()
    for j, row in enumerate(counted.itertuples()):
        expected = (NAMES[j], 2, NO[:, j].sum(), YES[:, j].sum(), MAYBE[:, j].sum())
        assert (row.label, row.asked, row.no, row.yes, row.maybe) == expected
    assert Answers(NO).count()["label"].tolist() == ["0", "1", "2"]


def test_repr_says_what_it_is() -> None:
    assert "2 of 9 pairs excluded; who was asked is not known" in repr(Answers(NO))
    assert "2 of 9 pairs ticked; nobody says no" in repr(Answers.from_positives(YES))
    assert "6 of 9 pairs asked, 2 no, 2 yes, 2 maybe" in repr(Answers(NO, YES, MAYBE))
    assert repr(of_people()).endswith("3 of 9 pairs asked, 1 no, 0 yes, 2 maybe; 2 people")


def test_pickled_and_dumped_answers_are_the_same(tmp_path: Any) -> None:
    for answers in (of_people(), Answers(NO), Answers.from_positives(YES)):
        assert same(pickle.loads(pickle.dumps(answers)), answers)
        joblib.dump(answers, tmp_path / "answers.joblib")
        assert same(joblib.load(tmp_path / "answers.joblib"), answers)
    assert not same(Answers(NO), Answers(YES))


def test_scikit_learn_takes_rows() -> None:
    for answers in (of_people(), Answers(NO)):
        for rows in (np.array([2, 0]), [1, 1], np.array([True, False, True])):
            assert same(_safe_indexing(answers, rows), answers[rows])
    folds = list(KFold(3).split(of_people()))
    assert [len(of_people()[rows]) for rows, _ in folds] == [2, 2, 2]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"no": NO, "yes": NO}, "2 pairs have two answers; row 0, label 0 has 'no' and 'yes'"),
    (
        {"no": frame(NO, NAMES), "maybe": frame(NO, NAMES)},
        "row 0, label 'sea' has 'no' and 'maybe'.*LongAnswers",
    ),
    (
        {"no": 0 * NO, "yes": MAYBE, "maybe": MAYBE},
        "row 0, label 2 has 'yes' and 'maybe'",
    ),
    ({"no": sets(NO), "yes": sets(NO)}, "row 0, label 'sea' has"),
    ({"no": NO, "yes": YES[:2]}, r"no and yes must have one shape.*\(3, 3\) and \(2, 3\)"),
    ({"no": NO, "maybe": MAYBE[:, :2]}, r"no and maybe must .*\(3, 3\) and \(3, 2\)"),
    ({"no": NO, "yes": YES, "chosen": NO[:1]}, "no and chosen must have one shape"),
    ({"no": sets(NO), "yes": sets(YES)[:2]}, "no and yes must have one shape"),
    ({"no": NO + YES * 2}, "no must be 0 or 1; got 2 at row 0, label 1"),
    ({"no": NO, "yes": -YES}, "yes must be 0 or 1; got -1 at row 0, label 1"),
    ({"no": NO, "yes": np.full((3, 3), np.nan)}, "yes must be 0 or 1; got nan at row 0"),
    ({"no": frame(NO * 3, NAMES)}, "got 3 at row 0, label 'sea'"),
    ({"no": [1, 0]}, "no must have two dimensions"),
    ({"no": [[1, 0], [1]]}, "no must be a matrix of 0 and 1"),
    ({"no": "sea"}, "no must have two dimensions"),
    ({"no": ["sea", "sky"]}, "a set of names per row; got strings"),
    ({"no": np.zeros((0, 3))}, "no must have at least one row and one label"),
    ({}, "needs no=.*from_positives"),
    ({"yes": YES}, "needs no=.*from_positives"),
    ({"no": None, "yes": None}, "needs no=.*from_positives"),
    ({"no": None, "yes": YES, "maybe": MAYBE}, "needs no=.*from_positives"),
    ({"no": None, "yes": YES}, "needs no=.*from_positives"),
    (
        {"no": frame(NO, NAMES), "yes": frame(YES, NAMES)[::-1]},
        "no and yes must have their rows in the same order; got DataFrames with the same",
    ),
    ({"no": sets(NO), "yes": YES}, "must all be matrices or all be sets; got both"),
    ({"no": frame(NO, NAMES), "label_names": NAMES}, "label_names are for arrays"),
    ({"no": NO, "label_names": ["sea"]}, "each of 3 labels; got 1 names"),
    ({"no": NO, "label_names": ["sea", "sky", "sea"]}, "must differ; got 'sea'"),
    ({"no": NO, "label_names": ["sea", "", "sky"]}, "must not be empty"),
    ({"no": sets(NO), "label_names": ["sea"]}, "label 'sky' occurs in a set"),
    ({"no": NO, "chosen": NO}, "must be known who was asked; got candidates"),
    (
        {"no": frame(NO, NAMES), "yes": pd.DataFrame(YES, columns=["sea", "sky", "moon"])},
        "expected the labels 'sea', 'sky', 'sun'",
    ),
]


def test_what_cannot_be_is_refused_in_one_sentence() -> None:
    for given, message in REFUSED:
        with pytest.raises(ComesError, match=message) as raised:
            Answers(**given)
        assert "\n" not in str(raised.value)


def test_codes_are_checked() -> None:
    assert Answers.from_codes(CODES.tolist()).codes.dtype == np.int8
    with pytest.raises(ComesError, match=r"a matrix with rows and labels; got \(3,\)"):
        Answers.from_codes([0, 1, 2])
    with pytest.raises(ComesError, match=r"got \(0, 3\)"):
        Answers.from_codes(np.zeros((0, 3)))
    with pytest.raises(ComesError, match="3 maybe; got 4 at row 1, label 'sky'"):
        Answers.from_codes([[0, 1], [2, 4]], label_names=["sea", "sky"])
    with pytest.raises(ComesError, match="got -1 at row 0, label 1"):
        Answers.from_codes([[0, -1]])
    with pytest.raises(ComesError, match="got nan at row 0, label 0"):
        Answers.from_codes([[np.nan, 1]])


def test_labels_that_are_not_there_and_indices_of_pairs_are_refused() -> None:
    answers = Answers(NO, label_names=NAMES)
    with pytest.raises(ComesError, match="no label 'moon'; they have 'sea', 'sky', 'sun'"):
        answers.select_labels(["sea", "moon"])
    with pytest.raises(ComesError, match="must differ; got 'sea' more than once"):
        answers.select_labels(["sea", "sea"])
    with pytest.raises(ComesError, match="each of 3 labels; got 2 names"):
        Answers(NO).align_labels(["a", "b"])
    with pytest.raises(ComesError, match=r"indexed by several rows; got 1. Write \[\[1\]\]"):
        answers[1]
    with pytest.raises(ComesError, match="take labels with select_labels"):
        answers[0, 1]


def test_answers_about_pairs_outside_are_refused() -> None:
    for row, label in ((3, 0), (0, 3), (-1, 0), (0, -1)):
        said = LongAnswers.read([0, row], [0, label], ["no", "no"], ["a", "a"])
        with pytest.raises(ComesError, match=f"3 rows and 3 labels; got row {row}, label {label}"):
            Answers.from_long(said, (3, 3))
    assert len(Answers.from_long(LongAnswers.read([2], [2], ["no"], ["a"]), (3, 3))) == 3


def test_maybe_can_be_taken_for_not_asked() -> None:
    for answers in (Answers(NO, YES, MAYBE, chosen=MAYBE), of_people()):
        sure = answers.without_maybe()
        assert sure.chosen is not None
        np.testing.assert_array_equal(sure.chosen, answers.chosen)
        assert not sure.doubtful[MAYBE == 1].any() and sure.kind == "answers"
    np.testing.assert_array_equal(
        Answers(NO, YES, MAYBE).without_maybe().codes, NO * State.NO + YES * State.YES
    )
    said = of_people().without_maybe().annotations
    assert said is not None and (said.code != State.MAYBE).all() and len(said) == 4
    candidates = Answers(NO)
    assert candidates.without_maybe() is candidates


def test_objects_do_not_share_what_they_were_made_of() -> None:
    codes = CODES.astype(np.int8)
    answers = Answers.from_codes(codes)
    codes[0, 0] = State.YES
    assert answers.codes[0, 0] == State.NO


ROWS = ["a", "b", "c"]


def indexed(matrix: Any, rows: list[str] = ROWS) -> pd.DataFrame:
    return pd.DataFrame(matrix, columns=NAMES, index=ROWS).loc[rows]


def test_the_index_of_frames_follows_the_rows() -> None:
    made = [
        Answers(indexed(NO), indexed(YES), MAYBE),
        Answers(NO, indexed(YES), chosen=indexed(MAYBE)),
        Answers.from_candidates(indexed(1 - NO)),
        Answers.from_positives(indexed(YES)),
        Answers.from_codes(CODES, label_names=NAMES, index=pd.Index(ROWS)),
        Answers.from_long(SAID, (3, 3), NAMES, index=pd.Index(ROWS)),
    ]
    for answers in made:
        assert answers.index.tolist() == ROWS
        kept: list[Answers] = [
            answers.select_labels(["sun"]),
            answers.align_labels(NAMES[::-1]),
            answers.rename_labels(["a", "b", "c"]),
            answers.without_maybe(),
            answers.without_chosen(),
            pickle.loads(pickle.dumps(answers)),
        ]
        assert all(each.index.tolist() == ROWS for each in kept)
        for rows in ([2, 0], slice(1, None), np.array([True, False, True])):
            assert answers[rows].index.tolist() == np.array(ROWS)[rows].tolist()
            assert _safe_indexing(answers, np.arange(3)[rows]).index.equals(answers[rows].index)
    for plain in (Answers(NO, YES), Answers.from_positives(sets(YES)), of_people()):
        assert plain.index is None and plain[[0]].index is None


def test_no_rows_are_refused() -> None:
    for answers in (Answers(NO), Answers(sparse.csr_array(NO))):
        with pytest.raises(ComesError, match="must keep at least one row"):
            answers[[False] * 3]
