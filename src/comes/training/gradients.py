r"""The gradient of a batch that does not fit into memory, exact for any risk.

A risk such as |mean - weighted mean| is not a sum over rows, so the mean of the risks of
micro-batches is another risk. With scores :math:`g = f_w(x)` the chain rule is a sum over rows:

.. math:: \nabla_w R = \sum_i \frac{\partial R}{\partial g_i} \nabla_w g_i

A first pass computes all scores without a gradient, the risk of the whole batch gives
:math:`\partial R / \partial g`, and a second pass sends each part of it through the model.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.errors import ComesError
from comes.training.label_chunks import LabelChunks
from comes.training.seeding import get_random_state, set_random_state

Risk = Callable[..., Tensor]  # risk(scores, targets[, weights of the rows]) -> scalar


def add_gradient(
    model: nn.Module,
    x: Tensor,
    targets: Any,
    risk: Risk,
    *,
    scale: float | Tensor = 1.0,
    part_size: int | None = None,
    precision: torch.dtype | None = None,
) -> Tensor:
    """Add the gradient of scale * risk(model(x), targets) to the weights; return the risk.

    Parameters
    ----------
    model : module
    x : tensor of shape (batch, ...)
    targets : bool tensor of shape (batch, n_labels)
        Second argument of the risk; for `LabelChunks` sparse targets.
    risk : callable (scores, targets) -> scalar tensor
    scale : float or scalar tensor
        Multiplies the gradient, not the risk that is returned.
    part_size : int, optional
        Put at most this many rows through the model at a time; the gradient stays that of the
        whole batch.
    precision : torch dtype, optional
        Run the model under autocast.

    Returns
    -------
    risk : scalar tensor, detached

    Examples
    --------
    >>> model, x = nn.Linear(2, 3), torch.randn(10, 2)
    >>> spread = lambda scores, targets: scores.mean(dim=0).abs().sum()
    >>> whole = add_gradient(model, x, x > 0, spread), model.weight.grad.clone()
    >>> model.zero_grad()
    >>> parts = add_gradient(model, x, x > 0, spread, part_size=4), model.weight.grad
    >>> all(torch.allclose(a, b) for a, b in zip(whole, parts))
    True
    """
    if isinstance(risk, LabelChunks):
        if part_size is not None or precision is not None:
            raise ComesError("chunks of labels take neither part_size nor precision; leave them.")
        return risk.add_gradient(model, x, targets, scale=scale)

    def score(part: Tensor) -> Tensor:
        with nullcontext() if precision is None else torch.autocast(part.device.type, precision):
            return model(part)  # type: ignore[no-any-return]

    is_distributed = isinstance(model, DistributedDataParallel)  # all processes do the same
    if part_size is None or (part_size >= len(x) and not is_distributed):
        value = _check_scalar(risk(score(x), targets))
        (scale * value).backward()
        return value.detach()
    parts = x.tensor_split(math.ceil(len(x) / part_size))
    value, slopes, states = _differentiate_parts(
        model, score, parts, targets, risk, x.device, scale
    )
    for part, slope, state in zip(parts, slopes, states, strict=True):
        set_random_state(state, x.device)  # the same dropout as before
        waits = is_distributed and part is not parts[-1]
        with model.no_sync() if waits else nullcontext():  # type: ignore[operator]
            score(part).backward(slope)
    return value


def split_risk(
    model: nn.Module,
    parts: Sequence[Any],
    targets: Sequence[Tensor],
    risk: Risk,
    *,
    score: Callable[[Any], Tensor] | None = None,
) -> list["PartOfRisk"]:
    """Return the parts of the risk of a batch that comes as micro-batches.

    For trainers of other libraries, which ask for a loss of each micro-batch. All are scored once
    without a gradient; the risk of the whole then says how each score should change.

    Parameters
    ----------
    model : module
        Its buffers, such as running statistics, stay as they were.
    parts : sequence
        The inputs of every micro-batch.
    targets : sequence of tensors of shape (rows, n_labels)
        Second argument of the risk, for each micro-batch.
    risk : callable (scores, targets) -> scalar tensor
    score : callable input -> tensor of shape (rows, n_labels), optional
        By default the model.

    Returns
    -------
    parts : list
        Each has ``loss(scores)``, whose gradient is that of the whole risk and whose values add up
        to it, and ``repeat_dropout()``, to be called before the part is scored again.

    Examples
    --------
    >>> from comes.risks import HammingRisk
    >>> model, x = nn.Linear(3, 2), torch.randn(12, 3)
    >>> candidates, risk = torch.rand(12, 2) < 0.6, HammingRisk(torch.tensor([0.3, 0.4]))
    >>> for rows, part in zip(x.split(4), split_risk(model, x.split(4), candidates.split(4), risk)):
    ...     part.loss(model(rows)).backward()
    >>> exact = model.weight.grad.clone()
    >>> model.zero_grad()
    >>> risk(model(x), candidates).backward()
    >>> torch.allclose(exact, model.weight.grad)
    True
    """
    device, whole = targets[0].device, torch.cat(list(targets))
    value, slopes, states = _differentiate_parts(model, score or model, parts, whole, risk, device)
    return [
        PartOfRisk(value / len(parts), slope, state, device)
        for slope, state in zip(slopes, states, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class PartOfRisk:
    """What one micro-batch contributes to the risk of the whole batch."""

    share: Tensor  # the risk of the whole batch, divided by the number of parts
    slope: Tensor  # gradient of that risk by the scores of this part, (rows, n_labels)
    random_state: list[Tensor]
    device: torch.device

    def loss(self, scores: Tensor) -> Tensor:
        """Return a loss with the gradient of the whole risk; those of all parts add up to it."""
        linear = (self.slope * scores).sum()
        return linear - linear.detach() + self.share

    def repeat_dropout(self) -> None:
        """Set the random state in which the part was scored, so that dropout is the same."""
        set_random_state(self.random_state, self.device)


def _differentiate_parts(
    model: nn.Module,
    score: Callable[[Any], Tensor],
    parts: Sequence[Any],
    targets: Any,  # of all parts
    risk: Risk,
    device: torch.device,
    scale: float | Tensor = 1.0,
) -> tuple[Tensor, Sequence[Tensor], list[list[Tensor]]]:
    """Return the risk; for each part its gradient by the scores, and the random state before it."""
    before = [buffer.clone() for buffer in model.buffers()]
    scores, states = [], []
    with torch.no_grad():
        for part in parts:
            states.append(get_random_state(device))
            scores.append(score(part))
        for buffer, old in zip(model.buffers(), before, strict=True):
            buffer.copy_(old)  # running statistics count each part once, in the second pass
    whole = torch.cat(scores).requires_grad_()
    value = _check_scalar(risk(whole, targets))
    (slopes,) = torch.autograd.grad(scale * value, whole)
    return value.detach(), slopes.split([len(part) for part in scores]), states


def _check_scalar(value: Any) -> Tensor:
    """Return the value of a risk, perhaps a user's own, if it is a scalar tensor."""
    if not isinstance(value, Tensor) or value.ndim != 0:
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise ComesError(
            f"a risk must return a scalar tensor for a batch; got {got}. Take the mean, and keep "
            "to torch's functions."
        )
    return value
