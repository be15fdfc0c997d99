import pytest
import torch

from comes import losses
from comes.errors import ComesError
from comes.risks import BceRisk, bce_risk
from drawn_problems import N, Q, annotate, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)


def test_takes_every_candidate_for_relevant_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g = SCORES[i, j].item()
            total += softplus(-g) if CANDIDATES[i, j] else softplus(g)
    expected = torch.tensor(total / (N * Q), dtype=torch.float64)
    torch.testing.assert_close(bce_risk(SCORES, CANDIDATES), expected)


def test_gradient_in_float64() -> None:
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda g: bce_risk(g, CANDIDATES), (scores,))


def test_module_is_the_function() -> None:
    module = BceRisk(loss=losses.hinge_loss)
    expected = bce_risk(SCORES, CANDIDATES, loss=losses.hinge_loss)
    torch.testing.assert_close(module(SCORES, CANDIDATES), expected)


def test_half_precision_is_computed_in_float32() -> None:
    assert bce_risk(SCORES.half(), CANDIDATES).dtype == torch.float32


def test_wrong_shapes_and_types_are_refused() -> None:
    with pytest.raises(ComesError, match="must be bool"):
        bce_risk(SCORES, CANDIDATES.float())
    with pytest.raises(ComesError, match="one shape"):
        bce_risk(SCORES, CANDIDATES[:, :1])
