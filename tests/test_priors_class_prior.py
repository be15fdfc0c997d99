"""Class priors of labels: counted, estimated from candidates, and filled in where known."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.stats import beta, binom

from comes.answers import Answers
from comes.errors import ComesError, ComesWarning
from comes.generation import case_a, case_b, independent, simulate_answers
from comes.priors import (
    answer_rates,
    class_prior,
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    fill_class_prior,
    rate_model,
)
from comes.priors.class_prior import shrink_priors

X = np.random.default_rng(0).normal(size=(1000, 7))
RELEVANT = np.linspace(0.4, 1.2, 7) < X
PRIOR = count_class_prior(RELEVANT)
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)

SCORED: dict[Any, npt.NDArray[np.float32]] = {}


def score_once(X: Any, states: Any, seed: int) -> npt.NDArray[np.float32]:
    """Return the scores of rows, which are found once for the same rows and seed."""
    values = X.toarray() if sparse.issparse(X) else X
    key = sparse.issparse(X), values.tobytes(), states.tobytes(), states.shape, seed
    if key not in SCORED:
        SCORED[key] = rate_model.score_out_of_fold(X, states, seed)
    return SCORED[key]


@pytest.fixture(autouse=True, scope="module")
def scored_once() -> Iterator[None]:
    """Score the same rows once for all estimators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_prior, "score_out_of_fold", score_once)
        patch.setattr(answer_rates, "score_out_of_fold", score_once)
        yield
    SCORED.clear()


# The truth


def test_the_prior_is_the_share_of_rows_that_a_label_is_relevant_to() -> None:
    relevant = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]])
    assert count_class_prior(relevant).tolist() == [0.25, 0.25, 1.0]


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
    monkeypatch.setattr(class_prior, "shrink_rates", lambda rate, n_bin: np.full_like(rate, 0.97))
    assert (estimate_class_prior(X, CANDIDATES, "best-bin").exclude_rate == 0.97).all()
    monkeypatch.setattr(class_prior, "shrink_rates", lambda rate, n_bin: np.full_like(rate, 0.985))
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
    shares = (0.0, 0.05, 0.5, 0.95, 1.0)
    shapes = ((1, 1), (5, 3), (19, 2), (30, 4))
    cases = [("hierarchical", shape, share) for shape in shapes for share in shares]
    others = ("best-bin", "bbe")
    cases += [(method, (30, 4), share) for method in others for share in (0.05, 0.95)]
    cases += [
        ("hierarchical", (30, 1), 0.5),
        ("hierarchical", (20, 2), 0.5),
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


def test_the_published_best_bin_finds_the_prior_too() -> None:
    estimate = estimate_class_prior(X, CANDIDATES[:, :3], "bbe")
    assert abs(estimate.class_prior - PRIOR[:3]).mean() < 0.15


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
    with pytest.raises(ComesError, match="hierarchical, best-bin, bbe, or a func.*got 'km3'"):
        estimate_class_prior(X, candidates, "km3")
    for removed in ("km2", "dedpul", "candidate-rate"):
        with pytest.raises(ComesError, match=f"one of .*'{removed}', which was removed after"):
            estimate_class_prior(X, candidates, removed)


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
    default, upper = (
        estimate_class_prior(X, CANDIDATES, method)
        for method in ("hierarchical", lambda component, mixture: len(component) / len(mixture))
    )
    np.testing.assert_allclose(upper.class_prior, CANDIDATES.mean(axis=0))
    gap = upper.class_prior - default.class_prior
    assert (gap > 0.2).all()
    np.testing.assert_allclose(upper.standard_error, np.hypot(default.standard_error, gap))
    assert default.exclude_rate_error is not None and upper.exclude_rate_error is not None
    gap = upper.exclude_rate - default.exclude_rate
    np.testing.assert_allclose(upper.exclude_rate_error, np.hypot(default.exclude_rate_error, gap))
    assert upper.flags == default.flags


# Known rates and known priors


def test_priors_at_known_rates_equal_sums_written_as_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All numbers of relevant rows are enumerated; two beta distributions."""
    n, counts, rates = 200, [30, 42], [0.3, 0.4]
    betas, weights = [(2.0, 6.0), (1.0, 3.0)], [0.4, 0.6]
    parameters = (*np.array(betas).T, np.array(weights))
    monkeypatch.setattr(class_prior, "beta_parameters", lambda: parameters)
    by_beta = []
    for (a, b), weight in zip(betas, weights, strict=True):
        evidence, moments = weight, []
        for count, rate in zip(counts, rates, strict=True):
            terms = [
                (m / n, binom.pmf(count, n - m, rate) * beta.pdf(m / n, a, b)) for m in range(n)
            ]
            total = sum(value for _, value in terms)
            moments.append([sum(pi**k * value for pi, value in terms) / total for k in (1, 2)])
            evidence *= total
        by_beta.append((evidence, moments))
    total = sum(evidence for evidence, _ in by_beta)
    mean, error = shrink_priors(np.array(counts), n, np.array(rates))
    for j in range(2):
        first, second = (sum(e * m[j][k] for e, m in by_beta) / total for k in (0, 1))
        assert mean[j] == pytest.approx(first, abs=1e-3)
        assert error[j] == pytest.approx(math.sqrt(second - first**2), abs=1e-3)


def test_shrinking_beats_the_plug_in_where_the_rate_is_small() -> None:
    n, q, rng = 1500, 60, np.random.default_rng(0)
    prior = rng.beta(0.6, 10, q)
    irrelevant = n - np.round(n * prior).astype(int)
    count = rng.binomial(irrelevant, 0.1)
    mean, error = shrink_priors(count, n, np.full(q, 0.1))
    truth = 1 - irrelevant / n
    plug_in = np.maximum(0, 1 - count / n / 0.1)
    assert abs(mean - truth).mean() < 0.8 * abs(plug_in - truth).mean()
    assert (abs(mean - truth) <= 2 * error).mean() >= 0.88
    assert error.mean() < 2 * abs(mean - truth).mean()


def test_with_many_rows_or_a_sure_rate_it_is_the_plug_in() -> None:
    n, count = 1_000_000, np.array([300_000, 450_000])
    mean, error = shrink_priors(count, n, np.array([0.5, 0.5]))
    np.testing.assert_allclose(mean, [0.4, 0.1], atol=0.002)
    expected = np.sqrt(0.5 * np.array([0.6, 0.9]) / (n * 0.5))
    np.testing.assert_allclose(error, expected, rtol=0.1)
    mean, error = shrink_priors(np.array([70, 0, 100]), 100, np.ones(3))
    np.testing.assert_allclose(mean, [0.3, 1, 0], atol=0.01)
    assert (error < 0.01).all()


def test_any_count_gives_numbers_between_0_and_1() -> None:
    for n in (1, 5, 1000):
        for rate in (1e-3, 0.5, 1.0):
            count = np.array([0, n // 2, n])
            mean, error = shrink_priors(count, n, np.full(3, rate))
            assert ((mean >= 0) & (mean <= 1 - count / n + 1e-9)).all(), (n, rate)
            assert np.isfinite(error).all(), (n, rate)


def test_a_share_may_exceed_the_rate_by_chance() -> None:
    share = np.array([0.1, 0.12, 0.2, 1.0])
    candidates = np.arange(1000)[:, None] >= 1000 * share
    with pytest.warns(ComesWarning, match="label '2', '3': more rows exclude it"):
        estimate = estimate_class_prior(None, candidates, exclude_rate=0.1)
    assert estimate.flags == ("ok", "ok", "rate too low", "rate too low")
    assert estimate_class_prior(None, candidates[:, 3:], exclude_rate=1.0).flags == ("ok",)


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
def test_answers_are_taken_as_candidates_or_by_their_rates() -> None:
    answers = Answers.from_candidates(FEW_CANDIDATES)
    cases: tuple[dict[str, Any], ...] = ({}, {"exclude_rate": 0.5}, {"method": "bbe"})
    for options in cases:
        found = estimate_class_prior(ROWS, answers, random_state=3, **options)
        same = estimate_class_prior(ROWS, FEW_CANDIDATES, random_state=3, **options)
        np.testing.assert_array_equal(found.class_prior, same.class_prior, err_msg=str(options))
    found = estimate_class_prior(ROWS, ANSWERS, random_state=3)
    rates = estimate_answer_rates(ROWS, ANSWERS, random_state=3)
    np.testing.assert_array_equal(found.class_prior, rates.class_prior)
    np.testing.assert_array_equal(found.standard_error, rates.class_prior_error)
    margin = 1.96 * rates.class_prior_error
    np.testing.assert_allclose(found.lower, np.maximum(rates.class_prior - margin, 0))
    np.testing.assert_allclose(found.upper, np.minimum(rates.class_prior + margin, 1))
    assert found.flags == rates.flags and np.isnan(found.exclude_rate).all()
    for options in cases[1:]:
        with pytest.raises(ComesError, match="are for candidates; got answers. Leave them out"):
            estimate_class_prior(ROWS, ANSWERS, **options)


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


def test_known_priors_take_the_place_of_estimates() -> None:
    of_answers = estimate_class_prior(ROWS, ANSWERS)
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
