import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import metrics as sk
from sklearn.metrics import ndcg_score

from comes import metrics
from comes.errors import ComesError
from comes.metrics import (
    METRICS,
    count_degenerate,
    evaluate,
    evaluate_top,
    ndcg_at_k,
    precision_at_k,
)

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


# The best k labels of a row: P@k and nDCG@k.

TOP_RNG = np.random.default_rng(0)
N, Q = 40, 7
TOP_SCORES = TOP_RNG.normal(size=(N, Q))
TOP_RELEVANT = TOP_RNG.random((N, Q)) < [0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
TOP_RELEVANT[:4], TOP_RELEVANT[4] = False, True  # four rows without a relevant label, one with all
KS = (1, 3, 5, Q, Q + 2)
FORMS = [np.asarray, sparse.csr_array, sparse.csc_matrix]
FORM_NAMES = ["dense", "csr", "csc"]


def ranked(row: int) -> list[int]:
    """Return the labels of a row, the best first, ties by column."""
    return sorted(range(Q), key=lambda label: (-TOP_SCORES[row, label], label))


def discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)  # of ranks from 1


def mean_precision(k: int) -> float:
    total = 0.0
    for row in range(N):
        total += sum(1 for label in ranked(row)[:k] if TOP_RELEVANT[row, label]) / k
    return total / N


def mean_ndcg(k: int) -> float:
    total = 0.0
    for row in range(N):
        gain = 0.0
        for rank, label in enumerate(ranked(row)[:k], start=1):
            gain += discount(rank) * bool(TOP_RELEVANT[row, label])
        most = min(k, int(TOP_RELEVANT[row].sum()))
        total += gain / sum(discount(r + 1) for r in range(most)) if most else 0.0
    return total / N


@pytest.mark.parametrize("form", FORMS, ids=FORM_NAMES)
def test_the_metrics_are_their_formulas_written_as_loops(form: Callable[..., object]) -> None:
    relevant = form(TOP_RELEVANT.astype(np.int8))
    for k in KS:
        expected = {
            f"precision@{k}": mean_precision(k),
            f"ndcg@{k}": mean_ndcg(k),
        }
        assert evaluate_top(TOP_SCORES, relevant, [k]) == pytest.approx(expected)
        one_by_one = [
            precision_at_k(TOP_SCORES, relevant, k),
            ndcg_at_k(TOP_SCORES, relevant, k),
        ]
        assert one_by_one == pytest.approx(list(expected.values())), k


def test_several_k_at_once_are_each_alone() -> None:
    found = evaluate_top(TOP_SCORES, TOP_RELEVANT, KS)
    assert len(found) == 2 * len(KS)
    for k in KS:
        alone = evaluate_top(TOP_SCORES, TOP_RELEVANT, [k])
        assert {name: found[name] for name in alone} == alone
    assert list(evaluate_top(TOP_SCORES, TOP_RELEVANT, [2])) == ["precision@2", "ndcg@2"]


def test_gains_without_ties_are_those_of_scikit_learn() -> None:
    for k in (1, 3, Q, Q + 2):
        assert ndcg_at_k(TOP_SCORES, TOP_RELEVANT, k) == pytest.approx(
            ndcg_score(TOP_RELEVANT, TOP_SCORES, k=k)
        )


def test_the_best_labels_say_as_much_as_the_scores() -> None:
    top = np.array([ranked(row)[:5] for row in range(N)])
    for k in (1, 3, 5):
        assert evaluate_top(top, TOP_RELEVANT, [k]) == evaluate_top(TOP_SCORES, TOP_RELEVANT, [k])
    assert precision_at_k(top.astype(np.int32), TOP_RELEVANT, 5) == precision_at_k(
        top, TOP_RELEVANT, 5
    )


def test_ties_are_broken_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = np.random.default_rng(1).integers(0, 3, size=(N, Q)).astype(np.float32)
    for at_once in (1, 3 * Q, 2**24):
        monkeypatch.setattr(metrics, "SCORES_AT_ONCE", at_once)
        for k in range(1, Q + 1):
            best = np.argsort(-tied, axis=1, kind="stable")[:, :k]
            found = evaluate_top(tied, TOP_RELEVANT, [k])
            assert found == evaluate_top(best, TOP_RELEVANT, [k])
    assert precision_at_k(np.zeros((1, 3)), [[0, 1, 1]], 1) == 0
    assert precision_at_k(np.zeros((1, 3)), [[1, 0, 0]], 1) == 1


def test_rows_without_a_relevant_label_count_0() -> None:
    k, empty = 3, ~TOP_RELEVANT.any(axis=1)
    assert empty.sum() >= 4
    for metric in (precision_at_k, ndcg_at_k):
        others = metric(TOP_SCORES[~empty], TOP_RELEVANT[~empty], k)
        assert metric(TOP_SCORES, TOP_RELEVANT, k) == pytest.approx(others * (~empty).mean())


def test_where_nothing_is_relevant_nothing_can_be_reached() -> None:
    nothing = sparse.csr_array((N, Q), dtype=bool)
    found = evaluate_top(TOP_SCORES, nothing, [2])
    assert (found["precision@2"], found["ndcg@2"]) == (0, 0)


def test_one_label_and_more_k_than_labels() -> None:
    scores, relevant = np.array([[0.3], [0.1]]), np.array([[1], [0]])
    assert precision_at_k(scores, relevant, 1) == 0.5
    assert precision_at_k(scores, relevant, 4) == 0.125  # of four places, three stay empty
    assert ndcg_at_k(scores, relevant, 1) == ndcg_at_k(scores, relevant, 4) == 0.5


def test_stored_zeros_and_columns_out_of_order_are_read_as_they_are_meant() -> None:
    untidy = sparse.csr_array(
        (np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3)
    )
    for k in (1, 2, 3):
        assert ndcg_at_k([[1, 0, 2]], untidy, k) == ndcg_at_k([[1, 0, 2]], [[1, 0, 1]], k)
    assert untidy.nnz == 3 and untidy.indices.tolist() == [2, 1, 0]  # still the caller's


def test_a_sparse_truth_is_never_made_dense() -> None:
    """A dense matrix of so many labels would have 8 x 10^10 entries."""
    n, q = 20_000, 4_000_000
    labels = np.arange(n)[:, None] * 7 + np.arange(3)
    relevant = sparse.csr_array((np.ones(n, bool), (np.arange(n), labels[:, 1])), shape=(n, q))
    found = evaluate_top(labels, relevant, [1, 3])
    assert found["precision@1"] == 0 and found["precision@3"] == pytest.approx(1 / 3)
    assert found["ndcg@3"] == pytest.approx(1 / math.log2(3))


REFUSED_RANKINGS: list[tuple[np.ndarray, object, int, str]] = [
    (np.zeros((2, 3)), np.ones((2, 4)), 1, r"shape of the relevant labels, \(2, 4\).*\(2, 3\)"),
    (np.full((1, 2), np.nan), np.ones((1, 2)), 1, "scores must be finite"),
    (np.array([[0]]), np.ones((1, 3)), 2, r"the 2 best of the 3 labels.*got shape \(1, 1\)"),
    (np.array([[0, 3]]), np.ones((1, 3)), 2, "counted from 0; got label 3"),
    (np.array([[-1, 3]]), np.ones((1, 3)), 2, "counted from 0; got label -1"),
    (np.array([[1, 1]]), np.ones((1, 3)), 2, "got a label twice in row 0. Scores must be"),
    (np.array([[1], [0]]), np.ones((1, 3)), 1, "the same rows; got 2 and 1"),
    (np.zeros((1, 3)), np.ones((1, 3)), 0, "k must be 1 or more; got 0"),
    (np.zeros((1, 2), bool), np.ones((1, 2)), 1, "scores must be a matrix of floats"),
    (np.zeros((1, 3)), sparse.csr_array([[0, 2, 1]]), 1, "a matrix of 0 and 1; got 2"),
    (np.zeros((1, 3)), [[0, 2, 1]], 1, "relevant labels must be 0 or 1; got 2"),
]


def test_what_cannot_be_compared_is_refused() -> None:
    for ranking, relevant, k, message in REFUSED_RANKINGS:
        with pytest.raises(ComesError, match=message):
            precision_at_k(ranking, relevant, k)


def test_frames_must_have_the_same_labels() -> None:
    scores, relevant = pd.DataFrame({"a": [0.1], "b": [0.2]}), pd.DataFrame({"b": [1], "a": [0]})
    with pytest.raises(ComesError, match="the same labels in the same order"):
        precision_at_k(scores, relevant)
    assert precision_at_k(scores, relevant[["a", "b"]]) == 1
