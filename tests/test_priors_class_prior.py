from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from comes.datasets import make_scenes
from comes.errors import ComesError, ComesWarning
from comes.generation import case_a, case_b
from comes.priors import (
    ClassPriorEstimate,
    class_prior,
    count_class_prior,
    estimate_class_prior,
    small_models,
)

SCENES = make_scenes("train", n=3000)
RELEVANT = SCENES.known_relevant()
PRIOR = count_class_prior(RELEVANT)
# The first rows, for what does not need many.
X, FEW_RELEVANT = SCENES.X[:800], RELEVANT[:800]
CANDIDATES = case_b(FEW_RELEVANT, 0.5, seed=0)
FEW_PRIOR = count_class_prior(FEW_RELEVANT)


@cache
def estimate_at(rate: float) -> ClassPriorEstimate:
    return estimate_class_prior(SCENES.X, case_b(RELEVANT, rate, seed=0))


@pytest.mark.parametrize(("rate", "error"), [(0.3, 0.05), (0.5, 0.03), (0.9, 0.02)])
def test_the_estimate_is_near_the_truth(rate: float, error: float) -> None:
    estimate = estimate_at(rate)
    assert abs(estimate.class_prior - PRIOR).mean() < error
    assert abs(estimate.exclude_rate - rate).mean() < error


def test_prior_and_exclude_rate_say_nearly_the_same() -> None:
    candidates, estimate = case_b(RELEVANT, 0.5, seed=0), estimate_at(0.5)
    expected = 1 - (~candidates).mean(axis=0) / estimate.exclude_rate
    np.testing.assert_allclose(estimate.class_prior, expected, atol=0.02)
    best_bin = estimate_class_prior(X[:300], CANDIDATES[:300], "best-bin")
    expected = 1 - (~CANDIDATES[:300]).mean(axis=0) / best_bin.exclude_rate
    np.testing.assert_allclose(best_bin.class_prior, expected)
    np.testing.assert_array_equal(np.asarray(estimate), estimate.class_prior)
    assert (estimate.class_prior >= 0).all()
    assert (estimate.class_prior <= candidates.mean(axis=0)).all()


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train the small models for less long, where they need not be good."""
    monkeypatch.setattr(small_models, "MIN_STEPS", 60)


@pytest.mark.usefixtures("few_steps")
def test_the_seed_decides() -> None:
    first, again, other = (
        estimate_class_prior(X[:300], CANDIDATES[:300], random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.class_prior, again.class_prior)
    assert (first.class_prior != other.class_prior).any()


@pytest.mark.usefixtures("few_steps")
def test_sparse_features_work() -> None:
    estimate = estimate_class_prior(sparse.csr_array(X), CANDIDATES)
    assert abs(estimate.class_prior - FEW_PRIOR).mean() < 0.08


@pytest.mark.usefixtures("few_steps")
def test_features_far_from_zero_are_no_obstacle() -> None:
    """As timestamps are: in float32 they would all be one number."""
    estimate = estimate_class_prior(X.astype(float) + 1e8, CANDIDATES)
    assert abs(estimate.class_prior - FEW_PRIOR).mean() < 0.08


@pytest.mark.usefixtures("few_steps")
def test_rates_of_the_best_bin_are_shared_over_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "shrink", lambda rate, n_bin: np.full_like(rate, 0.97))
    estimate = estimate_class_prior(X[:300], CANDIDATES[:300], "best-bin")
    assert (estimate.exclude_rate == 0.97).all()


@pytest.mark.usefixtures("few_steps")
def test_where_exclusion_is_nearly_certain_the_candidate_rate_is_the_estimate() -> None:
    candidates = case_b(FEW_RELEVANT, 0.999, seed=0)
    estimate = estimate_class_prior(X, candidates)
    np.testing.assert_allclose(estimate.class_prior, candidates.mean(axis=0))


@pytest.mark.usefixtures("few_steps")
def test_labels_excluded_nowhere_or_everywhere_have_the_known_values() -> None:
    candidates = CANDIDATES.copy()
    candidates[:, 0], candidates[:, 1], candidates[:, 2] = True, False, True
    candidates[np.flatnonzero(~FEW_RELEVANT[:, 2])[:7], 2] = False
    names = [f"digit {j}" for j in range(10)]
    with pytest.warns(ComesWarning) as caught:
        estimate = estimate_class_prior(X, candidates, label_names=names)
    said = " ".join(str(warning.message) for warning in caught)
    assert "label 'digit 0': no row excludes it, so it cannot be estimated and is set to 1" in said
    assert "label 'digit 1': every row excludes it, so it is set to 0" in said
    assert "label 'digit 2': fewer than 20 rows exclude it" in said
    assert estimate.flags[:4] == ("never excluded", "always excluded", "few excluded", "ok")
    assert estimate.class_prior[:2].tolist() == [1, 0]
    assert estimate.exclude_rate[:2].tolist() == [0, 1]
    assert (estimate.lower[0], estimate.upper[0]) == (0, 1)
    assert (estimate.lower[1], estimate.upper[1]) == (0, 0)
    assert abs(estimate.class_prior - FEW_PRIOR)[3:].mean() < 0.08


@pytest.fixture
def scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all estimators share the scores of the same rows."""
    monkeypatch.setattr(class_prior, "score_out_of_fold", score_once)


SCORED: dict[Any, npt.NDArray[np.float32]] = {}


def score_once(X: Any, candidates: Any, seed: int, *, is_scaled: bool) -> npt.NDArray[np.float32]:
    key = X.tobytes(), candidates.tobytes(), candidates.shape
    if key not in SCORED:
        SCORED[key] = small_models.score_out_of_fold(X, candidates, seed, is_scaled=is_scaled)
    return SCORED[key]


@pytest.mark.usefixtures("few_steps", "scored_once")
@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
@pytest.mark.parametrize(
    ("method", "shape"),
    [
        *(
            ("hierarchical", shape)
            for shape in [(1, 1), (5, 3), (30, 1), (30, 4), (19, 2), (20, 2)]
        ),
        *((method, (30, 4)) for method in ("best-bin", "bbe", "dedpul", "km2", "candidate-rate")),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_small_and_odd_data_give_numbers_between_0_and_1(
    shape: tuple[int, int], share: float, method: str
) -> None:
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(shape[0], 2)), rng.random(shape) < share
    estimate = estimate_class_prior(X, candidates, method)
    for values in (estimate.class_prior, estimate.exclude_rate, estimate.lower, estimate.upper):
        assert ((values >= 0) & (values <= 1)).all()
    assert (estimate.lower <= estimate.upper).all() and (estimate.standard_error > 0).all()
    assert estimate.exclude_rate_error is not None and (estimate.exclude_rate_error > 0).all()
    assert estimate.standard_error.max() <= 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(wrong: float) -> None:
    broken = X.copy()
    broken[3, 4] = wrong
    with pytest.raises(ComesError, match="X must be a finite matrix"):
        estimate_class_prior(broken, FEW_RELEVANT)


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(ComesError, match="same rows; got 10 and 3000"):
        estimate_class_prior(SCENES.X[:10], RELEVANT)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_bounds_and_standard_errors_hold(rate: float) -> None:
    estimate = estimate_at(rate)
    assert ((estimate.lower <= PRIOR) & (estimate.upper >= PRIOR)).mean() >= 0.9
    assert (estimate.lower <= estimate.class_prior).all()
    assert (estimate.class_prior <= estimate.upper).all()
    error = abs(estimate.class_prior - PRIOR)
    assert (error <= 2 * estimate.standard_error).mean() >= 0.8
    assert estimate.standard_error.mean() < 5 * error.mean() + 0.02
    assert estimate.exclude_rate_error is not None
    assert (abs(estimate.exclude_rate - rate) <= 2 * estimate.exclude_rate_error).mean() >= 0.8


def test_a_label_without_a_relevant_row_has_a_prior_near_0() -> None:
    candidates = case_b(np.where(np.arange(10) == 4, False, RELEVANT), 0.5, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    assert estimate.class_prior[4] < 0.05 and estimate.lower[4] == 0


@pytest.mark.usefixtures("scored_once")
def test_other_estimators_find_the_prior_too() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)[:, :3]
    for method, error in (("bbe", 0.1), ("dedpul", 0.1), ("km2", 0.25)):
        estimate = estimate_class_prior(SCENES.X, candidates, method)
        assert abs(estimate.class_prior - PRIOR[:3]).mean() < error, method
    naive = estimate_class_prior(SCENES.X, candidates, "candidate-rate")
    np.testing.assert_allclose(naive.class_prior, candidates.mean(axis=0))
    assert abs(naive.class_prior - PRIOR[:3]).mean() > 0.3


@pytest.mark.usefixtures("few_steps", "scored_once")
def test_your_own_estimator_sees_component_and_mixture() -> None:
    candidates = CANDIDATES[:, :2]
    seen = []

    def mpe(component: Any, mixture: Any) -> float:
        seen.append((len(component), len(mixture)))
        return 0.8

    estimate = estimate_class_prior(X, candidates, mpe)
    assert seen == [(int((~candidates[:, j]).sum()), 800) for j in range(2)]
    np.testing.assert_allclose(estimate.class_prior, 0.2)
    with pytest.raises(ComesError, match=r"mpe must return a share in \[0, 1\]; got 1.5"):
        estimate_class_prior(X, candidates, lambda component, mixture: 1.5)
    with pytest.raises(
        ComesError, match="hierarchical, best-bin, bbe, dedpul, km2, candidate-rate, or a func"
    ):
        estimate_class_prior(X, candidates, "km3")


def test_a_prior_that_nothing_shows_is_uncertain() -> None:
    """The features say nothing of the label, so no row is surely irrelevant."""
    rng = np.random.default_rng(0)
    noise, relevant = rng.normal(size=(2000, 2)), rng.random((2000, 1)) < 0.5
    with pytest.warns(ComesWarning, match="its standard error is above 0.15"):
        estimate = estimate_class_prior(noise, case_b(relevant, 0.5, seed=0))
    assert estimate.flags == ("uncertain",)
    assert abs(estimate.class_prior[0] - 0.5) < 2 * estimate.standard_error[0]
    assert estimate.lower[0] <= 0.5 <= estimate.upper[0]


@pytest.mark.usefixtures("few_steps", "scored_once")
def test_errors_of_other_methods_count_how_far_they_are_from_the_default() -> None:
    default, naive = (
        estimate_class_prior(X, CANDIDATES, m) for m in ("hierarchical", "candidate-rate")
    )
    gap = naive.class_prior - default.class_prior
    expected = np.sqrt(default.standard_error**2 + gap**2)
    np.testing.assert_allclose(naive.standard_error, expected)
    assert naive.flags == default.flags


def test_a_known_rate_needs_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "score_out_of_fold", None)
    candidates = case_a(RELEVANT, 0.5, seed=0)
    estimate = estimate_class_prior(None, candidates, exclude_rate=0.5)
    by_label = estimate_class_prior(SCENES.X, candidates, exclude_rate=np.full(10, 0.5))
    np.testing.assert_array_equal(estimate.class_prior, by_label.class_prior)
    assert (estimate.exclude_rate == 0.5).all()
    assert not np.asarray(estimate.exclude_rate_error).any()
    assert abs(estimate.class_prior - PRIOR).mean() < 0.02
    assert (estimate.lower <= estimate.class_prior).all()
    assert (estimate.class_prior <= estimate.upper).all()
    assert set(estimate.flags) == {"ok"}


def test_a_rate_below_the_share_of_excluding_rows_is_told() -> None:
    candidates = case_a(RELEVANT[:, :2], np.array([0.2, 0.5]), seed=0)
    with pytest.warns(ComesWarning, match="label 'sky': more rows exclude it than exclude_rate"):
        estimate = estimate_class_prior(
            None, candidates, exclude_rate=[0.3, 0.5], label_names=["sky", "sea"]
        )
    assert estimate.flags == ("rate too low", "ok")
    assert estimate.class_prior[0] < 0.01


@pytest.mark.parametrize("wrong", [0, 1.1, -0.5, np.nan, "high", [0.5, 0.5, 0.5], [[0.5, 0.5]]])
def test_a_wrong_rate_is_refused(wrong: Any) -> None:
    with pytest.raises(ComesError, match=r"exclude_rate must be a number.*each of 2 labels; got"):
        estimate_class_prior(None, [[True, False]], exclude_rate=wrong)


def test_a_known_rate_and_a_method_exclude_each_other() -> None:
    with pytest.raises(ComesError, match="Give one of them"):
        estimate_class_prior(X, CANDIDATES, "bbe", exclude_rate=0.5)
