"""What to ask next: information against plain sums, labels in turn, nothing asked twice."""

import math

import numpy as np
import pytest

from comes.answers import AnswerRates, Answers, State, choose_questions
from comes.answers.questions import expected_bits, spread_over_labels
from comes.errors import ComesError

RNG = np.random.default_rng(0)
ETA = RNG.random((30, 4))
RATES = AnswerRates(
    np.array([0.8, 0.5, 1.0, 0.6]), np.array([0.9, 0.4, 0.0, 1.0]), mistake_rate=0.05
)


def bits_by_sums(eta: float, a: float, b: float, f: float) -> float:
    """Return sum p(z, y) log2 p(z, y) / (p(z) p(y)) over answers z and truths y."""
    no, yes = min(a, 1 - f * (b > 0)), min(b, 1 - f * (a > 0))
    given = {  # P(answer | irrelevant), P(answer | relevant)
        "no": (no, f * (a > 0)),
        "yes": (f * (b > 0), yes),
        "maybe": (1 - no - f * (b > 0), 1 - yes - f * (a > 0)),
    }
    total = 0.0
    for of_truth in given.values():
        joint = [of_truth[0] * (1 - eta), of_truth[1] * eta]
        for p, prior in zip(joint, (1 - eta, eta), strict=True):
            if p > 0:
                total += p * math.log2(p / (sum(joint) * prior))
    return total


def test_bits_are_the_mutual_information_of_answer_and_truth() -> None:
    found = expected_bits(ETA, RATES)
    for (row, label), eta in np.ndenumerate(ETA):
        a, b = float(RATES.no_rate[label]), float(RATES.yes_rate[label])
        assert found[row, label] == pytest.approx(bits_by_sums(eta, a, b, 0.05), abs=1e-12)


def test_people_who_always_know_leave_the_entropy() -> None:
    entropy = -(ETA * np.log2(ETA) + (1 - ETA) * np.log2(1 - ETA))
    np.testing.assert_allclose(expected_bits(ETA), entropy)
    assert expected_bits([[0.0, 1.0, 0.5]]).tolist() == [[0.0, 0.0, 1.0]]
    nearer = np.abs(ETA - 0.5)
    assert (np.argsort(expected_bits(ETA)[:, 0]) == np.argsort(-nearer[:, 0])).all()


def test_people_who_never_dare_tell_nothing() -> None:
    np.testing.assert_allclose(expected_bits(ETA, AnswerRates(np.zeros(4), np.zeros(4))), 0)


def test_labels_take_turns() -> None:
    """By hand: the best pair of every label, then the second of every label, and so on."""
    row, label = spread_over_labels(ETA, 10)
    by_label = [list(np.argsort(-ETA[:, j])) for j in range(4)]
    expected = []
    for turn in range(3):
        pairs = [(by_label[j][turn], j) for j in range(4)]
        expected += sorted(pairs, key=lambda pair: -ETA[pair])
    assert list(zip(row, label, strict=True)) == expected[:10]


def test_of_many_rows_the_same_are_found() -> None:
    merits = np.random.default_rng(1).random((5000, 3))
    row, label = spread_over_labels(merits, 31)
    for j in range(3):
        expected = np.argsort(-merits[:, j])[: np.bincount(label)[j]]
        assert row[label == j].tolist() == expected.tolist()


def test_a_label_without_pairs_leaves_its_turns_to_others() -> None:
    allowed = np.ones((30, 4), dtype=bool)
    allowed[1:, 0] = False
    row, label = spread_over_labels(ETA, 13, allowed)
    assert np.bincount(label).tolist() == [1, 4, 4, 4]
    assert row[label == 0].tolist() == [0]
    assert len(spread_over_labels(ETA, 1000, allowed)[0]) == allowed.sum()


def test_nothing_that_was_said_is_asked_again() -> None:
    asked_before = np.random.default_rng(2).random(ETA.shape) < 0.5
    said = {
        "answers": Answers.from_codes(np.where(asked_before, State.MAYBE, State.NOT_ASKED)),
        "candidates": Answers(no=asked_before),
        "positives": Answers.from_positives(asked_before),
    }
    for kind, answers in said.items():
        asked = choose_questions(ETA, 1000, answers=answers)
        pairs = set(zip(asked.row.tolist(), asked.label.tolist(), strict=True))
        assert pairs == {tuple(pair) for pair in np.argwhere(~asked_before).tolist()}, kind
        assert len(asked.row) == len(pairs)
        np.testing.assert_allclose(asked.bits, expected_bits(ETA)[asked.row, asked.label])


def test_questions_about_a_label_come_together_and_every_label_has_its_share() -> None:
    asked = choose_questions(np.random.default_rng(3).random((200, 3)), 75)
    assert np.bincount(asked.label).tolist() == [25, 25, 25]
    changes = 1 + int((np.diff(asked.label) != 0).sum())
    assert changes == 6  # three labels, 20 questions and then 5
    assert asked.label[:20].tolist() == [0] * 20
    assert (np.diff(asked.bits[:20]) <= 0).all()  # the most telling first


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ComesError, match="must be 1 or more; got 0"):
        choose_questions(ETA, 0)
    with pytest.raises(ComesError, match=r"must be 1 or more; got 2\.5"):
        choose_questions(ETA, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ComesError, match=r"answers of that shape; got \(1, 2\)"):
        choose_questions(ETA, 5, answers=Answers.from_codes([[1, 0]]))
    with pytest.raises(ComesError, match="Pass what predict_proba returns"):
        choose_questions(3 * ETA, 5)
