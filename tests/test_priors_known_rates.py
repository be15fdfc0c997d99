"""Class priors where the exclude rate is known."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from comes.priors import known_rates, rate_model
from comes.priors.known_rates import exceeds_rate, shrink_priors

RNG = np.random.default_rng(0)


def test_equals_the_sums_written_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers of relevant rows are enumerated; two beta distributions."""
    n, counts, rates = 200, [30, 42], [0.3, 0.4]
    betas, weights = [(2.0, 6.0), (1.0, 3.0)], [0.4, 0.6]
    parameters = (*np.array(betas).T, np.array(weights))
    monkeypatch.setattr(known_rates, "beta_parameters", lambda: parameters)
    by_beta = []
    for (a, b), weight in zip(betas, weights, strict=True):
        evidence, moments = weight, []
        for count, rate in zip(counts, rates, strict=True):
            terms = [
                (m / n, binom.pmf(count, n - m, rate) * beta.pdf(m / n, a, b)) for m in range(n)
            ]
            total = sum(value for _, value in terms)
            moments.append([sum(pi**k * value for pi, value in terms) / total for k in (1, 2)])
            evidence *= total
        by_beta.append((evidence, moments))
    total = sum(evidence for evidence, _ in by_beta)
    mean, error = shrink_priors(np.array(counts), n, np.array(rates))
    for j in range(2):
        first, second = (sum(e * m[j][k] for e, m in by_beta) / total for k in (0, 1))
        assert mean[j] == pytest.approx(first, abs=1e-3)
        assert error[j] == pytest.approx(math.sqrt(second - first**2), abs=1e-3)


def test_shrinking_beats_the_plug_in_where_the_rate_is_small() -> None:
    n, q = 1500, 60
    prior = RNG.beta(0.6, 10, q)
    irrelevant = n - np.round(n * prior).astype(int)
    count = RNG.binomial(irrelevant, 0.1)
    mean, error = shrink_priors(count, n, np.full(q, 0.1))
    truth = 1 - irrelevant / n
    plug_in = np.maximum(0, 1 - count / n / 0.1)
    assert abs(mean - truth).mean() < 0.8 * abs(plug_in - truth).mean()
    assert (abs(mean - truth) <= 2 * error).mean() >= 0.88
    assert error.mean() < 2 * abs(mean - truth).mean()


def test_with_many_rows_or_a_sure_rate_it_is_the_plug_in() -> None:
    n, count = 1_000_000, np.array([300_000, 450_000])
    mean, error = shrink_priors(count, n, np.array([0.5, 0.5]))
    np.testing.assert_allclose(mean, [0.4, 0.1], atol=0.002)
    expected = np.sqrt(0.5 * np.array([0.6, 0.9]) / (n * 0.5))
    np.testing.assert_allclose(error, expected, rtol=0.1)
    mean, error = shrink_priors(np.array([70, 0, 100]), 100, np.ones(3))
    np.testing.assert_allclose(mean, [0.3, 1, 0], atol=0.01)
    assert (error < 0.01).all()


def test_any_count_gives_numbers_between_0_and_1() -> None:
    for n in (1, 5, 1000):
        for rate in (1e-3, 0.5, 1.0):
            count = np.array([0, n // 2, n])
            mean, error = shrink_priors(count, n, np.full(3, rate))
            assert ((mean >= 0) & (mean <= 1 - count / n + 1e-9)).all(), (n, rate)
            assert np.isfinite(error).all(), (n, rate)


def test_a_share_may_exceed_the_rate_by_chance() -> None:
    share = np.array([0.1, 0.12, 0.2, 1.0])
    assert exceeds_rate(share, 1000, np.full(4, 0.1)).tolist() == [False, False, True, True]
    assert not exceeds_rate(np.ones(1), 1000, np.ones(1)).any()


def test_beta_distributions_have_the_means_they_say() -> None:
    a, b, weight = rate_model.beta_parameters()
    assert weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.unique((a / (a + b)).round(6)), rate_model.MEANS)
