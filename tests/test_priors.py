import numpy as np
import pytest
from scipy import sparse

from comes.datasets import make_scenes
from comes.errors import ComesError
from comes.generation import case_b
from comes.priors import class_prior, count_class_prior, estimate_class_prior
from comes.priors.class_prior import _best_bin_rate, _shrink

SCENES = make_scenes("train", n=3000)
RELEVANT = SCENES.known_relevant()
PRIOR = count_class_prior(RELEVANT)


@pytest.mark.parametrize(("rate", "error"), [(0.3, 0.05), (0.5, 0.03), (0.9, 0.02)])
def test_the_estimate_is_near_the_truth(rate: float, error: float) -> None:
    estimate = estimate_class_prior(SCENES.X, case_b(RELEVANT, rate, seed=0))
    assert abs(estimate.class_prior - PRIOR).mean() < error
    assert abs(estimate.exclude_rate - rate).mean() < error


def test_prior_and_exclude_rate_say_the_same() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    expected = 1 - (~candidates).mean(axis=0) / estimate.exclude_rate
    np.testing.assert_allclose(estimate.class_prior, expected)
    np.testing.assert_array_equal(np.asarray(estimate), estimate.class_prior)
    assert (estimate.class_prior >= 0).all()
    assert (estimate.class_prior <= candidates.mean(axis=0)).all()


def test_the_seed_decides_and_sparse_features_work() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)
    X = sparse.csr_array(SCENES.X)
    first, again = (estimate_class_prior(X, candidates, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.class_prior, again.class_prior)
    assert abs(first.class_prior - PRIOR).mean() < 0.05
    other = estimate_class_prior(X, candidates, random_state=4)
    assert (first.class_prior != other.class_prior).any()


def test_features_far_from_zero_are_no_obstacle() -> None:
    """As timestamps are: in float32 they would all be one number."""
    candidates = case_b(RELEVANT, 0.5, seed=0)
    estimate = estimate_class_prior(SCENES.X.astype(float) + 1e8, candidates)
    assert abs(estimate.class_prior - PRIOR).mean() < 0.05


def test_the_best_bin_is_the_one_with_the_highest_lower_bound() -> None:
    score = -np.arange(100.0)[:, None].astype(np.float32)
    excluded = np.zeros((100, 1), dtype=bool)
    excluded[:40] = True
    excluded[0:40:10] = False
    rate, n_bin = _best_bin_rate(excluded, score)
    assert (rate[0], n_bin[0]) == (0.9, 40)
    excluded[:] = False
    excluded[:5] = True  # too few for a small bin
    rate, n_bin = _best_bin_rate(excluded, score)
    assert n_bin[0] == 30
    assert rate[0] == pytest.approx(5 / 30)


def test_rates_are_shrunk_as_far_as_their_sampling_error_allows() -> None:
    alike = _shrink(np.array([0.5, 0.52]), np.array([100, 100]))
    assert np.ptp(alike) < 1e-12
    apart = _shrink(np.array([0.2, 0.8]), np.array([1000, 1000]))
    np.testing.assert_allclose(apart, [0.2, 0.8], atol=0.01)
    assert _shrink(np.array([0.3]), np.array([50])) == pytest.approx(0.3)


def test_rates_are_shared_over_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "_shrink", lambda rate, n_bin: np.full_like(rate, 0.97))
    estimate = estimate_class_prior(SCENES.X, case_b(RELEVANT, 0.5, seed=0))
    assert (estimate.exclude_rate == 0.97).all()


def test_where_exclusion_is_nearly_certain_the_candidate_rate_is_the_estimate() -> None:
    candidates = case_b(RELEVANT, 0.999, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    np.testing.assert_allclose(estimate.class_prior, candidates.mean(axis=0))


def test_labels_excluded_nowhere_or_everywhere_have_the_known_values() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)
    candidates[:, 0], candidates[:, 1] = True, False
    estimate = estimate_class_prior(SCENES.X, candidates)
    assert estimate.class_prior[:2].tolist() == [1, 0]
    assert estimate.exclude_rate[:2].tolist() == [0, 1]
    assert abs(estimate.class_prior - PRIOR)[2:].mean() < 0.05


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (30, 1), (30, 4)])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_small_and_odd_data_give_numbers_between_0_and_1(
    shape: tuple[int, int], share: float
) -> None:
    rng = np.random.default_rng(0)
    estimate = estimate_class_prior(rng.normal(size=(shape[0], 2)), rng.random(shape) < share)
    for values in (estimate.class_prior, estimate.exclude_rate):
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(wrong: float) -> None:
    X = SCENES.X.copy()
    X[3, 4] = wrong
    with pytest.raises(ComesError, match="X must be a finite matrix"):
        estimate_class_prior(X, RELEVANT)


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(ComesError, match="same rows; got 10 and 3000"):
        estimate_class_prior(SCENES.X[:10], RELEVANT)
