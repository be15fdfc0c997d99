"""One update of the weights, and the steps of an epoch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from comes.training.batch_sources import OnDevice, Streamed
from comes.training.gradients import Risk, add_gradient
from comes.training.graphs import GraphedStep
from comes.training.mixing import mix_pairs
from comes.training.processes import take_share
from comes.training.said_rows import SaidRows
from comes.training.train_options import TrainOptions

# Rows of each batch, in main memory and on the device -> the risk of each, after its step.
TakeSteps = Callable[[Sequence[Tensor], Sequence[Tensor]], Iterable[Tensor]]


@dataclass(frozen=True)
class Step:
    """Moves the weights against the gradient of the risk of a batch."""

    network: nn.Module
    candidates: Tensor | SaidRows
    risk: Risk
    optimiser: torch.optim.Optimizer
    options: TrainOptions
    weight: Tensor | None = None  # of every row, (n,)
    mean_weight: Tensor | None = None  # of all rows, ()

    def __call__(self, x: Tensor, rows: Tensor) -> Tensor:
        """Take the step on a batch of features, and the numbers of its rows; return the risk."""
        self.optimiser.zero_grad()
        seen: Any = self.candidates.index_select(0, rows)  # faster than [rows]
        if self.options.mixes_pairs:
            x, seen = mix_pairs(x, seen)
        risk, share = self._weigh_rows(rows)
        value = add_gradient(
            self.network,
            x,
            seen,
            risk,
            scale=self.options.risk_scale * share,
            part_size=self.options.part_size,
            precision=self.options.precision,
        )
        self.optimiser.step()
        return value * share

    def _weigh_rows(self, rows: Tensor) -> tuple[Risk, float | Tensor]:
        """Return the risk with the weights of a batch, and their mean over that of all rows.

        The risk divides by the weights of its batch; multiplied by their relative mean it divides
        by those of all rows, so that a heavy row does not count less beside other heavy ones.
        """
        if self.weight is None or self.mean_weight is None:
            return self.risk, 1.0
        own = self.weight.index_select(0, rows)
        return lambda scores, seen: self.risk(scores, seen, own), own.mean() / self.mean_weight


def plan_steps(step: Step, source: OnDevice | Streamed, *, record: bool) -> TakeSteps:
    """Return what takes the steps of an epoch; recorded as a CUDA graph if asked and possible."""
    if isinstance(source, Streamed):
        return lambda on_host, on_device: map(step, source.bring(on_host), on_device)

    def select_and_step(rows: Tensor) -> Tensor:
        return step(source.select(rows), rows)

    device = step.candidates.device
    if record and device.type == "cuda" and step.options.part_size is None:
        recorded = GraphedStep(select_and_step, step.optimiser, device)
        return lambda on_host, on_device: map(recorded, on_device)
    return lambda on_host, on_device: map(select_and_step, on_device)


@dataclass(frozen=True)
class Epoch:
    """Takes steps over all rows, each in one batch, in random order."""

    take_steps: TakeSteps
    n: int
    n_batches: int
    shuffle: torch.Generator
    device: torch.device
    is_shared: bool

    def __call__(self) -> Tensor:
        """Train for one epoch; return the mean risk, of shape (1,)."""
        order = torch.randperm(self.n, generator=self.shuffle)
        batches = order.tensor_split(self.n_batches)
        on_host, on_device = batches, order.to(self.device).tensor_split(self.n_batches)
        if self.is_shared:
            on_host, on_device = (tuple(map(take_share, rows)) for rows in (on_host, on_device))
        total = torch.zeros((), device=self.device)
        for value, rows in zip(self.take_steps(on_host, on_device), batches, strict=True):
            total += value * (len(rows) / self.n)
        return total[None]
