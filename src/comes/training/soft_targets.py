"""A linear layer that reproduces probabilities: logistic regression on soft targets."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RIDGE = 0.1  # per row, for standardised features
N_STEPS = 60


def fit_soft_targets(
    X: Tensor,
    targets: Tensor,
    *,
    ridge: float = RIDGE,
    n_steps: int = N_STEPS,
) -> nn.Linear:
    """Return the linear layer whose sigmoid is nearest to given probabilities.

    It minimises the cross entropy, a mean over rows, plus ``ridge / 2`` times the squared weights
    of a label, by accelerated gradient steps on all rows.

    Parameters
    ----------
    X : float tensor of shape (n_samples, n_features)
        Centred.
    targets : float tensor of shape (n_samples, n_labels)
        In [0, 1].
    ridge : float
        Above 0.
    n_steps : int

    Returns
    -------
    layer : linear layer

    Examples
    --------
    >>> X = torch.tensor([[-1.0], [1.0]])
    >>> layer = fit_soft_targets(X, torch.tensor([[0.1], [0.9]]), ridge=1e-4)
    >>> layer(X).sigmoid().detach().round(decimals=1)
    tensor([[0.1000],
            [0.9000]])
    """
    n = len(X)
    layer = nn.Linear(X.shape[1], targets.shape[1]).to(X)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.logit(targets.mean(dim=0), eps=1e-3))
        steps = [1 / (_find_curvature(X) + ridge), 4.0]  # a logistic loss bends by 1/4 at most
        reached = [layer.weight.clone(), layer.bias.clone()]
        age = 1.0
        for _ in range(n_steps):
            residual = (layer(X).sigmoid() - targets) / n
            gradients = [residual.T @ X + ridge * layer.weight, residual.sum(dim=0)]
            older = (1 + (1 + 4 * age**2) ** 0.5) / 2
            momentum, age = (age - 1) / older, older
            for k, parameter in enumerate((layer.weight, layer.bias)):
                new = parameter - steps[k] * gradients[k]
                parameter.copy_(new + momentum * (new - reached[k]))
                reached[k] = new
    return layer


def _find_curvature(X: Tensor) -> float:
    """Return the largest curvature of the mean logistic loss in the weights, by power iteration."""
    direction = torch.ones(X.shape[1], device=X.device, dtype=X.dtype)
    length = torch.ones((), device=X.device)
    for _ in range(20):
        direction = X.T @ (X @ F.normalize(direction, dim=0))
        length = direction.norm()
    return float(length) / (4 * len(X))
