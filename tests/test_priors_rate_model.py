"""The model of all bins, against plain loops, and on data that it describes."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta

from comes.answers.convert import BoolMatrix
from comes.priors import rate_model
from comes.priors.rate_model import RatePosterior, count_bins, fit_rates

Rates = float | npt.NDArray[np.float64]


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
    return fit_rates(*count_bins(excluded, scores))


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
        "SPREADS": np.array([0.0, 1.0]),
        "SPREAD_WEIGHTS": np.array([0.7, 0.3]),
        "MEANS": np.array([0.1, 0.4]),
        "MEAN_WEIGHTS": np.array([0.25, 0.75]),
        "CONCENTRATIONS": np.array([3.0]),
    }
    for name, value in small.items():
        monkeypatch.setattr(rate_model, name, value)
    laid = (rate_model._lay_shapes, rate_model._lay_beta, rate_model.beta_parameters)
    for table in laid:
        table.cache_clear()
    count, size = np.array([[4.0, 2.0], [5.0, 1.0], [3.0, 3.0]]), np.array([10.0, 10.0])
    grid = np.array([-1.0, 0.0, 1.0])
    found = rate_model._find_posterior(count, size, grid)
    shapes, of_shape = rate_model._lay_shapes(2)
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
    shapes, weights = rate_model._lay_shapes(10)
    np.testing.assert_allclose(
        1 - shapes.mean(axis=2), np.broadcast_to(rate_model._prior_values(), shapes.shape[:2]),
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
    np.testing.assert_allclose(rate_model._find_median(probability, edges), [0.15, 0.05, 0.3])
    error = rate_model._find_error(probability, np.array([0.0, 1.0, 2.0]), np.array([1.0, 0, 0]))
    np.testing.assert_allclose(error, [math.sqrt(0.5), 0, 2])
