"""A risk over very many labels, computed in chunks of labels: exact, in bounded memory.

The scores of a batch of 256 rows with 100000 labels are 100 MB, their gradient as much, and what a
risk needs in between more. A risk that is a mean over labels needs them for a few labels at a time:
a chunk is scored, its risk gives the gradient of its scores, and both are forgotten.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError
from comes.models.tabular import LabelHead, find_label_head
from comes.risks import SparseTargets
from comes.training.processes import (
    count_processes,
    gather_rows,
    process_number,
    sum_over_processes,
)

# Scores of a chunk: few enough for the cache of a CPU, enough to keep a GPU busy.
SCORES_ON_CPU, SCORES_ON_GPU = 2**20, 2**27


@dataclass(frozen=True, eq=False)
class LabelChunks:
    """A risk that is a mean over labels, and its gradient, a chunk of labels at a time.

    Takes the place of the risk in `comes.training.train`, for a network that ends in a linear layer
    and for `SparseTargetRows`.

    Parameters
    ----------
    risk : module with ``select_labels(labels)``, the risk of some labels by place
        `comes.risks.LikelihoodRisk`, `HammingRisk` or `BceRisk`, or one of your own.
    n_labels : int
    chunk : int
        Labels at a time.

    Examples
    --------
    >>> from comes.answers import State
    >>> from comes.models import mlp
    >>> from comes.risks import LikelihoodRisk
    >>> risk, model = LikelihoodRisk(torch.full((9,), 0.3)), mlp(4, 9, hidden=5)
    >>> places, states = torch.arange(6), torch.ones(6, dtype=torch.int8)
    >>> said, x = SparseTargets(places, places, states, State.MAYBE, (6, 9)), torch.randn(6, 4)
    >>> LabelChunks(risk, 9, chunk=2).add_gradient(model, x, said).isclose(risk(model(x), said))
    tensor(True)
    """

    risk: Any
    n_labels: int
    chunk: int

    def __post_init__(self) -> None:
        if not hasattr(self.risk, "select_labels"):
            raise ComesError(
                "a risk in chunks of labels must have select_labels(labels), the risk of some; "
                f"got {type(self.risk).__name__}."
            )

    @classmethod
    def fitting(
        cls, risk: Any, n_labels: int, batch_size: int, device: torch.device
    ) -> "LabelChunks":
        """Return chunks whose scores fit the caches of a device."""
        scores = SCORES_ON_GPU if device.type == "cuda" else SCORES_ON_CPU
        return cls(risk, n_labels, min(n_labels, max(1, scores // batch_size)))

    @cached_property
    def parts(self) -> list[tuple[slice, Any]]:
        """Every chunk of labels, with its risk."""
        starts = range(0, self.n_labels, self.chunk)
        chunks = [slice(start, min(start + self.chunk, self.n_labels)) for start in starts]
        return [(labels, self.risk.select_labels(labels)) for labels in chunks]

    def split(self, said: SparseTargets) -> Iterator[tuple[slice | Tensor, Any, SparseTargets]]:
        """Yield labels, their risk, and what was said about them.

        Labels that nobody was asked about in a batch are left out where they cost nothing.
        """
        if said.silence == State.NOT_ASKED and not getattr(self.risk, "costs_unasked", False):
            asked, pairs = said.of_asked_labels()
            for start in range(0, len(asked), self.chunk):
                some = asked[start : start + self.chunk]
                own = pairs.select_labels(start, start + len(some))
                yield some, self.risk.select_labels(some), own
            return
        for labels, risk in self.parts:
            yield labels, risk, said.select_labels(labels.start, labels.stop)

    def add_gradient(
        self,
        model: nn.Module,
        x: Tensor,
        said: SparseTargets,
        *,
        scale: float | Tensor = 1.0,
    ) -> Tensor:
        """Add the gradient of scale * risk to the weights of the model; return the risk.

        Where x are the rows of this process alone, what was said is about the rows of all: their
        hidden units are gathered, each process takes some of the chunks, and gradients add up.
        """
        head, n = find_label_head(model), said.shape[0]
        is_shared = x.shape[0] != n
        units = _gather_units(head.units(x), n) if is_shared else head.units(x)
        own, of_units = units.detach(), torch.zeros_like(units)
        gradient = _HeadGradient(head, is_partial=is_shared or said.silence == State.NOT_ASKED)
        total = torch.zeros((), device=own.device, dtype=own.dtype)
        chunks = self.split(said)
        if is_shared:
            chunks = islice(chunks, process_number(), None, count_processes())
        for labels, risk, pairs in chunks:
            scores = head.score(own, labels).detach().requires_grad_()
            value = risk(_by_row(scores), pairs) * (pairs.shape[1] / self.n_labels)
            (slopes,) = torch.autograd.grad(scale * value, scores)
            gradient.fill(own, slopes, labels, of_units)
            total = total + value.detach()
        gradient.keep()
        if units.requires_grad:  # something below the last layer learns
            units.backward(of_units)
        if is_shared:
            sum_over_processes([total, *(p.grad for p in model.parameters() if p.grad is not None)])
        return total

    @torch.no_grad()
    def compute_risk(self, model: nn.Module, x: Tensor, said: SparseTargets) -> Tensor:
        """Return the risk of a network in evaluation mode, whose scores are never all there."""
        head = find_label_head(model)
        units = head.units(x)
        total = torch.zeros((), device=units.device)
        for labels, risk, pairs in self.split(said):
            scores = head.score(units, labels).mean(dim=0)  # of several networks their mean
            total = total + risk(scores, pairs) * (pairs.shape[1] / self.n_labels)
        return total

    def __call__(self, scores: Tensor, said: SparseTargets) -> Tensor:
        """Return the risk of scores that are all there."""
        value: Tensor = self.risk(scores, said)
        return value


class _HeadGradient:
    """The gradient of the last layer, filled in chunk by chunk, each label once."""

    def __init__(self, head: LabelHead, *, is_partial: bool) -> None:
        self.head = head
        make = torch.zeros_like if is_partial else torch.empty_like  # some may not be filled
        self.of_weight, self.of_bias = make(head.weight), make(head.bias)

    @torch.no_grad()
    def fill(self, units: Tensor, slopes: Tensor, labels: slice | Tensor, of_units: Tensor) -> None:
        """Fill in some labels, and add what they ask of the hidden units."""
        of_weight = self.head.by_label(self.of_weight)
        if len(slopes) == 1 and isinstance(labels, slice):  # without a copy
            torch.mm(slopes[0].T, units[0], out=of_weight[0, labels])
        else:
            of_weight[:, labels] = torch.bmm(slopes.mT, units)
        self.of_bias.view(len(slopes), -1)[:, labels] = slopes.sum(dim=1)
        of_units.baddbmm_(slopes, self.head.by_label(self.head.weight)[:, labels])

    def keep(self) -> None:
        """Add the gradient to that of the parameters."""
        pairs = ((self.head.weight, self.of_weight), (self.head.bias, self.of_bias))
        for parameter, gradient in pairs:
            if not parameter.requires_grad:
                continue
            before = parameter.grad
            parameter.grad = gradient if before is None else before.add_(gradient)


def _gather_units(units: Tensor, n: int) -> Tensor:
    """Return the hidden units of the n rows of all processes, (n_networks, n, hidden)."""
    return gather_rows(units.transpose(0, 1), n).transpose(0, 1)


def _by_row(scores: Tensor) -> Tensor:
    """Return scores of one network as (n, chunk), of several as (n, n_networks, chunk)."""
    return scores[0] if len(scores) == 1 else scores.transpose(0, 1)
