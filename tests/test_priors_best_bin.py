"""Exclude rates of the rows that look most like excluding a label, and bounds of priors."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from comes.priors.best_bin import best_bin_rate, prior_bounds, shrink


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
    excluded[:] = np.arange(100)[:, None] % 2 == 0
    excluded[:12] = True  # a tenth of all rows, if half of them exclude the label
    many, scores = np.repeat(excluded, 10, axis=0), -np.arange(1000.0)[:, None]
    rate, n_bin = best_bin_rate(many, scores)
    assert (rate[0], n_bin[0]) == (1, 130)


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


def test_shrinking_is_a_random_effects_model_written_as_loops() -> None:
    """DerSimonian and Laird (1986), on logits with binomial variances."""
    rates, sizes = [0.4, 0.55, 0.7], [60, 80, 100]
    logits = [math.log(p / (1 - p)) for p in rates]
    variances = [1 / (n * p * (1 - p)) for p, n in zip(rates, sizes, strict=True)]

    def mean_at(between: float) -> float:
        weights = [1 / (v + between) for v in variances]
        return sum(w * y for w, y in zip(weights, logits, strict=True)) / sum(weights)

    weights = [1 / v for v in variances]
    q = sum(w * (y - mean_at(0)) ** 2 for w, y in zip(weights, logits, strict=True))
    scale = sum(weights) - sum(w**2 for w in weights) / sum(weights)
    between = (q - 2) / scale  # three labels: two degrees of freedom
    assert between > 0
    expected = []
    for y, v in zip(logits, variances, strict=True):
        shrunk = mean_at(between) + between / (between + v) * (y - mean_at(between))
        expected.append(1 / (1 + math.exp(-shrunk)))
    np.testing.assert_allclose(shrink(np.array(rates), np.array(sizes, dtype=float)), expected)


def test_the_lower_bound_allows_for_having_tried_many_bins() -> None:
    """Clopper-Pearson limits, where every one of the bins may be wrong; written as loops."""
    n, rng = 60, np.random.default_rng(2)
    scores = rng.normal(size=(n, 1))
    excluded = rng.random((n, 1)) < np.where(scores > 0, 0.98, 0.02)
    ranked = excluded[np.argsort(-scores[:, 0]), 0]
    sizes = [20, 25, 32, 40, 49, 60]  # growing by a quarter
    error = 0.05 / len(sizes)
    counts = [int(ranked[:size].sum()) for size in sizes]
    sure = max(
        beta.ppf(error, count, size - count + 1) for count, size in zip(counts, sizes, strict=True)
    )
    total = counts[-1]
    share = beta.ppf(0.95, total + 1, n - total)
    lower, upper = prior_bounds(excluded, scores)
    assert lower[0] == pytest.approx(max(0, 1 - share / sure))
    assert upper[0] == pytest.approx(1 - beta.ppf(0.05, total, n - total + 1))
    assert 0 < lower[0] < upper[0]
