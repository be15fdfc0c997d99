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
