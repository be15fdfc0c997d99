"""Class priors of answers of any kind, and what is known in the place of estimates."""

from typing import Any

import numpy as np
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.generation import independent, simulate_answers
from comes.priors import (
    ClassPriorEstimate,
    RatesEstimate,
    estimate_answer_rates,
    estimate_class_prior,
    fill_class_prior,
    find_class_prior,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
RELEVANT = X[:, :2] > np.array([0.3, 0.8])
CANDIDATES = independent(RELEVANT, 0.5, seed=1)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)


def test_each_kind_has_its_own_estimator() -> None:
    said = Answers.from_candidates(CANDIDATES)
    cases: tuple[dict[str, Any], ...] = ({}, {"exclude_rate": 0.5})
    for options in cases:
        found = find_class_prior(X, said, random_state=3, **options)
        same = estimate_class_prior(X, CANDIDATES, random_state=3, **options)
        assert isinstance(found, ClassPriorEstimate)
        np.testing.assert_array_equal(found.class_prior, same.class_prior)
    found = find_class_prior(X, ANSWERS, random_state=3)
    same_rates = estimate_answer_rates(X, ANSWERS, random_state=3)
    assert isinstance(found, RatesEstimate)
    np.testing.assert_array_equal(found.class_prior, same_rates.class_prior)


def test_with_both_rates_known_only_counts_are_needed() -> None:
    """Where maybe says nothing (a = b), the prior is the share of yes among sure answers."""
    sure = simulate_answers(RELEVANT, asked_rate=0.8, no_rate=0.7, yes_rate=0.7, seed=2)
    found = estimate_answer_rates(None, sure, no_rate=0.7, yes_rate=0.7)
    yes, no = sure.confirmed.sum(axis=0), sure.excluded.sum(axis=0)
    np.testing.assert_allclose(found.class_prior, yes / (yes + no), atol=0.01)
    np.testing.assert_array_equal(found.rates.no_rate, [0.7, 0.7])
    assert found.rates.no_error is not None and not found.rates.no_error.any()
    assert abs(found.class_prior - RELEVANT.mean(axis=0)).max() < 0.06
    wrong = estimate_answer_rates(None, sure, no_rate=0.9, yes_rate=0.3)
    assert (wrong.class_prior > found.class_prior + 0.05).all()  # maybe is then mostly relevant


def test_known_priors_take_the_place_of_estimates_of_either_kind() -> None:
    known = [np.nan, 0.25]
    for found in (find_class_prior(X, ANSWERS), estimate_class_prior(X, CANDIDATES)):
        filled = fill_class_prior(known, found)
        assert filled.class_prior.tolist() == [found.class_prior[0], 0.25]
        assert filled.standard_error[0] > 0 == filled.standard_error[1]
        assert filled.flags == (found.flags[0], "known")


@pytest.mark.parametrize("known", [[0.2], [0.2, 1.5], [-1, np.nan]])
def test_known_priors_must_be_shares(known: Any) -> None:
    with pytest.raises(ComesError, match="one number in .0, 1. for each of 2 labels, or NaN"):
        fill_class_prior(known, estimate_class_prior(X, CANDIDATES))
