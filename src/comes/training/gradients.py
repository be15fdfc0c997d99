"""The gradient of a batch: at once, or in parts that fit into memory, with the same result."""

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


def add_gradient(
    model: nn.Module,
    x: Tensor,
    candidates: Tensor,
    risk: Callable[[Tensor, Tensor], Tensor],
    *,
    scale: float = 1.0,
    part_size: int | None = None,
    precision: torch.dtype | None = None,
) -> Tensor:
    """Add the gradient of scale * risk(model(x), candidates) to the weights; return the risk.

    In parts, the scores of all of them are computed first, without what a gradient needs; the risk
    of the whole batch says how each score should change; and this is sent through the model part by
    part. Risks of parts would not add up to that of the batch.

    Examples
    --------
    >>> model, x = nn.Linear(2, 3), torch.randn(10, 2)
    >>> spread = lambda scores, candidates: scores.mean(dim=0).abs().sum()
    >>> whole = add_gradient(model, x, x > 0, spread), model.weight.grad.clone()
    >>> model.zero_grad()
    >>> parts = add_gradient(model, x, x > 0, spread, part_size=4), model.weight.grad
    >>> all(torch.allclose(a, b) for a, b in zip(whole, parts))
    True
    """

    def scores_of(rows: Tensor) -> Tensor:
        if precision is None:
            return model(rows)  # type: ignore[no-any-return]
        with torch.autocast(rows.device.type, precision):
            return model(rows)  # type: ignore[no-any-return]

    is_shared = isinstance(model, DistributedDataParallel)  # then all processes do the same
    if part_size is None or (part_size >= len(x) and not is_shared):
        value = risk(scores_of(x), candidates)
        (scale * value).backward()
        return value.detach()
    parts = x.tensor_split(math.ceil(len(x) / part_size))
    states, scores = [], []
    before = [buffer.clone() for buffer in model.buffers()]
    with torch.no_grad():
        for part in parts:
            states.append(random_state(x.device))
            scores.append(scores_of(part))
        for buffer, old in zip(model.buffers(), before, strict=True):
            buffer.copy_(old)  # running statistics count each part once
    whole = torch.cat(scores).requires_grad_()
    value = risk(whole, candidates)
    (sensitivity,) = torch.autograd.grad(scale * value, whole)
    for_parts = sensitivity.tensor_split(len(parts))
    for part, state, for_part in zip(parts, states, for_parts, strict=True):
        set_random_state(state, x.device)  # the same dropout as before
        waits = is_shared and part is not parts[-1]
        with model.no_sync() if waits else nullcontext():  # type: ignore[operator]
            scores_of(part).backward(for_part)
    return value.detach()


def random_state(device: torch.device) -> list[Tensor]:
    """Return the states of torch's random numbers, on the CPU and on a GPU."""
    on_cpu = [torch.get_rng_state()]
    return on_cpu + ([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])


def set_random_state(state: list[Tensor], device: torch.device) -> None:
    """Go back to states that `random_state` returned."""
    torch.set_rng_state(state[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)
