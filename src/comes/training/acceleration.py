"""What accelerated gradient steps need: how long a step may be, and how far to go on after it."""

import torch
from torch import Tensor

N_DIRECTIONS, N_ROUNDS = 8, 30


def largest_curvature(X: Tensor) -> float:
    """Return how far the mean logistic loss of a linear layer may bend in its weights.

    The largest eigenvalue of ``X.T @ X``, over 4 n, by iterating on a few random directions: the
    matrix itself may be large, and routines that find all eigenvalues fail where many are 0.

    Parameters
    ----------
    X : float tensor of shape (n_samples, n_features)

    Returns
    -------
    curvature : float
        Steps of its inverse do not overshoot.

    Examples
    --------
    >>> largest_curvature(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    0.5
    """
    generator = torch.Generator().manual_seed(0)
    n_directions = min(N_DIRECTIONS, X.shape[1])
    directions = torch.randn(X.shape[1], n_directions, generator=generator).to(X)
    for _ in range(N_ROUNDS):
        directions = torch.linalg.qr(X.T @ (X @ directions)).Q
    return float((X @ directions).square().sum(dim=0).max()) / (4 * len(X))


def next_momentum(age: float) -> tuple[float, float]:
    """Return how far to go on in the direction of the last step (Nesterov), and the next age.

    Examples
    --------
    >>> momentum, age = next_momentum(1.0)
    >>> momentum
    0.0
    >>> round(next_momentum(age)[0], 2)
    0.28
    """
    older = (1 + (1 + 4 * age**2) ** 0.5) / 2
    return (age - 1) / older, older
