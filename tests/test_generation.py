from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.stats import ks_2samp

from comes.answers.convert import BoolMatrix
from comes.errors import ComesError
from comes.generation import (
    case_a,
    case_b,
    generate,
    independent,
    instance_dependent,
    one_uniform,
    random_size,
    tilted_probability,
)

N, Q = 4000, 5
PRIOR = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
RELEVANT = np.random.default_rng(0).random((N, Q)) < PRIOR
FEATURES = np.random.default_rng(1).normal(size=(N, 3)) + RELEVANT[:, :3]

Process = Callable[[BoolMatrix, int], BoolMatrix]
PROCESSES: dict[str, Process] = {
    "case_a": lambda relevant, seed: case_a(relevant, 0.5, seed),
    "case_b": lambda relevant, seed: case_b(relevant, 0.5, seed),
    "independent": lambda relevant, seed: independent(relevant, 0.5, seed),
    "one_uniform": one_uniform,
    "random_size": random_size,
    "instance_dependent": lambda relevant, seed: instance_dependent(
        relevant, np.arange(len(relevant))[:, None], 0.5, seed=seed
    ),
}


def test_relevant_labels_stay_candidates_and_the_seed_decides() -> None:
    for name, process in PROCESSES.items():
        first, again, other = (process(RELEVANT, seed) for seed in (3, 3, 4))
        assert first.dtype == bool and (first | ~RELEVANT).all(), name
        np.testing.assert_array_equal(first, again, err_msg=name)
        assert (first != other).any(), name
        np.testing.assert_array_equal(process(RELEVANT.astype(int), 3), first, err_msg=name)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_whatever_is_relevant_stays_a_candidate(data: Any) -> None:
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(2, 6)))
    relevant, seed = data.draw(hnp.arrays(bool, shape)), data.draw(st.integers(0, 99))
    for name, process in PROCESSES.items():
        candidates = process(relevant, seed)
        assert candidates.shape == relevant.shape, name
        assert (candidates | ~relevant).all(), name


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


def test_independent_draws_are_case_a_by_its_exclude_rate() -> None:
    rates = np.array([0.0, 0.25, 0.5, 1.0, 0.1])
    candidates = independent(RELEVANT, rates, seed=2)
    np.testing.assert_array_equal(candidates, case_a(RELEVANT, 1 - rates, seed=2))
    n_irrelevant = (~RELEVANT).sum(axis=0)
    share = (~candidates).sum(axis=0) / n_irrelevant
    assert (abs(share - rates) <= 4 * np.sqrt(rates * (1 - rates) / n_irrelevant)).all()


def test_the_defaults_are_the_rates_of_the_paper() -> None:
    nothing = np.zeros((4000, 1), dtype=bool)
    assert case_a(nothing).mean() == pytest.approx(0.9, abs=0.02)
    assert case_b(nothing).mean() == 0.9


def test_one_uniform_label_per_row_among_the_irrelevant_ones() -> None:
    relevant = RELEVANT.copy()
    relevant[0] = True
    excluded = ~one_uniform(relevant, seed=2)
    np.testing.assert_array_equal(excluded.sum(axis=1), (~relevant).any(axis=1))
    rows = (~relevant).sum(axis=1) == 3
    share = excluded[rows].sum() and (excluded & ~relevant)[rows].sum(axis=0)
    expected = (~relevant)[rows].sum(axis=0) / 3
    assert (abs(share - expected) < 4 * np.sqrt(expected)).all()


def test_random_sizes_follow_their_distribution() -> None:
    """C(q, s) / (2^q - 2) for s = 1 to q - 1, where every label is irrelevant."""
    n, q = 40000, 5
    sizes = (~random_size(np.zeros((n, q)), seed=0)).sum(axis=1)
    for s in range(q + 1):
        p = comb(q, s) / (2**q - 2) if 0 < s < q else 0
        assert abs((sizes == s).mean() - p) <= 4 * np.sqrt(p * (1 - p) / n)


def test_a_random_size_beyond_the_irrelevant_labels_excludes_all_of_them() -> None:
    relevant = np.ones((200, 6), dtype=bool)
    relevant[:, 2] = False
    np.testing.assert_array_equal(random_size(relevant), relevant)
    with pytest.raises(ComesError, match="needs two labels; got 1"):
        random_size(np.zeros((3, 1)))


def test_random_sizes_do_not_overflow_with_many_labels() -> None:
    sizes = (~random_size(np.zeros((50, 2000)), seed=0)).sum(axis=1)
    assert abs(sizes.mean() - 1000) < 20


def test_the_instance_dependent_rate_holds_on_average() -> None:
    rates = np.array([0.1, 0.3, 0.0, 1.0, 0.5])
    excluded = ~instance_dependent(
        RELEVANT, sparse.csr_array(FEATURES), rates, strength=3.0, seed=5
    )
    n_irrelevant = (~RELEVANT).sum(axis=0)
    share = excluded.sum(axis=0) / n_irrelevant
    assert (abs(share - rates) <= 4 * np.sqrt(rates * (1 - rates) / n_irrelevant)).all()
    dense = instance_dependent(RELEVANT, FEATURES, rates, strength=3.0, seed=5)
    np.testing.assert_array_equal(~excluded, dense)


def test_constant_features_and_strength_0_leave_nothing_to_depend_on() -> None:
    nothing = np.zeros((4000, 2))
    for X, strength in ((np.ones((4000, 3)), 5.0), (FEATURES, 0.0)):
        excluded = ~instance_dependent(nothing, X, 0.3, strength=strength)
        assert excluded.mean() == pytest.approx(0.3, abs=0.03)
    with pytest.raises(ComesError, match=r"4000 rows of labels need as many .* \(3, 3\)"):
        instance_dependent(nothing, np.ones((3, 3)))


N_LARGE = 20000


def rows_with_few_or_many_labels() -> tuple[BoolMatrix, Any]:
    """Rows whose feature x says how many labels are relevant: about 1 or about 4 of 5."""
    rng = np.random.default_rng(7)
    many = rng.random(N_LARGE) < 0.5
    relevant = rng.random((N_LARGE, Q)) < np.where(many, 0.8, 0.2)[:, None]
    return relevant, many + 0.5 * rng.normal(size=N_LARGE)


def largest_distance(candidates: BoolMatrix, relevant: BoolMatrix, x: Any) -> float:
    """Return the least p-value over labels that excluding rows are a sample of the irrelevant."""
    tests = [
        ks_2samp(x[~candidates[:, j]], x[~relevant[:, j] & candidates[:, j]]) for j in range(Q)
    ]
    return float(min(test.pvalue for test in tests))


def test_lemma_1_holds_where_rows_are_excluded_by_label() -> None:
    """p(x | j excluded) = p(x | j irrelevant), for a feature tied to the number of labels.

    The rows that exclude j are compared with the other rows irrelevant to j.
    """
    relevant, x = rows_with_few_or_many_labels()
    for name in ("case_a", "case_b", "independent"):
        assert largest_distance(PROCESSES[name](relevant, 2), relevant, x) > 1e-3, name


def test_lemma_1_fails_where_the_number_of_labels_or_the_instance_counts() -> None:
    relevant, x = rows_with_few_or_many_labels()
    for name in ("one_uniform", "random_size"):
        assert largest_distance(PROCESSES[name](relevant, 2), relevant, x) < 1e-9, name
    candidates = instance_dependent(relevant, x[:, None], 0.5, seed=2)
    assert largest_distance(candidates, relevant, x) < 1e-9


def test_lemma_1_holds_for_one_uniform_label_if_all_rows_have_as_many() -> None:
    rng = np.random.default_rng(3)
    relevant = rng.random((N_LARGE, Q)).argsort(axis=1) < 2
    x = relevant @ np.arange(Q) + rng.normal(size=N_LARGE)
    assert largest_distance(one_uniform(relevant, 1), relevant, x) > 1e-3


def test_a_rate_outside_0_and_1_or_of_another_length_is_refused() -> None:
    wrong: list[Any] = [-0.1, 1.5, [0.1, 0.2], np.nan]
    for rate in wrong:
        with pytest.raises(ComesError, match=r"one number in \[0, 1\], or one for each of the 5"):
            case_a(RELEVANT, rate)
        with pytest.raises(ComesError, match="exclude_rate must be one number"):
            instance_dependent(RELEVANT, FEATURES, rate)


def test_the_level_gives_the_rate_on_irrelevant_rows_exactly() -> None:
    slope = FEATURES[:, [0] * Q] * np.array([0.5, 2.0, 20.0, 200.0, 1.0])
    rate = np.array([0.1, 0.5, 0.3, 0.7, 0.01])
    probability = tilted_probability(slope, ~RELEVANT, rate)
    level = np.log(probability[:, 0] / (1 - probability[:, 0])) - slope[:, 0]
    np.testing.assert_allclose(level, level[0])  # one number for each label
    mean = (probability * ~RELEVANT).sum(axis=0) / (~RELEVANT).sum(axis=0)
    np.testing.assert_allclose(mean, rate, atol=1e-6)


def test_the_size_of_a_feature_does_not_matter() -> None:
    first = instance_dependent(RELEVANT, FEATURES, 0.3)
    np.testing.assert_array_equal(instance_dependent(RELEVANT, FEATURES * [1, 1e6, 1], 0.3), first)
    explicit = instance_dependent(RELEVANT, FEATURES, exclude_rate=0.1, strength=2.0, seed=0)
    np.testing.assert_array_equal(instance_dependent(RELEVANT, FEATURES), explicit)


def test_a_strength_or_features_of_another_form_are_refused() -> None:
    for strength in (np.nan, np.inf):
        with pytest.raises(ComesError, match="strength must be a finite number"):
            instance_dependent(RELEVANT, FEATURES, strength=strength)
    with pytest.raises(ComesError, match="need as many rows of features"):
        instance_dependent(RELEVANT, FEATURES[:, 0])


def test_processes_by_name_are_the_functions() -> None:
    for case, expected in (
        ("a", case_a(RELEVANT, seed=3)),
        ("b", case_b(RELEVANT, seed=3)),
        ("independent", independent(RELEVANT, seed=3)),
        ("one", one_uniform(RELEVANT, 3)),
        ("size", random_size(RELEVANT, 3)),
        ("instance", instance_dependent(RELEVANT, FEATURES, seed=3)),
    ):
        np.testing.assert_array_equal(generate(case, RELEVANT, FEATURES, seed=3), expected)  # type: ignore[arg-type]
    for case, function in (("a", case_a), ("b", case_b), ("independent", independent)):
        made = generate(case, RELEVANT, rate=0.3, seed=1)  # type: ignore[arg-type]
        np.testing.assert_array_equal(made, function(RELEVANT, 0.3, 1))
    made = generate("instance", RELEVANT, FEATURES, rate=0.3, strength=5.0, seed=1)
    np.testing.assert_array_equal(made, instance_dependent(RELEVANT, FEATURES, 0.3, 5.0, 1))
    with pytest.raises(ComesError, match="case instance needs features"):
        generate("instance", RELEVANT)
    with pytest.raises(ComesError, match="case must be one of a, b, .*; got 'c'"):
        generate("c", RELEVANT)  # type: ignore[arg-type]


def test_features_that_are_not_finite_exclude_nothing_by_accident() -> None:
    bad = FEATURES.copy()
    bad[7, 1] = np.nan
    for X in (bad, sparse.csr_array(bad)):
        with pytest.raises(ComesError, match="features must be finite"):
            instance_dependent(RELEVANT, X)
