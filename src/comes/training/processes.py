"""One training in several processes, each with its share of every batch.

A risk such as |mean - weighted mean| is no sum over rows, so the mean of the risks of the processes
is another risk, with another gradient. Here the scores of all rows meet, the risk of the whole
batch is computed in every process, and its gradient goes back to whom the row belongs to. That is
q numbers per row to exchange, and exact for every risk, also one of your own.
"""

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.errors import ComesError


def count_processes() -> int:
    """Return how many processes train together; 1 without a process group."""
    return dist.get_world_size() if _is_distributed() else 1


def process_number() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if _is_distributed() else 0


def join_processes(device: torch.device) -> torch.device:
    """Join the other processes that torchrun or accelerate started; return this one's device.

    Does nothing where there are none, or where they have joined already.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if not _is_distributed():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def leave_processes() -> None:
    """Leave the others, when the work is done."""
    if _is_distributed():
        dist.destroy_process_group()


def of_all_processes(
    risk: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the risk of the rows of all processes, to be averaged over them as DDP does.

    Examples
    --------
    In a loop of your own, under DistributedDataParallel or accelerate::

        risk = of_all_processes(HammingRisk(class_prior))
        risk(model(x), candidates).backward()
    """

    def risk_of_all(scores: Tensor, candidates: Tensor) -> Tensor:
        if count_processes() == 1:
            return risk(scores, candidates)
        sizes = _gathered_sizes(scores)
        start = sum(sizes[: process_number()])
        rows = slice(start, start + len(scores))
        scores = scores.float() if scores.dtype.itemsize < 4 else scores
        all_scores = scores.new_zeros(sum(sizes), scores.shape[1])
        all_scores[rows] = scores
        all_candidates = torch.zeros(all_scores.shape, dtype=torch.uint8, device=scores.device)
        all_candidates[rows] = candidates.to(torch.uint8)
        dist.all_reduce(all_candidates)
        return risk(_Summed.apply(all_scores), all_candidates.bool())  # type: ignore[no-untyped-call]

    return risk_of_all


class _Summed(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        values = values.clone()
        dist.all_reduce(values)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


def wrap(model: nn.Module) -> nn.Module:
    """Return the model such that its gradients are averaged over the processes, if there are."""
    if count_processes() == 1:
        return model
    device = next(model.parameters()).device
    return DistributedDataParallel(model, [device] if device.type == "cuda" else None)


def my_share(rows: Tensor) -> Tensor:
    """Return the rows of a batch that this process computes."""
    if count_processes() == 1:
        return rows
    if len(rows) < count_processes():
        raise ComesError(
            f"a batch of {len(rows)} rows cannot be shared by {count_processes()} processes; "
            "raise batch_size, or start fewer."
        )
    return rows[process_number() :: count_processes()]


def of_each_process(value: Any) -> list[Any]:
    """Return what every process has."""
    values: list[Any] = [value] * count_processes()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def _is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def _gathered_sizes(scores: Tensor) -> list[int]:
    sizes = torch.zeros(count_processes(), dtype=torch.int64, device=scores.device)
    sizes[process_number()] = len(scores)
    dist.all_reduce(sizes)
    return [int(size) for size in sizes.tolist()]
