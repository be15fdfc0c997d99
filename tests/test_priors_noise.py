"""Flip rates and transitions."""

import math

import numpy as np
import pytest
from scipy import sparse

from comes.errors import ComesError
from comes.generation import case_a, one_uniform
from comes.priors import (
    count_class_prior,
    estimate_flip_rate,
    estimate_transition,
    noise,
)
from comes.priors.noise import (
    MAX_RATE,
    combine_transition,
    exclusion_correlation,
    fit_softmax,
    flip_rate_from_prior,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 6))
RELEVANT = X[:, :4] > 0.5  # rows far below are anchor points
RATES = np.array([0.1, 0.4, 0.7, 0.9])
CANDIDATES = case_a(RELEVANT, RATES, seed=1)


def test_rates_are_found_at_anchor_points() -> None:
    assert abs(estimate_flip_rate(X, CANDIDATES) - RATES).max() < 0.08
    few = estimate_flip_rate(sparse.csr_array(X[:800]), CANDIDATES[:800])
    assert abs(few - RATES).max() < 0.2


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, candidates = X[:300], CANDIDATES[:300]
    first, again, other = (
        estimate_flip_rate(rows, candidates, random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_the_rate_is_that_of_the_rows_with_the_lowest_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = np.random.default_rng(2).permutation(50)[:, None].astype(np.float32) - 3
    candidates = np.random.default_rng(3).random((50, 1)) < 0.7
    monkeypatch.setattr(noise, "score_out_of_fold", lambda *_, **__: scores)
    lowest = sorted(range(50), key=lambda i: scores[i, 0])
    for share, n_anchors in ((0.1, 5), (0.25, 13)):
        expected = sum(bool(candidates[i, 0]) for i in lowest[:n_anchors]) / n_anchors
        expected = min(expected, float(candidates.mean()))
        found = estimate_flip_rate(np.zeros((50, 1)), candidates, anchor_share=share)
        assert found == pytest.approx([expected]), share
    lowest_probability = estimate_flip_rate(np.zeros((50, 1)), candidates, anchor_share=0)
    assert lowest_probability == pytest.approx([1 / (1 + np.exp(3))])
    always = np.ones((50, 1), dtype=bool)
    assert estimate_flip_rate(np.zeros((50, 1)), always, anchor_share=0).tolist() == [MAX_RATE]


def test_features_are_scaled_unless_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[np.ndarray] = []

    def score(X: np.ndarray, candidates: np.ndarray, seed: int) -> np.ndarray:
        shown.append(X)
        return np.zeros(candidates.shape, dtype=np.float32)

    monkeypatch.setattr(noise, "score_out_of_fold", score)
    features = np.array([[1.0], [2.0], [6.0]])
    estimate_flip_rate(features, [[True], [False], [True]])
    np.testing.assert_allclose(shown[0], (features - 3) / features.std())


def test_a_label_excluded_nowhere_or_everywhere() -> None:
    """And no rate is above the share of candidates."""
    candidates = CANDIDATES[:300].copy()
    candidates[:, 0], candidates[:, 1] = True, False
    candidates[:, 2:] = np.random.default_rng(1).random((300, 2)) < 0.5
    rates = estimate_flip_rate(X[:300], candidates)
    assert rates[0] == MAX_RATE and rates[1] == 0
    assert (rates[1:] <= candidates.mean(axis=0)[1:]).all()


def test_few_rows_give_the_candidate_rate() -> None:
    assert estimate_flip_rate([[1.0], [2.0]], [[True], [False]]).tolist() == [0.5]


def test_the_rate_that_a_prior_implies() -> None:
    prior = count_class_prior(RELEVANT)
    implied = flip_rate_from_prior(prior, CANDIDATES)
    counted = (CANDIDATES & ~RELEVANT).sum(axis=0) / (~RELEVANT).sum(axis=0)
    np.testing.assert_allclose(implied, counted)
    assert flip_rate_from_prior([1.0], [[True], [True]]).tolist() == [MAX_RATE]
    assert flip_rate_from_prior([0.9], [[False], [True]]).tolist() == [0]  # no prior can be so high


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ComesError, match=r"anchor_share must be in \[0, 1\); got 1"):
        estimate_flip_rate(X, CANDIDATES, anchor_share=1)
    with pytest.raises(ComesError, match="same rows; got 3 and 2000"):
        estimate_flip_rate(X[:3], CANDIDATES)


# Transitions

ROWS = np.random.default_rng(0).normal(size=(600, 4))
TRUTH = ROWS > 0.3
EXCLUDING_ONE = one_uniform(TRUTH, seed=0)


def assert_transition(matrix: np.ndarray, q: int) -> None:
    assert matrix.shape == (q, q)
    assert np.isfinite(matrix).all() and (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=0), 1)
    np.testing.assert_array_equal(matrix.diagonal(), 0)


def test_columns_are_distributions_with_a_zero_diagonal() -> None:
    for features in (ROWS, sparse.csr_array(ROWS)):
        first, again = (estimate_transition(features, EXCLUDING_ONE) for _ in range(2))
        assert_transition(first, 4)
        np.testing.assert_array_equal(first, again)


def test_transitions_stay_finite_at_the_edges() -> None:
    constant = EXCLUDING_ONE.copy()
    constant[:, 0], constant[:, 1] = True, False
    nothing_excluded = estimate_transition(ROWS, np.ones_like(EXCLUDING_ONE))
    np.testing.assert_allclose(nothing_excluded, (1 - np.eye(4)) / 3)
    for candidates in (np.zeros_like(EXCLUDING_ONE), constant, RNG.random(ROWS.shape) < 0.5):
        assert_transition(estimate_transition(ROWS, candidates), 4)


def test_one_label_leaves_nothing_to_exchange() -> None:
    assert estimate_transition(ROWS, EXCLUDING_ONE[:, :1]).tolist() == [[0.0]]


def test_the_softmax_explains_what_rows_exclude() -> None:
    """Its cost is the entropy with the excluded labels in equal parts, and has no slope left."""
    rows = ROWS[:200]
    excluded = RNG.random((200, 3)) < 1 / (1 + np.exp(-rows[:, :3]))
    weights = fit_softmax(rows, excluded)

    def cost(weights: np.ndarray) -> float:
        total, n = 0.0, 0
        for row, out in zip(rows, excluded, strict=True):
            scores = weights[0] + row @ weights[1:]
            log_share = scores - math.log(np.exp(scores).sum())
            if out.any():
                total, n = total - log_share[out].mean(), n + 1
        return float(total / n + noise.PENALTY / 2 * (weights**2).sum())

    lowest = cost(weights)
    for place in np.ndindex(weights.shape):
        for step in (0.01, -0.01):
            moved = weights.copy()
            moved[place] += step
            assert cost(moved) > lowest - 1e-6, place
    sparse_weights = fit_softmax(sparse.csr_array(rows), excluded)
    np.testing.assert_allclose(sparse_weights, weights, atol=1e-3)
    assert not fit_softmax(rows, np.zeros_like(excluded)).any()


def test_correlation_is_the_positive_part_of_phi() -> None:
    """From the four counts of a pair, phi = (AD - BC) / sqrt((A+B)(C+D)(A+C)(B+D))."""
    excluded = RNG.random((200, 3)) < np.array([0.3, 0.5, 0.4])
    excluded[:, 2] |= excluded[:, 0]
    phi = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a = (excluded[:, i] & excluded[:, j]).sum()
            b = (excluded[:, i] & ~excluded[:, j]).sum()
            c = (~excluded[:, i] & excluded[:, j]).sum()
            d = (~excluded[:, i] & ~excluded[:, j]).sum()
            phi[i, j] = (a * d - b * c) / math.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    phi = np.maximum(phi * (1 - np.eye(3)), 0)
    assert phi[0, 2] > 0.2
    expected = phi / phi.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(exclusion_correlation(excluded), expected)


def test_a_label_that_correlates_with_none_has_equal_parts() -> None:
    excluded = np.eye(3, dtype=bool)  # every pair is correlated negatively
    np.testing.assert_allclose(exclusion_correlation(excluded), (1 - np.eye(3)) / 2)


def test_is_the_correlation_times_the_mean_over_candidates_written_as_loops() -> None:
    q = 4
    rng = np.random.default_rng(5)
    candidates = rng.random((50, q)) < 0.2 + 0.6 * rng.random((50, 1))  # all labels correlate
    probability = rng.random((50, q))

    def without_diagonal(matrix: np.ndarray) -> np.ndarray:
        for k in range(q):
            matrix[k, k] = 0
            matrix[:, k] /= matrix[:, k].sum()
        return matrix

    first = np.zeros((q, q))
    for j in range(q):
        for k in range(q):
            rows = [i for i in range(50) if candidates[i, k]]
            first[j, k] = sum(probability[i, j] for i in rows) / len(rows)
    first = without_diagonal(first)
    correlation = exclusion_correlation(~candidates)
    expected = without_diagonal(
        np.array(
            [
                [sum(correlation[j, m] * first[m, k] for m in range(q)) for k in range(q)]
                for j in range(q)
            ]
        )
    )
    np.testing.assert_allclose(combine_transition(probability, candidates), expected)
