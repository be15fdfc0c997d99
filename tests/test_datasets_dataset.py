"""What a data set holds: answers, of which candidates are a view."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers
from comes.datasets import Dataset, join_rows
from refusals import refused

X = np.eye(2)
NAMES = ["sky", "sea"]
ANSWERS = Answers(no=[[1, 0], [0, 0]], yes=[[0, 1], [0, 0]], maybe=[[0, 0], [1, 0]])
SAID = LongAnswers.read([0, 0, 1], [0, 0, 1], ["no", "yes", "maybe"], ["ann", "bob", "ann"])


def test_candidates_and_asked_are_views_of_the_answers() -> None:
    dataset = Dataset(X, NAMES, answers=ANSWERS)
    assert dataset.candidates is not None and dataset.asked is not None
    assert dataset.candidates.tolist() == [[False, True], [True, True]]
    assert dataset.asked.tolist() == [[True, True], [True, False]]
    assert dataset.known_answers().label_names == NAMES
    only_true = Dataset(X, NAMES, relevant=np.eye(2, dtype=bool))
    assert only_true.answers is None and only_true.candidates is None and only_true.asked is None
    with refused("only true labels.*--simulate.*--candidates"):
        only_true.known_answers()


def test_candidates_are_answers_of_which_it_is_not_known_who_was_asked() -> None:
    answers = Dataset(X, NAMES, np.array([[True, False], [True, True]])).known_answers()
    assert answers.kind == "candidates" and answers.codes.tolist() == [[0, 1], [0, 0]]


def test_answers_fit_the_data_set_and_replace_candidates() -> None:
    with refused("candidates or answers; got both"):
        Dataset(X, NAMES, ANSWERS.candidates, answers=ANSWERS)

    named = ANSWERS.align_labels(["sea", "sky"])
    with refused("about the labels 'sky', 'sea'.*got 'sea', 'sky'"):
        Dataset(X, NAMES, answers=named)
    with refused(r"answers must have shape \(3, 2\); got \(2, 2\)"):
        Dataset(np.eye(3), NAMES, answers=ANSWERS)


def test_people_may_err_but_candidates_hold_what_is_relevant() -> None:
    relevant = np.array([[True, False], [True, True]])  # "no" was said about the first pair
    Dataset(X, NAMES, answers=ANSWERS, relevant=relevant)
    with refused("candidate"):
        Dataset(X, NAMES, ANSWERS.candidates, relevant)


def test_answers_go_with_rows_and_labels() -> None:
    chosen = np.array([[False, True], [False, False]])
    answers = Answers.from_long(SAID, (2, 2), chosen=chosen)
    dataset = Dataset(X, NAMES, answers=answers, relevant=np.eye(2, dtype=bool))
    turned = dataset.align_labels(["sea", "sky"]).take([1, 0]).known_answers()
    assert turned.label_names == ["sea", "sky"] and turned.annotations is not None
    assert turned.codes.tolist() == [[3, 0], [0, 3]]
    assert turned.annotations.row.tolist() == [0, 1, 1]
    assert turned.annotations.label.tolist() == [0, 1, 1]
    assert turned.chosen is not None and turned.chosen.tolist() == [[False, False], [True, False]]
    assert replace(dataset, X=None).answers is dataset.answers


def test_rows_joined_keep_people_and_what_a_model_chose() -> None:
    chosen = np.array([[False, True], [False, False]])
    first = Dataset(X, NAMES, answers=Answers.from_long(SAID, (2, 2)))
    second = Dataset(X, NAMES, answers=Answers.from_long(SAID, (2, 2), chosen=chosen))
    joined = join_rows(first, second).known_answers()
    assert joined.annotations is not None and joined.annotations.people == ("ann", "bob")
    assert joined.annotations.row.tolist() == [0, 0, 1, 2, 2, 3]
    assert joined.codes.tolist() == [[3, 0], [0, 3]] * 2
    assert joined.chosen is not None and np.argwhere(joined.chosen).tolist() == [[2, 1]]
    with refused("labels of one kind; got Answers about.*Candidates of"):
        join_rows(first, Dataset(X, NAMES, np.ones((2, 2), dtype=bool)))


def test_rows_joined_keep_the_index_where_both_have_one() -> None:
    frames = [pd.DataFrame({"sky": [1, 0], "sea": 1}, index=list(names)) for names in ("ab", "cd")]
    for make in (Answers.from_candidates, Answers.from_positives):
        one, other = (
            Dataset(pd.DataFrame({"red": [0.1, 0.2]}, frame.index), NAMES, answers=make(frame))
            for frame in frames
        )
        joined = join_rows(one, other)
        assert joined.known_answers().index.tolist() == joined.X.index.tolist() == [*"abcd"]
        unnamed = Dataset(other.X, NAMES, answers=make(frames[1].to_numpy()))
        mixed = join_rows(one, unnamed)
        assert mixed.known_answers().index is None and mixed.X.index.tolist() == [0, 1, 2, 3]


def test_sparse_rows_joined_with_chosen_questions_keep_the_marks() -> None:
    chosen = np.array([[False, True], [False, False]])
    thin = Answers(no=sparse.csr_array([[1, 0]]), yes=sparse.csr_array([[0, 1]]))
    full = Answers(ANSWERS.excluded, ANSWERS.confirmed, ANSWERS.doubtful, chosen=chosen)
    both = join_rows(Dataset(X[:1], NAMES, answers=thin), Dataset(X, NAMES, answers=full))
    joined = both.known_answers()
    assert joined.codes.tolist() == [[1, 2], *full.codes.tolist()]
    assert joined.chosen is not None and np.argwhere(joined.chosen).tolist() == [[1, 1]]


def test_true_labels_may_be_ticked_ones() -> None:
    true = Dataset(X, NAMES, relevant=np.array([[True, False], [False, False]]))
    ticked = true.with_labels_as("positives", "tags.svm")
    assert ticked.relevant is None and ticked.known_answers().kind == "positives"
    assert ticked.known_answers().confirmed.tolist() == [[True, False], [False, False]]
    assert str(ticked) == "2 rows, 2 features, 2 labels, 0.50 ticked labels per row"
    with refused("ticked labels, which exclude nothing"):
        ticked.known_candidates()
    with refused("tags.svm says that its labels are positives, not cand"):
        ticked.with_labels_as("candidates", "tags.svm")
    assert ticked.with_labels_as("positives", "tags.svm") is ticked


def test_a_data_set_says_what_was_asked() -> None:
    text = str(Dataset(X, NAMES, answers=ANSWERS))
    assert text == "2 rows, 2 features, 2 labels, 3 of 4 pairs asked: 1 no, 1 yes, 1 maybe"
    people = str(Dataset(X, NAMES, answers=Answers.from_long(SAID, (2, 2))))
    assert people.endswith("2 of 4 pairs asked: 0 no, 0 yes, 2 maybe; 2 people")
