from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk

from comes import metrics
from comes.errors import ComesError
from comes.metrics import METRICS, count_degenerate, evaluate

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(50, 6))
RELEVANT = RNG.random((50, 6)) < 0.4
RELEVANT[:, 0] |= ~RELEVANT.any(axis=1)  # no row is empty
RELEVANT[:, 5] &= ~RELEVANT.all(axis=1)  # nor full
DEGENERATE = RELEVANT.copy()
DEGENERATE[:10], DEGENERATE[10:14] = False, True

# Row 0 is ordinary, row 1 has no relevant label.
TWO_SCORES = np.array([[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0]])
TWO_RELEVANT = np.array([[False, True, False, True], [False, False, False, False]])


def test_where_the_conventions_meet_the_values_are_those_of_scikit_learn() -> None:
    for convention in ("pml", "sklearn"):
        values = evaluate(SCORES, RELEVANT, convention=convention)
        assert values["ranking_loss"] == pytest.approx(sk.label_ranking_loss(RELEVANT, SCORES))
        expected = sk.label_ranking_average_precision_score(RELEVANT, SCORES)
        assert values["average_precision"] == pytest.approx(expected)
        assert values["hamming_loss"] == pytest.approx(sk.hamming_loss(RELEVANT, SCORES > 0))
        expected = sk.average_precision_score(RELEVANT, SCORES, average="macro")
        assert values["mean_average_precision"] == pytest.approx(expected)
        coverage = sk.coverage_error(RELEVANT, SCORES)
        coverage = (coverage - 1) / 6 if convention == "pml" else coverage
        assert values["coverage"] == pytest.approx(coverage)


def test_two_rows_one_without_a_relevant_label() -> None:
    expected: dict[Callable[..., float], tuple[float, float]] = {
        metrics.ranking_loss: (3 / 4, 3 / 8),
        metrics.average_precision: ((1 / 2 + 2 / 4) / 2, (1 / 2 + 1) / 2),
        metrics.one_error: (1.0, 1 / 2),
        metrics.coverage: ((4 / 2 - 1) / 4, 4 / 2),
    }
    for metric, (pml, sklearn) in expected.items():
        assert metric(TWO_SCORES, TWO_RELEVANT) == pytest.approx(pml), metric
        assert metric(TWO_SCORES, TWO_RELEVANT, "sklearn") == pytest.approx(sklearn), metric


def test_map_leaves_absent_labels_out_or_counts_them_0() -> None:
    """Both rows tie in every column, so a present label has precision 1/2; two are absent."""
    assert metrics.mean_average_precision(TWO_SCORES, TWO_RELEVANT) == pytest.approx(1 / 2)
    assert metrics.mean_average_precision(TWO_SCORES, TWO_RELEVANT, "sklearn") == pytest.approx(
        1 / 4
    )


def by_loops(scores: np.ndarray, relevant: np.ndarray) -> dict[str, float]:
    """Return the pml metrics of scores without ties, by definition."""
    losses, precisions, errors, depths = [], [], [], []
    for row, truth in zip(scores, relevant, strict=True):
        order = list(np.argsort(-row))
        rank = {label: place + 1 for place, label in enumerate(order)}
        ones, zeros = np.flatnonzero(truth), np.flatnonzero(~truth)
        if len(ones) and len(zeros):
            losses.append(np.mean([row[j] < row[k] for j in ones for k in zeros]))
        if len(ones):
            precisions.append(
                np.mean([sum(rank[k] <= rank[j] for k in ones) / rank[j] for j in ones])
            )
        errors.append(not truth[order[0]])
        depths.append(max((rank[j] for j in ones), default=0))
    return {
        "ranking_loss": float(np.mean(losses)),
        "average_precision": float(np.mean(precisions)),
        "one_error": float(np.mean(errors)),
        "coverage": (float(np.mean(depths)) - 1) / scores.shape[1],
    }


def test_degenerate_rows_are_counted_by_the_rule_of_the_field() -> None:
    values = evaluate(SCORES, DEGENERATE)
    for name, expected in by_loops(SCORES, DEGENERATE).items():
        assert values[name] == pytest.approx(expected), name


def test_a_tie_is_the_mean_over_its_orders() -> None:
    """Ranking loss, coverage of one relevant label and one-error are linear in the rank."""
    tied = np.array([[1.0, 1.0, 0.0]])
    relevant = np.array([[True, False, False]])
    orders = [np.array([[2.0, 1.0, 0.0]]), np.array([[1.0, 2.0, 0.0]])]
    for metric in (metrics.ranking_loss, metrics.one_error, metrics.coverage):
        mean = np.mean([metric(order, relevant) for order in orders])
        assert metric(tied, relevant) == pytest.approx(mean)
    assert metrics.average_precision(tied, relevant) == pytest.approx(1 / 1.5)


def test_a_row_where_everything_is_relevant_and_tied_is_perfect() -> None:
    assert metrics.average_precision(np.zeros((1, 4)), np.ones((1, 4))) == 1


def test_scores_far_from_zero_are_not_squashed() -> None:
    assert metrics.ranking_loss([[30.0, 20.0, -5.0]], [[True, False, False]]) == 0


def test_one_label() -> None:
    scores, relevant = np.array([[1.0], [-1.0]]), np.array([[True], [False]])
    assert np.isnan(metrics.ranking_loss(scores, relevant))
    assert metrics.average_precision(scores, relevant) == 1
    assert metrics.ranking_loss(scores, relevant, "sklearn") == 0
    assert metrics.average_precision(scores, relevant, "sklearn") == 1
    assert metrics.coverage(scores, relevant, "sklearn") == 0.5
    assert metrics.hamming_loss(scores > 0, relevant) == 0


def test_direction_is_the_way_a_perfect_scorer_goes() -> None:
    perfect, worst = (evaluate(sign * (2.0 * RELEVANT - 1), RELEVANT) for sign in (1, -1))
    for name, metric in METRICS.items():
        assert (perfect[name] > worst[name]) == metric.higher_is_better, name


def test_degenerate_rows_and_labels_are_counted() -> None:
    truth = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]])
    assert count_degenerate(truth[:2]) == {
        "rows_without_relevant": 1,
        "rows_all_relevant": 0,
        "labels_without_relevant": 1,
    }
    assert count_degenerate(truth)["rows_all_relevant"] == 1


def test_bad_input_is_named() -> None:
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((SCORES, RELEVANT[:3]), r"shape of the relevant labels, \(3, 6\); got \(50, 6\)"),
        ((SCORES, RELEVANT + 1.0), "relevant labels must be 0 or 1"),
        ((np.full((50, 6), np.nan), RELEVANT), "finite; got nan at row 0, label 0"),
        ((SCORES, RELEVANT, "mulan"), "'pml' or 'sklearn'; got 'mulan'"),
    ]
    for arguments, message in cases:
        with pytest.raises(ComesError, match=message):
            metrics.ranking_loss(*arguments)


def test_predictions_are_used_for_the_hamming_loss_and_else_scores_above_0() -> None:
    assert evaluate([[2.0, -1.0]], [[1, 1]], predictions=[[1, 1]])["hamming_loss"] == 0
    assert evaluate([[0.0, 1.5]], [[0, 1]])["hamming_loss"] == 0


def test_unsigned_scores_are_ranked_like_others() -> None:
    assert metrics.ranking_loss(np.array([[3, 0]], dtype=np.uint8), [[1, 0]]) == 0


def test_probabilities_are_not_cut_at_0() -> None:
    chance = 1 / (1 + np.exp(-SCORES))
    with pytest.raises(ComesError, match=r"look like probabilities\. Pass predictions="):
        evaluate(chance, RELEVANT)
    assert evaluate(chance, RELEVANT, chance > 0.5) == evaluate(SCORES, RELEVANT)


def test_frames_are_not_paired_by_position() -> None:
    frame, truth = (pd.DataFrame(values).add_prefix("l") for values in (SCORES, RELEVANT))
    assert evaluate(frame, truth) == evaluate(SCORES, RELEVANT)
    for other in (frame.iloc[::-1], frame.set_axis(range(50, 100)), frame[frame.columns[::-1]]):
        with pytest.raises(ComesError, match="scores and relevant must have"):
            evaluate(other, truth)
