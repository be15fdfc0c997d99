"""A risk over very many labels, computed in chunks of labels: exact, in bounded memory.

The scores of a batch of 256 rows with 100000 labels are 100 MB, their gradient as much, and what a
risk needs in between more. A risk that is a mean over labels needs them for a few labels at a time:
a chunk is scored, its risk gives the gradient of its scores, and both are forgotten.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError
from comes.models.tabular import find_label_head
from comes.risks import SparseTargets
from comes.training.processes import count_processes, gather_rows, process_number

# Scores of a chunk: few enough for the cache of a CPU, enough to keep a GPU busy.
SCORES_ON_CPU, SCORES_ON_GPU = 2**20, 2**27


@dataclass(frozen=True, eq=False)
class SparseTargetRows:
    """Targets for very many labels: a CSR matrix of states, taken batch by batch."""

    matrix: Any  # int8, (n, n_labels)
    default: State  # what a pair without an answer counts as
    device: torch.device

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        n, q = self.matrix.shape
        return int(n), int(q)

    def index_select(self, dim: int, rows: Tensor) -> SparseTargets:
        """Return the targets of some rows, as a tensor does; ``dim`` is 0."""
        return replace(self, matrix=self.matrix[rows.cpu().numpy()]).as_batch()

    def as_batch(self) -> SparseTargets:
        """Return the targets of all rows, sorted by label."""
        by_label = np.argsort(self.matrix.indices, kind="stable")
        row_of_each = np.repeat(np.arange(len(self)), np.diff(self.matrix.indptr))
        targets = SparseTargets(
            torch.from_numpy(row_of_each[by_label]),
            torch.from_numpy(self.matrix.indices[by_label].astype(np.int64)),
            torch.from_numpy(self.matrix.data[by_label]),
            self.default,
            self.shape,
        )
        return targets.to(self.device)


@dataclass(frozen=True, eq=False)
class LabelChunks:
    """A risk that is a mean over labels, and its gradient, a chunk of labels at a time.

    For a network that ends in a linear layer, and for `SparseTargetRows`.
    """

    risk: Any  # has select_labels(labels), the risk of some labels
    n_labels: int
    chunk: int  # labels at a time

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

    def add_gradient(
        self, model: nn.Module, x: Tensor, targets: SparseTargets, *, scale: float | Tensor = 1.0
    ) -> Tensor:
        """Add the gradient of scale * risk to the weights of the model; return the risk.

        Where x are the rows of this process alone, the targets are those of the rows of all: hidden
        units are gathered, each process takes some of the chunks, and gradients add up.
        """
        head, n = find_label_head(model), targets.shape[0]
        units = head.units(x)  # (n_networks, rows, hidden)
        chunks = self.split(targets)
        is_distributed = x.shape[0] != n
        if is_distributed:
            units = gather_rows(units.transpose(0, 1), n).transpose(0, 1)
            chunks = islice(chunks, process_number(), None, count_processes())
        inputs, slopes_of_units = units.detach(), torch.zeros_like(units)
        # Some labels may have no chunk here.
        is_partial = is_distributed or targets.default == State.NOT_ASKED
        make = torch.zeros_like if is_partial else torch.empty_like
        slopes_of_weight, slopes_of_bias = make(head.weight), make(head.bias)
        slopes_by_label = head.by_label(slopes_of_weight)  # views, (n_networks, n_labels, hidden)
        weight_by_label = head.by_label(head.weight).detach()
        total = torch.zeros((), device=inputs.device, dtype=inputs.dtype)
        for labels, risk, chunk_targets in chunks:
            scores = head.score(inputs, labels).detach().requires_grad_()
            # One network: (rows, chunk); several: (rows, n_networks, chunk).
            by_row = scores[0] if len(scores) == 1 else scores.transpose(0, 1)
            value = risk(by_row, chunk_targets) * (chunk_targets.shape[1] / self.n_labels)
            (slopes,) = torch.autograd.grad(scale * value, scores)
            if len(slopes) == 1 and isinstance(labels, slice):  # without a copy
                torch.mm(slopes[0].T, inputs[0], out=slopes_by_label[0, labels])
            else:
                slopes_by_label[:, labels] = torch.bmm(slopes.mT, inputs)
            slopes_of_bias.view(len(slopes), -1)[:, labels] = slopes.sum(dim=1)
            slopes_of_units.baddbmm_(slopes, weight_by_label[:, labels])
            total = total + value.detach()
        for parameter, slopes in ((head.weight, slopes_of_weight), (head.bias, slopes_of_bias)):
            if parameter.requires_grad:
                parameter.grad = slopes if parameter.grad is None else parameter.grad.add_(slopes)
        if units.requires_grad:  # something below the last layer learns
            units.backward(slopes_of_units)
        if is_distributed:
            for values in [total, *(p.grad for p in model.parameters() if p.grad is not None)]:
                dist.all_reduce(values)
        return total

    def split(self, targets: SparseTargets) -> Iterator[tuple[slice | Tensor, Any, SparseTargets]]:
        """Yield the labels of every chunk, their risk and their targets.

        Labels that nobody was asked about in a batch are left out where they cost nothing.
        """
        if targets.default == State.NOT_ASKED and not getattr(self.risk, "costs_unasked", False):
            asked, asked_targets = targets.of_asked_labels()
            for start in range(0, len(asked), self.chunk):
                labels = asked[start : start + self.chunk]
                chunk_targets = asked_targets.select_labels(start, start + len(labels))
                yield labels, self.risk.select_labels(labels), chunk_targets
            return
        for chunk, risk in self._parts:
            yield chunk, risk, targets.select_labels(chunk.start, chunk.stop)

    @cached_property
    def _parts(self) -> list[tuple[slice, Any]]:
        """Every chunk of labels, with its risk."""
        starts = range(0, self.n_labels, self.chunk)
        chunks = [slice(start, min(start + self.chunk, self.n_labels)) for start in starts]
        return [(labels, self.risk.select_labels(labels)) for labels in chunks]

    @torch.no_grad()
    def compute_risk(self, model: nn.Module, x: Tensor, targets: SparseTargets) -> Tensor:
        """Return the risk of a network in evaluation mode, whose scores are never all there."""
        head = find_label_head(model)
        units = head.units(x)
        total = torch.zeros((), device=units.device)
        for labels, risk, chunk_targets in self.split(targets):
            scores = head.score(units, labels).mean(dim=0)  # of several networks their mean
            total = total + risk(scores, chunk_targets) * (chunk_targets.shape[1] / self.n_labels)
        return total

    def __call__(self, scores: Tensor, targets: SparseTargets) -> Tensor:
        """Return the risk of scores that are all there."""
        value: Tensor = self.risk(scores, targets)
        return value
