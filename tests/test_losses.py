import math
import pickle
from collections.abc import Callable

import pytest
import torch

from comes import losses
from comes.losses import MarginLoss

ALL = [value for value in vars(losses).values() if isinstance(value, MarginLoss)]
SCORES = torch.tensor([-3.0, -0.5, 0.0, 0.7, 4.0], dtype=torch.float64)
FORMULAS: dict[str, Callable[[float], float]] = {
    "logistic_loss": lambda m: math.log(1 + math.exp(-m)),
    "sigmoid_loss": lambda m: 1 / (1 + math.exp(m)),
    "squared_loss": lambda m: (1 - m) ** 2,
    "hinge_loss": lambda m: max(0, 1 - m),
    "ramp_loss": lambda m: min(1, max(0, (1 - m) / 2)),
    "unhinged_loss": lambda m: 1 - m,
}


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_is_its_formula_of_the_margin(loss: MarginLoss) -> None:
    formula = FORMULAS[loss.name]
    relevant = [formula(z) for z in SCORES.tolist()]
    irrelevant = [formula(-z) for z in SCORES.tolist()]
    assert loss(SCORES, 1).tolist() == pytest.approx(relevant)
    assert loss(SCORES, 0).tolist() == pytest.approx(irrelevant)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_symmetry_constant_is_the_sum_over_targets_or_none(loss: MarginLoss) -> None:
    total = loss(SCORES, 0) + loss(SCORES, 1)
    if loss.symmetry_constant is None:
        assert total.max() - total.min() > 0.1
    else:
        torch.testing.assert_close(total, torch.full_like(total, loss.symmetry_constant))


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_has_its_name_in_the_module_and_can_be_pickled(loss: MarginLoss) -> None:
    assert getattr(losses, loss.name) is loss
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_there_are_six() -> None:
    assert {loss.name for loss in ALL} == set(FORMULAS)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_huge_scores_stay_finite(loss: MarginLoss) -> None:
    scores = torch.tensor([-1e6, 1e6], requires_grad=True)
    result = loss(scores, 0) + loss(scores, 1)
    result.sum().backward()
    assert result.isfinite().all()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
