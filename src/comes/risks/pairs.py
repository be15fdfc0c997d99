"""Sums over pairs of labels of a row, in memory that does not grow with their number."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from comes.risks.smooth_pairs import PRECISION, SLOPES, centre, limit, sum_over_smooth_pairs

# Score differences held at a time: 16 and 256 MiB of float32.
DIFFERENCES_AT_ONCE = {"cpu": 2**22, "cuda": 2**26}
# From so many labels on, sums of smooth functions are made in linear time: benchmarks/pair_sums.py.
MANY_LABELS = {"cpu": 64, "cuda": 1000}


def sum_over_pairs(
    scores: Tensor,  # g, float32 or float64, (n, q)
    excluded: Tensor,  # weight of label j as the one that should score lower, (n, q)
    pair_loss: Callable[[Tensor], Tensor],  # of g_j - g_k, elementwise
    others: Tensor | None = None,  # weight of label k as the other one, (n, q); 1 by default
) -> Tensor:
    """Return sum_i excluded_ij sum_k others_ik pair_loss(g_ij - g_ik) for every label j, (q,).

    The sum includes k = j, whose difference is 0.
    """
    n, q = scores.shape
    is_smooth = any(pair_loss is function for function in SLOPES) and scores.dtype in PRECISION
    if is_smooth and n > 0 and q >= MANY_LABELS.get(scores.device.type, math.inf):
        centred = centre(scores, pair_loss)
        if centred is not None:
            return sum_over_smooth_pairs(scores, centred, excluded, pair_loss, others)

    def part(columns: slice) -> Tensor:
        losses = pair_loss(scores[:, columns, None] - scores[:, None, :])  # (n, columns, q)
        if others is not None:
            losses = losses * others[:, None, :]
        return (excluded[:, columns] * losses.sum(dim=2)).sum(dim=0)

    width = max(1, limit(DIFFERENCES_AT_ONCE, scores) // max(1, n * q))
    if width >= q:
        return part(slice(0, q))
    # Differences are recomputed for the gradient, so that they are never all there.
    starts = range(0, q, width)
    return torch.cat([_recomputed(part, slice(start, start + width)) for start in starts])


def _recomputed(part: Callable[[slice], Tensor], columns: slice) -> Tensor:
    result: Tensor = checkpoint(part, columns, use_reentrant=False, preserve_rng_state=False)
    return result
