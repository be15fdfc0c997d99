"""Random numbers of a training that several processes share, the same for any number of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from comes.models import Dropout
from comes.training.pixels import PixelRows
from comes.training.processes import process_number, take_share
from comes.training.random_states import read_random_state, seed_torch, set_random_state


class SharedRandom:
    """Draws for whole batches, so that every process keeps the random state that one would have.

    Our dropout and augmentation draw with it. Other modules draw from torch's own state, which is
    seeded before every step by the seed, the step and the number of the process.

    Parameters
    ----------
    seed : int
    device : torch device
    state : list of tensors
        The random state of one process that trains alone.
    """

    def __init__(self, seed: int, device: torch.device, state: list[Tensor]) -> None:
        self.seed, self.device, self.state = seed, device, state
        self.n = 0  # rows of the batch

    def begin_step(self, epoch: int, step: int, n: int) -> None:
        """Prepare for a batch of n rows."""
        self.n = n
        words = np.random.SeedSequence((self.seed % 2**63, epoch, step, process_number()))
        seed_torch(int(words.generate_state(1, np.uint64)[0]), self.device)

    def __call__(self, make: Callable[[int], Tensor]) -> Tensor:
        """Return what is drawn for the rows of this process, of what is drawn for all."""
        own = read_random_state(self.device)
        set_random_state(self.state, self.device)
        drawn = make(self.n)
        self.state = read_random_state(self.device)
        set_random_state(own, self.device)
        return take_share(drawn)

    @contextmanager
    def used_by(self, model: nn.Module, X: Any) -> Iterator[None]:
        """Let the dropout of a network, and the augmentation of pictures, draw with this."""
        users: list[Any] = [part for part in model.modules() if isinstance(part, Dropout)]
        users += [X] if isinstance(X, PixelRows) else []
        for user in users:
            user.share = self
        try:
            yield
        finally:
            for user in users:
                user.share = None
