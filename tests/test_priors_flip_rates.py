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
    small_models,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 6))
RELEVANT = X[:, :4] > 0.5  # rows far below are anchor points
RATES = np.array([0.1, 0.4, 0.7, 0.9])
CANDIDATES = case_a(RELEVANT, RATES, seed=1)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train the small models for less long, where they need not be good."""
    monkeypatch.setattr(small_models, "MIN_STEPS", 60)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rates_are_found_at_anchor_points(is_sparse: bool) -> None:
    rates = estimate_flip_rate(sparse.csr_array(X) if is_sparse else X, CANDIDATES)
    assert abs(rates - RATES).max() < 0.05


def test_the_lowest_probability_itself_is_far_too_low() -> None:
    rates = estimate_flip_rate(X[:1500], CANDIDATES[:1500], anchor_share=0)
    assert (rates[1:] < RATES[1:] - 0.15).all() and (rates >= 0).all()


@pytest.mark.usefixtures("few_steps")
def test_the_seed_decides_and_the_truth_is_not_asked_for() -> None:
    rows, candidates = X[:300], CANDIDATES[:300]
    first, again, other = (
        estimate_flip_rate(rows, candidates, random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.usefixtures("few_steps")
def test_a_label_excluded_nowhere_or_everywhere() -> None:
    candidates = CANDIDATES[:300].copy()
    candidates[:, 0], candidates[:, 1] = True, False
    rates = estimate_flip_rate(X[:300], candidates)
    assert rates[0] == MAX_RATE and rates[1] == 0


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
    with pytest.raises(ComesError, match="same rows; got 3 and 4000"):
        estimate_flip_rate(X[:3], CANDIDATES)
    with pytest.raises(ComesError, match="4 labels need as many class priors"):
        flip_rate_from_prior([0.5], CANDIDATES)


@pytest.mark.usefixtures("few_steps")
def test_a_rate_is_never_above_the_share_of_candidates() -> None:
    rng = np.random.default_rng(1)
    candidates = rng.random((300, 2)) < 0.5
    rates = estimate_flip_rate(rng.normal(size=(300, 2)), candidates)
    assert (rates <= candidates.mean(axis=0)).all()
    with pytest.raises(ComesError, match=r"class priors in \[0, 1\]"):
        flip_rate_from_prior([1.5], [[True], [False]])
