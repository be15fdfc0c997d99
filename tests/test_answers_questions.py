"""What to ask next: information against plain sums, draws that keep their probabilities, shares."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import beta

from comes.answers import AnswerRates, Answers, State, choose_questions
from comes.answers.questions import (
    Round,
    Share,
    _weigh,
    draw_questions,
    estimate_share,
    expected_bits,
    inclusion_probabilities,
    pool_shares,
    share_questions,
    spread_over_labels,
)
from comes.errors import ComesError

RNG = np.random.default_rng(0)
ETA = RNG.random((30, 4))
RATES = AnswerRates(
    np.array([0.8, 0.5, 1.0, 0.6]), np.array([0.9, 0.4, 0.0, 1.0]), mistake_rate=0.05
)


def bits_by_sums(eta: float, a: float, b: float, f: float) -> float:
    """Return sum p(z, y) log2 p(z, y) / (p(z) p(y)) over answers z and truths y."""
    no, yes = min(a, 1 - f * (b > 0)), min(b, 1 - f * (a > 0))
    given = {  # P(answer | irrelevant), P(answer | relevant)
        "no": (no, f * (a > 0)),
        "yes": (f * (b > 0), yes),
        "maybe": (1 - no - f * (b > 0), 1 - yes - f * (a > 0)),
    }
    total = 0.0
    for of_truth in given.values():
        joint = [of_truth[0] * (1 - eta), of_truth[1] * eta]
        for p, prior in zip(joint, (1 - eta, eta), strict=True):
            if p > 0:
                total += p * math.log2(p / (sum(joint) * prior))
    return total


def test_bits_are_the_mutual_information_of_answer_and_truth() -> None:
    found = expected_bits(ETA, RATES)
    for (row, label), eta in np.ndenumerate(ETA):
        a, b = float(RATES.no_rate[label]), float(RATES.yes_rate[label])
        assert found[row, label] == pytest.approx(bits_by_sums(eta, a, b, 0.05), abs=1e-12)


def test_people_who_always_know_leave_the_entropy() -> None:
    entropy = -(ETA * np.log2(ETA) + (1 - ETA) * np.log2(1 - ETA))
    np.testing.assert_allclose(expected_bits(ETA), entropy)
    assert expected_bits([[0.0, 1.0, 0.5]]).tolist() == [[0.0, 0.0, 1.0]]
    nearer = np.abs(ETA - 0.5)
    assert (np.argsort(expected_bits(ETA)[:, 0]) == np.argsort(-nearer[:, 0])).all()


def test_people_who_never_dare_tell_nothing() -> None:
    np.testing.assert_allclose(expected_bits(ETA, AnswerRates(np.zeros(4), np.zeros(4))), 0)


def test_labels_take_turns() -> None:
    """By hand: the best pair of every label, then the second of every label, and so on."""
    row, label = spread_over_labels(ETA, 10)
    by_label = [list(np.argsort(-ETA[:, j])) for j in range(4)]
    expected = []
    for turn in range(3):
        pairs = [(by_label[j][turn], j) for j in range(4)]
        expected += sorted(pairs, key=lambda pair: -ETA[pair])
    assert list(zip(row, label, strict=True)) == expected[:10]


def test_of_many_rows_the_same_are_found() -> None:
    merits = np.random.default_rng(1).random((5000, 3))
    row, label = spread_over_labels(merits, 31)
    for j in range(3):
        expected = np.argsort(-merits[:, j])[: np.bincount(label)[j]]
        assert row[label == j].tolist() == expected.tolist()


def test_a_label_without_pairs_leaves_its_turns_to_others() -> None:
    allowed = np.ones((30, 4), dtype=bool)
    allowed[1:, 0] = False
    row, label = spread_over_labels(ETA, 13, allowed)
    assert np.bincount(label).tolist() == [1, 4, 4, 4]
    assert row[label == 0].tolist() == [0]
    assert len(spread_over_labels(ETA, 1000, allowed)[0]) == allowed.sum()


def test_nothing_that_was_said_is_asked_again() -> None:
    asked_before = np.random.default_rng(2).random(ETA.shape) < 0.5
    said = {
        "answers": Answers.from_codes(np.where(asked_before, State.MAYBE, State.NOT_ASKED)),
        "candidates": Answers(no=asked_before),
        "positives": Answers.from_positives(asked_before),
    }
    for kind, answers in said.items():
        asked = choose_questions(ETA, 1000, answers=answers)
        pairs = set(zip(asked.row.tolist(), asked.label.tolist(), strict=True))
        assert pairs == {tuple(pair) for pair in np.argwhere(~asked_before).tolist()}, kind
        assert len(asked.row) == len(pairs)
        np.testing.assert_allclose(asked.bits, expected_bits(ETA)[asked.row, asked.label])


def test_questions_about_a_label_come_together_and_every_label_has_its_share() -> None:
    asked = choose_questions(np.random.default_rng(3).random((200, 3)), 75)
    assert np.bincount(asked.label).tolist() == [25, 25, 25]
    changes = 1 + int((np.diff(asked.label) != 0).sum())
    assert changes == 6  # three labels, 20 questions and then 5
    assert asked.label[:20].tolist() == [0] * 20
    assert (np.diff(asked.bits[:20]) <= 0).all()  # the most telling first


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ComesError, match="must be 1 or more; got 0"):
        choose_questions(ETA, 0)
    with pytest.raises(ComesError, match=r"must be 1 or more; got 2\.5"):
        choose_questions(ETA, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ComesError, match=r"answers of that shape; got \(1, 2\)"):
        choose_questions(ETA, 5, answers=Answers.from_codes([[1, 0]]))
    with pytest.raises(ComesError, match="Pass what predict_proba returns"):
        choose_questions(3 * ETA, 5)


def test_probabilities_add_up_and_keep_the_floor() -> None:
    bits = np.random.default_rng(0).random(200) ** 3
    p = inclusion_probabilities(bits, 30, floor=0.25)
    assert p.sum() == pytest.approx(30)
    assert p.max() <= 1 and p.min() >= 0.25 * 30 / 200
    np.testing.assert_allclose(p, 0.25 * 30 / 200 + 0.75 * 30 * bits / bits.sum())


def test_a_pair_that_would_be_drawn_more_than_once_is_certain() -> None:
    p = inclusion_probabilities([100.0, 90.0, *[1.0] * 98], 20, floor=0.2)
    assert p[:2].tolist() == [1, 1]
    assert p.sum() == pytest.approx(20)
    assert np.ptp(p[2:]) < 1e-12 and 0.18 < p[2] < 0.19  # the other 18 over 98
    np.testing.assert_array_equal(inclusion_probabilities([0.3, 0.1], 2), [1, 1])
    np.testing.assert_allclose(inclusion_probabilities(np.zeros(4), 1), 0.25)


def test_pairs_are_drawn_as_often_as_their_probabilities_say() -> None:
    eta = np.random.default_rng(1).random((12, 2))
    times = np.zeros(eta.shape)
    for seed in range(800):
        drawn = draw_questions(eta, 7, seed=seed)
        assert len(drawn.row) == 7
        times[drawn.row, drawn.label] += 1
    error = np.sqrt(drawn.inclusion * (1 - drawn.inclusion) / 800)
    assert (abs(times / 800 - drawn.inclusion) < 4.5 * error).all()


def test_what_is_doubtful_is_drawn_more_often_and_what_was_asked_never() -> None:
    eta = np.array([[0.5, 0.5], [0.99, 0.5], [0.01, 0.5], [0.6, 0.5]])
    is_open = np.ones((4, 2), dtype=bool)
    is_open[0, 1] = False
    drawn = draw_questions(eta, 3, is_open=is_open)
    assert drawn.inclusion[0, 1] == 0 and drawn.spread[0, 1] == 0
    order = np.argsort(expected_bits(eta)[:, 0])
    assert (np.diff(drawn.inclusion[order, 0]) > 0).all()
    np.testing.assert_allclose(drawn.spread[is_open], 1 / drawn.inclusion[is_open] - 1)
    np.testing.assert_array_equal(drawn.probability, drawn.inclusion[drawn.row, drawn.label])


def test_labels_share_the_questions_and_give_away_what_they_cannot_use() -> None:
    np.testing.assert_allclose(share_questions(30, np.array([100, 100, 100])), 10)
    np.testing.assert_allclose(share_questions(30, np.array([4, 100, 100])), [4, 13, 13])
    np.testing.assert_allclose(share_questions(30, np.array([4, 5, 6])), [4, 5, 6])
    np.testing.assert_allclose(share_questions(5, np.array([0, 9])), [0, 5])


def test_questions_of_a_label_come_together_in_random_order() -> None:
    drawn = draw_questions(np.full((200, 2), 0.5), 80, seed=3)
    assert (np.bincount(drawn.label) == 40).all()
    assert (np.diff(drawn.label) != 0).sum() == 3  # blocks of 20
    rows = drawn.row[drawn.label == 0]
    assert (np.sort(rows) != rows).any()
    again = draw_questions(np.full((200, 2), 0.5), 80, seed=3)
    np.testing.assert_array_equal(again.row, drawn.row)


def test_wrong_draws_are_refused() -> None:
    with pytest.raises(ComesError, match="the number of questions must be 1 or more; got 0"):
        draw_questions([[0.5], [0.4]], 0)
    for floor in (0, 1.1):
        with pytest.raises(ComesError, match=rf"floor must be in \(0, 1\]; got {floor}"):
            draw_questions([[0.5], [0.4]], 2, floor=floor)
    with pytest.raises(ComesError, match=r"is_open must have the shape \(2, 1\)"):
        draw_questions([[0.5], [0.4]], 2, is_open=np.ones((3, 1), bool))


def share_of(
    values: Any,
    p: Any,
    rounds: Any,
    n_items: int,
    *,
    expected: Any = np.nan,
    spreads: dict[int, float] | None = None,
    expected_totals: dict[int, float] | None = None,
) -> Share:
    """Estimate a share from a column for each fact, with the number of the round beside."""
    columns = np.broadcast_arrays(values, p, expected, rounds)
    v, p, m, number = (np.asarray(column, dtype=float) for column in columns)
    made = []
    for k in np.unique(number):
        own = number == k
        total, spread = ((facts or {}).get(int(k), np.nan) for facts in (expected_totals, spreads))
        made.append(Round(v[own], p[own], m[own], total, spread))
    return estimate_share(made, n_items)


N, FIRST, MORE, ROUNDS = 400, 50, 50, 3


class Outcome(NamedTuple):
    """One simulated project: the estimate, the plain mean, and that of as many random draws."""

    estimate: Share
    naive: float
    at_random: Share


def test_one_uniform_round_is_the_share_among_those_asked() -> None:
    values = np.array([1, 0, 0, 1, 1, 0, 0, 0])
    found = share_of(values, np.full(8, 8 / 1000), np.zeros(8), 1000)
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
    assert share_of(values, p, rounds, 100).share == pytest.approx(values.mean())


def test_equals_the_formula_written_as_loops() -> None:
    values, rounds = [1, 0, 1, 1, 0], [0, 0, 0, 1, 1]
    p, expected, n = [0.3, 0.3, 0.3, 0.6, 0.2], [np.nan] * 3 + [0.7, 0.1], 10
    first = sum(v / 0.3 for v in values[:3])
    second = 2 + 3.1 + (1 - 0.7) / 0.6 + (0 - 0.1) / 0.2  # known, expected, and the differences
    units = [7 / 0.3, 9.0]
    weights = [1 / units[0] / (1 / units[0] + 1 / units[1])]
    weights.append(1 - weights[0])
    found = share_of(
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
    found = share_of(
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
    found = share_of(
        first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n, spreads={0: 60.0, 1: 40.0}
    )
    m = (2 + 0.5) / (5 + 1)
    totals = [m * n + sum((v - m) / 0.25 for v in first)]
    so_far, n_so_far = totals[0] / n, n**2 / 60
    m = (so_far * n_so_far + 0.5) / (n_so_far + 1)
    totals.append(sum(first) + m * 15 + sum((v - m) / q for v, q in zip(second, p, strict=True)))
    assert found.share == pytest.approx((0.4 * totals[0] + 0.6 * totals[1]) / n)
    default = share_of(first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n)
    spreads = {0: 5 * 0.75 / 0.25**2, 1: 0.6 / 0.4**2 + 0.8 / 0.2**2}
    given = share_of(first + second, [0.25] * 5 + p, [0] * 5 + [1] * 2, n, spreads=spreads)
    assert default == pytest.approx(given)


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
    estimate = share_of(v, p, rounds, N, spreads=spreads, **more)
    as_many = rng.choice(N, len(table), replace=False)
    chance = np.full(len(table), len(table) / N)
    return Outcome(estimate, naive, share_of(values[as_many], chance, 0 * chance, N))


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
    alone = share_of(first, p, [0] * 4, 10)
    chosen = share_of([*first, 1, 1], [*p, np.nan, np.nan], [0] * 4 + [1, 1], 10)
    assert chosen.share == max(alone.share, 0.3)  # three of ten are known
    assert chosen.lower >= 0.3 and chosen.upper <= 0.7
    nothing = share_of([1, 0], [np.nan] * 2, [0, 0], 10)
    assert np.isnan(nothing.share) and (nothing.lower, nothing.upper) == (0.1, 0.9)


def test_everything_asked_is_known_exactly() -> None:
    found = share_of([1, 0, 1, 1], [0.5, 0.5, 1, 1], [0, 0, 1, 1], 4)
    assert found == Share(0.75, 0.0, 0.75, 0.75)


def test_groups_are_pooled_by_their_sizes() -> None:
    values = np.array([1, 0, 0, 1, 0])
    one = share_of(values, np.full(5, 0.1), np.zeros(5), 50)
    assert pool_shares([one], [50]) == one
    both = pool_shares([one, Share(0.1, 0.02, 0.07, 0.15)], [50, 150])
    assert both.share == pytest.approx(0.25 * 0.4 + 0.75 * 0.1)
    assert both.standard_error**2 == pytest.approx(
        (0.25 * one.standard_error) ** 2 + (0.75 * 0.02) ** 2
    )
    assert both.lower < both.share < both.upper


def test_wrong_shares_are_refused() -> None:
    with pytest.raises(ComesError, match=r"probabilities must be in \(0, 1\]"):
        share_of([1, 0], [0.5, 0], [0, 0], 10)


def test_rounds_count_by_the_inverse_of_their_variance_and_an_exact_one_alone() -> None:
    np.testing.assert_allclose(_weigh(np.array([0.5, 2.0]))[0], [0.8, 0.2])
    np.testing.assert_allclose(_weigh(np.array([0.5, 0.0, 2.0]))[0], [0.0, 1.0, 0.0])
