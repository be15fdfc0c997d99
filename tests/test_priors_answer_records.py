"""Answers one by one, and what the features and other people say about them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from comes.answers import Answers, LongAnswers, State
from comes.priors import answer_records
from comes.priors.answer_records import (
    WORD_OF_ANOTHER,
    draw_rows,
    find_best_bins,
    find_leanings,
    read_records,
)

X = np.zeros((40, 1))


def give_scores(monkeypatch: pytest.MonkeyPatch, scores: npt.NDArray[Any]) -> list[Any]:
    """Make the classifiers return these scores; return the list of what they are shown."""
    shown: list[Any] = []

    def score(X: Any, states: Any, seed: int, *, is_scaled: bool) -> npt.NDArray[np.float32]:
        shown.append(states)
        return scores.astype(np.float32)

    monkeypatch.setattr(answer_records, "score_out_of_fold", score)
    return shown


def test_records_are_the_answers_one_by_one() -> None:
    records = read_records(Answers.from_codes([[0, 1], [3, 2]]))
    assert records.row.tolist() == [0, 1, 1]
    assert records.label.tolist() == [1, 0, 1]
    assert records.code.tolist() == [State.NO, State.MAYBE, State.YES]
    ticked = read_records(Answers.from_positives([[1, 0]]))
    assert ticked.code.tolist() == [State.YES, State.MAYBE]
    said = LongAnswers.read([0, 0], [0, 0], ["no", "yes"], ["ann", "bob"])
    assert read_records(Answers.from_long(said, (1, 1))) is said


def test_rows_are_drawn_where_there_are_too_many_answers() -> None:
    records = read_records(Answers.from_codes(np.ones((100, 10))))
    assert draw_rows(records, 100, 1000, 0).tolist() == list(range(100))
    rows = draw_rows(records, 100, 300, 0)
    assert len(rows) == 30
    assert len(set(rows.tolist())) == 30
    assert (np.diff(rows) > 0).all()
    assert rows.max() > 50


def test_leanings_are_calibrated_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 2)) - 1
    give_scores(monkeypatch, 3 * truth + 2)  # too sure, and shifted
    codes = np.where(rng.random(truth.shape) < expit(truth), State.YES, State.NO)
    codes[rng.random(truth.shape) < 0.2] = State.MAYBE
    records = read_records(Answers.from_codes(codes))
    lean = find_leanings(np.zeros((3000, 1)), records, (3000, 2), 0, is_scaled=True)
    np.testing.assert_allclose(lean, truth[records.row, records.label], atol=0.25)


def test_scores_that_mislead_or_few_rows_leave_the_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in (19, 40):
        codes = np.where(np.arange(n) % 4 == 0, State.YES, State.NO)[:, None]
        shown = give_scores(monkeypatch, np.where(codes == State.YES, -1.0, 1.0))
        records = read_records(Answers.from_codes(codes))
        lean = find_leanings(X[:n], records, (n, 1), 0, is_scaled=True)
        n_yes = int((codes == State.YES).sum())
        np.testing.assert_allclose(expit(lean), (n_yes + 0.5) / (n + 1), err_msg=f"{n} rows")
        assert len(shown) == (n == 40)


def test_sure_answers_about_a_pair_count_where_they_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [0, 0, 1, 1, 2, 2, 3, 4]
    words = ["no", "yes", "yes", "maybe", "no", "no", "maybe", "no"]
    said = LongAnswers.read(rows, [0] * 8, words, list("abababab"))
    shown = give_scores(monkeypatch, np.zeros((40, 1)))
    find_leanings(X, said, (40, 1), 0, is_scaled=True)
    expected = [State.NOT_ASKED, State.YES, State.NO, State.NOT_ASKED, State.NO]
    assert shown[0][:5, 0].tolist() == expected
    assert not shown[0][5:].any()


def test_what_others_said_about_the_pair_is_heard() -> None:
    """And neither what oneself said, even twice, nor what was said about other pairs."""
    rows, labels = [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 0]
    words = ["yes", "yes", "no", "maybe", "no", "yes"]
    people = ["ann", "ann", "bob", "cem", "ann", "bob"]
    said = LongAnswers.read(rows, labels, words, people)
    lean = find_leanings(X[:2], said, (2, 2), 0, is_scaled=True)
    heard = []
    for i in range(6):
        word = 0
        for k in range(6):
            same = (rows[k], labels[k]) == (rows[i], labels[i])
            if same and people[k] != people[i]:
                word += {"yes": 1, "no": -1, "maybe": 0}[words[k]]
        heard.append(word)
    assert heard == [-1, -1, 2, 1, 0, 0]
    np.testing.assert_allclose(lean - lean[4], WORD_OF_ANOTHER * np.array(heard))


def test_best_bins_are_the_pairs_most_like_the_sure_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first label is said of every row above 60, the second of all above 20; half are asked."""
    n = 400
    for sure in (State.NO, State.YES):
        rng = np.random.default_rng(0)
        scores = rng.permuted(np.tile(np.linspace(0, 100, n), (2, 1)), axis=1).T
        codes = np.where(scores > [60, 20], sure, State.MAYBE)
        codes[rng.random(codes.shape) < 0.5] = State.NOT_ASKED
        records = read_records(Answers.from_codes(codes))
        shown = give_scores(monkeypatch, scores)
        inside = find_best_bins(np.zeros((n, 1)), records, sure, (n, 2), 0, is_scaled=True)
        score = scores[records.row, records.label]
        for label, cut in enumerate((60, 20)):
            mine = records.label == label
            assert score[mine & inside].min() > cut - 2, sure
            assert score[mine & inside].min() < cut + 5, sure
            assert score[mine & ~inside].max() < score[mine & inside].min(), sure
        assert ((shown[0] == State.YES) == (codes == sure)).all(), sure
        assert ((shown[0] == State.NO) == (codes == State.MAYBE)).all(), sure


def test_without_doubt_or_with_few_rows_everything_is_in_the_bin() -> None:
    for codes in (np.full((40, 1), State.NO), np.full((19, 1), State.MAYBE)):
        records = read_records(Answers.from_codes(codes))
        n = len(codes)
        assert find_best_bins(X[:n], records, State.NO, (n, 1), 0, is_scaled=True).all()
