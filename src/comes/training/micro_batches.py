"""The risk of a batch that others take apart: losses of its parts with the gradient of the whole.

A risk such as |mean - weighted mean| is not a sum over rows, so that the mean of the risks of
micro-batches is another risk. Trainers of other libraries ask for a loss of each micro-batch; these
have the right one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from comes.training.gradients import Risk
from comes.training.random_states import read_random_state, set_random_state


@dataclass(frozen=True, eq=False)
class PartOfRisk:
    """What one micro-batch does to the risk of the whole batch.

    Examples
    --------
    >>> part = PartOfRisk(torch.tensor(0.5), torch.tensor([[1.0, -2.0]]), [], torch.device("cpu"))
    >>> scores = torch.zeros(1, 2, requires_grad=True)
    >>> loss = part.loss(scores)
    >>> loss.backward()
    >>> loss.item(), scores.grad
    (0.5, tensor([[ 1., -2.]]))
    """

    share: Tensor  # the risk of the whole batch, divided by the number of parts
    sensitivity: Tensor  # the gradient of that risk by the scores of the part, (rows, n_labels)
    random_state: list[Tensor]
    device: torch.device

    def loss(self, scores: Tensor) -> Tensor:
        """Return a loss with the gradient of the whole risk; those of all parts add up to it."""
        pull = (self.sensitivity * scores).sum()
        return pull - pull.detach() + self.share

    def repeat_dropout(self) -> None:
        """Set the random state in which the part was scored, so that dropout is the same."""
        set_random_state(self.random_state, self.device)


def split_risk(
    model: nn.Module,
    parts: Sequence[Any],
    candidates: Sequence[Tensor],
    risk: Risk,
    *,
    score: Callable[[Any], Tensor] | None = None,
) -> list[PartOfRisk]:
    """Return the parts of the risk of a batch that comes as micro-batches.

    All are scored once without a gradient; the risk of the whole says how each score should change.

    Parameters
    ----------
    model : module
        Its buffers, such as running statistics, stay as they were.
    parts : sequence
        The inputs of every micro-batch.
    candidates : sequence of tensors of shape (rows, n_labels)
        What is known about each.
    risk : callable (scores, candidates) -> scalar tensor
    score : callable input -> tensor of shape (rows, n_labels), optional
        By default the model.

    Returns
    -------
    parts : list of PartOfRisk

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
    score = score or model
    before = [buffer.clone() for buffer in model.buffers()]
    device = candidates[0].device
    states, scores = [], []
    with torch.no_grad():
        for part in parts:
            states.append(read_random_state(device))
            scores.append(score(part))
        for buffer, old in zip(model.buffers(), before, strict=True):
            buffer.copy_(old)
    whole = torch.cat(scores).requires_grad_()
    value = risk(whole, torch.cat(list(candidates)))
    (sensitivity,) = torch.autograd.grad(value, whole)
    share = value.detach() / len(scores)
    of_each = sensitivity.split([len(own) for own in scores])
    return [
        PartOfRisk(share, own, state, device) for own, state in zip(of_each, states, strict=True)
    ]
