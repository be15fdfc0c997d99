"""Reliability from answers: the truth's share, the likelihood by hand, and intervals that hold."""

import math

import numpy as np
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.generation import simulate_answers
from comes.selection import check_reliability

RNG = np.random.default_rng(0)
ETA = RNG.beta(1, 2, size=(3000, 4))
RELEVANT = RNG.random(ETA.shape) < ETA
A, B = np.array([0.9, 0.6, 0.8, 0.5]), np.array([0.7, 0.9, 0.4, 0.6])


def answers_of(kind: str) -> tuple[Answers, np.ndarray, np.ndarray]:
    """Return what was said about the pairs, and the rates with which."""
    none = np.zeros(4)
    if kind == "truth":
        return Answers(no=~RELEVANT, yes=RELEVANT), none + 1, none + 1
    if kind == "candidates":
        return Answers.from_candidates(RELEVANT | (RNG.random(ETA.shape) > A)), A, B
    if kind == "positives":
        return Answers.from_positives(RELEVANT & (RNG.random(ETA.shape) < B)), A, B
    drawn = simulate_answers(RELEVANT, asked_rate=0.4, no_rate=A, yes_rate=B, seed=1)
    return drawn, A, B


def test_the_truth_gives_the_share_of_relevant_pairs() -> None:
    found = check_reliability(ETA, *answers_of("truth")).bins
    for k, row in enumerate(found.to_dict("records")):
        here = (k / 10 <= ETA) & ((k + 1) / 10 > ETA)
        assert row["n_pairs"] == here.sum()
        assert row["predicted"] == pytest.approx(ETA[here].mean())
        assert row["relevant"] == pytest.approx(RELEVANT[here].mean(), abs=0.001)


def test_right_probabilities_are_found_right_and_wrong_ones_wrong() -> None:
    for kind in ("truth", "answers", "candidates", "positives"):
        said, a, b = answers_of(kind)
        right = check_reliability(ETA, said, a, b)
        assert right.n_held >= len(right.bins) - 2, kind
        low, share = right.bins["low"], right.bins["relevant"]
        assert ((low <= share) | share.isna()).all(), kind
        wrong = check_reliability(ETA**3, said, a, b)
        assert wrong.n_held <= len(wrong.bins) / 2, kind


def test_the_estimate_is_the_greatest_likelihood() -> None:
    codes = np.array([[1, 2], [1, 1], [2, 3], [3, 0]])
    said = Answers.from_codes(codes.astype(np.int8), "answers")
    found = check_reliability(np.full((4, 2), 0.5), said, A[:2], B[:2]).bins.iloc[0]
    assert found["n_pairs"] == 7  # one pair was not asked about

    def likelihood(eta: float) -> float:
        total = 0.0
        for row in range(4):
            for j in range(2):
                no, yes = A[j] * (1 - eta), B[j] * eta
                state = said.codes[row, j]
                is_no, is_yes = bool(said.excluded[row, j]), bool(said.confirmed[row, j])
                if state:
                    total += math.log(no if is_no else yes if is_yes else 1 - no - yes)
        return total

    grid = np.arange(1, 1000) / 1000
    values = np.array([likelihood(eta) for eta in grid])
    assert found["relevant"] == pytest.approx(grid[values.argmax()], abs=1e-9)
    inside = grid[values >= values.max() - 1.9207]
    assert (found["low"], found["high"]) == pytest.approx((inside.min(), inside.max()), abs=0.0011)


def test_intervals_hold_the_share_in_95_of_100_draws() -> None:
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        relevant = rng.random((60, 4)) < 0.3
        said = simulate_answers(relevant, asked_rate=0.8, no_rate=0.7, yes_rate=0.6, seed=seed)
        row = check_reliability(np.full((60, 4), 0.35), said, 0.7, 0.6).bins.iloc[0]
        held += bool(row["low"] <= 0.3 <= row["high"])
    assert 90 <= held <= 99


def test_what_was_chosen_by_a_model_is_left_out_and_nothing_says_nothing() -> None:
    codes = np.array([[1], [2]], dtype=np.int8)
    chosen = np.array([[False], [True]])
    said = Answers.from_codes(codes, "answers", chosen=chosen)
    assert check_reliability([[0.5], [0.5]], said, 1.0, 1.0).bins["n_pairs"].tolist() == [1]
    silent = Answers.from_candidates(np.ones((5, 1), dtype=bool))
    row = check_reliability(np.full((5, 1), 0.5), silent, 0.0, 0.0).bins.iloc[0]
    assert np.isnan(row["relevant"]) and (row["low"], row["high"]) == (0, 1)


def test_scores_are_refused() -> None:
    with pytest.raises(ComesError, match=r"must lie in \[0, 1\].*predict_proba"):
        check_reliability([[2.0]], Answers(no=[[1]]), 1.0, 1.0)
