import numpy as np
import pytest
from scipy import sparse

from comes.answers import Answers, State
from comes.errors import ComesError
from comes.priors import AnswerCounts


def test_counts_are_those_of_loops_over_even_and_odd_rows() -> None:
    codes = np.random.default_rng(0).integers(0, 4, size=(7, 5)).astype(np.int8)
    states = {"no": State.NO, "yes": State.YES, "maybe": State.MAYBE}
    for answers in (Answers.of_codes(codes), Answers.of_states(sparse.csr_array(codes), "answers")):
        counts = AnswerCounts.of(answers)
        assert counts.n_rows.tolist() == [4, 3]
        for name, state in states.items():
            expected = [
                [sum(codes[i, j] == state for i in range(h, 7, 2)) for j in range(5)]
                for h in (0, 1)
            ]
            assert getattr(counts, name).tolist() == expected


def test_blocks_of_a_stream_add_up_to_all_rows() -> None:
    codes = np.random.default_rng(1).integers(0, 4, size=(10, 3)).astype(np.int8)
    whole = AnswerCounts.of(Answers.of_codes(codes))
    added = AnswerCounts.of(Answers.of_codes(codes[:4])) + AnswerCounts.of(
        Answers.of_codes(codes[4:])
    )
    for name in ("n_rows", "no", "yes", "maybe"):
        np.testing.assert_array_equal(getattr(added, name), getattr(whole, name))


def test_every_row_of_candidates_could_exclude_and_only_asked_pairs_of_answers_could() -> None:
    counts = AnswerCounts.of(Answers(no=[[1, 0], [0, 0], [1, 0]], yes=[[0, 1], [0, 0], [0, 0]]))
    assert counts.asked("candidates").tolist() == [[2, 2], [1, 1]]
    assert counts.asked("answers").tolist() == [[2, 1], [0, 0]]


def test_questions_that_a_model_chose_are_left_out() -> None:
    answers = Answers(no=[[1, 1]], yes=[[0, 0]], chosen=[[1, 0]])
    assert AnswerCounts.of(answers).no.sum(axis=0).tolist() == [0, 1]


def test_counts_of_other_labels_are_not_added() -> None:
    two, three = (AnswerCounts.of(Answers(no=np.eye(q))) for q in (2, 3))
    with pytest.raises(ComesError, match="2 and 3 labels"):
        two + three
