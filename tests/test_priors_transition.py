"""Which label is excluded if another is relevant."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy import sparse

from comes.generation import one_uniform
from comes.priors import estimate_transition, small_models
from comes.priors.transition import (
    combine_transition,
    excluded_entropy,
    exclusion_correlation,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
RELEVANT = X > 0.3
CANDIDATES = one_uniform(RELEVANT, seed=0)


def assert_transition(matrix: np.ndarray, q: int) -> None:
    assert matrix.shape == (q, q)
    assert np.isfinite(matrix).all() and (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=0), 1)
    np.testing.assert_array_equal(matrix.diagonal(), 0)


@pytest.fixture(autouse=True, scope="module")
def few_steps() -> Iterator[None]:
    """Train the small models for less long: they need not be good."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_models, "MIN_STEPS", 30)
        yield


def test_columns_are_distributions_with_a_zero_diagonal() -> None:
    for features in (X, sparse.csr_array(X)):
        first, again = (estimate_transition(features, CANDIDATES) for _ in range(2))
        assert_transition(first, 4)
        np.testing.assert_array_equal(first, again)
    assert (first != estimate_transition(features, CANDIDATES, random_state=1)).any()


def test_stays_finite_at_the_edges() -> None:
    constant = CANDIDATES.copy()
    constant[:, 0], constant[:, 1] = True, False
    nothing_excluded = estimate_transition(X, np.ones_like(CANDIDATES))
    np.testing.assert_allclose(nothing_excluded, (1 - np.eye(4)) / 3)
    for candidates in (np.zeros_like(CANDIDATES), constant, RNG.random(X.shape) < 0.5):
        assert_transition(estimate_transition(X, candidates), 4)


def test_one_label_leaves_nothing_to_exchange() -> None:
    assert estimate_transition(X, CANDIDATES[:, :1]).tolist() == [[0.0]]


def test_the_entropy_has_the_excluded_labels_in_equal_parts() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    candidates = torch.tensor([[False, True, False], [True, True, False]])
    total = math.log(1 + math.e + math.e**2)
    expected = (((total - 0) + (total - 2)) / 2 + math.log(3)) / 2
    assert excluded_entropy(scores, candidates).item() == pytest.approx(expected)


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
