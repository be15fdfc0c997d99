"""Sums over pairs of labels of a row, in memory that does not grow with the number of pairs."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from comes.risks.smooth_pairs import PRECISION, SLOPES, centre, limit, sum_over_smooth_pairs

# Score differences held at a time: 16 and 256 MiB of float32.
DIFFERENCES_AT_ONCE = {"cpu": 2**22, "cuda": 2**26}
# From this many labels on, smooth functions are summed in linear time: benchmarks/pair_sums.py.
MANY_LABELS = {"cpu": 64, "cuda": 1000}


def choose_pair_sums(
    n: int, q: int, device: torch.device
) -> Literal["whole", "in parts", "in linear time"]:
    """Return how a risk of pairs is computed for a batch of n rows and q labels on a device.

    "whole" forms all n * q * q differences of scores, "in parts" some at a time. "in linear time"
    forms none, and reads a number back from the device; it applies to the smooth losses.

    Examples
    --------
    >>> cpu = torch.device("cpu")
    >>> [choose_pair_sums(n, q, cpu) for n, q in ((256, 20), (2**20, 20), (256, 1000))]
    ['whole', 'in parts', 'in linear time']
    """
    if q >= MANY_LABELS.get(device.type, math.inf):
        return "in linear time"
    return "whole" if n * q * q <= limit(DIFFERENCES_AT_ONCE, device) else "in parts"


def sum_over_pairs(
    scores: Tensor,  # g, float32 or float64, (n, q)
    excluded: Tensor,  # weight of label j as the one that should score lower, (n, q)
    pair_loss: Callable[[Tensor], Tensor],  # of g_j - g_k, elementwise
    others: Tensor | None = None,  # weight of label k as the other one, (n, q); 1 by default
) -> Tensor:
    """Return sum_i excluded_ij sum_k others_ik pair_loss(g_ij - g_ik) for every label j, (q,).

    The sum includes k = j, for which the difference is 0.
    """
    n, q = scores.shape
    is_smooth = any(pair_loss is function for function in SLOPES) and scores.dtype in PRECISION
    if is_smooth and n > 0 and choose_pair_sums(n, q, scores.device) == "in linear time":
        centred = centre(scores, pair_loss)
        if centred is not None:
            return sum_over_smooth_pairs(scores, centred, excluded, pair_loss, others)

    def sum_columns(columns: slice) -> Tensor:
        losses = pair_loss(scores[:, columns, None] - scores[:, None, :])  # (n, columns, q)
        if others is not None:
            losses = losses * others[:, None, :]
        return (excluded[:, columns] * losses.sum(dim=2)).sum(dim=0)

    width = max(1, limit(DIFFERENCES_AT_ONCE, scores.device) // max(1, n * q))
    if width >= q:
        return sum_columns(slice(0, q))
    # Differences are recomputed for the gradient, so that never all of them are in memory.
    starts = range(0, q, width)
    return torch.cat([_recompute(sum_columns, slice(start, start + width)) for start in starts])


def _recompute(sum_columns: Callable[[slice], Tensor], columns: slice) -> Tensor:
    """Return a part of the sums, of which nothing is kept for the gradient."""
    result: Tensor = checkpoint(sum_columns, columns, use_reentrant=False, preserve_rng_state=False)
    return result
