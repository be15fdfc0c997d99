import numpy as np
import pytest
from scipy.special import expit

from comes.selection import offset_matching_prior

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
