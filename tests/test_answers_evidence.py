"""Evidence of answers, against the table of probabilities and Bayes' rule."""

import itertools

import numpy as np
import pytest

from comes.answers import (
    AnswerRates,
    Answers,
    LongAnswers,
    State,
    answer_evidence,
    posterior_probability,
)
from comes.answers.evidence import state_evidence


def table(a: float, b: float, f: float) -> dict[int, tuple[float, float]]:
    """Return P(answer | irrelevant) and P(answer | relevant); who cannot say it does not err so."""
    no_by_mistake, yes_by_mistake = f * (a > 0), f * (b > 0)
    return {
        State.NOT_ASKED: (1.0, 1.0),
        State.NO: (a, no_by_mistake),
        State.YES: (yes_by_mistake, b),
        State.MAYBE: (1 - a - yes_by_mistake, 1 - b - no_by_mistake),
    }


def ratio(evidence: float) -> float:
    """Return P(answers | irrelevant) / P(answers | relevant) of evidence r."""
    if evidence >= 0:
        return 1 - evidence
    return 1 / (1 + evidence) if evidence > -1 else np.inf


RATES = [0.0, 0.2, 0.5, 0.9]


def test_evidence_holds_the_ratio_of_the_table() -> None:
    for a, b, f in itertools.product(RATES, RATES, (0.0, 0.03)):
        evidence = state_evidence(AnswerRates(np.array([a]), np.array([b]), f))[:, 0]
        assert evidence.shape == (4,) and (abs(evidence) <= 1).all()
        for state, (irrelevant, relevant) in table(a, b, f).items():
            case = (a, b, f, state)
            if irrelevant == relevant == 0:  # cannot be said, so it is taken at its word
                by_mistake = f if state == State.YES else 1 / f if f > 0 else np.inf
                assert ratio(evidence[state]) == pytest.approx(by_mistake), case
            elif relevant == 0:
                assert evidence[state] == -1, case
            else:
                assert ratio(evidence[state]) == pytest.approx(irrelevant / relevant), case


def test_rates_are_by_label() -> None:
    a, b = np.array([0.2, 0.9, 0.0]), np.array([0.7, 0.1, 0.4])
    together = state_evidence(AnswerRates(a, b, 0.01))
    for j in range(3):
        alone = state_evidence(AnswerRates(a[[j]], b[[j]], 0.01))
        np.testing.assert_array_equal(together[:, [j]], alone)


def test_examples_by_hand() -> None:
    """No and yes are sure; maybe counts by the exclude rate, and not at all where a = b."""
    assert state_evidence(AnswerRates(np.array([0.3]), np.zeros(1)))[
        :, 0
    ].tolist() == pytest.approx([0, -1, 1, 0.3])
    assert state_evidence(AnswerRates(np.zeros(1), np.array([0.3])))[3, 0] == pytest.approx(-0.3)
    assert state_evidence(AnswerRates(np.array([0.8]), np.array([0.8])))[3, 0] == 0


def test_rates_of_1_leave_a_maybe_that_says_something_finite() -> None:
    one, half = np.ones(1), np.full(1, 0.5)
    for f in (0.0, 0.01):
        assert state_evidence(AnswerRates(one, one, f))[3, 0] == pytest.approx(0, abs=1e-9)
        assert 0.9999 < state_evidence(AnswerRates(one, half, f))[3, 0] < 1
        assert -1 < state_evidence(AnswerRates(half, one, f))[3, 0] < -0.9999


def test_evidence_of_pairs_is_that_of_their_state() -> None:
    codes = np.random.default_rng(0).integers(4, size=(6, 3))
    rates = AnswerRates(np.array([0.2, 0.9, 0.5]), np.array([0.7, 0.1, 0.5]), 0.02)
    evidence = answer_evidence(Answers.from_codes(codes), rates)
    assert evidence.dtype == np.float32
    for i, j in itertools.product(range(6), range(3)):
        assert evidence[i, j] == pytest.approx(state_evidence(rates)[codes[i, j], j], abs=1e-7)


def test_no_answer_is_evidence_where_everybody_was_asked() -> None:
    p, nobody = np.array([0.25]), np.zeros(1)
    possible = answer_evidence(Answers([[1], [0]]), AnswerRates(p, nobody))
    assert possible.tolist() == [[-1.0], [0.25]]
    ticked = answer_evidence(Answers.from_positives([[1], [0]]), AnswerRates(nobody, p))
    assert ticked.tolist() == [[1.0], [-0.25]]
    asked = answer_evidence(Answers([[1], [0]], [[0], [0]]), AnswerRates(p, p))
    assert asked.tolist() == [[-1.0], [0.0]]


ROWS, LABELS = [0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 1, 1]
WORDS = ["no", "yes", "maybe", "no", "yes", "no"]
SAID = LongAnswers.read(ROWS, LABELS, WORDS, list("abcabb"))


def test_people_are_factors_with_their_own_rates() -> None:
    """A mistake rate below 0.01 counts as 0.01, so that contradictions can be weighed."""
    own = np.array([0.7, 0.3]), np.array([0.6, 0.2])
    for f in (0.0, 0.01, 0.2):
        rates = AnswerRates(np.array([0.5, 0.4]), np.array([0.3, 0.2]), f, people={"b": own})
        evidence = answer_evidence(Answers.from_long(SAID, (4, 2)), rates)
        for i, j in itertools.product(range(4), range(2)):
            irrelevant = relevant = 1.0
            for row, label, word, person in zip(ROWS, LABELS, WORDS, "abcabb", strict=True):
                if (row, label) == (i, j):
                    a, b = own if person == "b" else (rates.no_rate, rates.yes_rate)
                    one, two = table(a[j], b[j], max(f, 0.01))[State.of_word(word)]
                    irrelevant, relevant = irrelevant * one, relevant * two
            expected = pytest.approx(irrelevant / relevant, rel=1e-4)
            assert ratio(float(evidence[i, j])) == expected, (f, i, j)


def test_evidence_of_people_at_the_edge_of_rates_is_finite() -> None:
    for rate in (0.0, 1.0):
        rates = AnswerRates(np.full(2, rate), np.full(2, rate))
        evidence = answer_evidence(Answers.from_long(SAID, (4, 2)), rates)
        assert np.isfinite(evidence).all()
        assert evidence[0, 0] == pytest.approx(0, abs=1e-6)  # no, yes and maybe of equal weight
        assert evidence[1, 0] < -0.9 and evidence[1, 1] > 0.9
        assert evidence[3].tolist() == [0, 0]


def test_many_equal_answers_do_not_underflow() -> None:
    said = LongAnswers.read([0] * 500, [0] * 500, ["no"] * 500, ["a"] * 500)
    rates = AnswerRates(np.full(1, 1e-3), np.zeros(1))
    evidence = answer_evidence(Answers.from_long(said, (1, 1)), rates)
    assert np.isfinite(evidence).all() and abs(evidence[0, 0]) == 1


def test_the_relevance_given_an_answer_is_that_of_bayes() -> None:
    rates = [(0.2, 0.5), (0.9, 0.2), (0.5, 0.0), (0.0, 0.5)]
    for (a, b), f, before in itertools.product(rates, (0.0, 0.03), (0.01, 0.3, 0.5, 0.97)):
        evidence = state_evidence(AnswerRates(np.array([a]), np.array([b]), f))[:, 0]
        for state, (irrelevant, relevant) in table(a, b, f).items():
            if irrelevant == relevant == 0:  # cannot be said
                continue
            expected = before * relevant / (before * relevant + (1 - before) * irrelevant)
            score = np.log(before / (1 - before))
            found = posterior_probability([[score]], [[evidence[state]]])
            assert found[0, 0] == pytest.approx(expected, abs=1e-12), (a, b, f, before, state)


def test_sure_answers_outweigh_every_score_and_silence_none() -> None:
    scores = np.array([-700.0, -3.0, 0.0, 3.0, 700.0])
    assert (posterior_probability(scores, np.full(5, -1.0)) == 0).all()
    assert (posterior_probability(scores, np.full(5, 1.0)) == 1).all()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(
            posterior_probability(scores, np.zeros(5)), 1 / (1 + np.exp(-scores)), atol=1e-15
        )
