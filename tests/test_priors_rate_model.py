"""Exclude rates: small models, the model of all bins, best bins and bounds."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse
from scipy.stats import beta

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


# Small models


def test_rows_are_scored_by_both_models_that_were_not_trained_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fake models score the number of the row, times 1 if linear, times 3 if a network."""
    fits = []

    def fit(
        X: Any, states: Any, risk: Any, seed: int, risk_scale: float, hidden: int | None
    ) -> Any:
        assert (states[:, 0] == X[:, 0]).all()
        fits.append((set(X[:, 0].tolist()), hidden, risk_scale, seed))
        return fits[-1]

    def score(model: Any, X: Any) -> Any:
        assert not model[0] & set(X[:, 0].tolist())
        assert len(model[0]) + len(X) == 9
        return X[:, :1] * np.array([[1, 1]]) * (1 if model[1] is None else 3)

    monkeypatch.setattr(rate_model, "fit_small_model", fit)
    monkeypatch.setattr(rate_model, "score_rows", score)
    rows = np.arange(9.0)[:, None]
    found = rate_model.score_out_of_fold(rows, np.tile(rows, (1, 2)), 5)
    np.testing.assert_array_equal(found, np.tile(2 * rows, (1, 2)))
    assert [one[1:] for one in fits] == [(None, 2.0, 5), (128, 2.0, 5)] * 3


def test_rate_model_are_trained_for_enough_steps_and_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_model, "MIN_STEPS", 300)
    trained: list[Any] = []
    monkeypatch.setattr(rate_model, "train", lambda *args: trained.append(args))
    for n, hidden, epochs in ((100, None, 300), (1000, 8, 75), (10_000, None, 20)):
        states = np.ones((n, 2), dtype=np.int8)
        model = rate_model.fit_small_model(
            np.ones((n, 3)), states, torch.nn.Identity(), 0, risk_scale=2.0, hidden=hidden
        )
        assert trained[-1][0] is model
        widths = {size for weights in model.parameters() for size in weights.shape}
        assert (8 in widths) == (hidden == 8)
        options = trained[-1][4]
        assert (options.epochs, options.batch_size, options.risk_scale) == (epochs, 256, 2.0), n


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
        "SLOPES": (2.0,),
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
    found = rate_model._posterior(count, size, grid)
    shapes, of_shape = rate_model._bin_shapes(2)
    for table in laid:
        table.cache_clear()
    expected = np.zeros(found.shape)
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
                for j in range(3):
                    others = np.prod(np.delete(each, j))
                    expected[j] += of_mean * of_spread * others * joint[j]
    expected /= expected.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_shape_has_the_prior_as_its_mean_and_falls_with_the_bin() -> None:
    shapes, weights = rate_model._bin_shapes(10)
    np.testing.assert_allclose(
        1 - shapes.mean(axis=2), np.broadcast_to(rate_model.PRIOR_VALUES, shapes.shape[:2]),
        atol=2e-3,
    )  # fmt: skip
    assert (np.diff(shapes, axis=2) <= 1e-12).all()
    assert weights.sum() == pytest.approx(1)


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
