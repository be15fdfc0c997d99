"""Thresholds, the best of all cuts by plain search; offsets and powers that match a prior."""

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from comes.answers import Answers
from comes.errors import ComesError
from comes.selection import choose_thresholds, estimate_metrics
from comes.selection.thresholds import (
    cut_as_expected,
    cut_of_greatest_f1,
    offset_matching_prior,
    recalibrate_to_prior,
)

PRIOR = np.array([0.2, 0.5])
BY: tuple[Literal["risk", "f1"], ...] = ("risk", "f1")


def draw(n: int = 80, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 2)) < PRIOR
    scores = np.round(3 + 2 * relevant + rng.normal(size=(n, 2)), 1)
    return scores, relevant, relevant | (rng.random((n, 2)) < 0.5)


def test_no_other_cut_is_better() -> None:
    scores, _, candidates = draw(60)
    cases: list[tuple[Any, str, int]] = [("risk", "error", 1), ("f1", "f1", -1)]
    for by, column, sign in cases:
        chosen = choose_thresholds(scores, candidates, PRIOR, by)

        def loss(thresholds: Any, column: str = column, sign: int = sign) -> Any:
            predictions = scores > thresholds
            return (
                sign
                * estimate_metrics(
                    scores, candidates, PRIOR, predictions=predictions, n_resamples=0
                )
                .per_label[column]
                .to_numpy()
            )

        best = loss(chosen)
        for other in np.unique(scores):
            assert (best <= loss(np.full(2, other)) + 1e-9).all(), (by, other)


def test_f1_counts_no_more_relevant_rows_than_the_prior_says() -> None:
    """Three of four rows are candidates, but only one can be relevant."""
    scores, candidates = [[4.0], [3.0], [2.0], [1.0]], [[1], [1], [1], [0]]
    assert choose_thresholds(scores, candidates, [0.25], "f1").tolist() == [3.5]


def test_the_prior_is_met() -> None:
    scores, _, candidates = draw(2000)
    thresholds = choose_thresholds(
        scores + np.random.default_rng(1).random(scores.shape) / 10, candidates, PRIOR, "prior"
    )
    assert (scores > thresholds).mean(axis=0) == pytest.approx(PRIOR, abs=0.05)


def test_edges() -> None:
    scores = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    all_open = np.ones((3, 2), dtype=bool)
    never = choose_thresholds(scores, all_open, [0.0, 1.0])  # nothing excludes: by the prior
    assert (scores > never).mean(axis=0).tolist() == [0.0, 1.0]
    none_open = np.zeros((3, 2), dtype=bool)
    assert (choose_thresholds(scores, none_open, [0.1, 0.1]) == np.inf).all()
    huge = choose_thresholds([[-1e300], [1e300]], [[0], [1]], [0.5])
    assert -1e300 < huge[0] < 1e300
    assert choose_thresholds([[5.0]], [[1]], [1.0])[0] == -np.inf
    adjacent = 1 + np.arange(4) * np.finfo(float).eps  # nothing lies between two of them
    for low, high in pairwise(adjacent):
        pair = np.array([[low], [high]])
        cut = choose_thresholds(pair, [[0], [1]], [0.5])
        assert (pair > cut).tolist() == [[False], [True]]
    with pytest.raises(ComesError, match="by must be 'risk', 'f1' or 'prior'; got 'zero'"):
        choose_thresholds(scores, all_open, PRIOR, "zero")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="must have one shape"):
        choose_thresholds(scores, all_open[:2], PRIOR)
    frame, labels = (pd.DataFrame(values, columns=["a", "b"]) for values in (scores, all_open))
    with pytest.raises(ComesError, match="same labels in the same order"):
        choose_thresholds(frame, labels[["b", "a"]], PRIOR)


def test_with_yes_the_threshold_is_the_best_of_all_by_plain_search() -> None:
    rng = np.random.default_rng(3)
    relevant = rng.random((80, 2)) < 0.4
    scores = np.round(relevant + rng.normal(size=(80, 2)), 1)
    asked = rng.random((80, 2)) < 0.6
    answers = Answers(no=~relevant & asked, yes=relevant & asked)
    cuts = {by: choose_thresholds(scores, answers, [0.4, 0.4], by) for by in BY}

    def lose(cut: Any) -> dict[str, Any]:
        table = estimate_metrics(
            scores, answers, [0.4, 0.4], predictions=scores > cut, n_resamples=0
        ).per_label
        return {"risk": table["error"].to_numpy(), "f1": -table["f1"].fillna(0).to_numpy()}

    tried = [lose(cut) for cut in (-np.inf, *np.unique(scores))]
    for by in BY:
        best = np.min([losses[by] for losses in tried], axis=0)
        np.testing.assert_allclose(lose(cuts[by])[by], best, err_msg=by)


# Cuts by probabilities


def expect_f1(eta: Any, cut: float) -> float:
    """Return 2 TP / (predicted + relevant), each as probabilities expect it, row by row."""
    hits = predicted = relevant = 0.0
    for probability in eta:
        relevant += probability
        if probability > cut:
            hits += probability
            predicted += 1
    return 2 * hits / (predicted + relevant)


def draw_probabilities(n: int = 70) -> Any:
    """Return those of a rare, a frequent and a nearly certain label, and one with many ties."""
    rng = np.random.default_rng(5)
    eta = expit(rng.normal([-4, 1, 6, -1], [2, 1, 2, 1], size=(n, 4)))
    eta[:, 3] = np.round(eta[:, 3], 1)
    return eta


def test_no_cut_has_a_greater_expected_f1_and_the_best_is_half_of_it() -> None:
    eta = draw_probabilities()
    cuts = cut_of_greatest_f1(eta)
    for label, cut in enumerate(cuts):
        best = max(expect_f1(eta[:, label], other) for other in (0, *eta[:, label]))
        assert expect_f1(eta[:, label], cut) == pytest.approx(best, rel=1e-12)
        assert cut == pytest.approx(best / 2, rel=1e-12)


def test_a_label_is_predicted_as_often_as_its_probabilities_add_up_to() -> None:
    """Unless the cut would be above one half, or below that of the greatest F1."""
    eta = draw_probabilities()[:, :3]
    cuts = expit(cut_as_expected(logit(eta)))
    n_expected, found = eta.sum(axis=0), (eta > cuts).sum(axis=0)
    assert found[0] == round(n_expected[0]) > (eta[:, 0] > 0.5).sum()
    assert cuts[1:].tolist() == [0.5, 0.5]  # where more rows are above than expected
    assert (found[1:] > n_expected[1:]).all()
    # Two kinds of rows that are told apart, with few errors: F1 is best with fewer than expected.
    apart = np.repeat([[0.9], [0.05]], [10, 60], axis=0)
    assert apart.sum() > 11.5
    level = cut_of_greatest_f1(apart)
    np.testing.assert_allclose(cut_as_expected(logit(apart)), logit(level))
    assert (apart > level).sum() == 10


def test_a_label_that_is_not_expected_on_a_row_is_cut_at_one_half() -> None:
    rare = np.full((20, 1), -6.0)
    rare[3] = -3.0
    assert cut_as_expected(rare).tolist() == [0.0]  # 0.1 rows
    more = rare + 2.5  # 1.9
    assert (more > cut_as_expected(more)).sum() == 1
    assert cut_as_expected(more, class_prior=[0.01]).tolist() == [0.0]  # twice 0.2 rows
    np.testing.assert_array_equal(cut_as_expected(more, [0.03]), cut_as_expected(more))


def test_a_label_is_predicted_at_most_twice_as_often_as_the_class_prior_says() -> None:
    scores = np.random.default_rng(1).normal(-1, 0.5, size=(200, 1))
    for prior, expected in ((0.02, 8), (0.1, 40), (0.5, round(expit(scores).sum()))):
        assert (scores > cut_as_expected(scores, [prior])).sum() == expected, prior
    assert cut_as_expected(np.full((5, 1), -2000.0)).tolist() == [0.0]  # no probability at all


def test_scores_that_do_not_vary_predict_no_row_or_where_that_is_likelier_every_row() -> None:
    for n in (1, 2, 300):
        for score, expected in ((-3.0, 0), (-0.1, 0), (0.1, n), (3.0, n)):
            scores = np.full((n, 1), score)
            assert (scores > cut_as_expected(scores)).sum() == expected, (n, score)


def test_a_score_that_is_no_number_ends() -> None:
    assert np.isnan(cut_of_greatest_f1(np.array([[np.nan, 0.5], [0.5, 0.5]]))).tolist()[0]


# Offsets and powers that match the prior

SCORES = np.random.default_rng(0).normal(5, 3, size=(200, 4))


def test_the_mean_probability_is_the_prior() -> None:
    prior = np.array([0.02, 0.3, 0.5, 0.9])
    for spread in (1e-3, 1.0, 1e3):
        scores = spread * SCORES
        found = expit(scores - offset_matching_prior(scores, prior)).mean(axis=0)
        np.testing.assert_allclose(found, prior, atol=1e-9, err_msg=str(spread))


def test_a_label_that_is_never_or_always_relevant_is_cut_above_or_below_every_score() -> None:
    offset = offset_matching_prior(SCORES, [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal((offset < SCORES).all(axis=0), [False, True, False, True])
    np.testing.assert_array_equal((offset < SCORES).any(axis=0), [False, True, False, True])


def test_bent_scores_are_those_of_a_power_of_the_probability_of_irrelevance() -> None:
    power = np.array([0.1, 0.7, 1.0, 4.0])
    bent = recalibrate_to_prior(SCORES, power)
    for i in range(len(SCORES)):
        for j in range(4):
            irrelevant = 1 - expit(SCORES[i, j])
            assert 1 - expit(bent[i, j]) == pytest.approx(irrelevant ** power[j], rel=1e-9)
    np.testing.assert_allclose(bent[:, 2], SCORES[:, 2])


def test_scores_far_from_zero_bend_without_overflow_and_keep_their_order() -> None:
    for dtype in (np.float32, np.float64):
        far: Any = np.linspace(-900, 900, 400).astype(dtype)[:, None]
        for power in (1e-6, 0.3, 1.0, 50.0):
            bent = recalibrate_to_prior(far, [power])
            assert bent.dtype == dtype
            assert np.isfinite(bent).all(), (dtype, power)
            assert (np.diff(bent[:, 0]) > 0).all(), (dtype, power)
