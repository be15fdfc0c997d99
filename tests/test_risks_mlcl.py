import math

import pytest
import torch

from comes.risks import mlcl_risk
from drawn_problems import N, Q, annotate, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
TRANSITION = torch.tensor(
    [[0, 0.2, 0.5, 0.3], [0.3, 0, 0.2, 0.5], [0.5, 0.3, 0, 0.2], [0.2, 0.5, 0.3, 0]],
    dtype=torch.float64,
)


def by_loops(as_released: bool) -> float:
    entropy = squares = 0.0
    for i in range(N):
        p = [1 / (1 + math.exp(-g)) for g in SCORES[i].tolist()]
        for j in range(Q):
            v = sum(TRANSITION[j, k].item() * p[k] for k in range(Q))
            c = float(not CANDIDATES[i, j])
            squares += (c - v) ** 2
            v = 1 / (1 + math.exp(-v)) if as_released else v
            entropy -= c * math.log(v) + (1 - c) * math.log(1 - v)
    return entropy / (N * Q) + math.sqrt(squares)


def test_is_the_loss_written_as_loops() -> None:
    for as_released in (False, True):
        risk = mlcl_risk(SCORES, CANDIDATES, TRANSITION, as_released=as_released)
        assert risk.item() == pytest.approx(by_loops(as_released), rel=1e-10), as_released


def test_probabilities_above_1_are_clamped() -> None:
    """Rows of the transition matrix may sum to more than 1."""
    doubled = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    risk = mlcl_risk(torch.full((2, 3), 9.0), torch.zeros(2, 3, dtype=torch.bool), doubled)
    assert risk.isfinite()


def test_a_perfect_prediction_has_a_finite_gradient() -> None:
    """The norm is not squared: at 0 its gradient would not exist."""
    swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    scores = torch.tensor([[200.0, -200.0]], requires_grad=True)
    mlcl_risk(scores, torch.tensor([[True, False]]), swapped).backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
