"""How often an irrelevant label becomes a candidate."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

from comes.errors import ComesError
from comes.generation import case_a
from comes.priors import (
    MAX_RATE,
    count_class_prior,
    estimate_flip_rate,
    flip_rate_from_prior,
    flip_rates,
    small_models,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 6))
RELEVANT = X[:, :4] > 0.5  # rows far below are anchor points
RATES = np.array([0.1, 0.4, 0.7, 0.9])
CANDIDATES = case_a(RELEVANT, RATES, seed=1)


@pytest.fixture(autouse=True, scope="module")
def few_steps() -> Iterator[None]:
    """Train the small models for less long; tests/system has the usual number of steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_models, "MIN_STEPS", 60)
        yield


def test_rates_are_found_at_anchor_points() -> None:
    assert abs(estimate_flip_rate(X, CANDIDATES) - RATES).max() < 0.08
    few = estimate_flip_rate(sparse.csr_array(X[:800]), CANDIDATES[:800])
    assert abs(few - RATES).max() < 0.2


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models, "MIN_STEPS", 20)
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
    monkeypatch.setattr(flip_rates, "score_out_of_fold", lambda *_, **__: scores)
    lowest = sorted(range(50), key=lambda i: scores[i, 0])
    for share, n_anchors in ((0.1, 5), (0.25, 13)):
        expected = sum(bool(candidates[i, 0]) for i in lowest[:n_anchors]) / n_anchors
        expected = min(expected, float(candidates.mean()))
        found = estimate_flip_rate(np.zeros((50, 1)), candidates, anchor_share=share)
        assert found == pytest.approx([expected]), share
    lowest_probability = estimate_flip_rate(np.zeros((50, 1)), candidates, anchor_share=0)
    assert lowest_probability == pytest.approx([1 / (1 + np.exp(3))])


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
    with pytest.raises(ComesError, match="4 labels need as many class priors"):
        flip_rate_from_prior([0.5], CANDIDATES)
    with pytest.raises(ComesError, match=r"class priors in \[0, 1\]"):
        flip_rate_from_prior([1.5], [[True], [False]])
