"""Class priors of labels: counted, estimated from candidates, and filled in where known.

The small models are trained for few steps here; what the usual number of steps gives is in
tests/system/test_priors_recovery.py.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse

from comes.answers import Answers
from comes.errors import ComesError, ComesWarning
from comes.generation import case_a, case_b, independent, simulate_answers
from comes.priors import (
    ClassPriorEstimate,
    RatesEstimate,
    add_prior_noise,
    answer_records,
    class_prior,
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    fill_class_prior,
    find_class_prior,
    small_models,
)

X = np.random.default_rng(0).normal(size=(1000, 7))
RELEVANT = np.linspace(0.4, 1.2, 7) < X
PRIOR = count_class_prior(RELEVANT)
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)

SCORED: dict[Any, npt.NDArray[np.float32]] = {}


def score_once(X: Any, states: Any, seed: int, *, is_scaled: bool) -> npt.NDArray[np.float32]:
    """Return the scores of the small models, which are trained once for the same rows and seed."""
    values = X.toarray() if sparse.issparse(X) else X
    key = sparse.issparse(X), values.tobytes(), states.tobytes(), states.shape, seed
    if key not in SCORED:
        SCORED[key] = small_models.score_out_of_fold(X, states, seed, is_scaled=is_scaled)
    return SCORED[key]


@pytest.fixture(autouse=True, scope="module")
def few_steps() -> Iterator[None]:
    """Train the small models for less long, and once for all estimators of the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_models, "MIN_STEPS", 60)
        patch.setattr(class_prior, "score_out_of_fold", score_once)
        patch.setattr(answer_records, "score_out_of_fold", score_once)
        yield
    SCORED.clear()


# The truth


def test_the_prior_is_the_share_of_rows_that_a_label_is_relevant_to() -> None:
    relevant = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]])
    assert count_class_prior(relevant).tolist() == [0.25, 0.25, 1.0]


def test_noise_is_gaussian_and_clipped() -> None:
    noisy = add_prior_noise(np.full(20000, 0.5), sigma=0.1, seed=1)
    assert noisy.mean() == pytest.approx(0.5, abs=0.005)
    assert noisy.std() == pytest.approx(0.1, abs=0.005)
    wild = add_prior_noise(np.full(1000, 0.5), sigma=5.0)
    assert wild.min() == 0 and wild.max() == 0.999


# Small models


def test_rows_are_scored_by_both_models_that_were_not_trained_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fake models score the number of the row, times 1 if linear, times 3 if a network."""
    fits = []

    def fit(X: Any, states: Any, risk: Any, seed: int, **options: Any) -> Any:
        assert (states[:, 0] == X[:, 0]).all()
        fits.append((set(X[:, 0].tolist()), options["hidden"], options["risk_scale"], seed))
        return fits[-1]

    def score(model: Any, X: Any) -> Any:
        assert not model[0] & set(X[:, 0].tolist())
        assert len(model[0]) + len(X) == 9
        return X[:, :1] * np.array([[1, 1]]) * (1 if model[1] is None else 3)

    monkeypatch.setattr(small_models, "fit_small_model", fit)
    monkeypatch.setattr(small_models, "score_rows", score)
    rows = np.arange(9.0)[:, None]
    found = small_models.score_out_of_fold(rows, np.tile(rows, (1, 2)), 5, is_scaled=True)
    np.testing.assert_array_equal(found, np.tile(2 * rows, (1, 2)))
    assert [one[1:] for one in fits] == [(None, 2.0, 5), (small_models.HIDDEN, 2.0, 5)] * 3


def test_small_models_are_trained_for_enough_steps_and_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(small_models, "MIN_STEPS", 300)
    trained: list[Any] = []
    monkeypatch.setattr(small_models, "train", lambda *args: trained.append(args))
    for n, hidden, epochs in ((100, None, 300), (1000, 8, 75), (10_000, None, 20)):
        states = np.ones((n, 2), dtype=np.int8)
        model = small_models.fit_small_model(
            np.ones((n, 3)), states, torch.nn.Identity(), 0, risk_scale=2.0, hidden=hidden
        )
        assert trained[-1][0] is model
        widths = {size for weights in model.parameters() for size in weights.shape}
        assert (8 in widths) == (hidden == 8)
        options = trained[-1][4]
        assert (options.epochs, options.batch_size, options.risk_scale) == (epochs, 256, 2.0), n


def test_features_are_standardised_and_zeros_of_sparse_ones_stay() -> None:
    values = np.array([[1.0, 0.0], [3.0, -4.0]])
    np.testing.assert_allclose(small_models.scale_features(values), [[-1, 1], [1, -1]])
    scaled = small_models.scale_features(sparse.csr_array(values))
    np.testing.assert_allclose(scaled.toarray(), np.array([[1 / 3, 0], [1, -1]]))
    assert scaled.nnz == 3


# Estimates


def test_estimates_are_near_the_truth_with_bounds_and_errors_that_hold() -> None:
    for rate, off in ((0.1, 0.1), (0.5, 0.05), (0.9, 0.03)):
        found = estimate_class_prior(X, case_b(RELEVANT, rate, seed=0))
        error = abs(found.class_prior - PRIOR)
        assert error.mean() < off, rate
        assert abs(found.exclude_rate - rate).mean() < off, rate
        assert ((found.lower <= PRIOR) & (found.upper >= PRIOR)).mean() >= 0.9, rate
        assert (found.lower <= found.class_prior).all(), rate
        assert (found.class_prior <= found.upper).all(), rate
        assert (error <= 2 * found.standard_error).mean() >= 0.8, rate
        assert found.standard_error.mean() < 5 * error.mean() + 0.02, rate
        assert found.exclude_rate_error is not None
        rate_error = abs(found.exclude_rate - rate)
        assert (rate_error <= 2 * found.exclude_rate_error).mean() >= 0.8, rate


def test_prior_and_exclude_rate_say_nearly_the_same() -> None:
    share = (~CANDIDATES).mean(axis=0)
    estimate = estimate_class_prior(X, CANDIDATES)
    np.testing.assert_allclose(estimate.class_prior, 1 - share / estimate.exclude_rate, atol=0.04)
    best_bin = estimate_class_prior(X, CANDIDATES, "best-bin")
    np.testing.assert_allclose(best_bin.class_prior, 1 - share / best_bin.exclude_rate)
    np.testing.assert_array_equal(np.asarray(estimate), estimate.class_prior)
    assert (estimate.class_prior >= 0).all()
    assert (estimate.class_prior <= CANDIDATES.mean(axis=0)).all()


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models, "MIN_STEPS", 20)
    first, again, other = (
        estimate_class_prior(X[:300], CANDIDATES[:300], random_state=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.class_prior, again.class_prior)
    SCORED.clear()
    afresh = estimate_class_prior(X[:300], CANDIDATES[:300], random_state=3)
    np.testing.assert_array_equal(first.class_prior, afresh.class_prior)
    assert (first.class_prior != other.class_prior).any()


def test_sparse_features_and_features_far_from_zero_are_no_obstacle() -> None:
    """As timestamps are: in float32 they would all be one number."""
    for features in (sparse.csr_array(X), X.astype(float) + 1e8):
        estimate = estimate_class_prior(features, CANDIDATES)
        assert abs(estimate.class_prior - PRIOR).mean() < 0.08


def test_rates_of_the_best_bin_are_shared_over_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "shrink", lambda rate, n_bin: np.full_like(rate, 0.97))
    assert (estimate_class_prior(X, CANDIDATES, "best-bin").exclude_rate == 0.97).all()
    monkeypatch.setattr(class_prior, "shrink", lambda rate, n_bin: np.full_like(rate, 0.985))
    assert (estimate_class_prior(X, CANDIDATES, "best-bin").exclude_rate == 1).all()


def test_where_exclusion_is_nearly_certain_the_candidate_rate_is_the_estimate() -> None:
    candidates = case_b(RELEVANT, 0.999, seed=0)
    estimate = estimate_class_prior(X, candidates)
    np.testing.assert_allclose(estimate.class_prior, candidates.mean(axis=0))


def test_labels_excluded_nowhere_or_everywhere_have_the_known_values() -> None:
    """And a label without a relevant row has a prior near 0."""
    candidates = case_b(np.where(np.arange(7) == 4, False, RELEVANT), 0.5, seed=0)
    candidates[:, 0], candidates[:, 1], candidates[:, 2] = True, False, True
    candidates[np.flatnonzero(~RELEVANT[:, 2])[:7], 2] = False
    names = [f"label {j}" for j in range(7)]
    with pytest.warns(ComesWarning) as caught:
        estimate = estimate_class_prior(X, candidates, label_names=names)
    said = " ".join(str(warning.message) for warning in caught)
    assert "label 'label 0': no row excludes it, so it cannot be estimated and is set to 1" in said
    assert "label 'label 1': every row excludes it, so it is set to 0" in said
    assert "label 'label 2': fewer than 20 rows exclude it" in said
    assert estimate.flags[:4] == ("never excluded", "always excluded", "few excluded", "ok")
    assert estimate.class_prior[:2].tolist() == [1, 0]
    assert estimate.exclude_rate[:2].tolist() == [0, 1]
    assert (estimate.lower[0], estimate.upper[0]) == (0, 1)
    assert (estimate.lower[1], estimate.upper[1]) == (0, 0)
    assert estimate.class_prior[4] < 0.1 and estimate.lower[4] == 0
    assert abs(estimate.class_prior - PRIOR)[5:].mean() < 0.08


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_small_and_odd_data_give_numbers_between_0_and_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models, "MIN_STEPS", 20)
    shares = (0.0, 0.05, 0.5, 0.95, 1.0)
    shapes = ((1, 1), (5, 3), (19, 2), (30, 4))
    cases = [("hierarchical", shape, share) for shape in shapes for share in shares]
    others = ("best-bin", "bbe", "dedpul", "km2", "candidate-rate")
    cases += [(method, (30, 4), share) for method in others for share in (0.05, 0.95)]
    cases += [
        ("hierarchical", (30, 1), 0.5),
        ("hierarchical", (20, 2), 0.5),
        ("km2", (30, 4), 0.0),
        ("bbe", (30, 4), 1.0),
    ]
    for method, shape, share in cases:
        case = f"{method}, {shape}, {share} candidates"
        rng = np.random.default_rng(0)
        rows, candidates = rng.normal(size=(shape[0], 2)), rng.random(shape) < share
        found = estimate_class_prior(rows, candidates, method)
        for values in (found.class_prior, found.exclude_rate, found.lower, found.upper):
            assert ((values >= 0) & (values <= 1)).all(), case
        assert (found.lower <= found.upper).all() and (found.standard_error > 0).all(), case
        assert found.exclude_rate_error is not None, case
        assert (found.exclude_rate_error > 0).all() and found.standard_error.max() <= 1, case
        if shape[0] < 20 and 0 < share < 1:  # the upper bound
            np.testing.assert_allclose(found.class_prior, candidates.mean(axis=0), err_msg=case)


def test_features_that_do_not_fit_are_refused() -> None:
    for wrong in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 4] = wrong
        with pytest.raises(ComesError, match="X must be a finite matrix"):
            estimate_class_prior(broken, RELEVANT)
    with pytest.raises(ComesError, match="same rows; got 10 and 1000"):
        estimate_class_prior(X[:10], RELEVANT)


def test_other_estimators_find_the_prior_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_prior, "KM_POINTS", 120)
    candidates = CANDIDATES[:, :3]
    for method, off in (("bbe", 0.15), ("dedpul", 0.15), ("km2", 0.25)):
        estimate = estimate_class_prior(X, candidates, method)
        assert abs(estimate.class_prior - PRIOR[:3]).mean() < off, method
    naive = estimate_class_prior(X, candidates, "candidate-rate")
    np.testing.assert_allclose(naive.class_prior, candidates.mean(axis=0))
    assert abs(naive.class_prior - PRIOR[:3]).mean() > 0.3


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_km2_gets_at_most_400_rows_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def km2(component: Any, mixture: Any) -> float:
        seen.append((len(component), len(mixture), len(np.unique(mixture)) > 350))
        return 0.8

    monkeypatch.setitem(class_prior.ON_SCORES, "km2", km2)
    candidates = CANDIDATES[:, :3].copy()
    candidates[:, 0] = np.arange(1000) >= 100
    estimate_class_prior(X, candidates, "km2")
    assert seen == [(100, 400, True)] + [
        (min(400, int((~candidates[:, j]).sum())), 400, True) for j in (1, 2)
    ]


def test_your_own_estimator_sees_component_and_mixture() -> None:
    candidates = CANDIDATES[:, :3]
    seen = []

    def mpe(component: Any, mixture: Any) -> float:
        seen.append((len(component), len(mixture)))
        return 0.8

    estimate = estimate_class_prior(X, candidates, mpe)
    assert seen == [(int((~candidates[:, j]).sum()), 1000) for j in range(3)]
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
    noise, relevant = rng.normal(size=(600, 2)), rng.random((600, 1)) < 0.5
    with pytest.warns(ComesWarning, match="its standard error is above 0.15"):
        estimate = estimate_class_prior(noise, case_b(relevant, 0.5, seed=0))
    assert estimate.flags == ("uncertain",)
    assert abs(estimate.class_prior[0] - 0.5) < 2 * estimate.standard_error[0]
    assert estimate.lower[0] <= 0.5 <= estimate.upper[0]


def test_errors_of_other_methods_count_how_far_they_are_from_the_default() -> None:
    default, naive = (
        estimate_class_prior(X, CANDIDATES, m) for m in ("hierarchical", "candidate-rate")
    )
    gap = naive.class_prior - default.class_prior
    np.testing.assert_allclose(naive.standard_error, np.hypot(default.standard_error, gap))
    assert default.exclude_rate_error is not None and naive.exclude_rate_error is not None
    gap = naive.exclude_rate - default.exclude_rate
    np.testing.assert_allclose(naive.exclude_rate_error, np.hypot(default.exclude_rate_error, gap))
    assert naive.flags == default.flags


# Known rates and known priors


def test_a_known_rate_needs_no_features() -> None:
    candidates = case_a(RELEVANT, 0.5, seed=0)
    estimate = estimate_class_prior(None, candidates, exclude_rate=0.5)
    by_label = estimate_class_prior(None, candidates, exclude_rate=np.full(7, 0.5))
    np.testing.assert_array_equal(estimate.class_prior, by_label.class_prior)
    assert (estimate.exclude_rate == 0.5).all()
    assert not np.asarray(estimate.exclude_rate_error).any()
    assert abs(estimate.class_prior - PRIOR).mean() < 0.04
    assert (estimate.lower <= estimate.class_prior).all()
    assert (estimate.class_prior <= estimate.upper).all()
    assert ((estimate.lower <= PRIOR) & (estimate.upper >= PRIOR)).mean() >= 0.8
    assert (estimate.upper - estimate.lower < 0.2).all()
    assert set(estimate.flags) == {"ok"}
    with pytest.raises(ComesError, match="Give one of them"):
        estimate_class_prior(X, CANDIDATES, "bbe", exclude_rate=0.5)


def test_a_rate_below_the_share_of_excluding_rows_is_told() -> None:
    candidates = case_a(RELEVANT[:, :2], np.array([0.2, 0.5]), seed=0)
    with pytest.warns(ComesWarning, match="label 'sky': more rows exclude it than exclude_rate"):
        estimate = estimate_class_prior(
            None, candidates, exclude_rate=[0.3, 0.5], label_names=["sky", "sea"]
        )
    assert estimate.flags == ("rate too low", "ok")
    assert estimate.class_prior[0] < 0.01


def test_a_wrong_rate_is_refused() -> None:
    wrong_rates: list[Any] = [0, 1.1, -0.5, np.nan, "high", [0.5, 0.5, 0.5], [[0.5, 0.5]]]
    for wrong in wrong_rates:
        with pytest.raises(ComesError, match=r"exclude_rate must be a number.*of 2 labels; got"):
            estimate_class_prior(None, [[True, False]], exclude_rate=wrong)


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 3))
FEW = ROWS[:, :2] > np.array([0.3, 0.8])
FEW_CANDIDATES = independent(FEW, 0.5, seed=1)
ANSWERS = simulate_answers(FEW, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_each_kind_has_its_own_estimator() -> None:
    said = Answers.from_candidates(FEW_CANDIDATES)
    cases: tuple[dict[str, Any], ...] = ({}, {"exclude_rate": 0.5}, {"method": "bbe"})
    for options in cases:
        found = find_class_prior(ROWS, said, random_state=3, **options)
        same = estimate_class_prior(ROWS, FEW_CANDIDATES, random_state=3, **options)
        assert isinstance(found, ClassPriorEstimate)
        np.testing.assert_array_equal(found.class_prior, same.class_prior, err_msg=str(options))
    found = find_class_prior(ROWS, ANSWERS, random_state=3)
    same_rates = estimate_answer_rates(ROWS, ANSWERS, random_state=3)
    assert isinstance(found, RatesEstimate)
    np.testing.assert_array_equal(found.class_prior, same_rates.class_prior)


def test_with_both_rates_known_only_counts_are_needed() -> None:
    """Where maybe says nothing (a = b), the prior is the share of yes among sure answers."""
    sure = simulate_answers(FEW, asked_rate=0.8, no_rate=0.7, yes_rate=0.7, seed=2)
    found = estimate_answer_rates(None, sure, no_rate=0.7, yes_rate=0.7)
    yes, no = sure.confirmed.sum(axis=0), sure.excluded.sum(axis=0)
    np.testing.assert_allclose(found.class_prior, yes / (yes + no), atol=0.01)
    np.testing.assert_array_equal(found.rates.no_rate, [0.7, 0.7])
    assert found.rates.no_error is not None and not found.rates.no_error.any()
    assert abs(found.class_prior - FEW.mean(axis=0)).max() < 0.06
    wrong = estimate_answer_rates(None, sure, no_rate=0.9, yes_rate=0.3)
    assert (wrong.class_prior > found.class_prior + 0.05).all()  # maybe is then mostly relevant


def test_known_priors_take_the_place_of_estimates_of_either_kind() -> None:
    of_answers = estimate_answer_rates(None, ANSWERS, no_rate=0.9, yes_rate=0.6)
    of_candidates = estimate_class_prior(None, FEW_CANDIDATES, exclude_rate=0.5)
    for found in (of_answers, of_candidates):
        filled = fill_class_prior([np.nan, 0.25], found)
        assert filled.class_prior.tolist() == [found.class_prior[0], 0.25]
        assert filled.standard_error[0] > 0 == filled.standard_error[1]
        assert (filled.lower[1], filled.upper[1]) == (0.25, 0.25)
        assert filled.flags == (found.flags[0], "known")
    assert (filled.lower[0], filled.upper[0]) == (of_candidates.lower[0], of_candidates.upper[0])
    np.testing.assert_array_equal(filled.exclude_rate, [0.5, np.nan])
    for known in ([0.2], [0.2, 1.5], [-1, np.nan]):
        with pytest.raises(ComesError, match="one number in .0, 1. for each of 2 labels, or NaN"):
            fill_class_prior(known, of_candidates)
    assert fill_class_prior([0.0, 1.0], of_candidates).class_prior.tolist() == [0, 1]
