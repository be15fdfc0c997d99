from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes.datasets import make_scenes
from comes.errors import ComesError, ComesWarning
from comes.generation import case_b
from comes.priors import (
    add_prior_noise,
    class_prior,
    count_class_prior,
    estimate_class_prior,
    prior_table,
    read_priors,
)
from comes.priors.best_bin import best_bin_rate, prior_bounds, sampling_error, shrink

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
    rate, n_bin = best_bin_rate(excluded, score)
    assert (rate[0], n_bin[0]) == (0.9, 40)
    excluded[:] = False
    excluded[:5] = True  # too few for a small bin
    rate, n_bin = best_bin_rate(excluded, score)
    assert n_bin[0] == 30
    assert rate[0] == pytest.approx(5 / 30)


def test_rates_are_shrunk_as_far_as_their_sampling_error_allows() -> None:
    alike = shrink(np.array([0.5, 0.52]), np.array([100, 100]))
    assert np.ptp(alike) < 1e-12
    apart = shrink(np.array([0.2, 0.8]), np.array([1000, 1000]))
    np.testing.assert_allclose(apart, [0.2, 0.8], atol=0.01)
    assert shrink(np.array([0.3]), np.array([50])) == pytest.approx(0.3)


def test_rates_are_shared_over_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "shrink", lambda rate, n_bin: np.full_like(rate, 0.97))
    estimate = estimate_class_prior(SCENES.X, case_b(RELEVANT, 0.5, seed=0))
    assert (estimate.exclude_rate == 0.97).all()


def test_where_exclusion_is_nearly_certain_the_candidate_rate_is_the_estimate() -> None:
    candidates = case_b(RELEVANT, 0.999, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    np.testing.assert_allclose(estimate.class_prior, candidates.mean(axis=0))


def test_labels_excluded_nowhere_or_everywhere_have_the_known_values() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)
    candidates[:, 0], candidates[:, 1], candidates[:, 2] = True, False, True
    candidates[np.flatnonzero(~RELEVANT[:, 2])[:7], 2] = False
    names = [f"digit {j}" for j in range(10)]
    with pytest.warns(ComesWarning) as caught:
        estimate = estimate_class_prior(SCENES.X, candidates, label_names=names)
    said = " ".join(str(warning.message) for warning in caught)
    assert "label 'digit 0': no row excludes it, nothing can be known, and 1 is taken" in said
    assert "label 'digit 1': every row excludes it, and 0 is taken" in said
    assert "label 'digit 2': fewer than 20 rows exclude it" in said
    assert estimate.flags[:4] == ("never excluded", "always excluded", "few excluded", "ok")
    assert estimate.class_prior[:2].tolist() == [1, 0]
    assert estimate.exclude_rate[:2].tolist() == [0, 1]
    assert (estimate.lower[0], estimate.upper[0]) == (0, 1)
    assert (estimate.lower[1], estimate.upper[1]) == (0, 0)
    assert abs(estimate.class_prior - PRIOR)[3:].mean() < 0.05


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
@pytest.mark.parametrize(
    ("method", "shape"),
    [
        *(("best-bin", shape) for shape in [(1, 1), (5, 3), (30, 1), (30, 4)]),
        *((method, (30, 4)) for method in ("bbe", "dedpul", "km2", "candidate-rate")),
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
    assert (estimate.lower <= estimate.upper).all() and (estimate.sampling_se >= 0).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(wrong: float) -> None:
    X = SCENES.X.copy()
    X[3, 4] = wrong
    with pytest.raises(ComesError, match="X must be a finite matrix"):
        estimate_class_prior(X, RELEVANT)


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(ComesError, match="same rows; got 10 and 3000"):
        estimate_class_prior(SCENES.X[:10], RELEVANT)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_bounds_hold_and_the_sampling_error_is_of_the_right_size(rate: float) -> None:
    estimate = estimate_class_prior(SCENES.X, case_b(RELEVANT, rate, seed=0))
    assert ((estimate.lower <= PRIOR) & (estimate.upper >= PRIOR)).mean() >= 0.9
    assert (estimate.lower <= estimate.class_prior).all()
    assert (estimate.class_prior <= estimate.upper).all()
    error = abs(estimate.class_prior - PRIOR).mean()
    assert 0.1 * error < estimate.sampling_se.mean() < 10 * error + 0.01


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


def test_the_sampling_error_is_that_of_repeated_samples() -> None:
    """With the scores that separate, as the formula of a binomial bin says."""
    rng = np.random.default_rng(0)
    priors, spreads = [], []
    for seed in range(30):
        relevant = rng.random((1000, 1)) < 0.2
        excluded = ~relevant & (rng.random((1000, 1)) < 0.5)
        scores = (~relevant) + 0.01 * rng.random((1000, 1))
        rate, _ = best_bin_rate(excluded, scores)
        priors.append(1 - excluded.mean() / rate[0])
        spreads.append(sampling_error(excluded, scores, seed)[0])
    assert 0.4 < np.mean(spreads) / np.std(priors) < 2.5


def test_a_label_without_a_relevant_row_has_a_prior_near_0() -> None:
    candidates = case_b(np.where(np.arange(10) == 4, False, RELEVANT), 0.5, seed=0)
    with pytest.warns(ComesWarning, match="label '4': no rows stand out as irrelevant"):
        estimate = estimate_class_prior(SCENES.X, candidates)
    assert estimate.class_prior[4] < 0.05 and estimate.lower[4] == 0


@pytest.mark.parametrize(("method", "error"), [("bbe", 0.1), ("dedpul", 0.1), ("km2", 0.25)])
def test_other_estimators_find_the_prior_too(method: str, error: float) -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)[:, :3]
    estimate = estimate_class_prior(SCENES.X, candidates, method)
    assert abs(estimate.class_prior - PRIOR[:3]).mean() < error
    naive = estimate_class_prior(SCENES.X, candidates, "candidate-rate")
    np.testing.assert_allclose(naive.class_prior, candidates.mean(axis=0))
    assert abs(naive.class_prior - PRIOR[:3]).mean() > 0.3


def test_an_estimator_of_ones_own_sees_component_and_mixture() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)[:, :2]
    seen = []

    def mpe(component: Any, mixture: Any) -> float:
        seen.append((len(component), len(mixture)))
        return 0.8

    estimate = estimate_class_prior(SCENES.X, candidates, mpe)
    assert seen == [(int((~candidates[:, j]).sum()), 3000) for j in range(2)]
    np.testing.assert_allclose(estimate.class_prior, 0.2)
    with pytest.raises(ComesError, match=r"mpe must return a share in \[0, 1\]; got 1.5"):
        estimate_class_prior(SCENES.X, candidates, lambda component, mixture: 1.5)
    with pytest.raises(ComesError, match="best-bin, bbe, dedpul, km2, candidate-rate, or a func"):
        estimate_class_prior(SCENES.X, candidates, "km3")


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_a_prior_that_nothing_shows_is_a_lower_bound() -> None:
    """The features say nothing of the label, so no row is surely irrelevant."""
    rng = np.random.default_rng(0)
    X, relevant = rng.normal(size=(3000, 2)), rng.random((3000, 1)) < 0.5
    estimate = estimate_class_prior(X, case_b(relevant, 0.5, seed=0))
    assert estimate.class_prior[0] < 0.2
    assert estimate.lower[0] <= 0.5 <= estimate.upper[0]


def test_a_best_bin_of_nearly_all_rows_is_no_anchor() -> None:
    excluded = np.zeros((100, 3), dtype=bool)
    excluded[:50] = True
    bins, rates = np.array([30.0, 95.0, 95.0]), np.array([0.5, 0.5, 1.0])
    assert class_prior._flags(excluded, bins, rates) == ("ok", "no anchor", "ok")


def test_noise_is_gaussian_and_clipped() -> None:
    noisy = add_prior_noise(np.full(20000, 0.5), sigma=0.1, seed=1)
    assert noisy.mean() == pytest.approx(0.5, abs=0.005)
    assert noisy.std() == pytest.approx(0.1, abs=0.005)
    wild = add_prior_noise(np.full(1000, 0.5), sigma=5.0)
    assert wild.min() == 0 and wild.max() == 0.999


def test_a_table_of_priors_is_written_and_read(tmp_path: Path) -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    table = prior_table(estimate, SCENES.label_names, RELEVANT)
    np.testing.assert_allclose(table["error"], estimate.class_prior - PRIOR)
    for name, write in (("p.csv", table.to_csv), ("p.parquet", table.to_parquet)):
        write(tmp_path / name, index=False)
        read = read_priors(tmp_path / name)
        assert list(read.index) == SCENES.label_names
        np.testing.assert_allclose(read.to_numpy(), estimate.class_prior)
    (tmp_path / "bad.csv").write_text("label,prior\na,1\n")
    with pytest.raises(ComesError, match="bad.csv has no column 'class_prior'.*It has 'label'"):
        read_priors(tmp_path / "bad.csv")
    with pytest.raises(ComesError, match="gone.csv cannot be read"):
        read_priors(tmp_path / "gone.csv")
