import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from comes.answers import Answers, Kind
from comes.errors import ComesError, ComesWarning
from comes.generation import simulate_answers
from comes.priors import AnswerCounts, ClassPriorEstimate, RatesEstimate, pool_rates

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
FloatArray = npt.NDArray[np.float64]


def draw_priors(q: int, seed: int = 0) -> FloatArray:
    """Return class priors of which most are small, as in sets with many labels."""
    return np.random.default_rng(seed).beta(0.2, 8, size=q)


def count_candidates(
    prior: FloatArray, n: int, rate: float | FloatArray, seed: int
) -> AnswerCounts:
    rng = np.random.default_rng(seed)
    no = rng.binomial(n // 2 - rng.binomial(n // 2, prior, size=(2, len(prior))), rate)
    return AnswerCounts(np.array([n // 2] * 2), no, 0 * no, 0 * no)


def count_answers(
    prior: FloatArray, asked: int, a: float | FloatArray, b: float | FloatArray, seed: int
) -> AnswerCounts:
    rng = np.random.default_rng(seed)
    relevant = rng.binomial(asked // 2, prior, size=(2, len(prior)))
    no, yes = rng.binomial(asked // 2 - relevant, a), rng.binomial(relevant, b)
    return AnswerCounts(np.array([10**6] * 2), no, yes, asked // 2 - no - yes)


def pool_candidates(counts: AnswerCounts, **rates: Any) -> ClassPriorEstimate:
    found = pool_rates(counts, "candidates", **rates)
    assert isinstance(found, ClassPriorEstimate)
    return found


def pool_answers(counts: AnswerCounts, kind: Kind = "answers", **rates: Any) -> RatesEstimate:
    found = pool_rates(counts, kind, **rates)
    assert isinstance(found, RatesEstimate)
    return found


def is_near(values: list[float], truth: float) -> bool:
    """Return whether the mean is within four of its standard errors of the truth."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return bool(abs(np.mean(values) - truth) < 4 * error)


@pytest.mark.parametrize("rate", [0.002, 0.1, 0.6])
def test_the_exclude_rate_of_rare_labels_has_no_bias_by_chance(rate: float) -> None:
    """No label has a relevant row but for 1 of 2001: the largest shares are large by chance."""
    prior = np.full(2000, 1 / 2001)
    found = [
        pool_candidates(count_candidates(prior, 2000, rate, seed)).exclude_rate[0]
        for seed in range(30)
    ]
    assert is_near(found, rate)
    assert np.std(found) < 0.03 * rate


def test_errors_of_the_exclude_rate_and_the_priors_cover_them() -> None:
    prior = draw_priors(400)
    for rate in (0.05, 0.5):
        found = [pool_candidates(count_candidates(prior, 5000, rate, s)) for s in range(10)]
        near = [abs(e.exclude_rate - rate) < 2 * np.asarray(e.exclude_rate_error) for e in found]
        assert np.mean(near) > 0.8
        inside = [abs(e.class_prior - prior) < 2 * e.standard_error for e in found]
        assert np.mean(inside) > 0.9
        assert all((e.lower <= e.class_prior).all() for e in found)
        assert all((e.class_prior <= e.upper).all() for e in found)
        assert all(set(e.flags) == {"ok"} for e in found)


def test_shrunk_priors_are_nearer_than_plug_ins_and_keep_frequent_labels() -> None:
    prior, n, rate = draw_priors(1000), 4000, 0.1
    counts = count_candidates(prior, n, rate, seed=0)
    found = pool_candidates(counts).class_prior
    plug_in = np.clip(1 - counts.no.sum(axis=0) / (n * rate), 0, 1)
    assert abs(found - prior).mean() < 0.7 * abs(plug_in - prior).mean()
    frequent = prior > 0.15
    assert abs(found - prior)[frequent].mean() < 0.06


def test_a_row_does_not_get_thousands_of_labels_where_noise_is_large() -> None:
    prior = np.full(20_000, 3 / 20_000)
    found = pool_candidates(count_candidates(prior, 50_000, 0.001, seed=0))
    assert found.class_prior.sum() < 30


def test_rates_that_differ_by_label_are_flagged_and_one_rate_is_not() -> None:
    prior = draw_priors(300)
    own = np.random.default_rng(0).normal(0.5, 0.05, size=300)
    shared, differing = (
        pool_candidates(count_candidates(prior, 5000, rate, seed=0)) for rate in (0.5, own)
    )
    assert set(shared.flags) == {"ok"}
    assert set(differing.flags) == {"rates differ", "rate too low"}
    assert differing.flags.count("rate too low") < 20


def test_a_label_that_is_excluded_more_often_than_the_others_is_named() -> None:
    rate = np.full(300, 0.2)
    rate[7] = 0.4
    found = pool_candidates(count_candidates(draw_priors(300), 5000, rate, seed=0))
    assert [j for j, flag in enumerate(found.flags) if flag == "rate too low"] == [7]


def test_few_labels_are_flagged_and_their_rate_is_uncertain() -> None:
    found = pool_candidates(count_candidates(np.full(6, 0.2), 5000, 0.5, seed=0))
    assert set(found.flags) == {"few labels"}
    assert (np.asarray(found.exclude_rate_error) > 0.05).all()
    with pytest.warns(ComesWarning, match="counts do not tell the rate"):
        warnings.simplefilter("always")
        pool_candidates(count_candidates(np.full(6, 0.2), 5000, 0.5, seed=0))


@pytest.mark.parametrize(("a", "b"), [(0.8, 0.8), (0.9, 0.6), (0.6, 0.9), (0.98, 0.7)])
def test_both_rates_of_answers_have_no_bias(a: float, b: float) -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    found = [
        pool_answers(count_answers(prior, 300, a, b, seed)).overall.tolist() for seed in range(30)
    ]
    assert is_near([one[0] for one in found], a)
    assert is_near([one[1] for one in found], b)
    np.testing.assert_allclose(np.std(found, axis=0), 0, atol=0.04)


def test_errors_of_the_rates_of_answers_cover_them() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    found = [pool_answers(count_answers(prior, 100, 0.8, 0.7, seed)) for seed in range(30)]
    inside = [abs(one.overall - [0.8, 0.7]) < 2 * one.overall_error for one in found]
    assert np.mean(inside) > 0.88
    near = [abs(one.class_prior - prior) < 2 * one.class_prior_error for one in found]
    assert np.mean(near) > 0.9
    assert abs(found[0].class_prior - prior).mean() < 0.03


def test_answer_rates_that_differ_by_label_are_flagged_and_shared_ones_are_not() -> None:
    prior = np.random.default_rng(0).beta(0.5, 5, size=400)
    own = np.random.default_rng(1).normal(0.7, 0.07, size=(2, 400))
    assert "rates differ" in pool_answers(count_answers(prior, 1000, own[0], own[1], seed=0)).flags
    assert "rates differ" not in pool_answers(count_answers(prior, 1000, 0.7, 0.7, seed=0)).flags


def test_labels_with_one_class_prior_do_not_tell_the_rates() -> None:
    found = pool_answers(count_answers(np.full(50, 0.2), 40, 0.8, 0.8, seed=0))
    assert set(found.flags) == {"uncertain"}
    assert found.overall_error.max() > 0.1


def test_without_maybe_every_answer_is_sure() -> None:
    found = pool_answers(count_answers(draw_priors(100), 200, 1.0, 1.0, seed=0))
    assert found.overall.tolist() == [1, 1]
    assert found.overall_error.tolist() == [0, 0]


def test_where_nobody_says_yes_the_rate_of_no_is_that_of_rare_labels() -> None:
    prior = draw_priors(500)
    found = pool_answers(count_answers(prior, 500, 0.7, 0.0, seed=0))
    assert abs(found.overall[0] - 0.7) < 2 * found.overall_error[0] < 0.1
    assert found.overall[1] == 0
    assert abs(found.class_prior - prior).mean() < 0.02


def test_ticked_labels_do_not_tell_their_rate() -> None:
    prior, n = draw_priors(200), 20_000
    yes = np.random.default_rng(0).binomial(n // 2, prior * 0.5, size=(2, 200))
    counts = AnswerCounts(np.array([n // 2] * 2), 0 * yes, yes, 0 * yes)
    found = pool_answers(counts, "positives")
    assert set(found.flags) - {"never ticked"} == {"rate unknown"}
    assert found.overall.tolist() == [0, 1]
    assert found.overall_error[1] > 0.4
    np.testing.assert_allclose(found.class_prior, yes.sum(axis=0) / n, atol=0.003)
    known = pool_answers(counts, "positives", yes_rate=0.5)
    assert abs(known.class_prior - prior).mean() < 0.003
    assert set(known.flags) <= {"ok", "never ticked"}


def test_rates_that_are_given_are_kept() -> None:
    prior = draw_priors(100)
    p = np.linspace(0.3, 0.6, 100)
    candidates = pool_candidates(count_candidates(prior, 20_000, p, seed=0), no_rate=p)
    np.testing.assert_array_equal(candidates.exclude_rate, p)
    assert candidates.exclude_rate_error is not None and not candidates.exclude_rate_error.any()
    assert abs(candidates.class_prior - prior).mean() < 0.01
    assert set(candidates.flags) == {"ok"}
    counts = count_answers(prior, 20_000, 0.8, p, seed=0)
    half = pool_answers(counts, yes_rate=p)
    np.testing.assert_array_equal(half.rates.yes_rate, p)
    assert half.overall_error[1] == 0 and abs(half.overall[0] - 0.8) < 0.01
    both = pool_answers(counts, no_rate=0.8, yes_rate=p)
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
        found = pool_answers(counts)
        assert found.flags[3] == "never asked"
        assert 0.2 * prior.mean() < found.class_prior[3] < 3 * prior.mean()
        assert found.class_prior_error[3] > 0.03


@pytest.mark.parametrize("q", [1, 2, 30])
@pytest.mark.parametrize("n", [1, 2, 500])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_any_candidates_give_numbers_between_0_and_1(q: int, n: int, share: float) -> None:
    no = np.random.default_rng(0).random((n, q)) < share
    found = pool_candidates(AnswerCounts.of(Answers(no=no)))
    for values in (found.class_prior, found.exclude_rate, found.lower, found.upper):
        assert values.shape == (q,)
        assert ((values >= 0) & (values <= 1)).all()
    assert np.isfinite(found.standard_error).all()
    if share == 0:
        assert set(found.flags) == {"never excluded"} and (found.class_prior == 1).all()
    if share == 1 and n == 500:
        assert (found.class_prior < 0.01).all() and (found.exclude_rate == 1).all()


@pytest.mark.parametrize("code", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (40, 2)])
def test_answers_that_are_all_alike_give_numbers(code: int, shape: tuple[int, int]) -> None:
    found = pool_answers(AnswerCounts.of(Answers.of_codes(np.full(shape, code))))
    for values in (found.class_prior, found.rates.no_rate, found.rates.yes_rate):
        assert ((values >= 0) & (values <= 1)).all()
    assert np.isfinite(found.class_prior_error).all()


def test_sparse_answers_give_what_dense_ones_give() -> None:
    relevant = np.random.default_rng(0).random((500, 40)) < draw_priors(40)
    answers = simulate_answers(relevant, asked_rate=0.5, seed=1)
    kept = Answers.of_states(sparse.csr_array(answers.codes), "answers")
    dense, thin = (pool_answers(AnswerCounts.of(one)) for one in (answers, kept))
    np.testing.assert_array_equal(dense.class_prior, thin.class_prior)
    np.testing.assert_array_equal(dense.overall, thin.overall)


@pytest.mark.parametrize(
    ("kind", "rates", "words"),
    [
        ("candidates", {"no_rate": 1.5}, r"no_rate must be a number in \[0, 1\]"),
        ("candidates", {"no_rate": [0.1, 0.2]}, "one for each of 3 labels"),
        ("candidates", {"no_rate": 0}, "above 0 where somebody said so"),
        ("candidates", {"yes_rate": 0.5}, "yes_rate does not apply to candidates"),
        ("positives", {"no_rate": 0.5}, "no_rate does not apply to positives"),
        ("positives", {}, "must hold some answers"),
    ],
)
def test_rates_that_cannot_be_are_refused(kind: Kind, rates: dict[str, Any], words: str) -> None:
    with pytest.raises(ComesError, match=words):
        pool_rates(AnswerCounts.of(Answers(no=np.eye(3))), kind, **rates)
