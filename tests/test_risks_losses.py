import math
import pickle
from collections.abc import Callable

import pytest
import torch

from comes.errors import ComesError
from comes.risks import MarginLoss, losses

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
SYMMETRY_CONSTANTS = {"sigmoid_loss": 1, "ramp_loss": 1, "unhinged_loss": 2}


def test_each_is_its_formula_of_the_margin() -> None:
    assert {loss.name for loss in ALL} == set(FORMULAS)
    for loss in ALL:
        formula = FORMULAS[loss.name]
        relevant = [formula(z) for z in SCORES.tolist()]
        irrelevant = [formula(-z) for z in SCORES.tolist()]
        assert loss(SCORES, 1).tolist() == pytest.approx(relevant), loss.name
        assert loss(SCORES, 0).tolist() == pytest.approx(irrelevant), loss.name


def test_the_symmetry_constant_is_the_sum_over_targets_or_none() -> None:
    for loss in ALL:
        total = loss(SCORES, 0) + loss(SCORES, 1)
        assert loss.symmetry_constant == SYMMETRY_CONSTANTS.get(loss.name), loss.name
        if loss.symmetry_constant is None:
            assert total.max() - total.min() > 0.1, loss.name
        else:
            assert (total - loss.symmetry_constant).abs().max() < 1e-12, loss.name


def test_each_has_its_name_in_the_module_and_can_be_pickled() -> None:
    for loss in ALL:
        assert getattr(losses, loss.name) is loss
        assert pickle.loads(pickle.dumps(loss)) == loss


def test_huge_scores_stay_finite() -> None:
    for loss in ALL:
        scores = torch.tensor([-1e6, 1e6], requires_grad=True)
        result = loss(scores, 0) + loss(scores, 1)
        result.sum().backward()
        assert result.isfinite().all(), loss.name
        assert scores.grad is not None and scores.grad.isfinite().all(), loss.name


def test_a_target_that_is_not_0_or_1_is_refused() -> None:
    for wrong in (2, -1, torch.tensor([0, 1, 1, 0, 1])):
        with pytest.raises(ComesError, match="target must be 0 .irrelevant. or 1 .relevant."):
            losses.logistic_loss(SCORES, wrong)  # type: ignore[arg-type]
