import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta

from comes.priors import pooled_priors
from comes.priors.pooled_priors import fit_many, shrink_many


@pytest.mark.parametrize(("mean", "strength"), [(0.002, 1.0), (0.02, 10.0), (0.3, 100.0)])
@pytest.mark.parametrize("n_excluded", [95, 60, 110])
def test_priors_are_integrals_over_the_beta_distribution(
    monkeypatch: pytest.MonkeyPatch, mean: float, strength: float, n_excluded: int
) -> None:
    monkeypatch.setattr(pooled_priors, "_choose_beta", lambda *_: (mean, strength))
    n, rate = 1000, 0.1

    def likelihood(prior: float) -> float:
        m = n * (1 - prior)
        logs = gammaln(m + 1) - gammaln(max(m - n_excluded, 0) + 1) + m * math.log(1 - rate)
        return math.exp(logs - 250)

    def moment(power: int) -> float:
        # With u = P(prior below), the density is 1, however steep that of the beta is at 0.
        def inside(u: float) -> float:
            prior = float(beta.ppf(u, mean * strength, (1 - mean) * strength))
            return prior**power * likelihood(min(prior, 1 - n_excluded / n))

        steps = [1 - 10.0**-k for k in range(1, 10)]
        return math.fsum(
            quad(inside, low, high, limit=200)[0]
            for low, high in zip([0.0, *steps], [*steps, 1.0], strict=True)
        )

    total, first, second = (moment(power) for power in range(3))
    found, error = shrink_many(np.array([n_excluded]), np.array([n]), np.array([rate]))
    assert found[0] == pytest.approx(first / total, rel=0.05, abs=2e-4)
    spread = math.sqrt(second / total - (first / total) ** 2)
    assert error[0] == pytest.approx(spread, rel=0.1, abs=2e-3)


def test_labels_with_the_same_numbers_have_the_same_prior_in_any_order() -> None:
    count, asked = np.array([90, 50, 90, 0]), np.array([1000, 1000, 1000, 0])
    order = np.array([3, 1, 0, 2])
    prior, error = shrink_many(count, asked, np.full(4, 0.1))
    moved, moved_error = shrink_many(count[order], asked[order], np.full(4, 0.1))
    np.testing.assert_array_equal(moved, prior[order])
    np.testing.assert_array_equal(moved_error, error[order])
    assert prior[0] == prior[2] < prior[1]


def test_the_labels_of_a_row_are_found_where_counts_tell_them() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(0.2, 3.8, size=500)  # 25 labels a row
    n, rate = 20_000, np.full(500, 0.3)
    count = rng.binomial((n * (1 - truth)).astype(int), rate)
    prior, _ = shrink_many(count, np.full(500, n), rate)
    assert prior.sum() == pytest.approx(truth.sum(), rel=0.05)


def test_the_beta_distribution_of_yes_has_the_moments_of_the_priors() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 18, size=20_000)
    asked = np.full((2, 20_000), 20)
    yes = rng.binomial(asked, 0.8 * truth)
    alpha, other = fit_many(yes, asked, np.full(20_000, 0.8))
    assert alpha / (alpha + other) == pytest.approx(0.1, rel=0.03)
    assert alpha + other == pytest.approx(20, rel=0.15)
