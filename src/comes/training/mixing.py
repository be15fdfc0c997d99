"""Pictures mixed in pairs, with what is known about them."""

import torch
from torch import Tensor


def mix_pairs(x: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return every row mixed with the row before it, by a share that is drawn, and its targets.

    Between two pictures a network should then say what lies between their targets, so that it
    cannot learn single pictures by heart.

    Parameters
    ----------
    x : tensor of shape (n, ...)
    targets : float tensor of shape (n, n_labels)
        Probabilities.

    Returns
    -------
    x, targets : float tensors of the same shapes

    Examples
    --------
    >>> x, targets = mix_pairs(torch.tensor([[0.0], [8.0]]), torch.tensor([[0.0], [1.0]]))
    >>> torch.allclose(x, 8 * targets)
    True
    """
    own = 1 - torch.rand(len(x), device=x.device) / 2  # the larger share of an even division
    return _mix(x.float(), own), _mix(targets, own)


def _mix(values: Tensor, own: Tensor) -> Tensor:
    """Return each row mixed with the row before it."""
    own = own.to(values.dtype).view(-1, *[1] * (values.ndim - 1))
    return values.roll(1, 0).lerp(values, own)
