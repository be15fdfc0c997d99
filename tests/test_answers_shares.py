"""Shares estimated from several rounds of draws: unbiased, and inside their intervals."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import beta

from comes.answers import Share, draw_questions, estimate_share
from comes.answers.questions import _weigh, pool_shares
from comes.errors import ComesError

N, FIRST, MORE, ROUNDS = 400, 50, 50, 3


class Outcome(NamedTuple):
    """One simulated project: the estimate, the plain mean, and that of as many random draws."""

    estimate: Share
    naive: float
    at_random: Share


def test_one_uniform_round_is_the_share_among_those_asked() -> None:
    values = np.array([1, 0, 0, 1, 1, 0, 0, 0])
    found = estimate_share(values, np.full(8, 8 / 1000), np.zeros(8), 1000)
    assert found.share == pytest.approx(3 / 8)
    # with so small a part drawn, the interval is that of Clopper and Pearson, for the same variance
    n = found.share * (1 - found.share) / found.standard_error**2
    assert n == pytest.approx(8, rel=0.1)
    assert found.lower == pytest.approx(beta.ppf(0.025, 3 / 8 * n, 5 / 8 * n + 1))
    assert found.upper == pytest.approx(beta.ppf(0.975, 3 / 8 * n + 1, 5 / 8 * n))


def test_uniform_rounds_together_are_the_share_among_all_who_were_asked() -> None:
    rng = np.random.default_rng(0)
    values, rounds = rng.integers(0, 2, 30), np.repeat([0, 1, 2], [10, 5, 15])
    p = np.repeat([10 / 100, 5 / 90, 15 / 85], [10, 5, 15])
    assert estimate_share(values, p, rounds, 100).share == pytest.approx(values.mean())


def test_equals_the_formula_written_as_loops() -> None:
    values, rounds = [1, 0, 1, 1, 0], [0, 0, 0, 1, 1]
    p, expected, n = [0.3, 0.3, 0.3, 0.6, 0.2], [np.nan] * 3 + [0.7, 0.1], 10
    first = sum(v / 0.3 for v in values[:3])
    second = 2 + 3.1 + (1 - 0.7) / 0.6 + (0 - 0.1) / 0.2  # known, expected, and the differences
    units = [7 / 0.3, 9.0]
    weights = [1 / units[0] / (1 / units[0] + 1 / units[1])]
    weights.append(1 - weights[0])
    found = estimate_share(
        values,
        p,
        rounds,
        n,
        expected=expected,
        spreads={0: units[0], 1: units[1]},
        expected_totals={1: 3.1},
    )
    # 3 of 10 were drawn, not exactly 0.3 * n: the uniform round expects its own (smoothed) mean
    m = (2 / 3 * 3 + 0.5) / 4
    first = m * n + sum((v - m) / 0.3 for v in values[:3])
    assert found.share == pytest.approx((weights[0] * first + weights[1] * second) / n)
    variances = [
        sum(0.7 / 0.3**2 * (v - m) ** 2 for v in values[:3]),
        0.4 / 0.6**2 * 0.3**2 + 0.8 / 0.2**2 * 0.1**2,
    ]
    variance = sum(w**2 * v for w, v in zip(weights, variances, strict=True)) / n**2
    assert found.standard_error == pytest.approx(variance**0.5)


def test_answers_that_are_missing_add_to_the_variance_by_the_formula_written_as_loops() -> None:
    n, nan = 10, np.nan
    first, second = [1, 0, nan, 1], [0, 1, nan]
    p, expected = [0.5, 0.6, 0.3], [0.2, 0.7, 0.4]
    found = estimate_share(
        first + second,
        [0.4] * 4 + p,
        [0] * 4 + [1] * 3,
        n,
        expected=[nan] * 4 + expected,
        spreads={0: 15.0, 1: 6.0},
        expected_totals={1: 2.9},
    )
    m = (2 + 0.5) / (3 + 1)  # the uniform round expects its own mean, smoothed
    totals = [m * n + sum((v - m) / 0.4 for v in (1, 0, 1)) / (3 / 4)]
    totals.append(2 / (3 / 4) + 2.9 + ((0 - 0.2) / 0.5 + (1 - 0.7) / 0.6) / (2 / 3))
    units = [(15 + 10) / (3 / 4) - 10, 4**2 * (1 / 4) / 3 + (6 + 6) / (2 / 3) - 6]
    weights = [(1 / unit) / (1 / units[0] + 1 / units[1]) for unit in units]
    assert found.share == pytest.approx((weights[0] * totals[0] + weights[1] * totals[1]) / n)
    variance = 0.0
    for weight, later, drawn, answers in (
        (weights[0], weights[1], 4, [(v, m, 0.4) for v in (1, 0, 1)]),
        (weights[1], 0.0, 3, [(0, 0.2, 0.5), (1, 0.7, 0.6)]),
    ):
        by_draw = sum((1 - p) / p**2 * (v - m) ** 2 for v, m, p in answers)
        variance += weight**2 * by_draw * drawn / len(answers)
        adds = [weight * (v - m) / p + later * v for v, m, p in answers]
        variance += drawn**2 * (1 / len(answers) - 1 / drawn) * float(np.var(adds, ddof=1))
    assert found.standard_error == pytest.approx(variance**0.5 / n)


def test_without_a_model_a_round_expects_the_share_so_far() -> None:
    n, first, second, p = 20, [1, 0, 0, 1, 0], [1, 0], [0.4, 0.2]
    found = estimate_share(
        first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n, spreads={0: 60.0, 1: 40.0}
    )
    m = (2 + 0.5) / (5 + 1)
    totals = [m * n + sum((v - m) / 0.25 for v in first)]
    so_far, n_so_far = totals[0] / n, n**2 / 60
    m = (so_far * n_so_far + 0.5) / (n_so_far + 1)
    totals.append(sum(first) + m * 15 + sum((v - m) / q for v, q in zip(second, p, strict=True)))
    assert found.share == pytest.approx((0.4 * totals[0] + 0.6 * totals[1]) / n)
    default = estimate_share(first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n)
    spreads = {0: 5 * 0.75 / 0.25**2, 1: 0.6 / 0.4**2 + 0.8 / 0.2**2}
    given = estimate_share(
        first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n, spreads=spreads, confidence=0.95
    )
    assert default == pytest.approx(given)
    wider = estimate_share(first, [0.0025] * 5, [0] * 5, 2000, confidence=0.99)
    narrow = estimate_share(first, [0.0025] * 5, [0] * 5, 2000)
    assert wider.lower < narrow.lower < narrow.upper < wider.upper


def run_project(seed: int, *, with_model: bool, answered: float = 1.0) -> Outcome:
    """Draw a first round at random and others by a model of the answers; estimate the share."""
    rng = np.random.default_rng(seed)
    values, x = POPULATION
    first = rng.choice(N, FIRST, replace=False)
    table: list[Any] = [(values[i], FIRST / N, 0, np.nan) for i in first]
    asked = np.isin(np.arange(N), first)
    spreads, totals = {0: N * (N / FIRST - 1)}, {}
    for number in range(1, ROUNDS + 1):
        eta = learn(x[asked], values[asked], x)
        drawn = draw_questions(eta[:, None], MORE, is_open=~asked[:, None], seed=10 * seed + number)
        spreads[number], totals[number] = float(drawn.spread.sum()), float(eta[~asked].sum())
        for i, p in zip(drawn.row, drawn.probability, strict=True):
            table.append((values[i], p, number, eta[i]))
        asked[drawn.row] = True
    v, p, rounds, expected = np.array(table).T
    naive = float(v.mean())
    v[rng.random(len(v)) > answered] = np.nan
    more = {"expected": expected, "expected_totals": totals} if with_model else {}
    estimate = estimate_share(v, p, rounds, N, spreads=spreads, **more)
    as_many = rng.choice(N, len(table), replace=False)
    chance = np.full(len(table), len(table) / N)
    return Outcome(estimate, naive, estimate_share(values[as_many], chance, 0 * chance, N))


def learn(x: Any, values: Any, everywhere: Any) -> Any:
    """Return what the values are expected to be, by the share of yes among ten neighbours."""
    nearest = np.argsort(abs(everywhere[:, None] - x), axis=1)[:, :10]
    return 0.02 + 0.96 * values[nearest].mean(axis=1)


def make_population() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    x = rng.normal(size=N)
    return (rng.random(N) < 1 / (1 + np.exp(2.2 - 2 * x))).astype(float), x


POPULATION = make_population()
TRUE = float(POPULATION[0].mean())


@pytest.mark.parametrize(("with_model", "answered"), [(False, 1), (True, 1), (True, 0.7)])
def test_means_are_unbiased_and_intervals_cover(with_model: bool, answered: float) -> None:
    runs = [run_project(seed, with_model=with_model, answered=answered) for seed in range(150)]
    shares = np.array([run.estimate.share for run in runs])
    assert abs(shares.mean() - TRUE) < 3.5 * shares.std() / 150**0.5
    covered = np.mean([run.estimate.lower <= TRUE <= run.estimate.upper for run in runs])
    assert 0.92 <= covered <= 0.995
    naive = np.array([run.naive for run in runs])  # the plain mean is off, by many standard errors
    assert naive.mean() - TRUE > 0.03 > 15 * naive.std() / 150**0.5
    if with_model and answered == 1:  # what a model expects makes it surer than random draws are
        assert shares.std() < 0.95 * np.std([run.at_random.share for run in runs])


def test_what_a_model_chose_is_known_to_later_rounds_and_estimates_nothing_itself() -> None:
    first, p = [1, 0, 0, 0], [0.4] * 4
    alone = estimate_share(first, p, [0] * 4, 10)
    chosen = estimate_share([*first, 1, 1], [*p, np.nan, np.nan], [0] * 4 + [1, 1], 10)
    assert chosen.share == max(alone.share, 0.3)  # three of ten are known
    assert chosen.lower >= 0.3 and chosen.upper <= 0.7
    nothing = estimate_share([1, 0], [np.nan] * 2, [0, 0], 10)
    assert np.isnan(nothing.share) and (nothing.lower, nothing.upper) == (0.1, 0.9)


def test_everything_asked_is_known_exactly() -> None:
    found = estimate_share([1, 0, 1, 1], [0.5, 0.5, 1, 1], [0, 0, 1, 1], 4)
    assert found == Share(0.75, 0.0, 0.75, 0.75)


def test_groups_are_pooled_by_their_sizes() -> None:
    values = np.array([1, 0, 0, 1, 0])
    one = estimate_share(values, np.full(5, 0.1), np.zeros(5), 50)
    assert pool_shares([one], [50]) == one
    both = pool_shares([one, Share(0.1, 0.02, 0.07, 0.15)], [50, 150])
    assert both.share == pytest.approx(0.25 * 0.4 + 0.75 * 0.1)
    assert both.standard_error**2 == pytest.approx(
        (0.25 * one.standard_error) ** 2 + (0.75 * 0.02) ** 2
    )
    assert both.lower < both.share < both.upper


def test_errors_say_what_was_wanted() -> None:
    with pytest.raises(ComesError, match="must have the same length"):
        estimate_share([1, 0], [0.5], [0, 0], 10)
    with pytest.raises(ComesError, match="must have the same length, at most n_items"):
        estimate_share([1, 0], [0.5, 0.5], [0, 0], 1)
    with pytest.raises(ComesError, match=r"probabilities must be in \(0, 1\]"):
        estimate_share([1, 0], [0.5, 0], [0, 0], 10)


def test_rounds_count_by_the_inverse_of_their_variance_and_an_exact_one_alone() -> None:
    np.testing.assert_allclose(_weigh(np.array([0.5, 2.0]))[0], [0.8, 0.2])
    np.testing.assert_allclose(_weigh(np.array([0.5, 0.0, 2.0]))[0], [0.0, 1.0, 0.0])
