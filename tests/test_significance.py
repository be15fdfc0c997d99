"""Tests of methods against each other: scipy where it has an answer, rules where it has none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from comes.report.experiment_page import show_p
from comes.significance import Ranks, compare_paired, holm, rank_methods


def test_the_plain_test_is_scipys() -> None:
    for k in (5, 6, 10):
        first, second = np.random.default_rng(k).normal(size=(2, k))
        test = compare_paired(first, second, test_over_train=1 / 9)
        assert test.p == pytest.approx(stats.ttest_rel(first, second).pvalue), k
        assert test.difference == pytest.approx((first - second).mean()), k


def test_the_corrected_test_has_the_variance_of_nadeau_and_bengio() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=10) + 0.8, rng.normal(size=10)
    d = first - second
    mean = sum(d) / 10
    variance = sum((x - mean) ** 2 for x in d) / 9
    t = mean / math.sqrt((1 / 10 + 1 / 9) * variance)
    expected = 2 * stats.t.sf(abs(t), df=9)
    test = compare_paired(first, second, test_over_train=1 / 9)
    assert test.p_corrected == pytest.approx(expected)
    assert test.p_corrected > test.p
    assert compare_paired(first, second, 0.0).p_corrected == pytest.approx(test.p)


def test_the_edges_have_rules() -> None:
    five = [0.1, 0.2, 0.3, 0.4, 0.5]
    same = compare_paired(five, five, 0.5)
    assert (same.difference, same.p, same.p_corrected) == (0, 1, 1)
    shifted = compare_paired(five, np.array(five) + 0.1, 0.5)
    assert shifted.difference == pytest.approx(-0.1)
    assert math.isnan(shifted.p) and math.isnan(shifted.p_corrected)  # no variance: no p = 0


def test_fewer_than_five_repeats_are_no_test() -> None:
    for k in (1, 2, 3, 4):
        few = compare_paired([0.1, 0.21, 0.3, 0.4][:k], [0.2, 0.3, 0.4, 0.5][:k], 0.5)
        assert few.difference < 0 and math.isnan(few.p) and math.isnan(few.p_corrected), k


def test_no_p_is_shown_as_0() -> None:
    shown = [show_p(p) for p in (1e-300, 0.0, 2e-5, 0.04, math.nan)]
    assert shown == ["< 1e-06", "< 1e-06", "2e-05", "0.04", "–"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_its_definition(p: list[float]) -> None:
    order = sorted(range(len(p)), key=p.__getitem__)
    expected, running = [0.0] * len(p), 0.0
    for place, index in enumerate(order):
        running = max(running, min(1.0, (len(p) - place) * p[index]))
        expected[index] = running
    np.testing.assert_allclose(holm(p), expected)


def test_holm_does_not_count_what_was_not_tested() -> None:
    np.testing.assert_array_equal(holm([np.nan, 0.02, 0.03]), [np.nan, 0.04, 0.04])
    assert len(holm([])) == 0


def test_ranks_and_their_test_are_scipys() -> None:
    means = np.random.default_rng(0).random((4, 6))
    ranks = rank_methods(list("abcd"), means, higher_is_better=False)
    assert ranks is not None
    assert ranks.friedman_p == pytest.approx(stats.friedmanchisquare(*means).pvalue)
    expected = stats.rankdata(means, axis=0).mean(axis=1)
    assert dict(zip(ranks.methods, ranks.mean_rank, strict=True)) == dict(
        zip("abcd", expected, strict=True)
    )
    assert ranks.mean_rank == sorted(ranks.mean_rank)
    other = rank_methods(list("abcd"), -means, higher_is_better=True)
    assert other == ranks


def test_the_critical_difference_is_that_of_the_published_table() -> None:
    """Nemenyi's q at 0.05 is 2.728 for five methods (Demsar 2006, Table 5)."""
    means = np.random.default_rng(0).random((5, 30))
    ranks = rank_methods(list("abcde"), means, higher_is_better=True)
    assert ranks is not None
    assert ranks.critical_difference == pytest.approx(2.728 * math.sqrt(5 * 6 / (6 * 30)), abs=1e-3)


def test_ties_and_gaps() -> None:
    tied = rank_methods(["a", "b"], np.ones((2, 3)), higher_is_better=True)
    assert tied is not None
    assert (tied.mean_rank, tied.friedman_p) == ([1.5, 1.5], 1.0)
    gap = np.array([[1.0, 2.0, np.nan], [2.0, 3.0, 1.0]])
    some = rank_methods(["a", "b"], gap, higher_is_better=True)
    assert some is not None
    assert (some.n_data, some.methods) == (2, ["b", "a"])
    assert rank_methods(["a", "b"], gap[:, 1:], higher_is_better=True) is None
    assert rank_methods(["a"], gap[:1, :2], higher_is_better=True) is None


def test_bars_join_what_cannot_be_told_apart_and_none_lies_in_another() -> None:
    ranks = Ranks(list("abcd"), [1.0, 1.5, 2.2, 4.0], 9, 0.01, critical_difference=1.0)
    assert ranks.alike() == [(0, 1), (1, 2)]
    assert Ranks(list("ab"), [1.0, 2.0], 9, 0.01, critical_difference=3.0).alike() == [(0, 1)]
    assert Ranks(list("ab"), [1.0, 2.0], 9, 0.01, critical_difference=0.5).alike() == []
