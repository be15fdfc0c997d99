"""The likelihood of what was said, against plain loops and what it must not depend on."""

import math
from typing import Any

import numpy as np
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.generation import independent, simulate_answers
from comes.selection import candidate_scorer, likelihood_losses

RNG = np.random.default_rng(0)
N, Q = 1200, 3
LOGITS = 2 * RNG.normal(size=(N, Q)) - 0.5
ETA = 1 / (1 + np.exp(-LOGITS))
RELEVANT = RNG.random((N, Q)) < ETA
PRIOR = RELEVANT.mean(axis=0)
CANDIDATES = independent(RELEVANT, 0.4, seed=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.7, yes_rate=0.6, seed=0)
SAID: dict[str, Any] = {"candidates": CANDIDATES, "answers": ANSWERS}


def test_is_the_likelihood_of_candidates_written_as_a_loop() -> None:
    found = likelihood_losses(LOGITS[:20], CANDIDATES[:20], PRIOR, calibration="none")
    exclude_rate = np.minimum((~CANDIDATES[:20]).mean(axis=0) / (1 - PRIOR), 1)
    for i in range(20):
        total = 0.0
        for j in range(Q):
            excluded = exclude_rate[j] * (1 - ETA[i, j])
            # Of what is excluded the rate is left out: it is the same for all models.
            total -= math.log(1 - excluded if CANDIDATES[i, j] else 1 - ETA[i, j])
        assert found[i] == pytest.approx(total / Q)


def test_is_the_likelihood_of_answers_written_as_a_loop() -> None:
    codes, asked = ANSWERS.codes, ANSWERS.codes > 0
    found = likelihood_losses(LOGITS, ANSWERS, PRIOR, calibration="none")
    a = ((codes == 1).sum(axis=0) / asked.sum(axis=0)) / (1 - PRIOR)
    b = ((codes == 2).sum(axis=0) / asked.sum(axis=0)) / PRIOR
    assert a == pytest.approx(0.7, abs=0.05) and b == pytest.approx(0.6, abs=0.06)
    total = 0.0
    for i in range(N):
        for j in range(Q):
            maybe = (1 - a[j]) * (1 - ETA[i, j]) + (1 - b[j]) * ETA[i, j]
            maybe /= max(1 - a[j], 1 - b[j])  # what is the same for all models
            said = {1: 1 - ETA[i, j], 2: ETA[i, j], 3: maybe}
            total -= math.log(said.get(int(codes[i, j]), 1.0))
    assert found.mean() == pytest.approx(total / asked.sum(), rel=1e-4)


def test_the_true_probabilities_are_the_most_likely() -> None:
    for kind, said in SAID.items():
        best = likelihood_losses(LOGITS, said, PRIOR, calibration="none").mean()
        for wrong in (0.5 * LOGITS, 2 * LOGITS, LOGITS + 1, LOGITS - 1, LOGITS[:, ::-1]):
            assert likelihood_losses(wrong, said, PRIOR, calibration="none").mean() > best, kind
        assert likelihood_losses(LOGITS, said, PRIOR).mean() == pytest.approx(best, rel=0.01), kind


def test_neither_the_level_nor_the_slope_of_scores_counts() -> None:
    """So scores of a risk over pairs, which have neither, are judged like others."""
    moved = 7 * LOGITS + [5.0, -3.0, 100.0]
    noisy = LOGITS + 2 * np.random.default_rng(1).normal(size=LOGITS.shape)
    for kind, said in SAID.items():
        found, same = (likelihood_losses(scores, said, PRIOR) for scores in (LOGITS, moved))
        np.testing.assert_allclose(found, same, atol=1e-6, err_msg=kind)
        assert likelihood_losses(noisy, said, PRIOR).mean() > found.mean(), kind


def test_with_the_slope_alone_calibrated_the_level_counts() -> None:
    found, same, moved = (
        likelihood_losses(scores, CANDIDATES, PRIOR, calibration="slope").mean()
        for scores in (LOGITS, 7 * LOGITS, LOGITS + 3)
    )
    assert same == pytest.approx(found, rel=1e-6) and moved > 1.05 * found
    exact = likelihood_losses(LOGITS, CANDIDATES, PRIOR, calibration="none").mean()
    assert found == pytest.approx(exact, rel=0.01)


def test_scores_that_say_nothing_and_extreme_ones_have_a_loss() -> None:
    level = likelihood_losses(np.zeros((N, Q)), CANDIDATES, PRIOR).mean()
    assert likelihood_losses(LOGITS, CANDIDATES, PRIOR).mean() < level
    assert likelihood_losses(-LOGITS, CANDIDATES, PRIOR).mean() == pytest.approx(level, rel=0.01)
    for prior in (np.zeros(Q), np.ones(Q)):
        assert np.isfinite(likelihood_losses(1e6 * LOGITS, CANDIDATES, prior)).all()


def test_questions_that_a_model_chose_do_not_count() -> None:
    chosen = np.zeros((N, Q), bool)
    chosen[: N // 2] = True
    marked = Answers.from_codes(ANSWERS.codes, chosen=chosen)
    found = likelihood_losses(LOGITS, marked, PRIOR, calibration="none")
    assert (found[: N // 2] == 0).all()
    expected = likelihood_losses(
        LOGITS[N // 2 :], ANSWERS[np.arange(N // 2, N)], PRIOR, calibration="none"
    )
    assert found.mean() == pytest.approx(expected.mean())


def test_nothing_said_is_an_error() -> None:
    with pytest.raises(ComesError, match="needs an answer that says something; got none"):
        likelihood_losses(LOGITS, np.ones((N, Q), bool), PRIOR)


def test_a_scorer_takes_it() -> None:
    class Model:
        class_prior_ = PRIOR

        def __init__(self, sign: int) -> None:
            self.sign = sign

        def decision_function(self, X: object) -> Any:
            return self.sign * LOGITS

    scorer = candidate_scorer("log_likelihood")
    good = scorer(Model(1), None, CANDIDATES)
    assert (
        good
        == -likelihood_losses(LOGITS, CANDIDATES, PRIOR).mean()
        > scorer(Model(-1), None, CANDIDATES)
    )
