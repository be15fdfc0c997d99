"""One training in several processes, each with its share of every batch.

A risk such as |mean - weighted mean| is not a sum over rows, so the mean of the processes' risks is
another risk, with another gradient. Here the processes exchange the scores of all rows (q numbers
per row), each computes the risk of the whole batch, and the gradient goes back to the process that
owns the row. This is exact for every risk, including one of your own.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.training.gradients import Risk

Made = TypeVar("Made")


def of_all_processes(risk: "Risk") -> "Risk":
    """Return the risk over the rows of all processes, for gradients averaged as DDP does.

    Parameters
    ----------
    risk : callable (scores, targets) -> scalar tensor

    Returns
    -------
    risk_of_all : callable (scores, targets) -> scalar tensor
        Takes the rows of this process, and returns the same value in every process.

    Examples
    --------
    In a loop of your own, ``model`` wrapped by DistributedDataParallel or accelerate:

    >>> from comes.risks import HammingRisk
    >>> risk = of_all_processes(HammingRisk(torch.tensor([0.3, 0.2])))
    >>> model, x = torch.nn.Linear(4, 2), torch.randn(10, 4)
    >>> candidates = x[:, :2] > 0
    >>> risk(model(x), candidates).backward()
    """

    def risk_of_all(scores: Tensor, targets: Tensor) -> Tensor:
        if count_processes() == 1:
            return risk(scores, targets)
        sizes = torch.zeros(count_processes(), dtype=torch.int64, device=scores.device)
        sizes[process_number()] = len(scores)
        dist.all_reduce(sizes)
        n, start = int(sizes.sum()), int(sizes[: process_number()].sum())
        rows = slice(start, start + len(scores))
        # Bool matrices cannot be summed.
        numbers = targets.to(torch.uint8) if targets.dtype == torch.bool else targets
        all_targets = gather_rows(numbers, n, rows).to(targets.dtype)
        return risk(gather_rows(scores, n, rows), all_targets)

    return risk_of_all


def count_processes() -> int:
    """Return how many processes train together; 1 without a process group."""
    return dist.get_world_size() if _has_joined() else 1


def process_number() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if _has_joined() else 0


def _has_joined() -> bool:
    """Return whether this process has joined others."""
    return dist.is_available() and dist.is_initialized()


def join_processes(device: torch.device) -> torch.device:
    """Join the processes that torchrun or accelerate started; return the device of this one.

    Does nothing if there are no others, or if they have joined already.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if _has_joined():
        return device
    backend = "nccl" if device.type == "cuda" else "gloo"
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if restart == "0":
        dist.init_process_group(backend)
    else:  # torchrun keeps one store, in which torch would find the addresses of dead processes
        store, rank, n = next(iter(dist.rendezvous("env://")))  # type: ignore[attr-defined]
        store = dist.PrefixStore(f"restart_{restart}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=n)
    return device


def leave_processes() -> None:
    """Leave the other processes when the work is done."""
    if _has_joined():
        dist.destroy_process_group()


def take_share(rows: Tensor) -> Tensor:
    """Return the rows of a batch that this process computes."""
    n = count_processes()
    if len(rows) < n:
        raise ComesError(
            f"a batch of {len(rows)} rows cannot be shared by {n} processes; raise batch_size, or "
            "start fewer."
        )
    return rows[process_number() :: n]


def gather_rows(values: Tensor, n: int, rows: slice | None = None) -> Tensor:
    """Return the n rows of all processes, with a gradient; by default each has its `take_share`.

    Numbers of less than 32 bits become float32, as they are summed.
    """
    if values.is_floating_point() and values.dtype.itemsize < 4:
        values = values.float()
    whole = values.new_zeros(n, *values.shape[1:])
    whole[slice(process_number(), None, count_processes()) if rows is None else rows] = values
    return _Sum.apply(whole)  # type: ignore[no-untyped-call, no-any-return]


class _Sum(torch.autograd.Function):
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


def gather_objects(value: Any) -> list[Any]:
    """Return the values that the processes pass in, in the order of their numbers."""
    values: list[Any] = [value] * count_processes()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def broadcast_from_first(make: Callable[[], Made]) -> Made:
    """Return in all processes what the first one makes, or raise the error that it meets."""
    made: tuple[Any, ComesError | None] = None, None
    if process_number() == 0:
        try:
            made = make(), None
        except ComesError as error:
            made = None, error
    value, failure = gather_objects(made)[0]
    if failure is not None:
        raise failure
    return value  # type: ignore[no-any-return]
