"""Kappa against Fleiss' own formula, and its interval by simulation."""

import math

import numpy as np
import pytest

from comes.annotate.summary import measure_agreement


def fleiss_kappa_by_loops(both_no: int, disagree: int, both_maybe: int) -> float:
    """Return kappa as Fleiss writes it: a row per item, a column per answer, two raters."""
    table = [(2, 0)] * both_no + [(1, 1)] * disagree + [(0, 2)] * both_maybe
    n = len(table)
    agreed = sum((a * (a - 1) + b * (b - 1)) / 2 for a, b in table) / n
    shares = [sum(row[k] for row in table) / (2 * n) for k in (0, 1)]
    chance = sum(share**2 for share in shares)
    return (agreed - chance) / (1 - chance)


def test_kappa_is_that_of_fleiss() -> None:
    for counts in ((40, 10, 50), (1, 1, 1), (90, 5, 5), (0, 3, 4), (7, 0, 2)):
        agreement = measure_agreement(counts)
        assert agreement.n_pairs == sum(counts)
        assert agreement.share == (counts[0] + counts[2]) / sum(counts)
        assert agreement.kappa == pytest.approx(fleiss_kappa_by_loops(*counts)), counts
        assert agreement.lower < agreement.upper


def test_kappa_without_pairs() -> None:
    agreement = measure_agreement([0, 0, 0])
    assert agreement.n_pairs == 0
    values = (agreement.share, agreement.kappa, agreement.lower, agreement.upper)
    assert all(math.isnan(value) for value in values)


def test_kappa_where_all_agree() -> None:
    assert measure_agreement([5, 0, 7]).kappa == 1
    for counts in ([9, 0, 0], [0, 0, 9], [1, 0, 0]):  # all the same: chance explains it
        agreement = measure_agreement(counts)
        assert agreement.share == 1 and math.isnan(agreement.kappa)
        assert -1 <= agreement.lower < agreement.upper <= 1


def test_kappa_where_all_differ() -> None:
    agreement = measure_agreement([0, 12, 0])
    assert (agreement.share, agreement.kappa) == (0, -1)
    assert -1 <= agreement.lower < agreement.upper < 0


def test_the_interval_is_wide_for_few_pairs_and_narrow_for_many() -> None:
    few, many = measure_agreement([4, 1, 5]), measure_agreement([400, 100, 500])
    assert few.upper - few.lower > 3 * (many.upper - many.lower)
    assert many.lower < many.kappa < many.upper


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    for shares in ([0.5, 0.2, 0.3], [0.85, 0.1, 0.05]):
        truth = measure_agreement(np.array(shares) * 1e6).kappa
        found = [measure_agreement(rng.multinomial(80, shares)) for _ in range(300)]
        held = np.mean([one.lower <= truth <= one.upper for one in found])
        assert 0.91 <= held <= 0.985
