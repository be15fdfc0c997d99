"""Many trainings of small networks as one batched computation.

Each training has its own rows, candidates, risk, initial weights and order of rows, and takes the
same steps as `train` alone would, to rounding. What is saved is the time between the steps: small
networks are limited by starting operations, and ten folds at once start as many as one.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn.utils.rnn import pad_sequence

from comes.errors import ComesError
from comes.models import Stack
from comes.training.graphs import GraphedStep
from comes.training.loop import History, MakeOptimizer, check_weights, count_batches, run_epochs


def train_together(
    models: Sequence[nn.Module],
    X: Sequence[Tensor],
    candidates: Sequence[Tensor],
    risks: Sequence[nn.Module],
    *,
    optimizer: MakeOptimizer,
    seeds: Sequence[int],
    epochs: int = 200,
    batch_size: int = 256,
    risk_scale: float = 1.0,
    cosine: bool = True,
    progress: bool | None = None,
    description: str = "training",
    return_on_interrupt: bool = True,
    vectorised_risk: bool = True,
    graph: bool = False,
) -> list[History]:
    """Train models of one shape, in place, each on its own rows; parameters as in `train`.

    Parameters
    ----------
    models : list of networks of `comes.models`, all `linear` or all `mlp` of one size
    X : list of float tensors of shape (n_samples of that model, n_features)
        All must make the same number of batches.
    candidates : list of bool tensors of shape (n_samples of that model, n_labels)
    risks : list of modules, all of one class, that may differ in their buffers alone
    optimizer : callable parameters -> torch optimiser
        Must treat every number for itself, as those of `make_optimizer`.
    seeds : list of int
        Orders of rows.
    vectorised_risk : bool
        Compute all risks at once. False calls them one after the other, as risks over pairs of
        many labels need.

    Returns
    -------
    histories : list of History
        The seconds are each model's share.
    """
    sizes, device = [len(x) for x in X], candidates[0].device
    counts = [len(values) for values in (models, X, candidates, risks, seeds)]
    if len(set(counts)) > 1 or sizes != [len(own) for own in candidates]:
        raise ComesError(
            "every training needs a model, X, candidates, a risk and a seed, X and candidates with "
            f"the same rows; got {counts} of these, with {sizes} and "
            f"{[len(own) for own in candidates]} rows."
        )
    n_batches = count_batches(sizes[0], epochs, batch_size)
    if any(count_batches(n, epochs, batch_size) != n_batches for n in sizes):
        raise ComesError(
            "trainings together need the same number of batches; rows "
            f"{sorted(set(sizes))} in batches of {batch_size} do not make that. Train those apart."
        )
    stack, all_candidates = Stack(models), torch.cat(list(candidates))
    all_rows = torch.cat([stack.pad(x) for x in X])
    optimiser = optimizer(stack.parameters())
    _, buffers = stack_module_state(list(risks))

    def risk_of_one(own: dict[str, Tensor], scores: Tensor, wanted: Tensor) -> Any:
        return functional_call(risks[0], own, (scores, wanted))

    def risk_of_each(scores: Tensor, wanted: Tensor) -> Tensor:
        if not vectorised_risk:
            return torch.stack([r(s, c) for r, s, c in zip(risks, scores, wanted, strict=True)])
        in_dims = (0 if buffers else None, 0, 0)
        values: Tensor = torch.vmap(risk_of_one, in_dims)(buffers, scores, wanted)
        return values

    def descend(values: Tensor) -> Tensor:
        optimiser.zero_grad()
        (risk_scale * values.sum()).backward()
        optimiser.step()
        return values.detach()

    def step(rows: Tensor) -> Tensor:  # (n_models, batch)
        x, wanted = (
            values.index_select(0, rows.flatten()).unflatten(0, rows.shape)  # faster than [rows]
            for values in (all_rows, all_candidates)
        )
        return descend(risk_of_each(stack(x), wanted))

    def uneven_step(batches: Sequence[Tensor]) -> Tensor:
        """Take a step in which some have a row more than others, which get one that is unused."""
        scores = stack(all_rows[pad_sequence(list(batches), batch_first=True)])
        of_each = zip(risks, scores, batches, strict=True)
        return descend(
            torch.stack([risk(s[: len(rows)], all_candidates[rows]) for risk, s, rows in of_each])
        )

    graph = graph and device.type == "cuda"
    even_step = GraphedStep(step, optimiser, device) if graph else step
    shuffles = [torch.Generator().manual_seed(seed) for seed in seeds]
    starts = [0, *itertools.accumulate(sizes)][:-1]
    lengths = [[n // n_batches + (i < n % n_batches) for n in sizes] for i in range(n_batches)]
    shares = (torch.tensor(lengths) / torch.tensor(sizes)).to(device)  # (n_batches, n_models)

    def epoch() -> Tensor:
        orders = [
            torch.randperm(n, generator=shuffle) + start
            for n, shuffle, start in zip(sizes, shuffles, starts, strict=True)
        ]
        on_device = torch.cat(orders).to(device).split(sizes)
        total = torch.zeros(len(models), device=device)
        steps = zip(*(order.tensor_split(n_batches) for order in on_device), strict=True)
        for batches, length, share in zip(steps, lengths, shares, strict=True):
            even = len(set(length)) == 1
            total += share * (even_step(torch.stack(batches)) if even else uneven_step(batches))
        return total

    histories = run_epochs(
        epoch,
        optimiser,
        epochs,
        n_models=len(models),
        cosine=cosine,
        progress=progress,
        description=description,
        return_on_interrupt=return_on_interrupt,
    )
    check_weights(stack.parameters(), histories[0])
    stack.copy_to(models)
    for model in models:
        model.eval()
    return histories
