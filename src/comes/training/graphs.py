"""A training step as a CUDA graph: recorded once, then started as a whole.

A step of a small network is some hundred kernels of a few microseconds each, and starting them one
by one takes longer than running them.
"""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP = 3  # steps of each shape that are taken before one is recorded


class GraphedStep:
    """Does what the step does, if that never reads a number from the device.

    Parameters
    ----------
    step : callable rows -> risk
        Zeroes the gradients, computes the risk and its gradient, and updates the weights.
    optimiser : torch optimiser of that step
        Its learning rates are moved to the device, so that they can change between steps.
    device : torch device, a GPU
    """

    def __init__(
        self,
        step: Callable[[Tensor], Tensor],
        optimiser: torch.optim.Optimizer,
        device: torch.device,
    ) -> None:
        self.step = step
        self.seen: Counter[torch.Size] = Counter()
        self.recorded: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}
        self.stream = torch.cuda.Stream(device)
        self.memory = torch.cuda.graph_pool_handle()  # shared, since no two graphs run at once
        for group in optimiser.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            if "capturable" in group:
                group["capturable"] = True

    def __call__(self, rows: Tensor) -> Tensor:
        """Take one step."""
        with torch.cuda.device(rows.device):
            return self._take_step(rows)

    def _take_step(self, rows: Tensor) -> Tensor:
        """Take the first steps of a shape one by one, record the next, then replay it."""
        if rows.shape not in self.recorded:
            self.seen[rows.shape] += 1
            if self.seen[rows.shape] <= WARM_UP:
                return self._step_on_side_stream(rows)
            graph, own_rows = torch.cuda.CUDAGraph(), rows.clone()
            with torch.cuda.graph(graph, pool=self.memory, stream=self.stream):
                risk = self.step(own_rows)
            self.recorded[rows.shape] = graph, own_rows, risk
        graph, own_rows, risk = self.recorded[rows.shape]
        own_rows.copy_(rows)
        graph.replay()
        return risk

    def _step_on_side_stream(self, rows: Tensor) -> Tensor:
        """Take a step on another stream, as recording does."""
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            risk = self.step(rows)
        current.wait_stream(self.stream)
        return risk
