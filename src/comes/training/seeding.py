"""Random states of torch: seeded in a block, read and set.

Torch draws initial weights, dropout and augmentation from one generator for the whole process.
Seeded blocks therefore take turns: a fit with a given seed draws the same numbers whatever other
threads do. Whoever draws from that generator without a seed holds `RANDOM_LOCK`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch
from torch import Tensor

RANDOM_LOCK = RLock()  # re-entrant: a seeded block may contain another


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block, restore its random state at the end; one thread at a time."""
    with RANDOM_LOCK, torch.random.fork_rng([device] if device.type == "cuda" else []):
        seed_torch(seed, device)
        yield


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the CPU and one device; ``torch.manual_seed`` would reach every device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def get_random_state(device: torch.device) -> list[Tensor]:
    """Return the random states of the CPU and, if it is one, of the GPU."""
    on_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_gpu]


def set_random_state(state: list[Tensor], device: torch.device) -> None:
    """Restore states that `get_random_state` returned."""
    torch.set_rng_state(state[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)
