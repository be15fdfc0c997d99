"""Questions drawn with known probabilities: what these are, and that draws keep them."""

import numpy as np
import pytest

from comes.answers import draw_questions
from comes.answers.questions import expected_bits, inclusion_probabilities, share_questions
from comes.errors import ComesError


def test_probabilities_add_up_and_keep_the_floor() -> None:
    bits = np.random.default_rng(0).random(200) ** 3
    p = inclusion_probabilities(bits, 30, floor=0.25)
    assert p.sum() == pytest.approx(30)
    assert p.max() <= 1 and p.min() >= 0.25 * 30 / 200
    np.testing.assert_allclose(p, 0.25 * 30 / 200 + 0.75 * 30 * bits / bits.sum())


def test_a_pair_that_would_be_drawn_more_than_once_is_certain() -> None:
    p = inclusion_probabilities([100.0, 90.0, *[1.0] * 98], 20, floor=0.2)
    assert p[:2].tolist() == [1, 1]
    assert p.sum() == pytest.approx(20)
    assert np.ptp(p[2:]) < 1e-12 and 0.18 < p[2] < 0.19  # the other 18 over 98
    np.testing.assert_array_equal(inclusion_probabilities([0.3, 0.1], 2), [1, 1])
    np.testing.assert_allclose(inclusion_probabilities(np.zeros(4), 1), 0.25)


def test_pairs_are_drawn_as_often_as_their_probabilities_say() -> None:
    eta = np.random.default_rng(1).random((12, 2))
    times = np.zeros(eta.shape)
    for seed in range(800):
        drawn = draw_questions(eta, 7, seed=seed)
        assert len(drawn.row) == 7
        times[drawn.row, drawn.label] += 1
    error = np.sqrt(drawn.inclusion * (1 - drawn.inclusion) / 800)
    assert (abs(times / 800 - drawn.inclusion) < 4.5 * error).all()


def test_what_is_doubtful_is_drawn_more_often_and_what_was_asked_never() -> None:
    eta = np.array([[0.5, 0.5], [0.99, 0.5], [0.01, 0.5], [0.6, 0.5]])
    is_open = np.ones((4, 2), dtype=bool)
    is_open[0, 1] = False
    drawn = draw_questions(eta, 3, is_open=is_open)
    assert drawn.inclusion[0, 1] == 0 and drawn.spread[0, 1] == 0
    order = np.argsort(expected_bits(eta)[:, 0])
    assert (np.diff(drawn.inclusion[order, 0]) > 0).all()
    np.testing.assert_allclose(drawn.spread[is_open], 1 / drawn.inclusion[is_open] - 1)
    np.testing.assert_array_equal(drawn.probability, drawn.inclusion[drawn.row, drawn.label])


def test_labels_share_the_questions_and_give_away_what_they_cannot_use() -> None:
    np.testing.assert_allclose(share_questions(30, np.array([100, 100, 100])), 10)
    np.testing.assert_allclose(share_questions(30, np.array([4, 100, 100])), [4, 13, 13])
    np.testing.assert_allclose(share_questions(30, np.array([4, 5, 6])), [4, 5, 6])
    np.testing.assert_allclose(share_questions(5, np.array([0, 9])), [0, 5])


def test_questions_of_a_label_come_together_in_random_order() -> None:
    drawn = draw_questions(np.full((200, 2), 0.5), 80, seed=3)
    assert (np.bincount(drawn.label) == 40).all()
    assert (np.diff(drawn.label) != 0).sum() == 3  # blocks of 20
    rows = drawn.row[drawn.label == 0]
    assert (np.sort(rows) != rows).any()
    again = draw_questions(np.full((200, 2), 0.5), 80, seed=3)
    np.testing.assert_array_equal(again.row, drawn.row)


def test_errors_say_what_was_wanted() -> None:
    with pytest.raises(ComesError, match="the number of questions must be 1 or more; got 0"):
        draw_questions([[0.5], [0.4]], 0)
    for floor in (0, 1.1):
        with pytest.raises(ComesError, match=rf"floor must be in \(0, 1\]; got {floor}"):
            draw_questions([[0.5], [0.4]], 2, floor=floor)
    with pytest.raises(ComesError, match=r"is_open must have the shape \(2, 1\)"):
        draw_questions([[0.5], [0.4]], 2, is_open=np.ones((3, 1), bool))
