"""Many trainings of small networks as one batched computation.

Each training has its own rows, targets, risk, initial weights and order of rows, and takes the
same steps as `train` alone would, to rounding. What is saved is the time between the steps: small
networks are limited by launching operations, and ten folds at once launch as many as one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn.utils.rnn import pad_sequence

from comes.errors import ComesError
from comes.models.tabular import Stack
from comes.training.loop import check_weights, run_epochs
from comes.training.options import History, TrainOptions
from comes.training.speed import GraphedStep


@dataclass(frozen=True, eq=False)
class Trainee:
    """A model for `train_together`, made by `linear` or `mlp`, with its own data, risk and seed."""

    model: nn.Module
    X: Tensor  # (n, d)
    targets: Tensor  # (n, q)
    risk: nn.Module
    seed: int = 0  # of the order of the rows


def train_together(
    trainees: Sequence[Trainee],  # models of one shape, risks of one class
    options: TrainOptions,
    *,
    vectorised_risk: bool = True,  # False: risks one by one, for those over pairs of many labels
) -> list[History]:
    """Train models of one shape, in place, each on its own rows; seconds are each one's share.

    Risks may differ in their buffers alone, and all trainees must make the same number of batches.
    The optimiser must update every weight independently, as those of `make_optimizer` do.
    """
    sizes = [len(trainee.X) for trainee in trainees]
    counts = {math.ceil(n / options.batch_size) for n in sizes}
    if len(counts) != 1:
        raise ComesError(
            f"trainings together need the same number of batches; got {sorted(set(sizes))} rows in "
            f"batches of {options.batch_size}. Train them apart."
        )
    n_batches = counts.pop()
    models = [trainee.model for trainee in trainees]
    stack = Stack(models)
    optimizer = options.optimizer(stack.parameters())
    steps = _Steps(stack, trainees, optimizer, options.risk_scale, vectorised_risk)
    device = steps.targets.device
    step_on_even: Callable[[Tensor], Tensor] = steps.step_on_even
    if options.graph and device.type == "cuda":
        step_on_even = GraphedStep(steps.step_on_even, optimizer, device)
    shuffles = [torch.Generator().manual_seed(trainee.seed) for trainee in trainees]
    starts = [0, *accumulate(sizes)][:-1]
    lengths = [[n // n_batches + (i < n % n_batches) for n in sizes] for i in range(n_batches)]
    shares = (torch.tensor(lengths) / torch.tensor(sizes)).to(device)  # of rows in each batch

    def run_epoch() -> Tensor:
        """Train for one epoch, each model in its own random order; return the mean risks."""
        orders = [
            torch.randperm(n, generator=shuffle) + start
            for n, shuffle, start in zip(sizes, shuffles, starts, strict=True)
        ]
        on_device = torch.cat(orders).to(device).split(sizes)
        total = torch.zeros(len(sizes), device=device)
        batches_of_steps = zip(*(order.tensor_split(n_batches) for order in on_device), strict=True)
        for batches, share in zip(batches_of_steps, shares, strict=True):
            is_even = len({len(rows) for rows in batches}) == 1
            risks = step_on_even(torch.stack(batches)) if is_even else steps.step_on_uneven(batches)
            total += share * risks
        return total

    histories = run_epochs(run_epoch, optimizer, options, [[] for _ in models])
    check_weights(stack.parameters(), histories[0])
    stack.copy_to(models)
    for model in models:
        model.eval()
    return histories


class _Steps:
    """Move the weights of every model against the gradient of its own risk."""

    def __init__(
        self,
        stack: Stack,
        trainees: Sequence[Trainee],
        optimizer: torch.optim.Optimizer,
        risk_scale: float,
        vectorised_risk: bool,
    ) -> None:
        self.stack, self.optimizer, self.risk_scale = stack, optimizer, risk_scale
        # Of all models, one after the other.
        self.X = torch.cat([stack.pad(trainee.X) for trainee in trainees])
        self.targets = torch.cat([trainee.targets for trainee in trainees])
        self.risks, self.vectorised_risk = [trainee.risk for trainee in trainees], vectorised_risk
        self.buffers = stack_module_state(self.risks)[1]

    def step_on_even(self, rows: Tensor) -> Tensor:
        """Take a step on batches of one size, rows of shape (n_models, batch); return the risks."""
        x, targets = (
            values.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than [rows]
            for values in (self.X, self.targets)
        )
        scores = self.stack(x)
        if not self.vectorised_risk:
            of_each = zip(self.risks, scores, targets, strict=True)
            return self._descend(torch.stack([risk(s, t) for risk, s, t in of_each]))

        def compute_risk(buffers: dict[str, Tensor], scores: Tensor, targets: Tensor) -> Any:
            return functional_call(self.risks[0], buffers, (scores, targets))

        in_dims = (0 if self.buffers else None, 0, 0)
        return self._descend(torch.vmap(compute_risk, in_dims)(self.buffers, scores, targets))

    def step_on_uneven(self, batches: Sequence[Tensor]) -> Tensor:
        """Take a step on batches of which some have one row more; the others are padded."""
        scores = self.stack(self.X[pad_sequence(list(batches), batch_first=True)])
        of_each = zip(self.risks, scores, batches, strict=True)
        return self._descend(
            torch.stack([risk(s[: len(rows)], self.targets[rows]) for risk, s, rows in of_each])
        )

    def _descend(self, risks: Tensor) -> Tensor:
        """Update the weights; return the risks without their gradient."""
        self.optimizer.zero_grad()
        (self.risk_scale * risks.sum()).backward()
        self.optimizer.step()
        return risks.detach()
