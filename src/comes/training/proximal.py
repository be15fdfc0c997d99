"""Proximal gradient steps: weights of at least zero, with a penalty on the size of each."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from comes.training.acceleration import next_momentum


class ProximalGradient(torch.optim.Optimizer):
    """Gradient steps for a risk plus ``penalty * weight`` over weights of at least 0.

    After a step against the gradient every weight shrinks by its penalty, but not below zero: a
    weight leaves zero only where the gradient exceeds its penalty.

    Parameters
    ----------
    groups : list of dict
        Parameters with their learning rate, ``{"params": [...], "lr": ...}``. Parameters with the
        shape of the penalty are penalised; others take plain steps.
    penalty : float tensor
        At least 0, one number per weight.
    accelerated : bool
        Go on, after every step, in the direction of the last one (Nesterov's momentum): fewer
        steps, which may overshoot.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.zeros(3))
    >>> group = {"params": [weight], "lr": 1.0}
    >>> optimiser = ProximalGradient([group], torch.full((3,), 0.5))
    >>> (weight * torch.tensor([-2.0, -0.3, 1.0])).sum().backward()
    >>> _ = optimiser.step()
    >>> weight.data
    tensor([1.5000, 0.0000, 0.0000])
    """

    def __init__(
        self, groups: Sequence[dict[str, Any]], penalty: Tensor, accelerated: bool = False
    ) -> None:
        super().__init__(list(groups), {})
        self.penalty, self.accelerated = penalty, accelerated
        self.age = 1.0  # grows with the steps, and the momentum with it

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one step."""
        momentum, self.age = next_momentum(self.age)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                is_penalised = weight.shape == self.penalty.shape
                reached = weight - group["lr"] * weight.grad
                if is_penalised:
                    reached.sub_(group["lr"] * self.penalty).clamp_(min=0)
                weight.copy_(reached)
                if self.accelerated:
                    before = self.state[weight].get("reached", reached)
                    weight.add_(reached - before, alpha=momentum)
                    self.state[weight]["reached"] = reached
                    if is_penalised:
                        weight.clamp_(min=0)
