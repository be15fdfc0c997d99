r"""Sums of a smooth function over all pairs of labels of a row, in time linear in their number.

.. math:: \sum_k o_k f(g_j - g_k) \approx \sum_r B_r(g_j) \sum_t K_{rt} \sum_k o_k B_t(g_k)

As long as the scores of a row lie in an interval of width w, f(g_j - g_k) is a polynomial in
either score, of about 2 w terms to float32 rounding. The labels of a row then enter as that many
moments, one small matrix K turns moments into coefficients, and nothing of shape (n, q, q) is
ever there. Two choices make the terms few and cheap:

- The polynomials are in :math:`x = \sin(\alpha g) / \sin(\alpha w / 2)` instead of g. This moves
  nodes from the ends of the interval to its middle and saves a third of the terms.
- :math:`B_{2 k + r} = T_{2 k}(x) \, T_r(x)` for r = 0, 1, where T are Chebyshev polynomials,
  :math:`T_k(\cos\theta) = \cos(k \theta)`. So only every second one is computed and kept.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Function = Callable[[Tensor], Tensor]


def _sigmoid_slope(z: Tensor) -> Tensor:
    return torch.sigmoid(z) * torch.sigmoid(-z)


# What can be summed: functions whose nearest singularity is at i pi or farther, with derivatives.
SLOPES: Mapping[Function, Function] = {
    torch.sigmoid: _sigmoid_slope,
    F.softplus: torch.sigmoid,
    torch.exp: torch.exp,
}
# Terms for an interval of width w are a w + b; these (a, b) give errors near the rounding.
TERMS = {torch.float32: (1.8, 6), torch.float64: (3.4, 16)}
WIDTHS_PER_DOUBLING = 8  # widths are rounded up to powers of 2^(1/8), so that expansions recur
LABELS_PER_TERM = 1  # with fewer labels than this per term, pair by pair is faster
FLAT = 40.0  # so far from 0 the sigmoid is 0 or 1 to float64 rounding
NUMBERS_AT_ONCE = {"cpu": 2**22, "cuda": 2**27}  # more are made in parts, again for the gradient


def sum_over_smooth_pairs(
    scores: Tensor,  # g, float32 or float64, (n, q)
    excluded: Tensor,  # e, (n, q), without gradient
    function: Function,  # f, a key of SLOPES
    others: Tensor | None = None,  # o, (n, q), without gradient; 1 by default
) -> Tensor:
    """Return sum_i e_ij sum_k o_ik f(g_ij - g_ik), k = j included, for every label j, (q,).

    Exact to rounding. Where the scores of a row lie too far apart for the expansion to save
    anything, the sum is made pair by pair, in bounded memory.
    """
    sums: Tensor = _PairSums.apply(scores, excluded, function, others)  # type: ignore[no-untyped-call]
    return sums


class Expansion(NamedTuple):
    """f(g - h) = B(g)' K B(h) and f'(g - h) = B(g)' D B(h), for g and h in [-w / 2, w / 2].

    Moments are ordered by k, then r, of B_{2 k + r}; coefficients by r, then k.
    """

    alpha: float
    end: float  # sin(alpha w / 2)
    frequencies: Tensor  # 0, 1, and 0, 2, 4, ..., n_terms - 2, as a column
    to_both: Tensor  # moments to coefficients of the sum and its slope: K' and D' side by side
    to_slope: Tensor  # moments of g to coefficients of the slope by h: D


def count_terms(level: int, dtype: torch.dtype) -> int:
    """Return the number of terms, which is even, for the width of that level."""
    per_width, least = TERMS[dtype]
    return 2 * math.ceil((per_width * _width(level) + least) / 2)


def _width(level: int) -> float:
    return float(2 ** (level / WIDTHS_PER_DOUBLING))


def _level(width: float) -> int:
    """Return the level whose width holds this one, with a margin for the rounding of scores."""
    return math.ceil(WIDTHS_PER_DOUBLING * math.log2(max(1.0, 1.0001 * width)))


@lru_cache(maxsize=128)
def expand(function: Function, level: int, dtype: torch.dtype, device: torch.device) -> Expansion:
    """Return the expansion of a function for the width of that level."""
    width, n_terms = _width(level), count_terms(level, dtype)
    half_angle = math.pi / 2 * width / (width + 5)  # by trial: close to the best for every width
    theta = (torch.arange(n_terms, dtype=torch.float64) + 0.5) * math.pi / n_terms
    x = torch.cos(theta)
    g = torch.asin(x * math.sin(half_angle)) * (width / 2 / half_angle)
    even = 2 * torch.arange(n_terms // 2)
    T_even = torch.cos(even[:, None] * theta)
    to_terms = torch.linalg.inv(torch.stack([T_even, T_even * x], dim=1).flatten(0, 1))
    K = to_terms.T @ function(g[:, None] - g) @ to_terms
    D = to_terms.T @ SLOPES[function](g[:, None] - g) @ to_terms

    def by_r(matrix: Tensor) -> Tensor:
        """Order columns by r, then k."""
        return matrix.reshape(len(matrix), -1, 2).transpose(1, 2).flatten(1)

    return Expansion(
        alpha=2 * half_angle / width,
        end=math.sin(half_angle),
        frequencies=torch.cat([torch.arange(2), even])[:, None].to(device, dtype),
        to_both=torch.cat([by_r(K.T), by_r(D.T)], dim=1).to(device, dtype),
        to_slope=by_r(D).to(device, dtype),
    )


def _cosines(centred: Tensor, expansion: Expansion) -> Tensor:
    """Return T_0, T_1, and T_0, T_2, T_4, ... at every score, (n, 2 + n_terms / 2, q)."""
    theta = (centred * expansion.alpha).sin_().div_(expansion.end).acos_()
    return (expansion.frequencies * theta[:, None]).cos_()


def _moments(weights: Tensor | None, cosines: Tensor) -> Tensor:
    """Return the weighted sums of every B over the labels of a row, (n, n_terms)."""
    low = cosines[:, :2] if weights is None else cosines[:, :2] * weights[:, None]
    return torch.bmm(cosines[:, 2:], low.mT).flatten(1)


def _evaluate(coefficients: Tensor, cosines: Tensor) -> Tensor:
    """Return functions of these coefficients, (n, functions n_terms), as (n, functions, q)."""
    n, _, q = cosines.shape
    high = cosines[:, 2:]
    by_r = torch.bmm(coefficients.view(n, -1, high.shape[1]), high).view(n, -1, 2, q)
    return torch.addcmul(by_r[:, :, 0], by_r[:, :, 1], cosines[:, 1:2])


def _centre(scores: Tensor, function: Function) -> tuple[Tensor, int | None]:
    """Return scores with every row around 0, and the level; None if the rows are too wide."""
    lowest, highest = scores.amin(dim=1, keepdim=True), scores.amax(dim=1, keepdim=True)
    width = float((highest - lowest).max())
    if math.isfinite(width):
        level = _level(width)
        if LABELS_PER_TERM * count_terms(level, scores.dtype) <= scores.shape[1]:
            return scores - (lowest + highest) / 2, level
        if function is torch.sigmoid:
            closer = _close_gaps(scores)
            if float(closer.max()) < width - FLAT:
                return _centre(closer, function)
    return scores, None


def _close_gaps(scores: Tensor) -> Tensor:
    """Return scores without the empty stretches in which the sigmoid does not change."""
    ordered, order = scores.double().sort(dim=1)
    steps = ordered.diff(dim=1, prepend=ordered[:, :1]).clamp(max=FLAT)
    return torch.empty_like(scores).scatter_(1, order, steps.cumsum(dim=1).to(scores.dtype))


def _pair_by_pair(function: Function, scores: Tensor, weights: Tensor | None) -> Tensor:
    """Return sum_k w_k f(g_j - g_k), (n, q), with as many pairs at once as memory shall hold."""
    n, q = scores.shape
    columns = max(1, NUMBERS_AT_ONCE["cuda" if scores.is_cuda else "cpu"] // max(1, n * q))

    def part(some: Tensor) -> Tensor:
        values = function(some[:, :, None] - scores[:, None])
        return values.sum(dim=2) if weights is None else (values @ weights[:, :, None])[:, :, 0]

    return torch.cat([part(some) for some in scores.split(columns, dim=1)], dim=1)


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, excluded: Tensor, function: Function, others: Tensor | None
    ) -> Tensor:
        """Sum over rows, too; keep the cosines for the gradient if they fit into memory."""
        points, level = _centre(scores, function)
        ctx.function, ctx.level, cosines = function, level, None
        with torch.autocast(scores.device.type, enabled=False):
            if level is None:
                sums = _pair_by_pair(function, scores, others)
                slopes = _pair_by_pair(SLOPES[function], scores, others)
            else:
                expansion = expand(function, level, scores.dtype, scores.device)
                parts = []
                for rows in _parts(points, expansion):
                    cosines = _cosines(points[rows], expansion)
                    moments = _moments(None if others is None else others[rows], cosines)
                    parts.append(_evaluate(moments @ expansion.to_both, cosines))
                cosines = cosines if len(parts) == 1 else None
                sums, slopes = (torch.cat(parts) if len(parts) > 1 else parts[0]).unbind(1)
        ctx.save_for_backward(excluded, others, slopes, points, cosines)
        return (excluded * sums).sum(dim=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        excluded, others, slopes, points, cosines = ctx.saved_tensors
        weights = excluded * gradient
        # As the other label of a pair, j receives sum_m weight_m f'(g_m - g_j).
        with torch.autocast(gradient.device.type, enabled=False):
            if ctx.level is None:
                slope = SLOPES[ctx.function]
                received = _pair_by_pair(lambda z: slope(-z), points, weights)
            else:
                expansion = expand(ctx.function, ctx.level, points.dtype, points.device)
                if cosines is not None:
                    received = _received(weights, cosines, expansion)
                else:
                    received = torch.cat(
                        [
                            _received(weights[rows], _cosines(points[rows], expansion), expansion)
                            for rows in _parts(points, expansion)
                        ]
                    )
        if others is not None:
            received = received * others
        return torch.addcmul(-received, weights, slopes), None, None, None


def _received(weights: Tensor, cosines: Tensor, expansion: Expansion) -> Tensor:
    return _evaluate(_moments(weights, cosines) @ expansion.to_slope, cosines)[:, 0]


def _parts(points: Tensor, expansion: Expansion) -> list[slice]:
    """Return parts of the rows whose cosines fit into memory at once."""
    n, q = points.shape
    room = NUMBERS_AT_ONCE["cuda" if points.is_cuda else "cpu"]
    size = max(1, room // (len(expansion.frequencies) * q))
    return [slice(start, start + size) for start in range(0, n, size)]
