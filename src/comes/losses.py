r"""Binary losses l(z, y) of a real score z and a target y, elementwise and unreduced.

All of them are margin losses, :math:`\ell(z, 1) = \phi(z)` and :math:`\ell(z, 0) = \phi(-z)`.
A loss is *symmetric* if :math:`\ell(z, 0) + \ell(z, 1) = M` for every z; `ranking_risk` needs
that. M is the loss's ``symmetry_constant``, None where there is none.

====================  ========================================  ====
loss                  phi(m)                                    M
====================  ========================================  ====
`logistic_loss`       log(1 + exp(-m))                          none
`sigmoid_loss`        1 / (1 + exp(m))                          1
`squared_loss`        (1 - m)^2                                 none
`hinge_loss`          max(0, 1 - m)                             none
`ramp_loss`           (1 - m) / 2, cut to [0, 1]                1
`unhinged_loss`       1 - m                                     2
====================  ========================================  ====
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

BinaryLoss = Callable[[Tensor, int], Tensor]  # l(z, y), y = 1 relevant, y = 0 irrelevant


@dataclass(frozen=True)
class MarginLoss:
    """l(z, 1) = phi(z) and l(z, 0) = phi(-z).

    Examples
    --------
    >>> exponential_loss = MarginLoss("exponential_loss", lambda margin: torch.exp(-margin))
    >>> exponential_loss(torch.zeros(2), 1)
    tensor([1., 1.])
    """

    name: str
    of_margin: Callable[[Tensor], Tensor]
    symmetry_constant: float | None = None

    def __call__(self, scores: Tensor, target: int) -> Tensor:
        """Return the loss of every score, all of them against one target, 0 or 1."""
        return self.of_margin(scores if target == 1 else -scores)


def _logistic(margin: Tensor) -> Tensor:
    return F.softplus(-margin)


def _sigmoid(margin: Tensor) -> Tensor:
    return torch.sigmoid(-margin)


def _squared(margin: Tensor) -> Tensor:
    return (1 - margin).square()


def _hinge(margin: Tensor) -> Tensor:
    return (1 - margin).clamp(min=0)


def _ramp(margin: Tensor) -> Tensor:
    return ((1 - margin) / 2).clamp(min=0, max=1)


def _unhinged(margin: Tensor) -> Tensor:
    return 1 - margin


logistic_loss = MarginLoss("logistic_loss", _logistic)
sigmoid_loss = MarginLoss("sigmoid_loss", _sigmoid, symmetry_constant=1.0)
squared_loss = MarginLoss("squared_loss", _squared)
hinge_loss = MarginLoss("hinge_loss", _hinge)
ramp_loss = MarginLoss("ramp_loss", _ramp, symmetry_constant=1.0)
unhinged_loss = MarginLoss("unhinged_loss", _unhinged, symmetry_constant=2.0)
