r"""Sums of a smooth function over all pairs of labels of a row, in time linear in their number.

.. math:: \sum_k o_k f(g_j - g_k) \approx \sum_r B_r(g_j) \sum_t K_{rt} \sum_k o_k B_t(g_k)

As long as the scores of a row lie in an interval of width w, f(g_j - g_k) is a polynomial in
either score, of about 2 w terms to float32 rounding. The labels of a row then enter as that many
moments, one small matrix K turns moments into coefficients, and nothing of shape (n, q, q) is
ever formed. Two choices make the terms few and cheap:

- The polynomials are in :math:`x = \sin(\alpha g) / \sin(\alpha w / 2)` instead of g. This moves
  nodes from the ends of the interval to its middle and saves a third of the terms.
- :math:`B_{2 k + r} = T_{2 k}(x) \, T_r(x)` for r = 0, 1, where T are Chebyshev polynomials,
  :math:`T_k(\cos\theta) = \cos(k \theta)`. So only every second one is computed and kept.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Function = Callable[[Tensor], Tensor]


def _sigmoid_slope(z: Tensor) -> Tensor:
    return torch.sigmoid(z) * torch.sigmoid(-z)


# Functions that can be summed, with their derivatives: no singularity is nearer than i pi.
SLOPES: Mapping[Function, Function] = {
    torch.sigmoid: _sigmoid_slope,
    F.softplus: torch.sigmoid,
    torch.exp: torch.exp,
}


class Precision(NamedTuple):
    """The terms that it takes to be exact to the rounding of a floating-point type."""

    per_width: float  # An interval of width w takes per_width w + least terms,
    least: int
    most: int  # but at most this many: at the ends of wide intervals x hardly depends on g.
    flat: float  # At this distance from 0 the sigmoid is 0 or 1.


PRECISION = {
    torch.float32: Precision(1.8, 6, 128, 20.0),
    torch.float64: Precision(3.4, 16, 256, 40.0),
}
WIDTHS_PER_DOUBLING = 8  # widths are rounded up to powers of 2^(1/8), so that expansions recur
NUMBERS_AT_ONCE = {"cpu": 2**21, "cuda": 2**27}  # more are made in parts, again for the gradient


def limit(of_device: Mapping[str, int], device: torch.device) -> int:
    """Return the limit for a device."""
    return of_device["cuda" if device.type == "cuda" else "cpu"]


class Centred(NamedTuple):
    """Scores shifted so that every row lies around 0, in an interval of the width of a level."""

    points: Tensor  # (n, q)
    level: int


def centre(scores: Tensor, function: Function) -> Centred | None:
    """Return the scores as `sum_over_smooth_pairs` needs them; None if they lie too far apart."""
    for points in _yield_closer(scores.detach(), function):
        lowest = points.amin(dim=1, keepdim=True)
        spread = points.amax(dim=1, keepdim=True) - lowest
        width = float(spread.max())
        if not math.isfinite(width):
            return None
        level = _find_level(width)
        # More terms than labels would save nothing.
        if count_terms(level, points.dtype) <= min(points.shape[1], PRECISION[points.dtype].most):
            return Centred((points - lowest).sub_(spread, alpha=0.5), level)
    return None


def _yield_closer(scores: Tensor, function: Function) -> Iterator[Tensor]:
    """Yield the scores, then without the gaps across which the function does not change."""
    yield scores
    if function is torch.sigmoid:
        ordered, order = scores.double().sort(dim=1)
        steps = ordered.diff(dim=1, prepend=ordered[:, :1]).clamp(max=PRECISION[scores.dtype].flat)
        yield torch.empty_like(scores).scatter_(1, order, steps.cumsum(dim=1).to(scores.dtype))


def sum_over_smooth_pairs(
    scores: Tensor,  # g, float32 or float64, (n, q)
    centred: Centred,  # of these scores
    excluded: Tensor,  # e, (n, q), without gradient
    function: Function,  # f, a key of SLOPES
    others: Tensor | None = None,  # o, (n, q), without gradient; 1 by default
) -> Tensor:
    """Return sum_i e_ij sum_k o_ik f(g_ij - g_ik), k = j included, for every label j, (q,).

    The error is the rounding of the largest terms, if products of float32 matrices are exact to
    float32 (on a GPU with TF32 they are not). The sums cannot be differentiated twice.
    """
    sums: Tensor = _PairSums.apply(scores, centred, excluded, function, others)  # type: ignore[no-untyped-call]
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
    """Return the number of terms, which is even, for the width of a level."""
    precision = PRECISION[dtype]
    return 2 * math.ceil((precision.per_width * _measure_width(level) + precision.least) / 2)


def _measure_width(level: int) -> float:
    """Return the width of a level."""
    return float(2 ** (level / WIDTHS_PER_DOUBLING))


def _find_level(width: float) -> int:
    """Return the level that is at least this wide, with a margin for the rounding of scores."""
    return math.ceil(WIDTHS_PER_DOUBLING * math.log2(max(1.0, 1.0001 * width)))


@lru_cache(maxsize=128)
def expand(function: Function, level: int, dtype: torch.dtype, device: torch.device) -> Expansion:
    """Return the expansion of a function for the width of a level."""
    width, n_terms = _measure_width(level), count_terms(level, dtype)
    half_angle = math.pi / 2 * width / (width + 5)  # by trial, nearly the best for any width
    theta = (torch.arange(n_terms, dtype=torch.float64) + 0.5) * math.pi / n_terms
    x = torch.cos(theta)
    g = torch.asin(x * math.sin(half_angle)) * (width / 2 / half_angle)
    even = 2 * torch.arange(n_terms // 2)
    T_even = torch.cos(even[:, None] * theta)
    to_terms = torch.linalg.inv(torch.stack([T_even, T_even * x], dim=1).flatten(0, 1))
    K = to_terms.T @ function(g[:, None] - g) @ to_terms
    D = to_terms.T @ SLOPES[function](g[:, None] - g) @ to_terms
    return Expansion(
        alpha=2 * half_angle / width,
        end=math.sin(half_angle),
        frequencies=torch.cat([torch.arange(2), even])[:, None].to(device, dtype),
        to_both=torch.cat([_order_by_r(K.T), _order_by_r(D.T)], dim=1).to(device, dtype),
        to_slope=_order_by_r(D).to(device, dtype),
    )


def _order_by_r(matrix: Tensor) -> Tensor:
    """Return the columns ordered by r, then k."""
    return matrix.reshape(len(matrix), -1, 2).transpose(1, 2).flatten(1)


def _compute_cosines(points: Tensor, expansion: Expansion, buffer: Tensor | None = None) -> Tensor:
    """Return T_0, T_1, and T_0, T_2, T_4, ... at every score, (n, 2 + n_terms / 2, q)."""
    theta = (points * expansion.alpha).sin_().div_(expansion.end).acos_()
    out = None if buffer is None else buffer[: len(points)]
    return torch.mul(expansion.frequencies, theta[:, None], out=out).cos_()


def _compute_moments(weights: Tensor | None, cosines: Tensor) -> Tensor:
    """Return the weighted sums of every B over the labels of a row, (n, n_terms)."""
    low = cosines[:, :2] if weights is None else cosines[:, :2] * weights[:, None]
    return torch.bmm(cosines[:, 2:], low.mT).flatten(1)


def _evaluate(coefficients: Tensor, cosines: Tensor) -> Tensor:
    """Return functions of coefficients (n, functions n_terms) at the scores, (n, functions, q)."""
    n, _, q = cosines.shape
    high = cosines[:, 2:]
    by_r = torch.bmm(coefficients.view(n, -1, high.shape[1]), high).view(n, -1, 2, q)
    return torch.addcmul(by_r[:, :, 0], by_r[:, :, 1], cosines[:, 1:2])


class _PairSums(torch.autograd.Function):
    """The sums of `sum_over_smooth_pairs` and their gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        centred: Centred,
        excluded: Tensor,
        function: Function,
        others: Tensor | None,
    ) -> Tensor:
        """Return the sums; keep the cosines for the gradient if all of them fit into memory."""
        points, level = centred
        ctx.expansion = expansion = expand(function, level, scores.dtype, scores.device)
        both, cosines = [], None
        with _switch_autocast_off(scores):
            for rows, buffer in _split_rows(points, expansion):
                cosines = _compute_cosines(points[rows], expansion, buffer)
                moments = _compute_moments(None if others is None else others[rows], cosines)
                both.append(_evaluate(moments @ expansion.to_both, cosines))
        sums, slopes = (both[0] if len(both) == 1 else torch.cat(both)).unbind(1)
        kept = cosines if len(both) == 1 else None
        ctx.save_for_backward(excluded, others, slopes, points, kept)
        return (excluded * sums).sum(dim=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        excluded, others, slopes, points, kept = ctx.saved_tensors
        weights, expansion = excluded * gradient, ctx.expansion
        parts = []
        with _switch_autocast_off(gradient):
            for rows, buffer in _split_rows(points, expansion):
                cosines = kept
                if cosines is None:
                    cosines = _compute_cosines(points[rows], expansion, buffer)
                coefficients = _compute_moments(weights[rows], cosines) @ expansion.to_slope
                parts.append(_evaluate(coefficients, cosines)[:, 0])
        # As the other label of a pair, j receives sum_m weight_m f'(g_m - g_j).
        received = parts[0] if len(parts) == 1 else torch.cat(parts)
        if others is not None:
            received = received * others
        return torch.addcmul(-received, weights, slopes), None, None, None, None


def _switch_autocast_off(tensor: Tensor) -> AbstractContextManager[Any]:
    """Switch autocast off if it is on; asking costs less than switching."""
    kind = tensor.device.type
    on = torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


def _split_rows(points: Tensor, expansion: Expansion) -> Iterator[tuple[slice, Tensor | None]]:
    """Yield parts of the rows whose cosines fit into memory at once, and a buffer for them."""
    n, q = points.shape
    n_cosines = len(expansion.frequencies)
    size = max(1, limit(NUMBERS_AT_ONCE, points.device) // (n_cosines * q))
    if size >= n:
        yield slice(n), None
        return
    buffer = points.new_empty(size, n_cosines, q)
    yield from ((slice(start, start + size), buffer) for start in range(0, n, size))
