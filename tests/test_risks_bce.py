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


def test_your_own_loss_is_that_of_a_margin_loss_with_the_same_formula() -> None:
    def own(scores: Tensor, target: int) -> Tensor:
        return losses.hinge_loss(scores, target)

    for answers in (CANDIDATES, STATES):
        expected = bce_risk(SCORES, answers, loss=losses.hinge_loss)
        torch.testing.assert_close(bce_risk(SCORES, answers, loss=own), expected)


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


def test_of_states_only_no_and_yes_count_written_as_loops() -> None:
    for weight in (None, [2.0, 0.0, 0.5, 1.0]):
        label_weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
        risk = bce_risk(SCORES, STATES, label_weight=label_weight)
        assert risk.item() == pytest.approx(states_by_loops(weight or [1.0] * Q), rel=1e-12)
        torch.testing.assert_close(BceRisk(label_weight=label_weight)(SCORES, STATES), risk)


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


def test_what_is_no_loss_or_no_weight_is_refused() -> None:
    with pytest.raises(ComesError, match="loss must be a function.*got 'hinge'"):
        bce_risk(SCORES, CANDIDATES, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="label_weight must be 0 or more; got .*-1"):
        bce_risk(SCORES, CANDIDATES, label_weight=torch.tensor([1.0, 0.0, 2.0, -1.0]))
