"""Proximal gradient steps solve what they promise."""

import torch
from torch import nn

from comes.training import ProximalGradient


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


def solve_logistic(accelerated: bool, n_steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and bias of a penalised logistic regression, after some steps."""
    generator = torch.Generator().manual_seed(2)
    X = torch.randn(80, 7, generator=generator, dtype=torch.float64)
    X = (X + X[:, :1]) * torch.linspace(0.2, 2, 7)  # badly conditioned
    X -= X.mean(dim=0)
    y = (X[:, 0] + X[:, 3] + torch.randn(80, generator=generator) > 0.5).double()
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
    return weight.detach(), bias.detach()


def test_accelerated_steps_reach_the_same_solution_sooner() -> None:
    solution, bias = solve_logistic(accelerated=False, n_steps=8000)
    assert (solution == 0).any() and (solution > 0).sum() > 1
    accelerated, its_bias = solve_logistic(accelerated=True, n_steps=3000)
    torch.testing.assert_close(accelerated, solution, rtol=0, atol=1e-3)
    torch.testing.assert_close(its_bias, bias, rtol=0, atol=1e-3)
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
