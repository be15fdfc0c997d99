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
    numbers_of_batches = {math.ceil(n / options.batch_size) for n in sizes}
    if len(numbers_of_batches) != 1:
        raise ComesError(
            f"trainings together need the same number of batches; got {sorted(set(sizes))} rows in "
            f"batches of {options.batch_size}. Train them apart."
        )
    (n_batches,) = numbers_of_batches
    models, risks = [t.model for t in trainees], [t.risk for t in trainees]
    stack, buffers = Stack(models), stack_module_state(risks)[1]
    optimizer = options.optimizer(stack.parameters())
    # Rows of all models, one after the other.
    X = torch.cat([stack.pad(trainee.X) for trainee in trainees])
    targets = torch.cat([trainee.targets for trainee in trainees])

    def compute_risk(buffers: dict[str, Tensor], scores: Tensor, targets: Tensor) -> Any:
        """Return the risk of one model, whose buffers these are."""
        return functional_call(risks[0], buffers, (scores, targets))

    def step(rows: Tensor, counts: Sequence[int] | None = None) -> Tensor:
        """Take a step on rows of shape (n_models, batch); return the risk of each model.

        Where batches are padded, ``counts`` are their numbers of rows.
        """
        x, y = (
            values.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than [rows]
            for values in (X, targets)
        )
        scores = stack(x)
        if vectorised_risk and counts is None:
            values = torch.vmap(compute_risk, (0 if buffers else None, 0, 0))(buffers, scores, y)
        else:
            counts = [rows.shape[1]] * len(rows) if counts is None else counts
            of_each = zip(risks, scores, y, counts, strict=True)
            values = torch.stack([risk(s[:n], t[:n]) for risk, s, t, n in of_each])
        optimizer.zero_grad()
        (options.risk_scale * values.sum()).backward()
        optimizer.step()
        return values.detach()  # type: ignore[no-any-return]

    step_on_even: Callable[[Tensor], Tensor] = step
    if options.graph and X.device.type == "cuda":
        step_on_even = GraphedStep(step, optimizer, X.device)
    shuffles = [torch.Generator().manual_seed(trainee.seed) for trainee in trainees]
    starts = [0, *accumulate(sizes)][:-1]
    lengths = [[n // n_batches + (i < n % n_batches) for n in sizes] for i in range(n_batches)]
    shares = (torch.tensor(lengths) / torch.tensor(sizes)).to(X.device)  # of rows in each batch

    def run_epoch() -> Tensor:
        """Train for one epoch, each model in its own random order; return the mean risks."""
        orders = [
            torch.randperm(n, generator=shuffle) + start
            for n, shuffle, start in zip(sizes, shuffles, starts, strict=True)
        ]
        on_device = torch.cat(orders).to(X.device).split(sizes)
        total = torch.zeros(len(sizes), device=X.device)
        batches_of_steps = zip(*(order.tensor_split(n_batches) for order in on_device), strict=True)
        for batches, counts, share in zip(batches_of_steps, lengths, shares, strict=True):
            if len(set(counts)) == 1:
                total += share * step_on_even(torch.stack(batches))
            else:  # some have one row more; the others are padded
                total += share * step(pad_sequence(list(batches), batch_first=True), counts)
        return total

    histories = run_epochs(run_epoch, optimizer, options, [[] for _ in models])
    check_weights(stack.parameters(), histories[0])
    stack.copy_to(models)
    for model in models:
        model.eval()
    return histories
