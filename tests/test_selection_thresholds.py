"""Thresholds: the best of all cuts, by plain search."""

from typing import Any

import numpy as np
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.selection import choose_thresholds, estimate_metrics

PRIOR = np.array([0.2, 0.5])


def draw(n: int = 80, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 2)) < PRIOR
    scores = np.round(3 + 2 * relevant + rng.normal(size=(n, 2)), 1)
    return scores, relevant, relevant | (rng.random((n, 2)) < 0.5)


@pytest.mark.parametrize(("by", "column", "sign"), [("risk", "error", 1), ("f1", "f1", -1)])
def test_no_other_cut_is_better(by: Any, column: str, sign: int) -> None:
    scores, _, candidates = draw()
    chosen = choose_thresholds(scores, candidates, PRIOR, by)

    def loss(thresholds: Any, label: int) -> float:
        table = estimate_metrics(
            scores, candidates, PRIOR, predictions=scores > thresholds, n_resamples=1
        ).per_label
        value = float(table[column][label])
        return sign * value

    for label in range(2):
        best = loss(chosen, label)
        for other in np.unique(scores[:, label]):
            shifted = chosen.copy()
            shifted[label] = other
            assert best <= loss(shifted, label) + 1e-9


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
    next_to = [[1.0], [np.nextafter(1.0, 2.0)]]
    assert (np.array(next_to) > choose_thresholds(next_to, [[0], [1]], [0.5])).tolist() == [
        [False],
        [True],
    ]
    with pytest.raises(ComesError, match="by must be 'risk', 'f1' or 'prior'; got 'zero'"):
        choose_thresholds(scores, all_open, PRIOR, "zero")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="must have one shape"):
        choose_thresholds(scores, all_open[:2], PRIOR)


@pytest.mark.parametrize("by", ["risk", "f1"])
def test_with_yes_the_threshold_is_the_best_of_all_by_plain_search(by: Any) -> None:
    rng = np.random.default_rng(3)
    relevant = rng.random((80, 2)) < 0.4
    scores = np.round(relevant + rng.normal(size=(80, 2)), 1)
    asked = rng.random((80, 2)) < 0.6
    answers = Answers(no=~relevant & asked, yes=relevant & asked)
    cuts = choose_thresholds(scores, answers, [0.4, 0.4], by)

    def loss(label: int, cut: float) -> float:
        table = estimate_metrics(
            scores, answers, [0.4, 0.4], predictions=scores > cut, n_resamples=0
        ).per_label
        f1 = table["f1"][label]
        return float(table["error"][label] if by == "risk" else -f1 if np.isfinite(f1) else 0)

    for label in range(2):
        best = min(loss(label, cut) for cut in (-np.inf, *np.unique(scores[:, label])))
        assert loss(label, cuts[label]) == pytest.approx(best)
