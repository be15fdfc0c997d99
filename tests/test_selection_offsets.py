from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from comes.selection import bend_scores, offset_matching_prior, power_matching_prior

SCORES = np.random.default_rng(0).normal(5, 3, size=(200, 4))


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_the_mean_probability_is_the_prior(spread: float) -> None:
    prior = np.array([0.02, 0.3, 0.5, 0.9])
    offset = offset_matching_prior(spread * SCORES, prior)
    np.testing.assert_allclose(expit(spread * SCORES - offset).mean(axis=0), prior, atol=1e-9)


def test_a_label_that_is_never_or_always_relevant_is_cut_above_or_below_every_score() -> None:
    offset = offset_matching_prior(SCORES, [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal((offset < SCORES).all(axis=0), [False, True, False, True])
    np.testing.assert_array_equal((offset < SCORES).any(axis=0), [False, True, False, True])


def test_bent_scores_are_those_of_a_power_of_the_probability_of_irrelevance() -> None:
    power = np.array([0.1, 0.7, 1.0, 4.0])
    bent = bend_scores(SCORES, power)
    for i in range(len(SCORES)):
        for j in range(4):
            irrelevant = 1 - expit(SCORES[i, j])
            assert 1 - expit(bent[i, j]) == pytest.approx(irrelevant ** power[j], rel=1e-9)
    np.testing.assert_allclose(bent[:, 2], SCORES[:, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_from_zero_bend_without_overflow_and_keep_their_order(dtype: type) -> None:
    far: Any = np.linspace(-900, 900, 400).astype(dtype)[:, None]
    for power in (1e-6, 0.3, 1.0, 50.0):
        bent = bend_scores(far, [power])
        assert bent.dtype == dtype
        assert np.isfinite(bent).all()
        assert (np.diff(bent[:, 0]) > 0).all()


def test_a_power_fits_the_mean_probability_to_the_prior() -> None:
    prior = np.array([0.02, 0.3, 0.5, 0.9])
    power = power_matching_prior(SCORES, prior)
    np.testing.assert_allclose(expit(bend_scores(SCORES, power)).mean(axis=0), prior, atol=1e-9)
    known = expit(SCORES).mean(axis=0)
    np.testing.assert_allclose(power_matching_prior(SCORES, known), 1, atol=1e-6)
    ends = expit(bend_scores(SCORES, power_matching_prior(SCORES, [0.0, 1.0, 0.0, 1.0])))
    np.testing.assert_allclose(ends.mean(axis=0), [0, 1, 0, 1], atol=0.01)
