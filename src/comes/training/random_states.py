"""The random state of torch: seeded inside a block, read and set."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block and restore its random state at the end.

    Examples
    --------
    >>> with seeded(7, torch.device("cpu")):
    ...     first = torch.rand(3)
    >>> with seeded(7, torch.device("cpu")):
    ...     torch.equal(torch.rand(3), first)
    True
    """
    is_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if is_cuda else []):
        seed_torch(seed, device)
        yield


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the CPU and one device; ``torch.manual_seed`` would reach every device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def read_random_state(device: torch.device) -> list[Tensor]:
    """Return the random states of torch, of the CPU and of a GPU."""
    on_cpu = [torch.get_rng_state()]
    return on_cpu + ([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])


def set_random_state(state: list[Tensor], device: torch.device) -> None:
    """Restore states that `read_random_state` returned."""
    torch.set_rng_state(state[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)
