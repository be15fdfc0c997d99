"""Accelerated gradient methods for convex risks: proximal steps, logistic regression.

Steps of 1 / curvature do not overshoot. Nesterov's momentum goes on, after every step, in the
direction of the last one: by (t - 1) / t', with t' = (1 + sqrt(1 + 4 t^2)) / 2.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

N_DIRECTIONS, N_ROUNDS = 8, 30  # of the iteration for the curvature


class ProximalGradient(torch.optim.Optimizer):
    """Gradient steps for a risk plus ``penalty * weight`` over weights of at least 0.

    After a step against the gradient every weight shrinks by its penalty, but not below zero: a
    weight leaves zero only where the gradient exceeds its penalty. Parameters with the shape of the
    penalty are penalised; others take plain steps. With ``accelerated`` there are fewer steps,
    which may overshoot; steps of a label, a row of the weights, are ``bends`` times shorter than
    the learning rate.
    """

    def __init__(
        self,
        groups: Sequence[dict[str, Any]],  # parameters with their learning rates
        penalty: Tensor,  # at least 0, one number per weight
        accelerated: bool = False,
        bends: Tensor | None = None,  # (n_labels,)
    ) -> None:
        super().__init__(list(groups), {})
        self.penalty, self.accelerated, self.bends = penalty, accelerated, bends
        self.age = 1.0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one step."""
        older = (1 + (1 + 4 * self.age**2) ** 0.5) / 2
        momentum, self.age = (self.age - 1) / older, older
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                is_penalised = weight.shape == self.penalty.shape
                rate = group["lr"]
                if self.bends is not None:
                    rate = rate / self.bends.view(-1, *[1] * (weight.ndim - 1))
                reached = weight - rate * weight.grad
                if is_penalised:
                    reached.sub_(rate * self.penalty).clamp_(min=0)
                weight.copy_(reached)
                if self.accelerated:
                    before = self.state[weight].get("reached", reached)
                    weight.add_(reached - before, alpha=momentum)
                    self.state[weight]["reached"] = reached
                    if is_penalised:
                        weight.clamp_(min=0)


def fit_soft_targets(
    X: Tensor,  # centred, (n, d)
    targets: Tensor,  # probabilities, (n, q)
    *,
    ridge: float = 0.1,  # above 0; the default is for standardised features
    n_steps: int = 60,
) -> nn.Linear:
    """Return the linear layer whose sigmoid is nearest to given probabilities.

    It minimises the cross entropy, a mean over rows, plus ``ridge / 2`` times the squared weights
    of a label, by accelerated gradient steps on all rows.
    """
    n, d = X.shape
    layer = skip_init(nn.Linear, d, targets.shape[1], device=X.device, dtype=X.dtype)
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.logit(targets.mean(dim=0), eps=1e-3))
        # A logistic loss bends by 1/4 at most in the bias, apart from the weights if X is centred.
        rates = [1 / (largest_curvature(X) + ridge), 4.0]
        groups = [
            {"params": [parameter], "lr": rate}
            for parameter, rate in zip(layer.parameters(), rates, strict=True)
        ]
        optimizer = ProximalGradient(groups, penalty=X.new_zeros(0), accelerated=True)
        for _ in range(n_steps):
            residual = (layer(X).sigmoid() - targets) / n
            layer.weight.grad = residual.T @ X + ridge * layer.weight
            layer.bias.grad = residual.sum(dim=0)
            optimizer.step()
        optimizer.zero_grad()
    return layer


def largest_curvature(X: Tensor) -> float:
    """Return how far the mean logistic loss of a linear layer may bend in its weights.

    The largest eigenvalue of ``X.T @ X``, over 4 n, by iterating on a few random directions: the
    matrix itself may be large, and routines that find all eigenvalues fail where many are 0.
    """
    generator = torch.Generator().manual_seed(0)
    n_directions = min(N_DIRECTIONS, X.shape[1])
    directions = torch.randn(X.shape[1], n_directions, generator=generator).to(X)
    for _ in range(N_ROUNDS):
        directions = torch.linalg.qr(X.T @ (X @ directions)).Q
    return float((X @ directions).square().sum(dim=0).max()) / (4 * len(X))
