"""Two processes of a training as two threads that take turns: what they compute, without processes.

The functions of torch.distributed that the training calls are replaced. A thread runs until it
waits for what the other has to give; each has its own random state of torch, so that they need not
take turns for it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.training import seeding


class TwoRanks:
    """Two threads, numbered 0 and 1, of which one runs at a time."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._turns = [threading.Semaphore(0), threading.Semaphore(0)]
        self._given: list[list[Any]] = [[], []]
        self._has_ended = [False, False]

    def run(self, function: Callable[[int], Any]) -> list[Any]:
        """Call ``function(rank)`` in both; return what they return, or raise what one raises."""
        found: list[Any] = [None, None]
        errors: list[BaseException] = []
        before = torch.get_rng_state()

        def call(rank: int) -> None:
            self._own.rank = rank
            self._turns[rank].acquire()
            torch.set_rng_state(before)
            try:
                found[rank] = function(rank)
            except BaseException as error:
                errors.append(error)
            self._has_ended[rank] = True
            self._turns[1 - rank].release()

        threads = [threading.Thread(target=call, args=(rank,)) for rank in range(2)]
        with pytest.MonkeyPatch.context() as patch, torch.backends.cudnn.flags():
            self._replace_functions(patch)
            for thread in threads:
                thread.start()
            self._turns[0].release()
            for thread in threads:
                thread.join()
        torch.set_rng_state(before)
        if errors:
            raise errors[0]
        return found

    def exchange(self, value: Any) -> list[Any]:
        """Return what both threads give here, in their order."""
        rank = self._own.rank
        self._given[rank].append(value)
        number = len(self._given[rank])
        while len(self._given[1 - rank]) < number:
            if self._has_ended[1 - rank]:
                raise RuntimeError("the other process has ended")
            state = torch.get_rng_state()
            self._turns[1 - rank].release()
            self._turns[rank].acquire()
            torch.set_rng_state(state)
        return [given[number - 1] for given in self._given]

    def _replace_functions(self, patch: pytest.MonkeyPatch) -> None:
        """Let torch.distributed, and the averaging of gradients, know these threads."""

        def all_reduce(values: Tensor) -> None:
            first, second = self.exchange(values.detach().clone())
            with torch.no_grad():
                values.copy_(first + second)

        def all_gather_object(values: list[Any], value: Any) -> None:
            values[:] = self.exchange(value)

        def init(wrapped: Any, module: nn.Module, device_ids: Any = None) -> None:
            nn.Module.__init__(wrapped)
            wrapped.module, wrapped.averages = module, True
            for parameter in module.parameters():
                parameter.register_post_accumulate_grad_hook(
                    lambda own: average(own.grad) if wrapped.averages else None
                )

        def average(gradient: Tensor | None) -> None:
            assert gradient is not None
            all_reduce(gradient)
            gradient /= 2

        @contextmanager
        def no_sync(wrapped: Any) -> Iterator[None]:
            wrapped.averages = False
            yield
            wrapped.averages = True

        patch.setattr(seeding, "RANDOM_LOCK", nullcontext())
        patch.setattr(dist, "is_initialized", lambda: hasattr(self._own, "rank"))
        patch.setattr(dist, "get_rank", lambda: self._own.rank)
        patch.setattr(dist, "get_world_size", lambda: 2)
        patch.setattr(dist, "all_reduce", all_reduce)
        patch.setattr(dist, "all_gather_object", all_gather_object)
        patch.setattr(DistributedDataParallel, "__init__", init)
        patch.setattr(DistributedDataParallel, "forward", lambda wrapped, x: wrapped.module(x))
        patch.setattr(DistributedDataParallel, "no_sync", no_sync)
