"""Estimated metrics and their intervals over many draws: short forms are in tests/."""

import numpy as np

from comes.answers import Answers
from comes.generation import simulate_answers
from comes.metrics import hamming_loss
from comes.selection import (
    check_constant_rate,
    check_ranking_risk,
    check_reliability,
    estimate_metrics,
)

PRIOR = np.array([0.2, 0.4, 0.6])


def draw(n: int, rate: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, true labels and candidates of n rows."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < PRIOR
    scores = np.round(2 * relevant - 1 + rng.normal(size=(n, 3)), 1)
    return scores, relevant, relevant | (rng.random((n, 3)) >= rate)


def test_the_hamming_loss_is_unbiased_and_its_intervals_hold_the_truth() -> None:
    scores, relevant, _ = draw(200_000, seed=9)
    truth = hamming_loss(scores > 0, relevant)
    inside, values = 0, []
    for seed in range(60):
        scores, _, candidates = draw(400, rate=0.3, seed=seed)
        found = estimate_metrics(scores, candidates, PRIOR, n_resamples=100)["hamming_loss"]
        inside += found.low < truth < found.high
        values.append(found.value)
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / 60**0.5
    assert 48 <= inside <= 60


def test_few_exclusions_do_not_bias_intervals_of_many_draws() -> None:
    values, covered = [], 0
    truth_scores, truth, _ = draw(100_000, seed=5)
    below = np.argsort(np.argsort(truth_scores, axis=1), axis=1)
    truth_risk = (below * ~truth).sum(axis=0) / 1e5  # what every label adds
    for seed in range(60):
        scores, _, candidates = draw(200, rate=0.06, seed=seed)
        found = estimate_metrics(scores, candidates, PRIOR, n_resamples=100)["ranking_risk"]
        if found.labels:
            risk = truth_risk[list(found.labels)].sum()
            values.append(found.value - risk)
            covered += found.low <= risk <= found.high
    assert abs(np.mean(values)) < 0.15
    assert covered > 0.7 * len(values) > 30


def test_intervals_from_answers_hold_the_truth_in_many_draws() -> None:
    inside: dict[str, int] = {}
    for seed in range(40):
        scores, relevant, _ = draw(400, seed=seed)
        rng = np.random.default_rng([7, seed + 100])  # not the numbers of `draw`
        heard, knows = rng.random(relevant.shape) < 0.5, rng.random(relevant.shape) < 0.8
        masks = (~relevant & knows, relevant & knows, ~knows)
        answers = Answers(*(mask & heard for mask in masks))
        share = relevant.mean(axis=0)
        found = estimate_metrics(scores, answers, share, n_resamples=100)
        truth = estimate_metrics(scores, relevant, share, n_resamples=0)
        for name, e in found.metrics.items():
            inside[name] = inside.get(name, 0) + (e.low <= truth[name].value <= e.high)
    assert min(inside.values()) >= 35


def test_reliability_intervals_hold_the_share_in_95_of_100_draws() -> None:
    held = 0
    for seed in range(200):
        relevant = np.random.default_rng(seed).random((60, 4)) < 0.3
        said = simulate_answers(relevant, asked_rate=0.8, no_rate=0.7, yes_rate=0.6, seed=seed)
        row = check_reliability(np.full((60, 4), 0.35), said, 0.7, 0.6).iloc[0]
        held += bool(row["low"] <= 0.3 <= row["high"])
    assert 181 <= held <= 199


def test_a_constant_rate_raises_few_alarms_in_many_draws() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    relevant = X[:, :3] + 0.3 * rng.normal(size=(400, 3)) > 0
    alarms = 0
    for seed in range(20):
        kept = np.random.default_rng(seed).random(relevant.shape) >= 0.5
        check = check_constant_rate(X, relevant | kept, ~relevant)
        alarms += int((check.per_label["says"] == "not constant").any())
    assert alarms <= 4


def test_the_ranking_floor_rarely_alarms_in_many_draws() -> None:
    """One relevant label per row and right scores: risk and floor are the same in expectation."""
    rng, alarms = np.random.default_rng(3), 0
    prior = np.array([0.1, 0.3, 0.2, 0.4])
    for _ in range(400):
        relevant = np.eye(4, dtype=bool)[rng.choice(4, size=300, p=prior)]
        scores = rng.normal(size=(300, 4)) + 20 * relevant
        excluded = ~relevant & (rng.random((300, 4)) < 0.4)
        alarms += not check_ranking_risk(scores, ~excluded, prior).is_possible
    assert 0 < alarms <= 20  # 2.5 % of 400 are expected
