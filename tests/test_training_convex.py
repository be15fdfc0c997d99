"""Gradient steps for convex risks: their length and momentum, and the solutions that they reach."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from comes.training.convex import ProximalGradient, fit_soft_targets, largest_curvature

Numbers = npt.NDArray[np.float64]


def test_the_curvature_is_the_largest_eigenvalue() -> None:
    for shape in ((50, 20), (20, 50), (3, 400), (400, 1), (1, 5)):
        X = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        X[:, 0] *= 3
        eigenvalue = float(torch.linalg.eigvalsh(X.double().T @ X.double())[-1])
        expected = eigenvalue / (4 * len(X))
        assert largest_curvature(X) == pytest.approx(expected, rel=0.02), shape


def test_the_curvature_is_found_where_all_rows_sum_to_zero_and_that_of_nothing_is_zero() -> None:
    """Centred probabilities sum to zero: a vector of ones would be mapped to zero."""
    assert largest_curvature(torch.tensor([[-1.0, 1.0], [1.0, -1.0]])) == pytest.approx(0.5)
    assert largest_curvature(torch.zeros(4, 3)) == 0


def test_the_momentum_grows_towards_one_by_the_recursion_of_nesterov() -> None:
    """A parameter that is moved by -1 in every step moves on by the momentum."""
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = ProximalGradient([{"params": [weight], "lr": 1.0}], torch.zeros(0), True)
    age, found, last = 1.0, [], 0.0  # before the first step there is no last one
    for number in range(100):
        start = weight.item()
        weight.grad = torch.ones(1, dtype=torch.float64)
        optimiser.step()
        moved, before = start - 1 - last if number else 0.0, age
        age, last = optimiser.age, start - 1
        momentum = (weight.item() - last) / moved if number else 0.0
        assert age**2 - age == pytest.approx(before**2)
        assert momentum == pytest.approx((before - 1) / age)
        found.append(momentum)
    assert found[0] == 0 and found == sorted(found) and 0.97 < found[-1] < 1


def test_one_proximal_step_has_a_closed_form() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias = nn.Parameter(torch.rand(2, 5, generator=generator)), nn.Parameter(torch.ones(2))
    still = nn.Parameter(torch.full((2, 5), -1.0))
    penalty = torch.rand(2, 5, generator=generator)
    slope = torch.randn(2, 5, generator=generator)
    start = weight.detach().clone()
    groups = [{"params": [weight, still], "lr": 0.3}, {"params": [bias], "lr": 0.7}]
    ((weight * slope).sum() + (bias * torch.tensor([4.0, -1.0])).sum()).backward()
    ProximalGradient(groups, penalty).step()
    expected = (start - 0.3 * (slope + penalty)).clamp(min=0)
    torch.testing.assert_close(weight.detach(), expected)
    assert (weight == 0).any()
    assert (weight > 0).any()
    torch.testing.assert_close(bias.detach(), torch.tensor([1 - 0.7 * 4.0, 1 + 0.7]))
    assert (still == -1).all()  # no gradient, no step


def test_proximal_steps_follow_a_schedule_of_the_rate() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimiser = ProximalGradient([{"params": [weight], "lr": 1.0}], torch.tensor([0.5]))
    optimiser.param_groups[0]["lr"] = 0.1
    weight.grad = torch.tensor([-1.0])
    optimiser.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([0.05]))


def test_proximal_steps_solve_the_lasso_of_weights_above_zero() -> None:
    """At the solution the slope is the penalty where a weight is above 0, and less at 0."""
    generator = torch.Generator().manual_seed(1)
    A = torch.randn(30, 6, generator=generator, dtype=torch.float64)
    b = A @ torch.tensor([2.0, 0.0, 0.5, 0.0, -1.0, 0.1]).double()
    b += 0.1 * torch.randn(30, generator=generator, dtype=torch.float64)
    penalty = torch.tensor([0.1, 0.1, 0.2, 0.3, 0.1, 0.9]).double()
    weight = nn.Parameter(torch.zeros(6, dtype=torch.float64))
    optimiser = ProximalGradient([{"params": [weight], "lr": 0.3}], penalty)
    for _ in range(500):
        optimiser.zero_grad()
        ((A @ weight - b).square().sum() / 60).backward()
        optimiser.step()
    solution = weight.detach()
    slope = A.T @ (b - A @ solution) / 30
    is_free = solution > 0
    assert 2 <= is_free.sum() <= 4
    torch.testing.assert_close(slope[is_free], penalty[is_free], rtol=1e-9, atol=1e-9)
    assert (slope[~is_free] < penalty[~is_free]).all()
    assert (solution >= 0).all()


def logistic_problem() -> tuple[Tensor, Tensor]:
    """Return badly conditioned features, centred, and targets."""
    generator = torch.Generator().manual_seed(2)
    X = torch.randn(80, 7, generator=generator, dtype=torch.float64)
    X = (X + X[:, :1]) * torch.linspace(0.2, 2, 7)
    X -= X.mean(dim=0)
    return X, (X[:, 0] + X[:, 3] + torch.randn(80, generator=generator) > 0.5).double()


def solve_logistic(accelerated: bool, n_steps: int) -> tuple[Tensor, Tensor]:
    """Return weights and bias of a penalised logistic regression, after some steps."""
    X, y = logistic_problem()
    weight = nn.Parameter(torch.zeros(1, 7, dtype=torch.float64))
    bias = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    rate = 4 * len(X) / float(torch.linalg.eigvalsh(X.T @ X)[-1])
    groups = [{"params": [weight], "lr": rate}, {"params": [bias], "lr": 4.0}]
    penalty = torch.full((1, 7), 0.01, dtype=torch.float64)
    optimiser = ProximalGradient(groups, penalty, accelerated=accelerated)
    for _ in range(n_steps):
        optimiser.zero_grad()
        scores = (X @ weight.T + bias)[:, 0]
        nn.functional.binary_cross_entropy_with_logits(scores, y).backward()
        optimiser.step()
    return weight.detach()[0], bias.detach()


def test_accelerated_steps_reach_the_solution_and_reach_it_sooner() -> None:
    """At the solution the slope is the penalty where a weight is above 0, and less at 0."""
    X, y = logistic_problem()
    solution, bias = solve_logistic(accelerated=True, n_steps=1200)
    residual = (X @ solution + bias).sigmoid() - y
    slope, is_free = -X.T @ residual / len(X), solution > 0
    assert 1 < is_free.sum() < 7
    torch.testing.assert_close(
        slope[is_free], torch.full_like(slope[is_free], 0.01), rtol=1e-2, atol=0
    )
    assert (slope[~is_free] < 0.01).all()
    assert residual.mean().abs() < 1e-5
    fast, slow = (
        (solve_logistic(accelerated=a, n_steps=60)[0] - solution).abs().max() for a in (True, False)
    )
    assert fast < 0.7 * slow


def test_accelerated_weights_stay_at_least_zero() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimiser = ProximalGradient([{"params": [weight], "lr": 0.4}], torch.zeros(1), True)
    for _ in range(10):
        weight.grad = torch.ones(1)  # downhill to zero and beyond
        optimiser.step()
        assert weight >= 0
    assert weight == 0


def test_labels_that_bend_more_take_shorter_steps_to_the_same_solution() -> None:
    weight = nn.Parameter(torch.zeros(2, 3))
    bias = nn.Parameter(torch.zeros(2))
    groups = [{"params": [weight], "lr": 0.5}, {"params": [bias], "lr": 2.0}]
    penalty = torch.full((2, 3), 0.1)
    optimiser = ProximalGradient(groups, penalty, bends=torch.tensor([1.0, 4.0]))
    weight.grad, bias.grad = -torch.ones(2, 3), -torch.ones(2)
    optimiser.step()
    expected = torch.tensor([[0.45], [0.45 / 4]]).expand(2, 3)
    torch.testing.assert_close(weight.detach(), expected)
    torch.testing.assert_close(bias.detach(), torch.tensor([2.0, 0.5]))


def soft_problem(n: int = 60, d: int = 5, q: int = 3, seed: int = 0) -> tuple[Numbers, Numbers]:
    """Return centred features, and probabilities that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, d)
    X -= X.mean(axis=0)
    noise = rng.normal(size=(n, q))
    return X, 1 / (1 + np.exp(-X @ rng.normal(size=(d, q)) - noise))


def fit_soft(X: Numbers, targets: Numbers, **settings: float) -> tuple[Numbers, Numbers]:
    layer = fit_soft_targets(torch.tensor(X), torch.tensor(targets), **settings)  # type: ignore[arg-type]
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def test_the_gradient_by_plain_loops_is_zero_at_the_end() -> None:
    X, targets = soft_problem()
    W, b = fit_soft(X, targets, ridge=0.05, n_steps=1000)
    n, d = X.shape
    for j in range(targets.shape[1]):
        slope, slope_of_bias = [0.05 * W[j, k] for k in range(d)], 0.0
        for i in range(n):
            score = b[j] + sum(W[j, k] * X[i, k] for k in range(d))
            residual = (1 / (1 + np.exp(-score)) - targets[i, j]) / n
            slope_of_bias += residual
            for k in range(d):
                slope[k] += residual * X[i, k]
        np.testing.assert_allclose([*slope, slope_of_bias], 0, atol=1e-9)


def test_sixty_steps_are_about_enough() -> None:
    X, targets = soft_problem()
    few, many = fit_soft(X, targets), fit_soft(X, targets, n_steps=1500)
    np.testing.assert_allclose(few[0], many[0], atol=0.01)
    np.testing.assert_allclose(few[1], many[1], atol=0.01)


def test_hard_targets_are_those_of_logistic_regression() -> None:
    X, targets = soft_problem()
    hard = (targets > 0.6).astype(float)
    W, b = fit_soft(X, hard, ridge=0.1, n_steps=1000)
    for j in range(hard.shape[1]):
        theirs = LogisticRegression(C=1 / (0.1 * len(X)), tol=1e-10, max_iter=1000)
        theirs.fit(X, hard[:, j])
        np.testing.assert_allclose(W[j], theirs.coef_[0], atol=1e-5)
        np.testing.assert_allclose(b[j], theirs.intercept_[0], atol=1e-5)


def test_features_whose_rows_sum_to_zero_do_not_overshoot() -> None:
    X, targets = soft_problem(d=4)
    X = 10 * (X - X.mean(axis=1, keepdims=True))
    X -= X.mean(axis=0)
    W, _ = fit_soft(X, targets)
    assert np.abs(W).max() < 10


def test_targets_of_zero_and_one_alone_and_features_of_zero_are_no_problem() -> None:
    X = np.zeros((4, 2))
    targets = np.array([[0.0, 1.0, 0.5]] * 4)
    W, b = fit_soft(X, targets)
    assert (W == 0).all() and np.isfinite(b).all()
    assert b[0] < -5 and b[1] > 5 and abs(b[2]) < 1e-6


def test_one_label_does_not_change_another() -> None:
    X, targets = soft_problem()
    W, _ = fit_soft(X, targets)
    alone, _ = fit_soft(X, targets[:, 1:2])
    np.testing.assert_allclose(alone[0], W[1], atol=1e-12)
