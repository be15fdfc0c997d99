"""Class priors from counts of answers whose rates are known."""

import math

import numpy as np
import pytest

from comes.answers import LongAnswers
from comes.priors.answer_priors import count_answers, estimate_priors, fit_beta, solve_priors

CERTAIN = np.zeros((1, 2, 2))


def log_likelihood(
    prior: float, counts: list[float], a: float, b: float, alpha: float, beta: float
) -> float:
    no, yes, maybe = counts
    doubt = (1 - a) * (1 - prior) + (1 - b) * prior
    sure = (no + beta) * math.log(1 - prior) + (yes + alpha) * math.log(prior)
    return sure + maybe * math.log(doubt)


def test_the_prior_is_where_the_likelihood_is_highest() -> None:
    grid = np.linspace(0.0005, 0.9995, 2000)
    cases: list[tuple[list[float], float, float]] = [
        ([60, 20, 20], 0.8, 0.8),
        ([60, 5, 35], 0.9, 0.3),
        ([40, 0, 60], 0.7, 0.0),
        ([0, 9, 3], 0, 0.8),
    ]
    for counts, a, b in cases:
        values = [log_likelihood(float(pi), counts, a, b, 0.3, 0.7) for pi in grid]
        found = solve_priors(np.array([counts]), np.array([[a, b]]), np.array([0.3, 0.7]))
        assert found[0] == pytest.approx(grid[int(np.argmax(values))], abs=0.001), counts


def test_known_cases() -> None:
    nearly_nothing = np.full(2, 1e-9)
    counts = np.array([[60.0, 20, 20], [40, 0, 60], [0, 40, 60]])
    rates = np.array([[0.7, 0.7], [0.8, 0.0], [0.0, 0.8]])
    # a = b: "maybe" says nothing. b = 0: 1 - share / a. a = 0: share / b.
    expected = [20 / 80, 1 - 0.4 / 0.8, 0.4 / 0.8]
    np.testing.assert_allclose(solve_priors(counts, rates, nearly_nothing), expected, atol=1e-6)


def test_the_error_is_that_of_drawn_counts_and_of_the_rates() -> None:
    rng = np.random.default_rng(0)
    a, b, pi, n = 0.9, 0.5, 0.3, 400
    p = [a * (1 - pi), b * pi, (1 - a) * (1 - pi) + (1 - b) * pi]
    drawn = rng.multinomial(n, p, size=2000).astype(float)
    rates = np.tile([a, b], (2000, 1))
    half = np.full(2, 0.5)
    spread = solve_priors(drawn, rates, half).std()
    counts = n * np.array([p])
    _, error = estimate_priors(counts, rates[:1], CERTAIN)
    assert error[0] == pytest.approx(spread, rel=0.06)
    covariance = np.array([[0.0009, -0.0012], [-0.0012, 0.0064]])
    uncertain = rng.multivariate_normal([a, b], covariance, size=2000)
    both = solve_priors(drawn, uncertain, half).std()
    _, error = estimate_priors(counts, rates[:1], covariance[None])
    assert error[0] == pytest.approx(both, rel=0.1)
    assert both > 1.2 * spread


def test_labels_that_agree_are_shrunk_and_labels_that_differ_are_not() -> None:
    rng = np.random.default_rng(1)
    rates, certain = np.full((40, 2), 0.8), np.zeros((40, 2, 2))

    def draw(prior: np.ndarray) -> np.ndarray:
        yes = rng.binomial(40, prior)
        return np.stack([40 - yes, yes, np.full(40, 10)], axis=1).astype(float)

    alike = np.full(40, 0.2)
    counts = draw(alike)
    prior, _ = estimate_priors(counts, rates, certain)
    own = counts[:, 1] / 40
    assert abs(prior - alike).mean() < 0.5 * abs(own - alike).mean()
    different = np.linspace(0.02, 0.98, 40)
    counts = draw(different)
    prior, error = estimate_priors(counts, rates, certain)
    assert abs(prior - counts[:, 1] / 40).max() < 0.03
    assert (abs(prior - different) < 3 * error).all()


def test_a_label_without_answers_gets_the_mean_and_a_large_error() -> None:
    counts = np.array([[30.0, 10, 5], [20, 20, 5], [10, 30, 5], [0, 0, 0]])
    prior, error = estimate_priors(counts, np.full((4, 2), 0.8), np.zeros((4, 2, 2)))
    assert prior[3] == pytest.approx(0.5, abs=0.01)
    assert error[3] > 2 * error[:3].max()


def test_the_beta_distribution_has_the_mean_and_the_spread_of_the_labels() -> None:
    rng = np.random.default_rng(2)
    truth = rng.beta(2, 6, size=5000)
    alpha, beta = fit_beta(truth + rng.normal(0, 0.05, 5000), np.full(5000, 0.05))
    assert (alpha, beta) == (pytest.approx(2, rel=0.1), pytest.approx(6, rel=0.1))


def test_few_labels_do_not_know_that_they_agree() -> None:
    same, error = np.full(3, 0.5), np.full(3, 0.1)
    assert fit_beta(same, error).sum() == pytest.approx(0.25 / 0.01 - 1)
    many = fit_beta(np.full(201, 0.5), np.full(201, 0.1)).sum()
    assert many == pytest.approx(0.25 / (0.01 / 10) - 1)
    assert fit_beta(same[:1], error[:1]).tolist() == [0.5, 0.5]


def test_an_answer_is_a_part_of_its_pair() -> None:
    words = ["no", "yes", "maybe", "no", "no"]
    said = LongAnswers.read([0, 0, 0, 1, 1], [0, 0, 0, 0, 2], words, list("abcab"))
    third = pytest.approx(1 / 3)
    assert count_answers(said, 3).tolist() == [
        [pytest.approx(4 / 3), third, third],
        [0, 0, 0],
        [1, 0, 0],
    ]
