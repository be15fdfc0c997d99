"""Rates that all labels share, and class priors of many labels, from counts of answers."""

import math
import warnings

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta

from comes.answers import Answers, State
from comes.errors import ComesError, ComesWarning
from comes.generation import simulate_answers
from comes.priors import pooled
from comes.priors.pooled import AnswerCounts, pool_rates
from drawn_counts import count_answers, count_candidates, draw_priors, is_near

Pair = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")


# Counts


def test_counts_are_those_of_loops_over_even_and_odd_rows() -> None:
    codes = np.random.default_rng(0).integers(0, 4, size=(7, 5)).astype(np.int8)
    states = {"no": State.NO, "yes": State.YES, "maybe": State.MAYBE}
    for answers in (
        Answers.from_codes(codes),
        Answers.from_codes(sparse.csr_array(codes), "answers"),
    ):
        counts = AnswerCounts.of(answers)
        assert counts.n_rows.tolist() == [4, 3]
        for name, state in states.items():
            expected = [
                [sum(codes[i, j] == state for i in range(h, 7, 2)) for j in range(5)]
                for h in (0, 1)
            ]
            assert getattr(counts, name).tolist() == expected


def test_blocks_of_a_stream_add_up_to_all_rows_and_other_labels_are_not_added() -> None:
    codes = np.random.default_rng(1).integers(0, 4, size=(10, 3)).astype(np.int8)
    whole, first, rest = (
        AnswerCounts.of(Answers.from_codes(part)) for part in (codes, codes[:4], codes[4:])
    )
    for name in ("n_rows", "no", "yes", "maybe"):
        np.testing.assert_array_equal(getattr(first + rest, name), getattr(whole, name))
    with pytest.raises(ComesError, match="2 and 3 labels"):
        AnswerCounts.of(Answers(no=np.eye(2))) + whole


def test_every_row_of_candidates_could_exclude_and_only_asked_pairs_of_answers_could() -> None:
    counts = AnswerCounts.of(Answers(no=[[1, 0], [0, 0], [1, 0]], yes=[[0, 1], [0, 0], [0, 0]]))
    assert counts.asked("candidates").tolist() == [[2, 2], [1, 1]]
    assert counts.asked("answers").tolist() == [[2, 1], [0, 0]]


def test_questions_that_a_model_chose_are_left_out() -> None:
    answers = Answers(no=[[1, 1]], yes=[[0, 0]], chosen=[[1, 0]])
    assert AnswerCounts.of(answers).no.sum(axis=0).tolist() == [0, 1]


# One rate for all labels


def test_the_top_labels_of_a_half_are_counted_in_the_other_one() -> None:
    count = np.array([[5, 1, 2, 9], [3, 8, 6, 1]])
    asked = np.array([[10, 10, 10, 0], [20, 10, 30, 10]])
    said = total = 0
    for chosen, counted in ((0, 1), (1, 0)):
        labels = [j for j in range(4) if asked[chosen, j]]
        labels.sort(key=lambda j: -count[chosen, j] / asked[chosen, j])
        for j in labels[: math.ceil(len(labels) / 2)]:
            said += count[counted, j]
            total += asked[counted, j]
    assert pooled._count_top(count, asked, 1 / 2) == (said / total, total)


def test_the_rate_is_the_share_of_rare_labels_with_a_guess_of_their_relevant_rows() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.4] * 10)
    asked = np.full((2, 40), 10**6)
    rate, variance, differ = pooled._rate_of_rare_labels((share * asked).astype(int), asked)
    assert rate == pytest.approx(0.4 / (1 - 1 / 41))
    assert not differ
    mean = (1 - 0.25 / rate) / 2
    assert math.sqrt(variance) == pytest.approx(rate * math.hypot(1 / 41, mean), rel=1e-3)


def test_a_few_labels_far_above_the_others_make_rates_differ() -> None:
    share = np.array([0.2] * 60 + [0.3] * 4)
    asked = np.full((2, 64), 10**4)
    assert pooled._rate_of_rare_labels((share * asked).astype(int), asked)[2]


def test_labels_without_noise_have_their_rates() -> None:
    prior, n = np.linspace(0.01, 0.9, 50), 10**7
    no = np.tile((0.9 * (1 - prior) * n).astype(int), (2, 1))
    yes = np.tile((0.6 * prior * n).astype(int), (2, 1))
    asked = np.full((2, 50), n)
    a, b = np.full(50, 0.9), np.full(50, 0.6)
    for known in ((None, None), (a, None), (None, b), (a, b)):
        rates, covariance, differ = pooled._solve_rates(no, yes, asked, *known)
        np.testing.assert_allclose(rates, [a, b], atol=1e-5)
        assert (np.diag(covariance)[[rate is not None for rate in known]] == 0).all()
        assert not differ


def test_the_rates_solve_the_two_equations_written_as_loops() -> None:
    """With many labels the prior does not count; the covariance is a sandwich over labels."""
    prior = np.random.default_rng(0).beta(0.5, 5, size=4000)
    counts = count_answers(prior, 200, 0.9, 0.6, seed=0)
    asked = counts.asked("answers")
    rates, covariance, _ = pooled._solve_rates(counts.no, counts.yes, asked, None, None)
    of_yes = counts.yes.sum() / (counts.yes.sum() + counts.no.sum())
    matrix, total, by_label = np.zeros((2, 2)), np.zeros(2), np.zeros((2, 4000))
    for j in range(4000):
        for half, other in ((0, 1), (1, 0)):
            no, yes = int(counts.no[other, j]), int(counts.yes[other, j])
            eta = (yes + 2 * of_yes) / (no + yes + 2)
            answers = np.array([counts.no[half, j], counts.yes[half, j]])
            matrix += np.outer([1 - eta, eta], answers)
            total += np.array([1 - eta, eta]) * 100
            residual = (answers / rates[:, 0]).sum() - 100
            by_label[:, j] += np.array([1 - eta, eta]) * residual
    np.testing.assert_allclose(1 / np.linalg.solve(matrix, total), rates[:, 0], rtol=2e-3)
    inverse = np.linalg.inv(matrix) @ by_label @ by_label.T @ np.linalg.inv(matrix).T
    expected = inverse * np.outer(rates[:, 0] ** 2, rates[:, 0] ** 2)  # of a and b, not 1 / a
    np.testing.assert_allclose(np.diag(covariance), np.diag(expected), rtol=0.02)


# Class priors where the rate is known


def priors_of_no(count: npt.ArrayLike, asked: npt.ArrayLike, rate: npt.ArrayLike) -> Pair:
    """Return class priors and their errors, the counts being split between the halves."""
    no, pairs = (np.stack([np.asarray(x) // 2, -(-np.asarray(x) // 2)]) for x in (count, asked))
    return pooled._priors_of_no(no, pairs, np.asarray(rate), 0.0)


@pytest.mark.parametrize(
    ("mean", "strength", "n_excluded"),
    [(0.002, 1.0, 95), (0.02, 10.0, 60), (0.3, 100.0, 110), (0.3, 100.0, 60)],
)
def test_priors_are_integrals_over_the_beta_distribution(
    monkeypatch: pytest.MonkeyPatch, mean: float, strength: float, n_excluded: int
) -> None:
    of_labels = np.array([mean, 1 - mean]) * strength
    monkeypatch.setattr(pooled, "_fit_beta", lambda *_: of_labels)
    n, rate = 1000, 0.1

    def likelihood(prior: float) -> float:
        m = n * (1 - prior)
        logs = gammaln(m + 1) - gammaln(max(m - n_excluded, 0) + 1) + m * math.log(1 - rate)
        return math.exp(logs - 250)

    def moment(power: int) -> float:
        # With u = P(prior below), the density is 1, however steep that of the beta is at 0.
        def inside(u: float) -> float:
            prior = float(beta.ppf(u, mean * strength, (1 - mean) * strength))
            return prior**power * likelihood(min(prior, 1 - n_excluded / n))

        steps = [1 - 10.0**-k for k in range(1, 10)]
        return math.fsum(
            quad(inside, low, high, epsrel=1e-4)[0]
            for low, high in zip([0.0, *steps], [*steps, 1.0], strict=True)
        )

    total, first, second = (moment(power) for power in range(3))
    found, error = priors_of_no([n_excluded], [n], [rate])
    assert found[0] == pytest.approx(first / total, rel=0.05, abs=2e-4)
    spread = math.sqrt(second / total - (first / total) ** 2)
    assert error[0] == pytest.approx(spread, rel=0.1, abs=2e-3)


def test_of_a_very_rare_label_the_prior_is_far_below_the_lowest_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The likelihood is nearly flat there, so the prior is that of the beta distribution."""
    monkeypatch.setattr(pooled, "_fit_beta", lambda *_: np.array([1e-8, 1e-2]))
    found, _ = priors_of_no([100], [1000], [0.1])
    assert found[0] < 1e-5


def test_the_mean_of_the_labels_is_counted_as_far_as_counts_tell_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    means = []

    def remember(share: object, asked: object, mean: float) -> npt.NDArray[np.float64]:
        means.append(mean)
        return np.array([0.1, 0.9])

    monkeypatch.setattr(pooled, "_fit_beta", remember)
    for n in (10, 100_000):
        asked = np.full((2, 30), n)
        pooled._priors_of_no(asked // 5, asked, np.full(30, 0.4), 0.0)
        by_counts, by_guess = 1 / 4 * 0.4 * 60 * n, (2 * 3 / 30) ** -2  # precisions
        expected = (0.5 * by_counts + 0.1 * by_guess) / (by_counts + by_guess)
        assert means[-1] == pytest.approx(expected)
    assert means[0] < 0.48 < means[1]


def test_the_error_of_the_rate_is_one_of_the_priors() -> None:
    no, asked = np.full((2, 3), 200), np.full((2, 3), 1000)
    prior, error = pooled._priors_of_no(no, asked, np.full(3, 0.4), 0.0)
    same, larger = pooled._priors_of_no(no, asked, np.full(3, 0.4), 0.05)
    np.testing.assert_array_equal(same, prior)
    np.testing.assert_allclose(larger, np.hypot(error, (1 - prior) * 0.05 / 0.4))


def test_labels_with_the_same_numbers_have_the_same_prior_in_any_order() -> None:
    count, asked = np.array([90, 50, 90, 0]), np.array([1000, 1000, 1000, 0])
    order = np.array([3, 1, 0, 2])
    prior, error = priors_of_no(count, asked, np.full(4, 0.1))
    moved, moved_error = priors_of_no(count[order], asked[order], np.full(4, 0.1))
    np.testing.assert_array_equal(moved, prior[order])
    np.testing.assert_array_equal(moved_error, error[order])
    assert prior[0] == prior[2] < prior[1]


def test_the_labels_of_a_row_are_found_where_counts_tell_them() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(0.2, 3.8, size=300)  # 15 labels a row
    n, rate = 20_000, np.full(300, 0.3)
    half = np.tile((n * (1 - truth) / 2).astype(int), (2, 1))
    count = rng.binomial(half, rate)
    prior, _ = pooled._priors_of_no(count, np.full((2, 300), n // 2), rate, 0.0)
    assert prior.sum() == pytest.approx(truth.sum(), rel=0.05)


def test_the_beta_distribution_of_yes_has_the_moments_of_the_priors() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 18, size=20_000)
    asked = np.full((2, 20_000), 20)
    yes = rng.binomial(asked, 0.8 * truth)
    alpha, other = pooled._fit_beta(yes / (asked * 0.8), asked, yes.sum() / asked.sum() / 0.8)
    assert alpha / (alpha + other) == pytest.approx(0.1, rel=0.03)
    assert alpha + other == pytest.approx(20, rel=0.15)


# Rates and class priors from candidates; longer studies are in tests/system


def test_the_exclude_rate_of_rare_labels_has_no_bias_by_chance() -> None:
    """No label has a relevant row but for 1 of 301: the largest shares are large by chance."""
    prior = np.full(300, 1 / 301)
    for rate in (0.01, 0.6):
        found = [
            pool_rates(count_candidates(prior, 2000, rate, seed), "candidates").overall[0]
            for seed in range(8)
        ]
        assert is_near(found, rate), rate
        assert np.std(found) < 0.05 * rate, rate


def test_errors_of_the_exclude_rate_and_the_priors_cover_them() -> None:
    prior = draw_priors(200)
    for rate in (0.05, 0.5):
        found = [pool_rates(count_candidates(prior, 5000, rate, s), "candidates") for s in range(3)]
        near = [abs(e.overall[0] - rate) < 2 * e.overall_error[0] for e in found]
        assert np.mean(near) > 0.6, rate
        inside = [abs(e.class_prior - prior) < 2 * e.class_prior_error for e in found]
        assert np.mean(inside) > 0.9, rate
        assert all(set(e.flags) == {"ok"} for e in found), rate


def test_shrunk_priors_are_nearer_than_plug_ins_and_keep_frequent_labels() -> None:
    """Which of tied labels tell the rate depends on the processor, hence the mean over draws."""
    n, rate, ratios = 4000, 0.1, []
    for seed in range(4):
        prior = draw_priors(300, seed)
        counts = count_candidates(prior, n, rate, seed)
        found = pool_rates(counts, "candidates").class_prior
        plug_in = np.clip(1 - counts.no.sum(axis=0) / (n * rate), 0, 1)
        ratios.append(abs(found - prior).mean() / abs(plug_in - prior).mean())
        assert abs(found - prior)[prior > 0.15].mean() < 0.08
    assert np.mean(ratios) < 0.85


def test_a_row_does_not_get_thousands_of_labels_where_noise_is_large() -> None:
    prior = np.full(20_000, 3 / 20_000)
    found = pool_rates(count_candidates(prior, 50_000, 0.001, seed=0), "candidates")
    assert found.class_prior.sum() < 30


def test_rates_that_differ_by_label_are_flagged_and_one_rate_is_not() -> None:
    prior = draw_priors(300)
    own = np.random.default_rng(0).normal(0.5, 0.05, size=300)
    shared, differing = (
        pool_rates(count_candidates(prior, 5000, rate, seed=0), "candidates") for rate in (0.5, own)
    )
    assert set(shared.flags) == {"ok"}
    assert set(differing.flags) == {"rates differ"}


def test_extreme_counts_that_chance_makes_among_very_many_labels_are_not_flagged() -> None:
    rng = np.random.default_rng(0)
    no = rng.binomial(1500, 0.02, size=(2, 25_000))
    no[:, :2] = 16  # of 30
    nothing = np.zeros_like(no)
    counts = AnswerCounts(np.array([1500, 1500]), no, nothing, nothing)
    estimate = pool_rates(counts, "candidates", no_rate=np.full(25_000, 0.02))
    assert (estimate.class_prior_error[:2] > 0.15).all()
    assert set(estimate.flags) == {"ok"}


def test_few_labels_are_flagged_and_their_rate_is_uncertain() -> None:
    counts = count_candidates(np.full(6, 0.2), 5000, 0.5, seed=0)
    with pytest.warns(ComesWarning, match="counts do not tell the rate"):
        warnings.simplefilter("always")
        found = pool_rates(counts, "candidates")
    assert set(found.flags) == {"few labels"}
    assert found.overall_error[0] > 0.05


# Rates and class priors from answers


def test_both_rates_of_answers_have_no_bias() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    for a, b in ((0.8, 0.8), (0.9, 0.6), (0.6, 0.9), (0.98, 0.7)):
        found = [
            pool_rates(count_answers(prior, 300, a, b, seed), "answers").overall.tolist()
            for seed in range(12)
        ]
        assert is_near([one[0] for one in found], a), (a, b)
        assert is_near([one[1] for one in found], b), (a, b)
        np.testing.assert_allclose(np.std(found, axis=0), 0, atol=0.04, err_msg=f"{a}, {b}")


def test_errors_of_the_rates_of_answers_cover_them() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    found = [pool_rates(count_answers(prior, 100, 0.8, 0.7, seed), "answers") for seed in range(20)]
    inside = [abs(one.overall - [0.8, 0.7]) < 2 * one.overall_error for one in found]
    assert np.mean(inside) > 0.88
    near = [abs(one.class_prior - prior) < 2 * one.class_prior_error for one in found]
    assert np.mean(near) > 0.9
    assert abs(found[0].class_prior - prior).mean() < 0.03


def test_answer_rates_that_differ_by_label_are_flagged_and_shared_ones_are_not() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    own = np.random.default_rng(1).normal(0.7, 0.07, size=(2, 400))
    assert (
        "rates differ"
        in pool_rates(count_answers(prior, 1000, own[0], own[1], seed=0), "answers").flags
    )
    assert (
        "rates differ"
        not in pool_rates(count_answers(prior, 1000, 0.7, 0.7, seed=0), "answers").flags
    )


def test_labels_with_one_class_prior_do_not_tell_the_rates() -> None:
    found = pool_rates(count_answers(np.full(50, 0.2), 40, 0.8, 0.8, seed=0), "answers")
    assert set(found.flags) == {"uncertain"}
    assert found.overall_error.max() > 0.1


def test_without_maybe_every_answer_is_sure() -> None:
    found = pool_rates(count_answers(draw_priors(100), 200, 1.0, 1.0, seed=0), "answers")
    assert found.overall.tolist() == [1, 1]
    np.testing.assert_allclose(found.overall_error, 0, atol=1e-9)


def test_where_nobody_says_yes_the_rate_of_no_is_that_of_rare_labels() -> None:
    prior = draw_priors(300)
    found = pool_rates(count_answers(prior, 500, 0.7, 0.0, seed=0), "answers")
    assert abs(found.overall[0] - 0.7) < 2 * found.overall_error[0] < 0.1
    assert found.overall[1] == 0
    assert abs(found.class_prior - prior).mean() < 0.02


def test_ticked_labels_do_not_tell_their_rate() -> None:
    prior, n = draw_priors(200), 20_000
    yes = np.random.default_rng(0).binomial(n // 2, prior * 0.5, size=(2, 200))
    counts = AnswerCounts(np.array([n // 2] * 2), 0 * yes, yes, 0 * yes)
    found = pool_rates(counts, "positives")
    assert set(found.flags) - {"never ticked"} == {"rate unknown"}
    assert found.overall.tolist() == [0, 1]
    assert found.overall_error[1] > 0.4
    np.testing.assert_allclose(found.class_prior, yes.sum(axis=0) / n, atol=0.003)
    known = pool_rates(counts, "positives", yes_rate=np.full(200, 0.5))
    assert abs(known.class_prior - prior).mean() < 0.003
    assert set(known.flags) <= {"ok", "never ticked"}


def test_rates_that_are_given_are_kept() -> None:
    prior = draw_priors(100)
    p = np.linspace(0.3, 0.6, 100)
    candidates = pool_rates(count_candidates(prior, 20_000, p, seed=0), "candidates", no_rate=p)
    np.testing.assert_array_equal(candidates.rates.no_rate, p)
    assert not candidates.overall_error.any()
    assert abs(candidates.class_prior - prior).mean() < 0.01
    assert set(candidates.flags) == {"ok"}
    counts = count_answers(prior, 20_000, 0.8, p, seed=0)
    half = pool_rates(counts, "answers", yes_rate=p)
    np.testing.assert_array_equal(half.rates.yes_rate, p)
    assert half.overall_error[1] == 0 and abs(half.overall[0] - 0.8) < 0.01
    both = pool_rates(counts, "answers", no_rate=np.full(100, 0.8), yes_rate=p)
    np.testing.assert_array_equal(both.rates.no_rate, 0.8)
    np.testing.assert_array_equal(both.rates.yes_rate, p)
    assert not both.overall_error.any()
    assert abs(both.class_prior - prior).mean() < 0.005


def test_labels_that_nobody_was_asked_about_get_what_is_usual() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=60)
    for b in (0.8, 0.0):
        counts = count_answers(prior, 400, 0.8, b, seed=0)
        for part in (counts.no, counts.yes, counts.maybe):
            part[:, 3] = 0
        found = pool_rates(counts, "answers")
        assert found.flags[3] == "never asked", b
        assert 0.2 * prior.mean() < found.class_prior[3] < 3 * prior.mean(), b
        assert found.class_prior_error[3] > 0.03, b


# Any counts


def test_any_candidates_give_numbers_between_0_and_1() -> None:
    for q, n, share in (
        (q, n, share) for q in (1, 2, 30) for n in (1, 2, 500) for share in (0.0, 0.5, 1.0)
    ):
        case = f"{q} labels, {n} rows, {share} of them excluded"
        no = np.random.default_rng(0).random((n, q)) < share
        found = pool_rates(AnswerCounts.of(Answers(no=no)), "candidates")
        for values in (found.class_prior, found.rates.no_rate, found.class_prior_error):
            assert values.shape == (q,), case
            assert ((values >= 0) & (values <= 1)).all(), case
        assert found.rates.yes_rate.any() == (not no.any()), case
        if not no.any():
            assert (found.class_prior_error == 0.5).all(), case
        if share == 1 and n == 500:
            assert (found.class_prior < 0.01).all() and (found.rates.no_rate == 1).all(), case


def test_answers_that_are_all_alike_give_numbers() -> None:
    for code in (State.NO, State.YES, State.MAYBE):
        for shape in ((1, 1), (1, 3), (40, 2)):
            case = f"{code.word} in {shape}"
            found = pool_rates(AnswerCounts.of(Answers.from_codes(np.full(shape, code))), "answers")
            for values in (found.class_prior, found.rates.no_rate, found.rates.yes_rate):
                assert ((values >= 0) & (values <= 1)).all(), case
            assert np.isfinite(found.class_prior_error).all(), case


def test_sparse_answers_give_what_dense_ones_give() -> None:
    relevant = np.random.default_rng(0).random((500, 40)) < draw_priors(40)
    answers = simulate_answers(relevant, asked_rate=0.5, seed=1)
    kept = Answers.from_codes(sparse.csr_array(answers.codes), "answers")
    dense, thin = (pool_rates(AnswerCounts.of(one), "answers") for one in (answers, kept))
    np.testing.assert_array_equal(dense.class_prior, thin.class_prior)
    np.testing.assert_array_equal(dense.overall, thin.overall)


def test_rates_that_cannot_be_and_counts_of_nothing_are_refused() -> None:
    counts = AnswerCounts.of(Answers(no=np.eye(3)))
    with pytest.raises(ComesError, match="no_rate must be above 0 for labels with such answers"):
        pool_rates(counts, "candidates", no_rate=np.zeros(3))
    with pytest.raises(ComesError, match="must hold some answers"):
        pool_rates(counts, "positives")
