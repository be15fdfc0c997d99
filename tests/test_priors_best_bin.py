import numpy as np
import pytest

from comes.priors.best_bin import best_bin_rate, prior_bounds, sampling_error, shrink


def test_the_best_bin_is_the_one_with_the_highest_lower_bound() -> None:
    score = -np.arange(100.0)[:, None].astype(np.float32)
    excluded = np.zeros((100, 1), dtype=bool)
    excluded[:40] = True
    excluded[0:40:10] = False
    rate, n_bin = best_bin_rate(excluded, score)
    assert (rate[0], n_bin[0]) == (0.9, 40)
    excluded[:] = False
    excluded[:5] = True  # too few for a small bin
    rate, n_bin = best_bin_rate(excluded, score)
    assert n_bin[0] == 30
    assert rate[0] == pytest.approx(5 / 30)


def test_rates_are_shrunk_as_far_as_their_sampling_error_allows() -> None:
    alike = shrink(np.array([0.5, 0.52]), np.array([100, 100]))
    assert np.ptp(alike) < 1e-12
    apart = shrink(np.array([0.2, 0.8]), np.array([1000, 1000]))
    np.testing.assert_allclose(apart, [0.2, 0.8], atol=0.01)
    assert shrink(np.array([0.3]), np.array([50])) == pytest.approx(0.3)


def test_bounds_cover_in_repeated_samples() -> None:
    """With perfect scores the bounds fail at most one time in ten."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(200):
        relevant = rng.random((400, 1)) < 0.3
        excluded = ~relevant & (rng.random((400, 1)) < 0.4)
        lower, upper = prior_bounds(excluded, (~relevant).astype(float))
        held.append(bool(lower[0] <= 0.3 <= upper[0]))
    assert np.mean(held) > 0.9


def test_the_sampling_error_is_that_of_repeated_samples() -> None:
    """With the scores that separate, as the formula of a binomial bin says."""
    rng = np.random.default_rng(0)
    priors, spreads = [], []
    for seed in range(30):
        relevant = rng.random((1000, 1)) < 0.2
        excluded = ~relevant & (rng.random((1000, 1)) < 0.5)
        scores = (~relevant) + 0.01 * rng.random((1000, 1))
        rate, _ = best_bin_rate(excluded, scores)
        priors.append(1 - excluded.mean() / rate[0])
        spreads.append(sampling_error(excluded, scores, seed)[0])
    assert 0.4 < np.mean(spreads) / np.std(priors) < 2.5
