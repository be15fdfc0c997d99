from collections.abc import Callable

import numpy as np
import pytest

from comes.errors import ComesError
from comes.generation import case_a, case_b

N, Q = 4000, 5
PRIOR = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
RELEVANT = np.random.default_rng(0).random((N, Q)) < PRIOR


@pytest.mark.parametrize("case", [case_a, case_b])
def test_relevant_labels_stay_candidates_and_the_seed_decides(case: Callable[..., object]) -> None:
    first, again, other = (case(RELEVANT, 0.5, seed) for seed in (3, 3, 4))
    assert isinstance(first, np.ndarray)
    assert (first | ~RELEVANT).all()
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_case_a_hits_its_rate_per_label_within_binomial_bounds() -> None:
    rates = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    candidates = case_a(RELEVANT, rates, seed=1)
    n_irrelevant = (~RELEVANT).sum(axis=0)
    flipped = (candidates & ~RELEVANT).sum(axis=0) / n_irrelevant
    assert (abs(flipped - rates) < 4 * np.sqrt(rates * (1 - rates) / n_irrelevant)).all()


def test_case_b_excludes_an_exact_count_per_label() -> None:
    rates = np.array([0.1, 0.25, 0.5, 1.0, 0.0])
    excluded = ~case_b(RELEVANT, rates, seed=1)
    expected = np.floor(rates * (~RELEVANT).sum(axis=0) + 1e-9)
    np.testing.assert_array_equal(excluded.sum(axis=0), expected)


def test_case_b_does_not_lose_a_row_to_rounding() -> None:
    assert 0.29 * 100 < 29
    assert (~case_b(np.zeros((100, 1), dtype=bool), 0.29)).sum() == 29


def test_0_and_1_do_as_well_as_false_and_true() -> None:
    for case in (case_a, case_b):
        candidates = case(RELEVANT.astype(int), 0.5, seed=3)
        np.testing.assert_array_equal(candidates, case(RELEVANT, 0.5, seed=3))
        assert candidates.dtype == bool


def test_the_defaults_are_the_rates_of_the_paper() -> None:
    nothing = np.zeros((4000, 1), dtype=bool)
    assert case_a(nothing).mean() == pytest.approx(0.9, abs=0.02)
    assert case_b(nothing).mean() == 0.9


@pytest.mark.parametrize("case", [case_a, case_b])
def test_excluding_rows_are_a_fair_sample_of_the_irrelevant_ones(
    case: Callable[..., object],
) -> None:
    """Lemma 1: p(x | j excluded) = p(x | j irrelevant), here for a feature tied to the truth."""
    x = RELEVANT.sum(axis=1) + np.random.default_rng(1).normal(size=N)
    candidates = case(RELEVANT, 0.5, 2)
    assert isinstance(candidates, np.ndarray)
    for j in range(Q - 1):
        drawn, pool = x[~candidates[:, j]], x[~RELEVANT[:, j]]
        assert abs(drawn.mean() - pool.mean()) < 4 * pool.std() / np.sqrt(len(drawn))
        assert abs(drawn.std() - pool.std()) < 4 * pool.std() / np.sqrt(len(drawn))


@pytest.mark.parametrize("rate", [-0.1, 1.5, [0.1, 0.2], np.nan])
def test_a_rate_outside_0_and_1_or_of_another_length_is_refused(rate: object) -> None:
    with pytest.raises(ComesError, match=r"one number in \[0, 1\], or one for each of the 5"):
        case_a(RELEVANT, rate)  # type: ignore[arg-type]
