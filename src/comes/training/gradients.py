"""The gradient of a batch: at once, or in parts that fit into memory, with the same result."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.errors import ComesError
from comes.training.label_chunks import LabelChunks
from comes.training.random_states import read_random_state, set_random_state

Risk = Callable[..., Tensor]  # risk(scores, candidates[, weights of the rows]) -> scalar


def add_gradient(
    model: nn.Module,
    x: Tensor,
    candidates: Any,
    risk: Risk,
    *,
    scale: float | Tensor = 1.0,
    part_size: int | None = None,
    precision: torch.dtype | None = None,
) -> Tensor:
    """Add the gradient of scale * risk(model(x), candidates) to the weights; return the risk.

    In parts, a first pass computes all scores without keeping what a gradient needs. The risk of
    the whole batch then says how each score should change, and a second pass sends this through
    the model part by part. The risks of the parts would not add up to that of the batch.

    Parameters
    ----------
    model : module
    x : tensor of shape (batch, ...)
    candidates : bool tensor of shape (batch, n_labels)
        What the risk sees; for `LabelChunks`, `comes.risks.SparseTargets`.
    risk : callable (scores, candidates) -> scalar tensor
    scale : float or scalar tensor
        Multiplies the gradient, not the risk that is returned.
    part_size : int, optional
        Put at most this many rows through the model at a time.
    precision : torch dtype, optional
        Run the model under autocast.

    Returns
    -------
    risk : scalar tensor, detached

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
    if isinstance(risk, LabelChunks):
        if part_size is not None or precision is not None:
            raise ComesError("chunks of labels take neither part_size nor precision; leave them.")
        return risk.add_gradient(model, x, candidates, scale=scale)
    is_shared = isinstance(model, DistributedDataParallel)  # then all processes do the same
    if part_size is None or (part_size >= len(x) and not is_shared):
        value = risk(_compute_scores(model, x, precision), candidates)
        _check_risk(value)
        (scale * value).backward()
        return value.detach()
    parts = x.tensor_split(math.ceil(len(x) / part_size))
    scores, states = _score_parts(model, parts, precision)
    value = risk(scores.requires_grad_(), candidates)
    _check_risk(value)
    (sensitivity,) = torch.autograd.grad(scale * value, scores)
    for_parts = sensitivity.tensor_split(len(parts))
    for part, state, for_part in zip(parts, states, for_parts, strict=True):
        set_random_state(state, x.device)  # the same dropout as before
        waits = is_shared and part is not parts[-1]
        with model.no_sync() if waits else nullcontext():  # type: ignore[operator]
            _compute_scores(model, part, precision).backward(for_part)
    return value.detach()


def _score_parts(
    model: nn.Module, parts: tuple[Tensor, ...], precision: torch.dtype | None
) -> tuple[Tensor, list[list[Tensor]]]:
    """Return the scores of all parts, and the random state before each; buffers stay."""
    states, scores = [], []
    before = [buffer.clone() for buffer in model.buffers()]
    with torch.no_grad():
        for part in parts:
            states.append(read_random_state(part.device))
            scores.append(_compute_scores(model, part, precision))
        for buffer, old in zip(model.buffers(), before, strict=True):
            buffer.copy_(old)  # running statistics count each part once
    return torch.cat(scores), states


def _compute_scores(model: nn.Module, x: Tensor, precision: torch.dtype | None) -> Tensor:
    """Return the scores of a batch, under autocast if asked."""
    if precision is None:
        return model(x)  # type: ignore[no-any-return]
    with torch.autocast(x.device.type, precision):
        return model(x)  # type: ignore[no-any-return]


def _check_risk(value: object) -> None:
    """Raise an error unless a risk, perhaps of one's own, is a scalar tensor."""
    if not isinstance(value, Tensor) or value.ndim != 0:
        came = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise ComesError(
            f"a risk must return a scalar tensor for a batch; got {came}. Take the mean, and keep "
            "to torch's functions."
        )
