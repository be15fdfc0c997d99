r"""Sums over all pairs of labels of a row.

For every label j,

.. math:: \sum_i e_{ij} \sum_k o_{ik} \, f(g_{ij} - g_{ik})

with ``scores`` :math:`g`, weights ``excluded`` :math:`e` of the label that should score lower,
weights ``others`` :math:`o` of the other one, and ``pair_loss`` :math:`f`. For few labels all
differences are formed, some at a time if they do not fit into memory.

For many labels and a smooth f the sum over k takes time linear in the number of labels:

.. math:: \sum_k o_k f(g_j - g_k) \approx \sum_r B_r(g_j) \sum_t K_{rt} \sum_k o_k B_t(g_k)

As long as the scores of a row lie in an interval of width w, f(g_j - g_k) is a polynomial in
either score, of about 2 w terms to float32 rounding. The labels of a row then enter as that many
moments, one small matrix K turns moments into coefficients, and nothing of shape (n, q, q) is
ever formed. Two choices make the terms few and cheap:

- The polynomials are in :math:`x = \sin(\alpha g) / \sin(\alpha w / 2)` instead of g. This moves
  nodes from the ends of the interval to its middle and saves a third of the terms.
- :math:`B_{4 k + r} = T_{4 k}(x) \, T_r(x)` for r < 4, where T are Chebyshev polynomials,
  :math:`T_{m + n} = 2 T_m T_n - T_{m - n}`. So only these are computed and kept, each in one
  operation.

Rows are taken in parts that stay in the cache. Of a part only its coefficients are kept.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Function = Callable[[Tensor], Tensor]

# From this many labels on, smooth functions are summed in linear time: benchmarks/pair_sums.py.
MANY_LABELS = {"cpu": 64, "cuda": 1000}
# Score differences held at a time: 16 and 256 MiB of float32.
DIFFERENCES_AT_ONCE = {"cpu": 2**22, "cuda": 2**26}
# Numbers of a basis held at a time; more are made in parts, again for the gradient.
NUMBERS_AT_ONCE = {"cpu": 2**21, "cuda": 2**27}


def sum_over_pairs(
    scores: Tensor,  # g, float32 or float64, (n, q)
    excluded: Tensor,  # e, weight of label j as the one that should score lower, (n, q)
    pair_loss: Function,  # f, of g_j - g_k, elementwise
    others: Tensor | None = None,  # o, weight of label k as the other one, (n, q); 1 by default
) -> Tensor:
    """Return sum_i e_ij sum_k o_ik f(g_ij - g_ik) for every label j, (q,).

    The sum includes k = j, for which the difference is 0.
    """
    n, q = scores.shape
    is_smooth = any(pair_loss is function for function in SLOPES) and scores.dtype in PRECISION
    if is_smooth and n > 0 and choose_pair_sums(n, q, scores.device) == "in linear time":
        centred = centre(scores, pair_loss)
        if centred is not None:
            return sum_in_linear_time(scores, centred, excluded, pair_loss, others)

    def sum_columns(columns: slice) -> Tensor:
        losses = pair_loss(scores[:, columns, None] - scores[:, None, :])  # (n, columns, q)
        if others is not None:
            losses = losses * others[:, None, :]
        return (excluded[:, columns] * losses.sum(dim=2)).sum(dim=0)

    width = max(1, _limit(DIFFERENCES_AT_ONCE, scores.device) // max(1, n * q))
    if width >= q:
        return sum_columns(slice(0, q))
    # Differences are recomputed for the gradient, so that never all of them are in memory.
    recompute = partial(checkpoint, sum_columns, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([recompute(slice(start, start + width)) for start in range(0, q, width)])


def choose_pair_sums(
    n: int, q: int, device: torch.device
) -> Literal["whole", "in parts", "in linear time"]:
    """Return how a risk of pairs is computed for a batch of n rows and q labels on a device.

    "whole" forms all n * q * q differences of scores, "in parts" some at a time. "in linear time"
    forms none, and reads a number back from the device; it applies to the smooth losses.
    """
    if q >= MANY_LABELS.get(device.type, math.inf):
        return "in linear time"
    return "whole" if n * q * q <= _limit(DIFFERENCES_AT_ONCE, device) else "in parts"


def _limit(per_device: Mapping[str, int], device: torch.device) -> int:
    return per_device["cuda" if device.type == "cuda" else "cpu"]


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
N_LOW = 4  # r < N_LOW
WIDTHS_PER_DOUBLING = 8  # widths are rounded up to powers of 2^(1/8), so that expansions recur


class Centred(NamedTuple):
    """Scores of which every row lies in an interval of width 2^(level / 8)."""

    scores: Tensor  # (n, q)
    lowest: Tensor  # of each row, (n, 1)
    spread: Tensor  # from the lowest to the highest of each row, (n, 1)
    level: int


def centre(scores: Tensor, function: Function) -> Centred | None:
    """Return the scores as `sum_in_linear_time` needs them; None if they lie too far apart."""
    for points in _yield_closer(scores.detach(), function):
        lowest = points.amin(dim=1, keepdim=True)  # with amax, faster than aminmax
        spread = points.amax(dim=1, keepdim=True) - lowest
        width = float(spread.max())
        if not math.isfinite(width):
            return None
        # At least this wide, with a margin for the rounding of scores.
        level = math.ceil(WIDTHS_PER_DOUBLING * math.log2(max(1.0, 1.0001 * width)))
        # More terms than labels would save nothing.
        if count_terms(level, points.dtype) <= min(points.shape[1], PRECISION[points.dtype].most):
            return Centred(points, lowest, spread, level)
    return None


def _yield_closer(scores: Tensor, function: Function) -> Iterator[Tensor]:
    """Yield the scores, then without the gaps across which the function does not change."""
    yield scores
    if function is torch.sigmoid:
        ordered, order = scores.double().sort(dim=1)
        steps = ordered.diff(dim=1, prepend=ordered[:, :1]).clamp(max=PRECISION[scores.dtype].flat)
        yield torch.empty_like(scores).scatter_(1, order, steps.cumsum(dim=1).to(scores.dtype))


def count_terms(level: int, dtype: torch.dtype) -> int:
    """Return the number of terms, a multiple of `N_LOW`, for the width of a level."""
    precision = PRECISION[dtype]
    width = 2 ** (level / WIDTHS_PER_DOUBLING)
    return N_LOW * math.ceil((precision.per_width * width + precision.least) / N_LOW)


def sum_in_linear_time(
    scores: Tensor,  # g, float32 or float64, (n, q)
    centred: Centred,  # of these scores
    excluded: Tensor,  # e, (n, q), without gradient
    function: Function,  # f, a key of SLOPES
    others: Tensor | None = None,  # o, (n, q), without gradient; 1 by default
) -> Tensor:
    """Return `sum_over_pairs` for a smooth function.

    The error is the rounding of the largest terms, if products of float32 matrices are exact to
    float32 (on a GPU with TF32 they are not). The sums cannot be differentiated twice.
    """
    sums: Tensor = _LinearSums.apply(scores, centred, excluded, function, others)  # type: ignore[no-untyped-call]
    return sums


class _LinearSums(torch.autograd.Function):
    """The sums, moments by coefficients of every row, and their gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        centred: Centred,
        excluded: Tensor,
        function: Function,
        others: Tensor | None,
    ) -> Tensor:
        """Return the sums; keep the basis for the gradient if all of it fits into memory."""
        ctx.level = centred.level
        ctx.expansion = expansion = expand(function, centred.level, scores.dtype, scores.device)
        sums, slope_coefficients = [], []
        with _switch_autocast_off(scores):
            parts, basis_memory, term_memory = _split_rows(scores, expansion, n_functions=1)
            for rows in parts:
                basis = _compute_basis(centred, rows, expansion, basis_memory)
                moments = _compute_moments(None if others is None else others[rows], basis)
                of_sum, of_slope = (moments @ expansion.to_both).chunk(2, dim=1)
                slope_coefficients.append(of_slope)
                values = _evaluate(of_sum, basis, term_memory)[:, 0].mul_(excluded[rows])
                sums.append(values.sum(dim=0))
        is_whole = len(parts) == 1
        ctx.save_for_backward(
            *(centred.scores, centred.lowest, centred.spread, excluded, others),
            slope_coefficients[0] if is_whole else torch.cat(slope_coefficients),
            basis_memory if is_whole else None,
        )
        return sums[0] if is_whole else torch.stack(sums).sum(dim=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scores, lowest, spread, excluded, others, slope_coefficients, kept = ctx.saved_tensors
        centred, expansion = Centred(scores, lowest, spread, ctx.level), ctx.expansion
        result = torch.empty_like(scores)
        with _switch_autocast_off(gradient):
            parts, memory, term_memory = _split_rows(scores, expansion, n_functions=2, kept=kept)
            for rows in parts:
                basis = kept
                if basis is None:
                    basis = _compute_basis(centred, rows, expansion, memory)
                weights = torch.mul(excluded[rows], gradient, out=result[rows])
                of_received = _compute_moments(weights, basis) @ expansion.to_received
                both = torch.cat([slope_coefficients[rows], of_received], dim=1)
                # As the other label of a pair, j receives sum_m weight_m f'(g_m - g_j).
                slopes, received = _evaluate(both, basis, term_memory).unbind(1)
                if others is not None:
                    received.mul_(others[rows])
                torch.addcmul(received, weights, slopes, out=weights)
        return result, None, None, None, None


class Expansion(NamedTuple):
    """f(g - h) = B(g)' K B(h) and f'(g - h) = B(g)' D B(h), for g and h in [-w / 2, w / 2].

    Moments are ordered by k, then r, of B_{4 k + r}; coefficients by r, then k.
    """

    alpha: float
    end: float  # sin(alpha w / 2)
    n_high: int  # of T_{4 k}
    to_both: Tensor  # moments to coefficients of the sum and its slope: K' and D' side by side
    to_received: Tensor  # moments of g to coefficients of the slope by h: -D


@lru_cache(maxsize=128)
def expand(function: Function, level: int, dtype: torch.dtype, device: torch.device) -> Expansion:
    """Return the expansion of a function for the width of a level."""
    width, n_terms = 2 ** (level / WIDTHS_PER_DOUBLING), count_terms(level, dtype)
    half_angle = math.pi / 2 * width / (width + 5)  # by trial, nearly the best for any width
    end = math.sin(half_angle)
    theta = (torch.arange(n_terms, dtype=torch.float64) + 0.5) * math.pi / n_terms
    sines = torch.cos(theta) * end
    g = torch.asin(sines) * (width / 2 / half_angle)
    basis = _allocate_basis(sines[None], n_terms // N_LOW)
    basis[2] = sines
    _complete_basis(basis, end)
    low, high = _split_basis(basis)
    to_terms = torch.linalg.inv((high[:, None] * low).flatten(0, 2))
    K = to_terms.T @ function(g[:, None] - g) @ to_terms
    D = to_terms.T @ SLOPES[function](g[:, None] - g) @ to_terms
    return Expansion(
        alpha=2 * half_angle / width,
        end=end,
        n_high=n_terms // N_LOW,
        to_both=torch.cat([_order_by_r(K.T), _order_by_r(D.T)], dim=1).to(device, dtype),
        to_received=_order_by_r(-D).to(device, dtype),
    )


def _order_by_r(matrix: Tensor) -> Tensor:
    """Return the columns ordered by r, then k."""
    return matrix.reshape(len(matrix), -1, N_LOW).transpose(1, 2).flatten(1)


def _split_rows(
    scores: Tensor, expansion: Expansion, n_functions: int, kept: Tensor | None = None
) -> tuple[list[slice], Tensor, Tensor]:
    """Return parts of the rows that fit into memory, and memory for the basis and terms of one."""
    n, q = scores.shape
    numbers_per_row = (expansion.n_high + 3 * N_LOW) * q
    size = min(n, max(1, _limit(NUMBERS_AT_ONCE, scores.device) // numbers_per_row))
    basis_memory = _allocate_basis(scores[:size], expansion.n_high) if kept is None else kept
    term_memory = scores.new_empty(size, n_functions * N_LOW, q)
    return [slice(start, start + size) for start in range(0, n, size)], basis_memory, term_memory


def _allocate_basis(scores: Tensor, n_high: int) -> Tensor:
    """Return memory for T_3, T_2, T_1, T_0, T_4, T_8, ... at scores (n, q), with T_0 computed."""
    memory = scores.new_empty(N_LOW - 1 + n_high, *scores.shape)
    memory[N_LOW - 1] = 1
    return memory


def _compute_basis(centred: Centred, rows: slice, expansion: Expansion, memory: Tensor) -> Tensor:
    """Return the basis at the scores of some rows, (N_LOW - 1 + n_high, n, q)."""
    shift = centred.spread[rows] * (-expansion.alpha / 2)
    basis = memory[:, : len(shift)]
    sines = torch.sub(centred.scores[rows], centred.lowest[rows], out=basis[2])
    torch.add(shift, sines, alpha=expansion.alpha, out=sines).sin_()
    _complete_basis(basis, expansion.end)
    return basis


def _complete_basis(basis: Tensor, end: float) -> None:
    """Compute the basis, up to the sign of each T, from x * end in the memory of T_1."""
    T_3, T_2, T_1, *high = basis.unbind()
    torch.addcmul(high[0], T_1, T_1, value=-2 / end**2, out=T_2)  # 1 - 2 x^2
    torch.addcmul(T_1, T_1, T_2, value=2, out=T_3)
    torch.addcmul(high[0], T_2, T_2, value=-2, out=high[1])
    for k in range(2, len(high)):
        sign = (-1) ** (k + 1)  # so that the one before the last is added, not subtracted
        torch.addcmul(high[k - 2], high[1], high[k - 1], value=2 * sign, out=high[k])


def _split_basis(basis: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors of B: T_3, T_2, T_1, T_0, and T_0, T_4, T_8, ..."""
    return basis[:N_LOW], basis[N_LOW - 1 :]


def _compute_moments(weights: Tensor | None, basis: Tensor) -> Tensor:
    """Return the weighted sums of every B over the labels of a row, (n, n_terms)."""
    low, high = _split_basis(basis)
    if weights is not None:
        low = low * weights
    return torch.bmm(high.transpose(0, 1), low.permute(1, 2, 0)).flatten(1)


def _evaluate(coefficients: Tensor, basis: Tensor, memory: Tensor) -> Tensor:
    """Return functions of coefficients (n, functions n_terms) at the scores, (n, functions, q)."""
    low, high = _split_basis(basis)
    n_high, n, q = high.shape
    by_r = torch.bmm(coefficients.view(n, -1, n_high), high.transpose(0, 1), out=memory[:n])
    *of_low, total = by_r.view(n, -1, N_LOW, q).unbind(2)
    for values, T_r in zip(of_low, low[:-1, :, None], strict=True):
        total.addcmul_(values, T_r)
    return total


def _switch_autocast_off(tensor: Tensor) -> AbstractContextManager[Any]:
    """Switch autocast off if it is on; asking costs less than switching."""
    kind = tensor.device.type
    on = torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()
