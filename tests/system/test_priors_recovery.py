"""Rates and class priors over many draws: short forms of these studies are in tests/."""

from functools import cache

import numpy as np
import pytest
from scipy.special import logit

from comes.answers import Answers, State
from comes.datasets import make_scenes
from comes.errors import ComesWarning
from comes.generation import case_b
from comes.priors import (
    ClassPriorEstimate,
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    estimate_flip_rate,
)
from comes.priors.answer_rates import fit_rate_effects
from comes.priors.pooled import pool_rates
from drawn_counts import (
    count_answers,
    count_candidates,
    draw_priors,
    is_near,
)
from drawn_records import draw_records, mistake_evidence

SCENES = make_scenes("train", n=3000)
RELEVANT = SCENES.known_relevant()
PRIOR = count_class_prior(RELEVANT)


# From counts


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
@pytest.mark.parametrize("rate", [0.002, 0.1, 0.6])
def test_the_exclude_rate_of_rare_labels_has_no_bias_over_many_draws(rate: float) -> None:
    """No label has a relevant row but for 1 of 2001: the largest shares are large by chance."""
    prior = np.full(2000, 1 / 2001)
    found = [
        pool_rates(count_candidates(prior, 2000, rate, seed), "candidates").overall[0]
        for seed in range(30)
    ]
    assert is_near(found, rate)
    assert np.std(found) < 0.03 * rate


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_errors_from_counts_cover_over_many_draws() -> None:
    prior = draw_priors(400)
    for rate in (0.05, 0.5):
        found = [
            pool_rates(count_candidates(prior, 5000, rate, s), "candidates") for s in range(10)
        ]
        near = [abs(e.overall[0] - rate) < 2 * e.overall_error[0] for e in found]
        assert np.mean(near) > 0.8
        inside = [abs(e.class_prior - prior) < 2 * e.class_prior_error for e in found]
        assert np.mean(inside) > 0.9


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
@pytest.mark.parametrize(("a", "b"), [(0.8, 0.8), (0.9, 0.6), (0.6, 0.9), (0.98, 0.7)])
def test_both_rates_of_answers_have_no_bias_over_many_draws(a: float, b: float) -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    found = [
        pool_rates(count_answers(prior, 300, a, b, seed), "answers").overall.tolist()
        for seed in range(30)
    ]
    assert is_near([one[0] for one in found], a)
    assert is_near([one[1] for one in found], b)


# From records


@pytest.mark.parametrize(("a", "b"), [(0.8, 0.8), (0.95, 0.6), (0.6, 0.9)])
@pytest.mark.parametrize("is_eta_right", [True, False])
def test_rates_of_records_are_unbiased_and_errors_are_honest_over_many_draws(
    a: float, b: float, is_eta_right: bool
) -> None:
    distances = []
    for seed in range(60):
        records = draw_records(seed, a, b)
        if not is_eta_right:
            records = mistake_evidence(records)
        found = fit_rate_effects(records, np.array([1.0, 1.0]))
        error = np.sqrt(np.diag(found.mean_covariance))
        distances.append((found.mean - logit([a, b])) / error)
    assert (abs(np.mean(distances, axis=0)) < 0.45).all()
    assert (abs(np.std(distances, axis=0) - 1) < 0.3).all()


# From features, with the models that a user gets


@cache
def estimate_at(rate: float) -> ClassPriorEstimate:
    return estimate_class_prior(SCENES.X, case_b(RELEVANT, rate, seed=0))


@pytest.mark.parametrize(("rate", "error"), [(0.3, 0.05), (0.5, 0.03), (0.9, 0.02)])
def test_the_prior_of_scenes_is_near_the_truth(rate: float, error: float) -> None:
    estimate = estimate_at(rate)
    assert abs(estimate.class_prior - PRIOR).mean() < error
    assert abs(estimate.exclude_rate - rate).mean() < error


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_bounds_and_standard_errors_of_scenes_hold(rate: float) -> None:
    estimate = estimate_at(rate)
    assert ((estimate.lower <= PRIOR) & (estimate.upper >= PRIOR)).mean() >= 0.9
    error = abs(estimate.class_prior - PRIOR)
    assert (error <= 2 * estimate.standard_error).mean() >= 0.8
    assert estimate.standard_error.mean() < 5 * error.mean() + 0.02
    assert estimate.exclude_rate_error is not None
    assert (abs(estimate.exclude_rate - rate) <= 2 * estimate.exclude_rate_error).mean() >= 0.8


def test_prior_and_exclude_rate_of_scenes_say_nearly_the_same() -> None:
    candidates, estimate = case_b(RELEVANT, 0.5, seed=0), estimate_at(0.5)
    expected = 1 - (~candidates).mean(axis=0) / estimate.exclude_rate
    np.testing.assert_allclose(estimate.class_prior, expected, atol=0.02)


def test_a_label_of_scenes_without_a_relevant_row_has_a_prior_near_0() -> None:
    candidates = case_b(np.where(np.arange(10) == 4, False, RELEVANT), 0.5, seed=0)
    estimate = estimate_class_prior(SCENES.X, candidates)
    assert estimate.class_prior[4] < 0.05 and estimate.lower[4] == 0


def test_the_published_best_bin_finds_the_prior_of_scenes_too() -> None:
    candidates = case_b(RELEVANT, 0.5, seed=0)[:, :3]
    estimate = estimate_class_prior(SCENES.X, candidates, "bbe")
    assert abs(estimate.class_prior - PRIOR[:3]).mean() < 0.1


def test_a_prior_that_2000_rows_do_not_show_is_uncertain() -> None:
    """The features say nothing of the label, so no row is surely irrelevant."""
    rng = np.random.default_rng(0)
    noise, relevant = rng.normal(size=(2000, 2)), rng.random((2000, 1)) < 0.5
    with pytest.warns(ComesWarning, match="its standard error is above 0.15"):
        estimate = estimate_class_prior(noise, case_b(relevant, 0.5, seed=0))
    assert estimate.flags == ("uncertain",)
    assert abs(estimate.class_prior[0] - 0.5) < 2 * estimate.standard_error[0]


def test_rates_of_answers_about_scenes_are_found() -> None:
    relevant = RELEVANT[:1200]
    rng = np.random.default_rng(3)
    is_sure = rng.random(relevant.shape) < np.where(relevant, 0.6, 0.9)
    codes = np.where(is_sure, np.where(relevant, State.YES, State.NO), State.MAYBE)
    codes = np.where(rng.random(relevant.shape) < 0.3, codes, State.NOT_ASKED)
    found = estimate_answer_rates(SCENES.X[:1200], Answers.from_codes(codes))
    assert (abs(found.overall - [0.9, 0.6]) < 3 * found.overall_error).all()
    assert (found.overall_error < 0.05).all()


def test_flip_rates_are_found_at_anchor_points_of_4000_rows() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 6))
    relevant, rates = X[:, :4] > 0.5, np.array([0.1, 0.4, 0.7, 0.9])
    candidates = relevant | (np.random.default_rng(1).random(relevant.shape) < rates)
    assert abs(estimate_flip_rate(X, candidates) - rates).max() < 0.05
    lowest = estimate_flip_rate(X[:1500], candidates[:1500], anchor_share=0)
    assert (lowest[1:] < rates[1:] - 0.15).all() and (lowest >= 0).all()
