"""P@k, nDCG@k and their propensity-scored variants: against plain loops, and at their edges."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import ndcg_score

from comes import metrics as rankings
from comes.errors import ComesError
from comes.metrics import (
    count_empty_rows,
    evaluate_top,
    label_propensity,
    ndcg_at_k,
    precision_at_k,
    propensity_ndcg_at_k,
    propensity_precision_at_k,
    top_labels,
)

RNG = np.random.default_rng(0)
N, Q = 40, 7
SCORES = RNG.normal(size=(N, Q))
RELEVANT = RNG.random((N, Q)) < [0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
RELEVANT[:4], RELEVANT[4] = False, True  # four rows without a relevant label, one with all
PROPENSITY = label_propensity(RELEVANT)
KS = (1, 3, 5, Q, Q + 2)
FORMS = [np.asarray, sparse.csr_array, sparse.csc_matrix]
FORM_NAMES = ["dense", "csr", "csc"]


def ranked(row: int) -> list[int]:
    """Return the labels of a row, the best first, ties by column."""
    return sorted(range(Q), key=lambda label: (-SCORES[row, label], label))


def discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)  # of ranks from 1


def mean_precision(k: int, weight: list[float], order: Callable[[int], list[int]]) -> float:
    total = 0.0
    for row in range(N):
        total += sum(weight[label] for label in order(row)[:k] if RELEVANT[row, label]) / k
    return total / N


def mean_ndcg(k: int, weight: list[float], order: Callable[[int], list[int]]) -> float:
    total = 0.0
    for row in range(N):
        gain = 0.0
        for rank, label in enumerate(order(row)[:k], start=1):
            gain += weight[label] * discount(rank) * bool(RELEVANT[row, label])
        most = min(k, int(RELEVANT[row].sum()))
        total += gain / sum(discount(r + 1) for r in range(most)) if most else 0.0
    return total / N


def best(row: int) -> list[int]:
    """Return the relevant labels of a row, the rarest first, and then the others."""
    return sorted(range(Q), key=lambda label: (not RELEVANT[row, label], PROPENSITY[label]))


@pytest.mark.parametrize("form", FORMS, ids=FORM_NAMES)
def test_the_metrics_are_their_formulas_written_as_loops(form: Callable[..., object]) -> None:
    ones, weight = [1.0] * Q, (1 / PROPENSITY).tolist()
    relevant = form(RELEVANT.astype(np.int8))
    for k in KS:
        expected = {
            f"precision@{k}": mean_precision(k, ones, ranked),
            f"ndcg@{k}": mean_ndcg(k, ones, ranked),
            f"propensity_precision@{k}": mean_precision(k, weight, ranked)
            / mean_precision(k, weight, best),
            f"propensity_ndcg@{k}": mean_ndcg(k, weight, ranked) / mean_ndcg(k, weight, best),
        }
        assert evaluate_top(SCORES, relevant, [k], PROPENSITY) == pytest.approx(expected)
        one_by_one = [
            precision_at_k(SCORES, relevant, k),
            ndcg_at_k(SCORES, relevant, k),
            propensity_precision_at_k(SCORES, relevant, PROPENSITY, k),
            propensity_ndcg_at_k(SCORES, relevant, PROPENSITY, k),
        ]
        assert one_by_one == pytest.approx(list(expected.values())), k


def test_several_k_at_once_are_each_alone() -> None:
    found = evaluate_top(SCORES, RELEVANT, KS, PROPENSITY)
    assert len(found) == 4 * len(KS)
    for k in KS:
        alone = evaluate_top(SCORES, RELEVANT, [k], PROPENSITY)
        assert {name: found[name] for name in alone} == alone
    assert list(evaluate_top(SCORES, RELEVANT, [2])) == ["precision@2", "ndcg@2"]


def test_gains_without_ties_are_those_of_scikit_learn() -> None:
    for k in (1, 3, Q, Q + 2):
        assert ndcg_at_k(SCORES, RELEVANT, k) == pytest.approx(ndcg_score(RELEVANT, SCORES, k=k))


def test_the_best_labels_say_as_much_as_the_scores() -> None:
    top = top_labels(SCORES, 5)
    for k in (1, 3, 5):
        assert evaluate_top(top, RELEVANT, [k], PROPENSITY) == evaluate_top(
            SCORES, RELEVANT, [k], PROPENSITY
        )
    assert precision_at_k(top.astype(np.int32), RELEVANT, 5) == precision_at_k(top, RELEVANT, 5)


def test_equal_propensities_leave_the_precision_up_to_the_best_possible_one() -> None:
    same = np.full(Q, 0.3)
    expected = precision_at_k(SCORES, RELEVANT, 3) / precision_at_k(RELEVANT * 1.0, RELEVANT, 3)
    assert propensity_precision_at_k(SCORES, RELEVANT, same, 3) == pytest.approx(expected)


def test_the_best_ranking_has_the_value_1() -> None:
    rarest_first = np.array([best(row) for row in range(N)])
    for k in KS:
        assert propensity_precision_at_k(rarest_first, RELEVANT, PROPENSITY, k) == pytest.approx(1)
        assert propensity_ndcg_at_k(rarest_first, RELEVANT, PROPENSITY, k) == pytest.approx(1)
    assert ndcg_at_k(rarest_first, RELEVANT, 3) == pytest.approx(RELEVANT.any(axis=1).mean())


def test_a_hit_on_a_rare_label_counts_more() -> None:
    relevant, propensity = np.array([[1, 1]]), np.array([0.9, 0.1])
    common, rare = (
        propensity_precision_at_k(np.array([[label]]), relevant, propensity) for label in (0, 1)
    )
    assert common == pytest.approx(1 / 9) and rare == 1


def test_propensities_are_the_formula_written_as_a_loop() -> None:
    c = (math.log(N) - 1) * (1.5 + 1) ** 0.55
    for label in range(Q):
        count = int(RELEVANT[:, label].sum())
        expected = 1 / (1 + c * math.exp(-0.55 * math.log(count + 1.5)))
        assert label_propensity(sparse.csr_array(RELEVANT))[label] == pytest.approx(expected)
    assert PROPENSITY[0] > PROPENSITY[3] > PROPENSITY[6]  # as frequent as the labels
    assert label_propensity(RELEVANT, a=0.6, b=2.6)[0] != PROPENSITY[0]
    with pytest.raises(ComesError, match="at least 3 rows of training; got 2"):
        label_propensity(RELEVANT[:2])


def test_ties_are_broken_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = np.random.default_rng(1).integers(0, 3, size=(N, Q)).astype(np.float32)
    for at_once in (1, 3 * Q, 2**24):
        monkeypatch.setattr(rankings, "SCORES_AT_ONCE", at_once)
        for k in range(1, Q + 1):
            expected = np.argsort(-tied, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(top_labels(tied, k), expected)
    assert precision_at_k(np.zeros((1, 3)), [[0, 1, 1]], 1) == 0
    assert precision_at_k(np.zeros((1, 3)), [[1, 0, 0]], 1) == 1


def test_rows_without_a_relevant_label_count_0() -> None:
    k, empty = 3, ~RELEVANT.any(axis=1)
    assert count_empty_rows(RELEVANT) == empty.sum() >= 4
    assert count_empty_rows(sparse.csr_array(RELEVANT)) == empty.sum()
    for metric in (precision_at_k, ndcg_at_k):
        others = metric(SCORES[~empty], RELEVANT[~empty], k)
        assert metric(SCORES, RELEVANT, k) == pytest.approx(others * (~empty).mean())


def test_where_nothing_is_relevant_nothing_can_be_reached() -> None:
    nothing = sparse.csr_array((N, Q), dtype=bool)
    found = evaluate_top(SCORES, nothing, [2], np.full(Q, 0.5))
    assert (found["precision@2"], found["ndcg@2"]) == (0, 0)
    assert math.isnan(found["propensity_precision@2"]) and math.isnan(found["propensity_ndcg@2"])
    assert count_empty_rows(nothing) == N


def test_one_label_and_more_k_than_labels() -> None:
    scores, relevant = np.array([[0.3], [0.1]]), np.array([[1], [0]])
    assert precision_at_k(scores, relevant, 1) == 0.5
    assert precision_at_k(scores, relevant, 4) == 0.125  # of four places, three stay empty
    assert ndcg_at_k(scores, relevant, 1) == ndcg_at_k(scores, relevant, 4) == 0.5
    assert propensity_precision_at_k(scores, relevant, [0.2], 4) == 1
    assert top_labels(scores, 4).shape == (2, 1)


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
    found = evaluate_top(labels, relevant, [1, 3], np.full(q, 0.5))
    assert found["precision@1"] == 0 and found["precision@3"] == pytest.approx(1 / 3)
    assert found["ndcg@3"] == pytest.approx(1 / math.log2(3))


REFUSED: list[tuple[np.ndarray, object, int, str]] = [
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
    for ranking, relevant, k, message in REFUSED:
        with pytest.raises(ComesError, match=message):
            precision_at_k(ranking, relevant, k)


def test_frames_must_have_the_same_labels() -> None:
    scores, relevant = pd.DataFrame({"a": [0.1], "b": [0.2]}), pd.DataFrame({"b": [1], "a": [0]})
    with pytest.raises(ComesError, match="the same labels in the same order"):
        precision_at_k(scores, relevant)
    assert precision_at_k(scores, relevant[["a", "b"]]) == 1


def test_propensities_must_be_one_above_0_for_each_label() -> None:
    for wrong, got in ((np.ones(2), r"shape \(2,\)"), (np.zeros(Q), "0 among them")):
        with pytest.raises(ComesError, match=f"for each of 7 labels; got {got}"):
            propensity_ndcg_at_k(SCORES, RELEVANT, wrong)
