"""One update of the weights, and the steps of an epoch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from comes.training.batch_sources import OnDevice, Streamed
from comes.training.gradients import Risk, add_gradient
from comes.training.graphs import GraphedStep
from comes.training.label_chunks import LabelChunks
from comes.training.mixing import mix_pairs
from comes.training.processes import gather_rows, of_whole_batch, take_share
from comes.training.resuming import TrainingState
from comes.training.row_order import DrawnOrder
from comes.training.streamed_rows import StreamedRows
from comes.training.train_options import TrainOptions


class SeenRows(Protocol):
    """What the risk sees of all rows: a tensor, or what selects rows as a tensor does."""

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        ...

    def __len__(self) -> int: ...

    def index_select(self, dim: int, index: Tensor, /) -> Any:
        """Return what the risk sees of some rows; ``dim`` is 0."""
        ...


@dataclass(frozen=True, eq=False)
class BatchesLeft:
    """The batches of an epoch that are still to be done."""

    rows: Tensor  # of all of them, in main memory
    sizes: Sequence[int]  # of each
    groups: Sequence[Sequence[int]]  # blocks that the epoch goes through, if rows lie in blocks

    def split(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return the rows of each batch."""
        return self.rows.to(device).split(list(self.sizes))  # type: ignore[no-any-return]


TakeSteps = Callable[[BatchesLeft], Iterator[Tensor]]  # gives the risk of each, after its step
HOST = torch.device("cpu")


@dataclass(frozen=True)
class Step:
    """Moves the weights against the gradient of the risk of a batch."""

    network: nn.Module
    risk: Risk
    optimiser: torch.optim.Optimizer
    options: TrainOptions
    weight: Tensor | None = None  # of every row, (n,)
    mean_weight: Tensor | None = None  # of all rows, ()
    is_shared: bool = False

    def own(self, rows: Tensor) -> Tensor:
        """Return the rows of a batch that this process computes."""
        return take_share(rows) if self.is_shared else rows

    def __call__(self, x: Tensor, seen: Any, rows: Tensor) -> Tensor:
        """Take the step; return the risk.

        ``x`` are the features of a batch, or of the share of this process. What the risk sees, and
        the numbers of the rows, are those of the whole batch.
        """
        self.optimiser.zero_grad()
        if self.options.mixes_pairs:
            x, seen = mix_pairs(x, self.own(seen))
            seen = gather_rows(seen, len(rows)) if self.is_shared else seen
        risk, share = self._weigh_rows(rows)
        value = add_gradient(
            self.network,
            x,
            seen,
            self._of_batch(risk, len(rows)),
            scale=self.options.risk_scale * share,
            part_size=self.options.part_size,
            precision=self.options.precision,
        )
        self.optimiser.step()
        return value * share

    def _of_batch(self, risk: Risk, n: int) -> Risk:
        """Return the risk of a batch of n rows, of which this process may have a share."""
        if not self.is_shared or isinstance(risk, LabelChunks):  # which shares labels itself
            return risk
        return of_whole_batch(risk, n)

    def _weigh_rows(self, rows: Tensor) -> tuple[Risk, float | Tensor]:
        """Return the risk with the weights of a batch, and their mean over that of all rows.

        The risk divides by the weights of its batch; multiplied by their relative mean it divides
        by those of all rows, so that a heavy row does not count less beside other heavy ones.
        """
        if self.weight is None or self.mean_weight is None:
            return self.risk, 1.0
        own = self.weight.index_select(0, rows)
        return lambda scores, seen: self.risk(scores, seen, own), own.mean() / self.mean_weight


def plan_steps(
    step: Step,
    source: OnDevice | Streamed | StreamedRows,
    candidates: SeenRows | None,
    device: torch.device,
    *,
    record: bool,
) -> TakeSteps:
    """Return what takes the steps of an epoch; recorded as a CUDA graph if asked and possible."""
    if isinstance(source, StreamedRows):
        return lambda left: (
            step(x, seen, rows)
            for (x, seen), rows in zip(
                source.batches(left.split(HOST), left.groups, step.own),
                left.split(device),
                strict=True,
            )
        )
    assert candidates is not None
    select = candidates.index_select  # faster than [rows]
    if isinstance(source, Streamed):
        return lambda left: (
            step(x, select(0, rows), rows)
            for x, rows in zip(
                source.bring([step.own(rows) for rows in left.split(HOST)]),
                left.split(device),
                strict=True,
            )
        )

    def select_and_step(rows: Tensor) -> Tensor:
        return step(source.select(step.own(rows)), select(0, rows), rows)

    take = select_and_step
    if record and device.type == "cuda" and step.options.part_size is None:
        take = GraphedStep(select_and_step, step.optimiser, device)
    return lambda left: (take(rows) for rows in left.split(device))


@dataclass(frozen=True)
class Epoch:
    """Takes steps over all rows, each in one batch, in random order; goes on where one stopped."""

    take_steps: TakeSteps
    draw: Callable[[torch.Generator], DrawnOrder]
    n_batches: int
    state: TrainingState

    def __call__(self) -> Tensor:
        """Train for one epoch; return the mean risk, of shape (1,)."""
        state, random = self.state, self.state.random
        n_done, total = state.begin_epoch()
        drawn = self.draw(state.shuffle)
        n = len(drawn.rows)
        sizes = [n // self.n_batches + (i < n % self.n_batches) for i in range(self.n_batches)]
        left = BatchesLeft(drawn.rows[sum(sizes[:n_done]) :], sizes[n_done:], drawn.groups)
        with closing(self.take_steps(left)) as risks:  # type: ignore[type-var]
            for number, size in enumerate(left.sizes, n_done + 1):
                if random is not None:
                    random.begin_step(len(state.risk), number, size)
                total += next(risks) * (size / n)
                if number < self.n_batches:  # after the last, the epoch is kept
                    state.finish_step(number, total)
        return total[None]
