"""Rates of answers by group: moments against plain loops, and draws with known rates."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from comes.priors import rate_effects
from comes.priors.rate_effects import choose_spread, fit_rates, sum_moments
from drawn_records import draw_records, mistake_leanings

START = np.array([1.0, 1.0])


def test_moments_are_the_formulas_written_as_loops() -> None:
    records = draw_records(0, [0.8, 0.6], [0.7, 0.9], n=15)
    rng = np.random.default_rng(1)
    records = replace(records, offset=rng.normal(size=records.offset.shape))
    at = np.array([[1.0, 0.5], [0.2, 1.5]])
    moments, slopes = np.zeros((2, 2)), np.zeros((2, 2, 2))
    for i, g in enumerate(records.group):
        a, b = (1 / (1 + math.exp(-at[g, k] - records.offset[i, k])) for k in range(2))
        odds = math.exp(records.lean[i]) * a / b
        eta = odds / (1 + odds)
        variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
        direction = [(1 - eta) * (1 - a), eta * (1 - b)]
        rho = (1 / a if records.is_no[i] else 1 / b if records.is_yes[i] else 0) - 1
        for k in range(2):
            moments[g, k] += direction[k] * rho / variance
            for m in range(2):
                slopes[g, k, m] += direction[k] * direction[m] / variance
    found_moments, found_slopes = sum_moments(records, at)
    np.testing.assert_allclose(found_moments, moments)
    np.testing.assert_allclose(found_slopes, slopes)


def test_moments_have_mean_zero_at_the_true_rates_even_with_a_wrong_eta() -> None:
    at = logit([[0.9, 0.6]])
    for wrong in (0.0, 1.5):
        records = draw_records(2, 0.9, 0.6, n=200_000)
        records = replace(records, lean=0.5 * records.lean + wrong)
        moment, slope = sum_moments(records, at)
        # The slope is about the variance of the moment; four standard errors.
        assert (abs(moment[0]) < 4 * np.sqrt(2 * np.diag(slope[0]))).all()


def test_slopes_are_the_information_of_the_moments() -> None:
    """With the true eta, both the variance of a moment and how it moves with the logits."""
    at, moments = logit([[0.9, 0.6]]), []
    slope = sum_moments(draw_records(0, 0.9, 0.6, n=500), at)[1][0]
    for seed in range(250):
        moments.append(sum_moments(draw_records(seed, 0.9, 0.6, n=500), at)[0][0])
    np.testing.assert_allclose(np.cov(np.array(moments).T), slope, atol=0.25 * slope.max())
    many = draw_records(1, 0.9, 0.6, n=200_000)
    low, high = (sum_moments(many, at + np.array([step, 0]))[0][0] for step in (-0.05, 0.05))
    expected = sum_moments(many, at)[1][0][:, 0]
    np.testing.assert_allclose((low - high) / 0.1, expected, rtol=0.1)


def test_one_group_is_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """E[h (no / a + yes / b - 1)] = 0 is linear in 1 / a and 1 / b, whatever the weights h."""
    nothing = (np.zeros(2), np.zeros((2, 2)))
    monkeypatch.setattr(rate_effects, "weigh_prior", lambda mean: nothing)
    records = draw_records(3, 0.85, 0.7)
    a, b = expit(fit_rates(records, START).logit[0])
    matrix, total = np.zeros((2, 2)), np.zeros(2)
    for no, yes, lean in zip(records.is_no, records.is_yes, records.lean, strict=True):
        eta = expit(lean + math.log(a / b))
        variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
        h = np.array([(1 - eta) * (1 - a), eta * (1 - b)]) / variance
        matrix += np.outer(h, [no, yes])
        total += h
    np.testing.assert_allclose(1 / np.linalg.solve(matrix, total), [a, b], rtol=1e-4)


def test_estimates_are_unbiased_and_errors_are_honest() -> None:
    """Also where eta is off; more draws are in tests/system."""
    for a, b, is_eta_right in ((0.95, 0.6, True), (0.6, 0.9, False)):
        distances = []
        for seed in range(25):
            records = draw_records(seed, a, b, n=1000)
            found = fit_rates(records if is_eta_right else mistake_leanings(records), START)
            error = np.sqrt(np.diag(found.mean_covariance))
            distances.append((found.mean - logit([a, b])) / error)
        assert (abs(np.mean(distances, axis=0)) < 0.6).all(), (a, b)
        assert (abs(np.std(distances, axis=0) - 1) < 0.4).all(), (a, b)


def test_where_the_truth_is_known_rates_are_shares() -> None:
    """Of surely irrelevant pairs; half an answer of each kind is the prior."""
    records = draw_records(0, 0.8, 0.8, n=500)
    irrelevant = replace(
        records, lean=np.full(500, -np.inf), is_yes=np.zeros(500, bool), is_no=np.arange(500) < 350
    )
    a, b = expit(fit_rates(irrelevant, START).logit[0])
    assert a == pytest.approx((350 + 0.5) / 501, abs=0.001)
    error = np.sqrt(fit_rates(irrelevant, START).mean_covariance[0, 0]) * a * (1 - a)
    assert error == pytest.approx(math.sqrt(0.7 * 0.3 / 500), rel=0.02)
    relevant = replace(irrelevant, lean=-irrelevant.lean, is_yes=irrelevant.is_no)
    relevant = replace(relevant, is_no=np.zeros(500, bool))
    np.testing.assert_allclose(expit(fit_rates(relevant, START).logit[0]), [b, a], rtol=1e-6)


def test_exchanging_yes_and_no_exchanges_the_rates() -> None:
    records = draw_records(5, [0.9, 0.7, 0.6], [0.6, 0.7, 0.9], n=400)
    mirror = replace(records, is_no=records.is_yes, is_yes=records.is_no, lean=-records.lean)
    found, other = fit_rates(records, START), fit_rates(mirror, START)
    np.testing.assert_allclose(other.logit, found.logit[:, ::-1], rtol=1e-4)
    np.testing.assert_allclose(other.mean_covariance, found.mean_covariance[::-1, ::-1], rtol=1e-3)
    np.testing.assert_allclose(other.spread, found.spread[::-1])


def test_groups_that_agree_share_one_rate() -> None:
    found = fit_rates(draw_records(6, [0.8] * 10, [0.7] * 10, n=300), START)
    own = [fit_rates(draw_records(60 + g, 0.8, 0.7, n=300), START).logit[0, 0] for g in range(10)]
    assert found.logit[:, 0].std() < 0.3 * np.std(own)
    np.testing.assert_allclose(expit(found.mean), [0.8, 0.7], atol=0.05)


def test_groups_that_differ_have_their_own() -> None:
    a, b = np.linspace(0.4, 0.95, 8), np.linspace(0.9, 0.5, 8)
    found = fit_rates(draw_records(7, a, b, n=4000), START)
    np.testing.assert_allclose(expit(found.logit), np.stack([a, b], axis=1), atol=0.06)
    assert (found.spread > 0.3).all()
    error = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    distance = (found.logit - logit(np.stack([a, b], axis=1))) / error
    assert 0.5 < np.sqrt((distance**2).mean()) < 1.5


def test_only_a_may_differ() -> None:
    found = fit_rates(draw_records(8, np.linspace(0.4, 0.95, 8), 0.7, n=3000), START)
    assert found.spread[0] > 0.4
    assert found.spread[1] < 0.3


def test_a_group_with_few_records_gets_the_mean_and_a_large_error() -> None:
    records = draw_records(9, [0.5, 0.6, 0.7, 0.8, 0.9, 0.9], 0.8, n=2000)
    few = (records.group < 5) | (records.row < 3)
    columns = ("is_no", "is_yes", "lean", "group", "row", "offset")
    records = replace(records, **{name: getattr(records, name)[few] for name in columns})
    found = fit_rates(records, START)
    error = np.sqrt(found.covariance[:, 0, 0])
    assert abs(found.logit[5, 0] - found.mean[0]) < 0.7 * found.spread[0]
    assert error[5] > 0.7 * found.spread[0]
    assert error[5] > 4 * error[0]


def test_scores_that_say_nothing_give_the_share_of_sure_answers_and_a_large_error() -> None:
    records = draw_records(10, 0.9, 0.6, n=4000, signal=0)
    records = replace(records, lean=np.full_like(records.lean, records.lean.mean()))
    found = fit_rates(records, START)
    sure = (records.is_no | records.is_yes).mean()
    np.testing.assert_allclose(expit(found.mean), [sure, sure], atol=0.05)
    difference = np.array([1, -1])
    assert difference @ found.mean_covariance @ difference == pytest.approx(4, rel=0.1)


def test_answers_about_one_row_may_depend_on_each_other() -> None:
    records = draw_records(11, 0.8, 0.7)
    columns = ("is_no", "is_yes", "lean", "group", "row", "offset")
    twice: dict[str, Any] = {name: np.concatenate([getattr(records, name)] * 2) for name in columns}
    once, same = fit_rates(records, START), fit_rates(replace(records, **twice), START)
    np.testing.assert_allclose(same.mean_covariance, once.mean_covariance, rtol=0.05)
    twice["row"] = np.arange(len(twice["row"]))
    other = fit_rates(replace(records, **twice), START)
    np.testing.assert_allclose(other.mean_covariance, once.mean_covariance / 2, rtol=0.05)


def test_offsets_are_added_to_the_logits() -> None:
    records = draw_records(12, 0.8, 0.7)
    moved = replace(records, offset=np.tile([0.5, -0.3], (len(records.row), 1)))
    found = fit_rates(moved, START).logit[0] - fit_rates(records, START).logit[0]
    np.testing.assert_allclose(found, [-0.5, 0.3], atol=0.01)


def test_without_doubt_rates_are_nearly_one() -> None:
    few = draw_records(13, 1.0, 1.0, n=10)
    assert (expit(fit_rates(few, START).logit) < 0.97).all()
    assert (expit(fit_rates(draw_records(13, 1.0, 1.0), START).logit) > 0.995).all()


def test_averages_are_those_of_the_rates() -> None:
    found = fit_rates(draw_records(14, [0.5, 0.7, 0.9], 0.8, n=1000), START)
    weights = np.array([[0.2, 1.0], [0.3, 0.0], [0.5, 0.0]])
    mean, error = found.average(weights)
    rates = expit(found.logit)
    np.testing.assert_allclose(mean, [[0.2, 0.3, 0.5] @ rates[:, 0], rates[0, 1]])
    scale = rates[0, 1] * (1 - rates[0, 1])
    assert error[1] == pytest.approx(scale * math.sqrt(found.covariance[0, 1, 1]))
    assert error[0] < 0.02


def test_the_spread_is_that_of_highest_restricted_likelihood() -> None:
    """Against normal densities written out, for estimates with known errors."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(0, 0.7, 12), np.zeros(12)], axis=1)
    slope = np.tile(np.diag([25.0, 1e-9]), (12, 1, 1))
    pull = np.einsum("gab,gb->ga", slope, values)
    deviances = []
    for spread in rate_effects.SPREADS:
        variance = spread**2 + 1 / 25
        precision = 12 / variance + 0.01 * (0.25 + 0.0625)
        mean = values[:, 0].sum() / variance / precision
        deviance = 12 * math.log(variance) + (values[:, 0] ** 2).sum() / variance
        deviances.append(deviance - precision * mean**2 + math.log(precision) + spread)
    best = rate_effects.SPREADS[int(np.argmin(deviances))]
    assert choose_spread(slope, pull, np.zeros(2)).tolist() == [best, 0]
    assert best > 0.3
