"""One training in several processes, each with its share of every batch.

A risk such as |mean - weighted mean| is not a sum over rows, so the mean of the processes' risks is
another risk, with another gradient. Here the processes exchange the scores of all rows (q numbers
per row), each computes the risk of the whole batch, and the gradient goes back to the process that
owns the row. This is exact for every risk, including one of your own.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.training.gradients import Risk

Made = TypeVar("Made")


def count_processes() -> int:
    """Return how many processes train together; 1 without a process group.

    Examples
    --------
    >>> count_processes()
    1
    """
    return dist.get_world_size() if _is_distributed() else 1


def process_number() -> int:
    """Return the number of this process, from 0.

    Examples
    --------
    >>> process_number()
    0
    """
    return dist.get_rank() if _is_distributed() else 0


def join_processes(device: torch.device) -> torch.device:
    """Join the processes that torchrun or accelerate started; return the device of this one.

    Does nothing if there are no others, or if they have joined already.

    Examples
    --------
    >>> join_processes(torch.device("cpu"))
    device(type='cpu')
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if not _is_distributed():
        _meet("nccl" if device.type == "cuda" else "gloo")
    return device


def _meet(backend: str) -> None:
    """Form the group of all processes; after a restart, without the addresses of those before.

    torchrun keeps one store over its restarts, and torch would read where dead processes were.
    """
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if restart == "0":
        dist.init_process_group(backend)
        return
    store, rank, n_processes = next(iter(dist.rendezvous("env://")))  # type: ignore[attr-defined]
    store = dist.PrefixStore(f"restart_{restart}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=n_processes)


def leave_processes() -> None:
    """Leave the other processes when the work is done.

    Examples
    --------
    >>> leave_processes()  # does nothing in a single process
    """
    if _is_distributed():
        dist.destroy_process_group()


def of_all_processes(risk: "Risk") -> "Risk":
    """Return the risk over the rows of all processes, for gradients averaged as DDP does.

    Parameters
    ----------
    risk : callable (scores, candidates) -> scalar tensor

    Returns
    -------
    risk_of_all : callable (scores, candidates) -> scalar tensor
        Takes the rows of this process, and returns the same value in every process.

    Examples
    --------
    In a loop of your own, ``model`` wrapped by DistributedDataParallel or accelerate:

    >>> from comes.risks import HammingRisk
    >>> risk = of_all_processes(HammingRisk(torch.tensor([0.3, 0.2])))
    >>> model, x = nn.Linear(4, 2), torch.randn(10, 4)
    >>> candidates = x[:, :2] > 0
    >>> risk(model(x), candidates).backward()
    """

    def risk_of_all(scores: Tensor, candidates: Tensor) -> Tensor:
        if count_processes() == 1:
            return risk(scores, candidates)
        sizes = _gather_sizes(scores)
        start = sum(sizes[: process_number()])
        rows = slice(start, start + len(scores))
        scores = scores.float() if scores.dtype.itemsize < 4 else scores
        all_scores = scores.new_zeros(sum(sizes), *scores.shape[1:])
        all_scores[rows] = scores
        known = candidates.to(torch.uint8) if candidates.dtype == torch.bool else candidates
        all_known = known.new_zeros(sum(sizes), known.shape[1])  # a bool matrix cannot be summed
        all_known[rows] = known
        dist.all_reduce(all_known)
        whole = _Sum.apply(all_scores)  # type: ignore[no-untyped-call]
        return risk(whole, all_known.to(candidates.dtype))

    return risk_of_all


def of_whole_batch(risk: "Risk", n: int) -> "Risk":
    """Return the risk of a batch of n rows, given the scores of those that `take_share` takes.

    What else it is given is that of all rows, which every process knows.
    """

    def risk_of_batch(scores: Tensor, *others: Any) -> Tensor:
        scores = scores.float() if scores.dtype.itemsize < 4 else scores
        return risk(gather_rows(scores, n), *others)

    return risk_of_batch


def gather_rows(own: Tensor, n: int) -> Tensor:
    """Return n rows, given those that `take_share` takes; the inverse of it, with a gradient."""
    rows = own.new_zeros(n, *own.shape[1:])
    rows[process_number() :: count_processes()] = own
    return _Sum.apply(rows)  # type: ignore[no-untyped-call,no-any-return]


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


def sum_over_processes(values: Iterable[Tensor]) -> None:
    """Replace each tensor by its sum over all processes."""
    for own in values:
        dist.all_reduce(own)


def wrap_model(model: nn.Module) -> nn.Module:
    """Return the model, with gradients averaged over the processes if there are several."""
    if count_processes() == 1:
        return model
    device = next(model.parameters()).device
    return DistributedDataParallel(model, [device] if device.type == "cuda" else None)


def take_share(rows: Tensor) -> Tensor:
    """Return the rows of a batch that this process computes."""
    if count_processes() == 1:
        return rows
    if len(rows) < count_processes():
        raise ComesError(
            f"a batch of {len(rows)} rows cannot be shared by {count_processes()} processes; "
            "raise batch_size, or start fewer."
        )
    return rows[process_number() :: count_processes()]


def gather_objects(value: Any) -> list[Any]:
    """Return the values that the processes pass in, in the order of their numbers.

    Examples
    --------
    >>> gather_objects("mine")
    ['mine']
    """
    values: list[Any] = [value] * count_processes()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def broadcast_from_first(make: Callable[[], Made]) -> Made:
    """Return in all processes what the first one makes, or raise the error that it meets.

    Examples
    --------
    >>> broadcast_from_first(lambda: "made once")
    'made once'
    """
    made: tuple[Any, ComesError | None] = None, None
    if process_number() == 0:
        try:
            made = make(), None
        except ComesError as error:
            made = None, error
    value, met = gather_objects(made)[0]
    if met is not None:
        raise met
    return value  # type: ignore[no-any-return]


def _is_distributed() -> bool:
    """Return whether this process has joined others."""
    return dist.is_available() and dist.is_initialized()


def _gather_sizes(scores: Tensor) -> list[int]:
    """Return how many rows each process has."""
    sizes = torch.zeros(count_processes(), dtype=torch.int64, device=scores.device)
    sizes[process_number()] = len(scores)
    dist.all_reduce(sizes)
    return [int(size) for size in sizes.tolist()]
