import pytest
import torch
from torch import Tensor

from comes import losses
from comes.answers import State
from comes.errors import ComesError
from comes.risks import BceRisk, bce_risk
from drawn_problems import N, Q, annotate, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)


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


def states_by_loops(weight: list[float]) -> float:
    """Return the mean over all pairs, of which only no and yes cost something."""
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g = SCORES[i, j].item()
            if STATES[i, j] == State.YES:
                total += weight[j] * softplus(-g)
            elif STATES[i, j] == State.NO:
                total += weight[j] * softplus(g)
    return total / (N * Q)


@pytest.mark.parametrize("weight", [None, [2.0, 0.0, 0.5, 1.0]])
def test_of_states_only_no_and_yes_count_written_as_loops(weight: list[float] | None) -> None:
    label_weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    risk = bce_risk(SCORES, STATES, label_weight=label_weight)
    assert risk.item() == pytest.approx(states_by_loops(weight or [1.0] * Q), rel=1e-12)
    module = BceRisk(label_weight=label_weight)
    torch.testing.assert_close(module(SCORES, STATES), risk)


def gradient_on(states: Tensor) -> Tensor:
    scores = (1e4 * SCORES).requires_grad_()
    risk = bce_risk(scores, states)
    assert risk.isfinite()
    risk.backward()
    assert scores.grad is not None
    return scores.grad


def test_maybe_and_not_asked_have_no_gradient() -> None:
    gradient = gradient_on(STATES)
    assert gradient.isfinite().all()
    sure = (STATES == State.NO) | (STATES == State.YES)
    assert gradient[~sure].abs().max() == 0 and gradient[sure].abs().max() > 0
    assert gradient_on(torch.zeros_like(STATES)).abs().max() == 0


def test_full_answers_are_true_labels() -> None:
    states = torch.where(RELEVANT, State.YES, State.NO).to(torch.int8)
    torch.testing.assert_close(bce_risk(SCORES, states), bce_risk(SCORES, RELEVANT))


def test_states_in_another_type_and_weights_of_other_labels_are_refused() -> None:
    with pytest.raises(ComesError, match="must be bool"):
        bce_risk(SCORES, STATES.long())
    with pytest.raises(ComesError, match=r"label_weight of shape \(4,\); got \(3,\)"):
        bce_risk(SCORES, CANDIDATES, label_weight=torch.ones(3))
