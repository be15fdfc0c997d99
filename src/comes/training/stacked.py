"""Many trainings of small networks as one batched computation.

Each training has its own rows, candidates, risk, initial weights and order of rows, and takes the
same steps as `train` alone would, to rounding. What is saved is the time between the steps: small
networks are limited by launching operations, and ten folds at once launch as many as one.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn.utils.rnn import pad_sequence

from comes.errors import ComesError
from comes.models.tabular import Stack
from comes.training.epochs import check_weights, run_epochs
from comes.training.graphs import GraphedStep
from comes.training.history import History
from comes.training.train_options import TrainOptions


@dataclass(frozen=True, eq=False)
class Trainee:
    """A model for `train_together`, with its own data, risk and seed.

    Parameters
    ----------
    model : network of `comes.models`, `linear` or `mlp`
    X : float tensor of shape (n_samples, n_features)
    candidates : bool tensor of shape (n_samples, n_labels)
    risk : module
    seed : int
        Decides the order of the rows.

    Examples
    --------
    >>> from comes.models import linear
    >>> from comes.risks import BceRisk
    >>> X = torch.randn(100, 5)
    >>> Trainee(linear(5, 2), X, X[:, :2] > 0, BceRisk(), seed=1).seed
    1
    """

    model: nn.Module
    X: Tensor
    candidates: Tensor
    risk: nn.Module
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.X) != len(self.candidates):
            raise ComesError(
                "X and candidates must have the same rows; got "
                f"{len(self.X)}, {len(self.candidates)}."
            )


def train_together(
    trainees: Sequence[Trainee], options: TrainOptions, *, vectorised_risk: bool = True
) -> list[History]:
    """Train models of one shape, in place, each on its own rows.

    Parameters
    ----------
    trainees : list of Trainee
        Models of one size, and risks of one class that differ in their buffers alone. All must
        make the same number of batches.
    options : TrainOptions
        Its optimiser must update every weight independently, as those of `make_optimizer` do. Its
        seed is not used: every trainee has one. Parts and half precision are not possible.
    vectorised_risk : bool
        Compute all risks at once. False computes them one after the other, which risks over pairs
        of many labels need.

    Returns
    -------
    histories : list of History
        The seconds are each model's share.

    Examples
    --------
    >>> from comes.models import linear
    >>> from comes.risks import BceRisk
    >>> from comes.training import make_optimizer
    >>> X = torch.randn(100, 5)
    >>> folds = [X[:50], X[50:]]
    >>> trainees = [Trainee(linear(5, 2), x, x[:, :2] > 0, BceRisk()) for x in folds]
    >>> options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=3)
    >>> [len(history.risk) for history in train_together(trainees, options)]
    [3, 3]
    """
    n_batches = _count_batches(trainees, options)
    models, risks = zip(*((trainee.model, trainee.risk) for trainee in trainees), strict=True)
    sizes = [len(trainee.X) for trainee in trainees]
    stack = Stack(models)
    optimiser = options.optimizer(stack.parameters())
    step = _StackedStep(
        stack,
        torch.cat([stack.pad(trainee.X) for trainee in trainees]),
        torch.cat([trainee.candidates for trainee in trainees]),
        risks,
        stack_module_state(list(risks))[1],
        vectorised_risk,
        optimiser,
        options.risk_scale,
    )
    device = step.candidates.device
    is_recorded = options.graph and device.type == "cuda"
    epoch = _StackedEpoch(
        GraphedStep(step, optimiser, device) if is_recorded else step,
        step.take_uneven,
        sizes,
        [torch.Generator().manual_seed(trainee.seed) for trainee in trainees],
        _find_shares(sizes, n_batches).to(device),
    )
    histories = run_epochs(epoch, optimiser, options, n_models=len(models))
    check_weights(stack.parameters(), histories[0])
    stack.copy_to(models)
    for model in models:
        model.eval()
    return histories


def _count_batches(trainees: Sequence[Trainee], options: TrainOptions) -> int:
    """Return the number of batches of every training; refuse what cannot be trained together."""
    if options.part_size is not None or options.precision is not None or options.order is not None:
        raise ComesError(
            "trainings together take whole batches of all rows in full precision; got part_size "
            f"{options.part_size}, precision {options.precision} and order {options.order}. Train "
            "them apart."
        )
    counts = {math.ceil(len(trainee.X) / options.batch_size) for trainee in trainees}
    if len(counts) != 1:
        raise ComesError(
            "trainings together need the same number of batches; got "
            f"{sorted({len(trainee.X) for trainee in trainees})} rows in batches of "
            f"{options.batch_size}. Train them apart."
        )
    return counts.pop()


@dataclass(frozen=True)
class _StackedStep:
    """Moves the weights of every model against the gradient of its own risk."""

    stack: Stack
    rows: Tensor  # of all models, one after the other, (n of all, d)
    candidates: Tensor  # likewise, (n of all, q)
    risks: Sequence[nn.Module]
    buffers: dict[str, Tensor]  # of the risks, stacked
    vectorised_risk: bool
    optimiser: torch.optim.Optimizer
    risk_scale: float

    def __call__(self, rows: Tensor) -> Tensor:
        """Take a step on batches of one size; rows of shape (n_models, batch)."""
        x, candidates = (
            values.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than [rows]
            for values in (self.rows, self.candidates)
        )
        return self._descend(self._compute_risks(self.stack(x), candidates))

    def take_uneven(self, batches: Sequence[Tensor]) -> Tensor:
        """Take a step on batches of which some have one row more; the others are padded."""
        scores = self.stack(self.rows[pad_sequence(list(batches), batch_first=True)])
        of_each = zip(self.risks, scores, batches, strict=True)
        return self._descend(
            torch.stack([risk(s[: len(rows)], self.candidates[rows]) for risk, s, rows in of_each])
        )

    def _compute_risks(self, scores: Tensor, candidates: Tensor) -> Tensor:
        """Return the risk of each model."""
        if not self.vectorised_risk:
            of_each = zip(self.risks, scores, candidates, strict=True)
            return torch.stack([risk(s, c) for risk, s, c in of_each])
        in_dims = (0 if self.buffers else None, 0, 0)
        values: Tensor = torch.vmap(self._compute_risk, in_dims)(self.buffers, scores, candidates)
        return values

    def _compute_risk(self, buffers: dict[str, Tensor], scores: Tensor, candidates: Tensor) -> Any:
        """Return the risk of one model, whose risk has these buffers."""
        return functional_call(self.risks[0], buffers, (scores, candidates))

    def _descend(self, values: Tensor) -> Tensor:
        """Update the weights; return the risks without their gradient."""
        self.optimiser.zero_grad()
        (self.risk_scale * values.sum()).backward()
        self.optimiser.step()
        return values.detach()


@dataclass(frozen=True)
class _StackedEpoch:
    """Takes steps over all rows of every model, each model in its own random order."""

    take_even: Callable[[Tensor], Tensor]
    take_uneven: Callable[[Sequence[Tensor]], Tensor]
    sizes: list[int]  # rows of each model
    shuffles: list[torch.Generator]
    shares: Tensor  # of a model's rows that are in each batch, (n_batches, n_models)

    def __call__(self) -> Tensor:
        """Train for one epoch; return the mean risk of each model."""
        n_batches, device = len(self.shares), self.shares.device
        on_device = torch.cat(self._shuffle_rows()).to(device).split(self.sizes)
        total = torch.zeros(len(self.sizes), device=device)
        steps = zip(*(order.tensor_split(n_batches) for order in on_device), strict=True)
        for batches, share in zip(steps, self.shares, strict=True):
            is_even = len({len(rows) for rows in batches}) == 1
            risks = self.take_even(torch.stack(batches)) if is_even else self.take_uneven(batches)
            total += share * risks
        return total

    def _shuffle_rows(self) -> list[Tensor]:
        """Return the rows of each model, in a new order."""
        starts = [0, *itertools.accumulate(self.sizes)][:-1]
        return [
            torch.randperm(n, generator=shuffle) + start
            for n, shuffle, start in zip(self.sizes, self.shuffles, starts, strict=True)
        ]


def _find_shares(sizes: list[int], n_batches: int) -> Tensor:
    """Return which share of its rows each model has in each batch, (n_batches, n_models)."""
    lengths = [[n // n_batches + (i < n % n_batches) for n in sizes] for i in range(n_batches)]
    return torch.tensor(lengths) / torch.tensor(sizes)
