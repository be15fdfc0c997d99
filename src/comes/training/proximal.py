"""Proximal gradient steps: weights of at least zero, with a penalty on the size of each."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


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

    def __init__(self, groups: Sequence[dict[str, Any]], penalty: Tensor) -> None:
        super().__init__(list(groups), {})
        self.penalty = penalty

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one step."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                weight.sub_(group["lr"] * weight.grad)
                if weight.shape == self.penalty.shape:
                    weight.sub_(group["lr"] * self.penalty).clamp_(min=0)
