"""How long a step may be, and how far accelerated steps go on."""

import pytest
import torch

from comes.training import largest_curvature
from comes.training.acceleration import next_momentum


def exact(X: torch.Tensor) -> float:
    return float(torch.linalg.eigvalsh(X.double().T @ X.double())[-1]) / (4 * len(X))


@pytest.mark.parametrize("shape", [(50, 20), (20, 50), (3, 400), (400, 1), (1, 5)])
def test_the_curvature_is_the_largest_eigenvalue(shape: tuple[int, int]) -> None:
    X = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    X[:, 0] *= 3
    assert largest_curvature(X) == pytest.approx(exact(X), rel=0.02)


def test_the_curvature_is_found_where_all_rows_sum_to_zero() -> None:
    """As centred probabilities do: a vector of ones would see nothing."""
    X = torch.tensor([[-1.0, 1.0], [1.0, -1.0]])
    assert largest_curvature(X) == pytest.approx(0.5)


def test_the_curvature_of_nothing_is_zero() -> None:
    assert largest_curvature(torch.zeros(4, 3)) == 0


def test_the_momentum_grows_towards_one_by_the_recursion_of_nesterov() -> None:
    age, found = 1.0, []
    for _ in range(100):
        before = age
        momentum, age = next_momentum(before)
        assert age**2 - age == pytest.approx(before**2)
        assert momentum == pytest.approx((before - 1) / age)
        found.append(momentum)
    assert found[0] == 0 and found == sorted(found) and 0.97 < found[-1] < 1
