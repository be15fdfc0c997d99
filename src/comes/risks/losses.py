r"""Binary losses l(z, y) of a real score z and a target y, elementwise and unreduced."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from comes.errors import ComesError

BinaryLoss = Callable[[Tensor, int], Tensor]  # l(z, y), y = 1 relevant, y = 0 irrelevant


@dataclass(frozen=True)
class MarginLoss:
    r"""A loss of the margin: :math:`\ell(z, 1) = \phi(z)` and :math:`\ell(z, 0) = \phi(-z)`.

    A loss is *symmetric* if :math:`\ell(z, 0) + \ell(z, 1) = M` for every z; `ranking_risk` needs
    that.

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

    The paper asks for a non-negative loss: its bounds, and the flood level of `ranking_risk`, rest
    on that. `unhinged_loss` is symmetric but negative for margins above 1, so its ranking risk has
    no lower bound; it is here for comparison. Risks also take a function (scores, 0 or 1) -> tensor
    of your own.

    Attributes
    ----------
    name : str
        For messages and stored models.
    of_margin : callable tensor -> tensor
        phi, elementwise.
    symmetry_constant : float or None
        The M of a symmetric loss.

    Examples
    --------
    >>> import torch
    >>> from comes.risks import hinge_loss, sigmoid_loss
    >>> scores = torch.tensor([-2.0, 0.0, 2.0])
    >>> sigmoid_loss(scores, 0), sigmoid_loss.symmetry_constant
    (tensor([0.1192, 0.5000, 0.8808]), 1.0)
    >>> hinge_loss(scores, 0)
    tensor([0., 1., 3.])
    >>> exponential_loss = MarginLoss("exponential_loss", lambda margin: torch.exp(-margin))
    >>> exponential_loss(torch.zeros(2), 1)
    tensor([1., 1.])
    """

    name: str
    of_margin: Callable[[Tensor], Tensor]
    symmetry_constant: float | None = None

    def __call__(self, scores: Tensor, target: int) -> Tensor:
        """Return the loss of every score if all have the same target, 0 or 1."""
        given: object = target
        if isinstance(given, Tensor) or given not in (0, 1):
            raise ComesError(
                f"target must be 0 (irrelevant) or 1 (relevant) for all scores; got {target!r}."
            )
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
