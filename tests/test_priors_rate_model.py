"""Exclude rates: scores, the model of all bins, best bins and bounds."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.stats import beta
from sklearn.model_selection import KFold

from comes.answers import State
from comes.answers.convert import BoolMatrix
from comes.priors import rate_model
from comes.priors.rate_model import (
    RatePosterior,
    bbe,
    best_bin_rate,
    count_bins,
    fit_exclude_rates,
    prior_bounds,
    shrink_rates,
)

FloatArray = npt.NDArray[np.float64]
Rates = float | FloatArray


# Scores


def score_by_loops(
    rows: FloatArray, is_yes: BoolMatrix, is_no: BoolMatrix, folds: list[Any], strength: float
) -> FloatArray:
    """Return the scores of ridge regression, fold by fold, label by label."""
    score = np.zeros(is_yes.shape)
    mean, wide = rows.mean(axis=0), rows.shape[1] > len(rows)
    rows = rows - mean
    size = np.trace(rows.T @ rows) + (0 if wide else 0.01 * len(rows) * mean @ mean)
    size /= min(rows.shape)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(rows)), fold)
        inverse = np.linalg.inv(rows[rest].T @ rows[rest] + strength * size * np.eye(rows.shape[1]))
        for j in range(is_yes.shape[1]):
            share = (is_yes[:, j].sum() + 0.5) / ((is_yes | is_no)[:, j].sum() + 1)
            y = np.where(is_yes[:, j], 1 - share, np.where(is_no[:, j], -share, 0))
            score[fold, j] = rows[fold] @ inverse @ rows[rest].T @ y[rest]
    return score


@pytest.mark.parametrize("kind", ["candidates", "answers", "sparse", "wide"])
def test_scores_are_those_of_ridge_regression_without_the_row(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 90 if kind == "wide" else 5)) + 0.5
    states = rng.integers(0, 4, size=(60, 3)).astype(np.int8)
    states[rows[:, :3] > 1.5] = State.YES
    targets: Any = states == State.YES if kind != "answers" else states
    is_yes = states == State.YES
    is_no = states == State.NO if kind == "answers" else ~is_yes
    folds = [fold for _, fold in KFold(5, shuffle=True, random_state=7).split(rows)]
    gains = []
    for strength in (5.0, 0.2):
        monkeypatch.setattr(rate_model, "STRENGTHS", (strength,))
        X = sparse.csr_array(rows) if kind == "sparse" else rows
        found = rate_model.score_out_of_fold(X, targets, 7)
        score = score_by_loops(rows, is_yes, is_no, folds, strength)
        gain = 0.0
        for j in range(3):
            yes, no = score[is_yes[:, j], j], score[is_no[:, j], j]
            variance = (((yes - yes.mean()) ** 2).sum() + ((no - no.mean()) ** 2).sum()) / (
                len(yes) + len(no)
            )
            slope = (yes.mean() - no.mean()) / variance
            gain += slope * abs(yes.mean() - no.mean()) / (1 / len(yes) + 1 / len(no))
            share = (len(yes) + 0.5) / (len(yes) + len(no) + 1)
            expected = math.log(share / (1 - share))
            expected += max(slope, 1e-3) * (score[:, j] - (yes.mean() + no.mean()) / 2)
            np.testing.assert_allclose(found[:, j], expected, atol=2e-3)
        gains.append((gain, found))
    monkeypatch.setattr(rate_model, "STRENGTHS", (5.0, 0.2))
    best = max(gains, key=lambda one: one[0])[1]
    np.testing.assert_array_equal(rate_model.score_out_of_fold(X, targets, 7), best)


def test_features_and_targets_that_say_nothing_give_scores_all_the_same() -> None:
    """Constant columns, as many as rows or fewer, and labels that have one value only."""
    targets = np.random.default_rng(0).random((40, 3)) < 0.5
    targets[:, 1] = True
    for d in (3, 30, 60):
        for X in (np.ones((40, d)), sparse.csr_array(np.ones((40, d))), np.zeros((40, d))):
            found = rate_model.score_out_of_fold(X, targets, 0)
            assert np.isfinite(found).all()
            assert np.ptp(found, axis=0).max() < 0.1, (d, type(X))
    rows = np.random.default_rng(1).normal(size=(40, 2))
    assert np.ptp(rate_model.score_out_of_fold(rows, targets, 0), axis=0)[1] < 0.1


def test_many_rows_and_columns_leave_scores_much_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over some of the rows, and the longest columns, tell nearly as much."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(3000, 6)) * [3, 3, 3, 3, 0.01, 0.01]
    targets = rows[:, :2] > rng.normal(size=(3000, 2))
    every = rate_model.score_out_of_fold(rows, targets, 0)
    monkeypatch.setattr(rate_model, "MOST_SUMMED", 1000)
    monkeypatch.setattr(rate_model, "MOST_COLUMNS", 4)
    for X in (rows, sparse.csr_array(rows)):
        some = rate_model.score_out_of_fold(X, targets, 0)
        assert (some != every).any()
        assert min(np.corrcoef(some.T, every.T)[[0, 1], [2, 3]]) > 0.99


def test_features_are_standardised_and_zeros_of_sparse_ones_stay() -> None:
    values = np.array([[1.0, 0.0], [3.0, -4.0]])
    np.testing.assert_allclose(rate_model.scale_features(values), [[-1, 1], [1, -1]])
    scaled = rate_model.scale_features(sparse.csr_array(values))
    np.testing.assert_allclose(scaled.toarray(), np.array([[1 / 3, 0], [1, -1]]))
    assert scaled.nnz == 3


# The model of all bins


def draw(
    rate: Rates, prior: npt.NDArray[np.float64], n: int = 2000, seed: int = 0, slope: float = 2.0
) -> tuple[BoolMatrix, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return which rows exclude labels with these priors, scores, and the realised priors."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(n, len(prior)))
    level = np.log(prior / (1 - prior)) * (1 + 0.1 * slope**2)  # so that the mean is near
    relevant = rng.random(score.shape) < 1 / (1 + np.exp(-(level - slope * score)))
    return ~relevant & (rng.random(score.shape) < rate), score, relevant.mean(axis=0)


def fit(excluded: BoolMatrix, scores: npt.NDArray[np.float64]) -> RatePosterior:
    return fit_exclude_rates(*count_bins(excluded, scores))


def test_bins_are_counted_from_the_highest_score() -> None:
    rng = np.random.default_rng(1)
    excluded, scores = rng.random((57, 3)) < 0.4, rng.normal(size=(57, 3))
    count, size = count_bins(excluded, scores)
    assert size.sum() == 57 and np.ptp(size) <= 1
    for j in range(3):
        ranked = [excluded[i, j] for i in sorted(range(57), key=lambda i: -scores[i, j])]
        for k, own in enumerate(size.astype(int)):
            assert count[j, k] == sum(ranked[:own])
            del ranked[:own]


def test_fewer_rows_than_bins_are_a_bin_each() -> None:
    count, size = count_bins(np.ones((4, 1), dtype=bool), np.arange(4.0)[:, None])
    assert size.tolist() == [1] * 4 and count.tolist() == [[1] * 4]


def test_the_posterior_equals_the_sums_written_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small grid: three rates, two spreads, two beta distributions, two shapes."""
    small = {
        "POWERS": (1.0,),
        "PRIOR_EDGES": np.array([0, 0.2, 0.5, 1]),
        "PRIOR_VALUES": np.array([0.1, 0.35, 0.75]),
        "SPREADS": np.array([0.0, 1.0]),
        "SPREAD_WEIGHTS": np.array([0.7, 0.3]),
        "MEANS": np.array([0.1, 0.4]),
        "MEAN_WEIGHTS": np.array([0.25, 0.75]),
        "CONCENTRATIONS": np.array([3.0]),
    }
    for name, value in small.items():
        monkeypatch.setattr(rate_model, name, value)
    laid = (rate_model._bin_shapes, rate_model.beta_parameters)
    for table in laid:
        table.cache_clear()
    count, size = np.array([[4.0, 2.0], [5.0, 1.0], [3.0, 3.0]]), np.array([10.0, 10.0])
    grid = np.array([-1.0, 0.0, 1.0])
    found, log_evidence = rate_model._posterior(count, size, grid, (2.0,))
    shapes, of_shape = rate_model._bin_shapes(2, (2.0,))
    for table in laid:
        table.cache_clear()
    expected, evidence = np.zeros(found.shape), 0.0
    edges = small["PRIOR_EDGES"]
    for of_mean, mean in ((0.25, 0.1), (0.75, 0.4)):
        cells = np.diff(beta.cdf(edges, 3 * mean, 3 * (1 - mean)))
        for of_spread, spread in ((0.7, 0.0), (0.3, 1.0)):
            for mu in grid:
                joint = np.zeros(found.shape)
                for j, c in np.ndindex(3, 3):
                    for r, g in enumerate(grid):
                        densities = [math.exp(-((x - mu) ** 2) / 2) for x in grid]
                        weight = densities[r] / sum(densities) if spread else float(g == mu)
                        for shape, w in zip(shapes, of_shape, strict=True):
                            f = shape[c] / (1 + math.exp(-g))
                            likelihood = np.prod(f ** count[j] * (1 - f) ** (size - count[j]))
                            joint[j, r, c] += weight * cells[c] * w * likelihood
                each = joint.sum(axis=(1, 2))
                evidence += of_mean * of_spread * np.prod(each)
                for j in range(3):
                    others = np.prod(np.delete(each, j))
                    expected[j] += of_mean * of_spread * others * joint[j]
    expected /= expected.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    share = count / size
    best = np.prod(share**count * (1 - share) ** (size - count))  # it is relative to this
    assert log_evidence == pytest.approx(math.log(evidence / best), abs=1e-6)


def test_a_shape_has_the_prior_as_its_mean_and_falls_with_the_bin() -> None:
    shapes, weights = rate_model._bin_shapes(10, rate_model.SLOPES)
    np.testing.assert_allclose(
        1 - shapes.mean(axis=2), np.broadcast_to(rate_model.PRIOR_VALUES, shapes.shape[:2]),
        atol=2e-3,
    )  # fmt: skip
    assert (np.diff(shapes, axis=2) <= 1e-12).all()
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("slope", [0.0, 0.4])
@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_scores_that_hardly_tell_rows_apart_widen_errors(rate: float, slope: float) -> None:
    """Then priors look low, and surely so; the errors are as wide as they may be off."""
    prior, inside, inside_before = np.linspace(0.1, 0.4, 10), [], []
    for seed in range(3):
        excluded, scores, truth = draw(rate, prior, n=400, seed=seed, slope=slope)
        found = fit(excluded, scores)
        off = abs(found.class_prior - truth)
        inside += (off <= 2 * found.standard_error).tolist()
        inside_before += (off <= 2 * error_by_usual_slopes(excluded, scores, found)).tolist()
        assert (abs(found.exclude_rate - rate) <= 2 * found.exclude_rate_error).all()
    assert np.mean(inside) > 0.85 > 0.8 > np.mean(inside_before)


def error_by_usual_slopes(excluded: BoolMatrix, scores: Any, found: RatePosterior) -> Any:
    """Return errors of class priors if labels have any slopes."""
    usual = rate_model._fit_bins(*count_bins(excluded, scores), rate_model.SLOPES)
    error = usual.deviations(found.exclude_rate, found.class_prior)[1]
    return np.hypot(error, rate_model.MISFIT * (1 - found.class_prior))


def test_scores_that_tell_labels_apart_leave_errors_as_they_are() -> None:
    excluded, scores, _ = draw(0.5, np.linspace(0.1, 0.4, 10), n=800, slope=4)
    found = fit(excluded, scores)
    before = error_by_usual_slopes(excluded, scores, found)
    np.testing.assert_allclose(found.standard_error, before, rtol=0.02)


def test_labels_with_one_rate_estimate_it_together() -> None:
    prior = np.random.default_rng(3).beta(0.5, 8, 30).clip(0.002, 0.6)
    for rate in (0.1, 0.5):
        excluded, scores, truth = draw(rate, prior)
        found = fit(excluded, scores)
        assert np.ptp(found.exclude_rate) < 0.02 * rate, rate
        assert abs(found.exclude_rate / rate - 1).mean() < 0.05, rate
        plug_in = np.maximum(0, 1 - excluded.mean(axis=0) / rate)
        off = abs(found.class_prior - truth)
        assert off.mean() < 1.2 * abs(plug_in - truth).mean(), rate
        assert (off <= 2 * found.standard_error).mean() > 0.85, rate


def test_labels_with_different_rates_keep_theirs() -> None:
    rng = np.random.default_rng(4)
    rate, prior = rng.uniform(0.1, 0.9, 12), rng.uniform(0.05, 0.3, 12)
    excluded, scores, truth = draw(rate, prior, n=4000, slope=3)
    found = fit(excluded, scores)
    assert abs(found.exclude_rate / rate - 1).mean() < 0.06
    assert abs(found.class_prior - truth).mean() < 0.05
    assert (abs(found.exclude_rate - rate) <= 2 * found.exclude_rate_error).mean() > 0.8


def test_rates_do_not_depend_on_the_order_of_labels() -> None:
    excluded, scores, _ = draw(0.4, np.array([0.05, 0.2, 0.4]), n=500)
    found, turned = fit(excluded, scores), fit(excluded[:, ::-1], scores[:, ::-1])
    np.testing.assert_allclose(found.class_prior, turned.class_prior[::-1])
    np.testing.assert_allclose(found.exclude_rate, turned.exclude_rate[::-1])


def test_many_labels_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    excluded, scores, _ = draw(0.5, np.full(33, 0.05), n=200)
    whole = fit(excluded, scores)
    monkeypatch.setattr(rate_model, "LABELS_AT_ONCE", 10)
    np.testing.assert_allclose(fit(excluded, scores).class_prior, whole.class_prior)


def test_few_rows_and_extreme_counts_give_numbers() -> None:
    for n_excluded in (1, 10, 19):
        excluded = (np.arange(20) < n_excluded)[:, None]
        for order in (-1.0, 1.0):
            found = fit(excluded, order * np.arange(20.0)[:, None])
            for values in (found.class_prior, found.exclude_rate):
                assert ((values > 0) & (values < 1)).all(), n_excluded
            assert (found.standard_error > 0).all(), n_excluded
            assert (found.exclude_rate_error > 0).all(), n_excluded


def test_gentle_slopes_that_explain_nothing_leave_the_errors_as_they_are() -> None:
    """Labels that features tell perfectly, of many rows: the likelihood of flat bins is 0."""
    count = np.array([[300.0] * 4 + [0.0] * 6, [300.0] * 7 + [150.0] + [0.0] * 2])
    found = rate_model.fit_exclude_rates(count, np.full(10, 300.0))
    assert all(np.isfinite(values).all() for values in found)
    assert (found.standard_error < 0.05).all() and (found.exclude_rate_error < 0.05).all()


def test_more_rows_than_count_do_not_make_the_error_smaller() -> None:
    excluded, scores, _ = draw(0.5, np.array([0.1, 0.2]), n=3000)
    once, four_times = (
        fit(excluded, scores),
        fit(np.tile(excluded, (4, 1)), np.tile(scores, (4, 1))),
    )
    np.testing.assert_allclose(four_times.standard_error, once.standard_error, rtol=0.02)


def test_the_median_and_the_error_of_a_distribution() -> None:
    probability = np.array([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    edges = np.array([0.0, 0.1, 0.2, 0.4])
    np.testing.assert_allclose(rate_model._median(probability, edges), [0.15, 0.05, 0.3])
    error = rate_model._deviation(probability, np.array([0.0, 1.0, 2.0]), np.array([1.0, 0, 0]))
    np.testing.assert_allclose(error, [math.sqrt(0.5), 0, 2])


# Best bins


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
    excluded[:] = np.arange(100)[:, None] % 2 == 0
    excluded[:12] = True  # a tenth of all rows, if half of them exclude the label
    many, scores = np.repeat(excluded, 10, axis=0), -np.arange(1000.0)[:, None]
    rate, n_bin = best_bin_rate(many, scores)
    assert (rate[0], n_bin[0]) == (1, 130)
    many[50:130] = np.arange(80)[:, None] % 2 == 1  # only a twentieth is without doubt
    rate, n_bin = best_bin_rate(many, scores)
    assert (rate[0], n_bin[0]) == (0.75, 100)


def test_rates_are_shrunk_as_far_as_their_sampling_error_allows() -> None:
    alike = shrink_rates(np.array([0.5, 0.52]), np.array([100, 100]))
    assert np.ptp(alike) < 1e-12
    apart = shrink_rates(np.array([0.2, 0.8]), np.array([1000, 1000]))
    np.testing.assert_allclose(apart, [0.2, 0.8], atol=0.01)
    assert shrink_rates(np.array([0.3]), np.array([50])) == pytest.approx(0.3)


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


def test_shrinking_is_a_random_effects_model_written_as_loops() -> None:
    """DerSimonian and Laird (1986), on logits with binomial variances."""
    rates, sizes = [0.4, 0.55, 0.7], [60, 80, 100]
    logits = [math.log(p / (1 - p)) for p in rates]
    variances = [1 / (n * p * (1 - p)) for p, n in zip(rates, sizes, strict=True)]

    def mean_at(between: float) -> float:
        weights = [1 / (v + between) for v in variances]
        return sum(w * y for w, y in zip(weights, logits, strict=True)) / sum(weights)

    weights = [1 / v for v in variances]
    q = sum(w * (y - mean_at(0)) ** 2 for w, y in zip(weights, logits, strict=True))
    scale = sum(weights) - sum(w**2 for w in weights) / sum(weights)
    between = (q - 2) / scale  # three labels: two degrees of freedom
    assert between > 0
    expected = []
    for y, v in zip(logits, variances, strict=True):
        shrunk = mean_at(between) + between / (between + v) * (y - mean_at(between))
        expected.append(1 / (1 + math.exp(-shrunk)))
    np.testing.assert_allclose(
        shrink_rates(np.array(rates), np.array(sizes, dtype=float)), expected
    )


def test_the_lower_bound_allows_for_having_tried_many_bins() -> None:
    """Clopper-Pearson limits, where every one of the bins may be wrong; written as loops."""
    n, rng = 60, np.random.default_rng(2)
    scores = rng.normal(size=(n, 1))
    excluded = rng.random((n, 1)) < np.where(scores > 0, 0.98, 0.02)
    ranked = excluded[np.argsort(-scores[:, 0]), 0]
    sizes = [20, 25, 32, 40, 49, 60]  # growing by a quarter
    error = 0.05 / len(sizes)
    counts = [int(ranked[:size].sum()) for size in sizes]
    sure = max(
        beta.ppf(error, count, size - count + 1) for count, size in zip(counts, sizes, strict=True)
    )
    total = counts[-1]
    share = beta.ppf(0.95, total + 1, n - total)
    lower, upper = prior_bounds(excluded, scores)
    assert lower[0] == pytest.approx(max(0, 1 - share / sure))
    assert upper[0] == pytest.approx(1 - beta.ppf(0.05, total, n - total + 1))
    assert 0 < lower[0] < upper[0]


def samples(
    kappa: float, n: int = 4000, seed: int = 0, gap: float = 6.0
) -> tuple[FloatArray, FloatArray]:
    """Return scores of the component, and of a mixture that it has a share in."""
    rng = np.random.default_rng(seed)
    is_component = rng.random(n) < kappa
    mixture = rng.normal(size=n) + gap * is_component
    return rng.normal(size=n // 2) + gap, mixture


def test_the_best_bin_of_two_samples_finds_a_component_that_stands_apart() -> None:
    for kappa in (0.2, 0.5, 0.9):
        component, mixture = samples(kappa)
        assert bbe(component, mixture) == pytest.approx(kappa, abs=0.05)
    same = np.random.default_rng(0).normal(size=500)
    assert bbe(same, same) == pytest.approx(1, abs=0.05)


def test_bbe_is_the_lowest_penalised_ratio_written_as_loops() -> None:
    component, mixture = samples(0.4, n=200, gap=2.0)
    noise = sum(np.sqrt(np.log(4 / 0.1) / (2 * len(x))) for x in (component, mixture))
    for gamma in (0.01, 5.0):
        best, ratio_at_best = np.inf, 1.0
        for c in component:
            inside, everything = np.mean(component >= c), np.mean(mixture >= c)
            value = everything / inside + (1 + gamma) / inside * noise
            if value < best:
                best, ratio_at_best = float(value), float(everything / inside)
        assert bbe(component, mixture, gamma=gamma) == pytest.approx(min(1, ratio_at_best))


def test_beta_distributions_have_the_means_they_say() -> None:
    a, b, weight = rate_model.beta_parameters()
    assert weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.unique((a / (a + b)).round(6)), rate_model.MEANS)
