"""A linear layer that reproduces probabilities: logistic regression on soft targets."""

import torch
from torch import Tensor, nn

from comes.training.acceleration import largest_curvature, next_momentum

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
        # A logistic loss bends by 1/4 at most in the bias, apart from the weights if X is centred.
        steps = [1 / (largest_curvature(X) + ridge), 4.0]
        reached = [layer.weight.clone(), layer.bias.clone()]
        age = 1.0
        for _ in range(n_steps):
            residual = (layer(X).sigmoid() - targets) / n
            gradients = [residual.T @ X + ridge * layer.weight, residual.sum(dim=0)]
            momentum, age = next_momentum(age)
            for k, parameter in enumerate((layer.weight, layer.bias)):
                new = parameter - steps[k] * gradients[k]
                parameter.copy_(new + momentum * (new - reached[k]))
                reached[k] = new
    return layer
