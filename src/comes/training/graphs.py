"""A training step as a CUDA graph: recorded once, then started as a whole.

A step of a small network is some hundred kernels of a few microseconds each, and starting them one
by one takes longer than running them.
"""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

Step = Callable[[Tensor], Tensor]  # rows of a batch -> risk, after an update of the weights

WARM_UP = 3  # steps that are run one by one before the recording, for each shape


class GraphedStep:
    """Does what the step does, if that never looks at a number on the device.

    Parameters
    ----------
    step : callable rows -> risk
        Zeroes gradients, computes the risk and its gradient, and updates the weights.
    optimiser : torch optimiser of that step
        Its learning rate is moved to the device, so that it can change between steps.
    """

    def __init__(self, step: Step, optimiser: torch.optim.Optimizer, device: torch.device) -> None:
        self.step = step
        self.seen: Counter[torch.Size] = Counter()
        self.recorded: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}
        self.stream = torch.cuda.Stream(device)
        self.memory = torch.cuda.graph_pool_handle()  # shared: no two of them run at once
        for group in optimiser.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            if "capturable" in group:
                group["capturable"] = True

    def __call__(self, rows: Tensor) -> Tensor:
        """Take one step."""
        with torch.cuda.device(rows.device):
            return self._take(rows)

    def _take(self, rows: Tensor) -> Tensor:
        if rows.shape not in self.recorded:
            self.seen[rows.shape] += 1
            if self.seen[rows.shape] <= WARM_UP:
                return self._on_side_stream(rows)
            graph, own_rows = torch.cuda.CUDAGraph(), rows.clone()
            with torch.cuda.graph(graph, pool=self.memory, stream=self.stream):
                risk = self.step(own_rows)
            self.recorded[rows.shape] = graph, own_rows, risk
        graph, own_rows, risk = self.recorded[rows.shape]
        own_rows.copy_(rows)
        graph.replay()
        return risk

    def _on_side_stream(self, rows: Tensor) -> Tensor:
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            risk = self.step(rows)
        current.wait_stream(self.stream)
        return risk
