"""What every risk checks of its arguments, and means over rows that have weights.

Shapes and types are always checked. Numbers are read only where that costs next to nothing
(`may_read`): reading one from a GPU would stop it at every step, and neither `torch.compile` nor
`torch.vmap` can branch on it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError

# As plain numbers, since torch.compile compares no tensor with an enumeration.
NOT_ASKED, NO, YES, MAYBE = (
    int(state) for state in (State.NOT_ASKED, State.NO, State.YES, State.MAYBE)
)
SMALLEST_WEIGHT = 1e-30  # of all rows of a batch: no division by 0 where all weigh nothing


class NotFiniteError(ComesError):
    """Scores that are NaN or infinite, as those of a network whose training diverged."""


def check_batch(
    scores: Any,
    targets: Any,
    sample_weight: Any = None,
    *,
    states: bool = False,  # whether int8 targets are allowed, `comes.answers.State`
    evidence: bool = False,  # whether float targets are allowed, `comes.answers.answer_evidence`
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return scores in float32 or float64, targets of their shape and weights, or raise."""
    scores = as_tensor(scores, "scores")
    targets = as_tensor(targets, "candidates or answers")
    if targets.device != scores.device:
        targets = targets.to(scores.device)
    if scores.ndim != 2 or targets.shape != scores.shape:
        raise ComesError(
            "scores and candidates or answers must be two matrices of one shape (n, q); "
            f"got {tuple(scores.shape)} and {tuple(targets.shape)}."
        )
    if not (
        targets.dtype == torch.bool
        or (states and targets.dtype == torch.int8)
        or (evidence and targets.is_floating_point())
    ):
        others = (", or int8 (comes.answers.State)" if states else "") + (
            ", or float (evidence)" if evidence else ""
        )
        raise ComesError(
            f"candidates must be bool, True where a label is still possible{others}; got "
            f"{targets.dtype}. Call candidates.bool()."
        )
    scores, weight = check_scores(scores), check_weight(sample_weight, "sample_weight")
    if weight is not None and weight.shape != scores.shape[:1]:
        raise ComesError(
            f"sample_weight must hold one number for each of {scores.shape[0]} rows; got shape "
            f"{tuple(weight.shape)}."
        )
    return scores, targets, None if weight is None else weight.to(scores)


def check_scores(scores: Tensor) -> Tensor:
    """Return scores in float32 or float64; raise an error if one is NaN or infinite."""
    if scores.dtype not in (torch.float32, torch.float64):  # half precision, from autocast
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if not may_read(scores) or math.isfinite(scores.detach().sum()):
        return scores
    wrong = (~scores.detach().isfinite()).nonzero()
    if len(wrong):  # the sum of large scores can be infinite too
        row, label = wrong[0].tolist()
        raise NotFiniteError(
            f"scores must be finite; got {scores[row, label].item()} at row {row}, label {label} "
            f"({len(wrong)} of {scores.numel()} are not). Lower the learning rate, scale the "
            "features, or look for NaN in them."
        )
    return scores


def value_or_nan(risk: Callable[..., Tensor], scores: Tensor, targets: Any) -> float:
    """Return the value of a risk; NaN if the scores are not finite."""
    try:
        return float(risk(scores, targets))
    except NotFiniteError:
        return math.nan


def check_weight(values: Any, name: str) -> Tensor | None:
    """Return weights of rows or labels as a tensor if all are 0 or more; None stays None."""
    if values is None:
        return None
    weight = as_tensor(values, name)
    if may_read(weight) and not (weight >= 0).all():
        raise ComesError(
            f"{name} must be 0 or more; got {weight.flatten()[:8].tolist()}. A row or label of "
            "weight 2 counts twice."
        )
    return weight


def check_rate(values: Any, name: str, *, is_below_1: bool = False) -> Tensor:
    """Return class priors, rates or shares as a tensor if all are in [0, 1], (q,), or raise."""
    rate = as_tensor(values, name)
    is_right = rate.ndim == 1
    if is_right and may_read(rate) and len(rate) > 0:
        low, high = (end.item() for end in rate.aminmax())  # NaN if any is: no comparison is true
        is_right = low >= 0 and (high < 1 if is_below_1 else high <= 1)
    if not is_right:
        raise ComesError(
            f"{name} must hold one number in [0, 1{')' if is_below_1 else ']'} for each label; got "
            f"shape {tuple(rate.shape)} with values {rate.flatten()[:8].tolist()}."
        )
    return rate


def check_optional_rate(values: Any, name: str) -> Tensor | None:
    """Return `check_rate`; None stays None."""
    return None if values is None else check_rate(values, name)


def check_width(scores: Tensor, **per_label: Tensor | None) -> None:
    """Raise an error unless every value per label, under its name, is given for each label."""
    q = scores.shape[-1]
    for name, values in per_label.items():
        if values is not None and values.shape != (q,):
            raise ComesError(
                f"scores for {q} labels need a {name} of shape {(q,)}; got {tuple(values.shape)}."
            )


def check_callable(function: object, name: str) -> None:
    """Raise an error unless what is given as a loss can be called."""
    if not callable(function):
        raise ComesError(
            f"{name} must be a function, such as comes.risks.logistic_loss; got {function!r}. Pass "
            "the function, not its name."
        )


def may_read(values: Tensor) -> bool:
    """Return whether values can be read at once: not on a GPU, nor where torch traces code."""
    traced = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
    return values.device.type == "cpu" and not traced


def as_tensor(values: Any, name: str) -> Tensor:
    """Return a tensor, or an array or list of numbers as one; raise an error for anything else."""
    if isinstance(values, Tensor):
        return values
    try:
        return torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError, RuntimeError):
        raise ComesError(
            f"{name} must be a tensor or an array of numbers; got {type(values).__name__}. Call "
            "torch.as_tensor on its values."
        ) from None


def excluded_mask(targets: Tensor, scores: Tensor) -> Tensor:
    """Return 1 where a label is excluded, 0 elsewhere, in the precision of the scores."""
    excluded = ~targets if targets.dtype == torch.bool else targets == NO
    return excluded.to(scores.dtype)


def scale_excluded(
    n_rows: Tensor,  # n, ()
    n_excluded: Tensor,  # n_j, (q,)
    class_prior: Tensor,  # pi, (q,)
    exclude_share: Tensor | None,  # n_j / n of the whole data set, (q,)
) -> tuple[Tensor, Tensor]:
    """Return (1 - pi_j) / n_j, or 0 where n_j = 0, and whether n_j > 0, each of shape (q,).

    n_j is the batch's count, or the data set's share times the batch size.
    """
    if exclude_share is not None:
        n_excluded = exclude_share.to(n_excluded) * n_rows
    any_excluded = n_excluded > 0
    per_excluded = (1 - class_prior.to(n_excluded)) / torch.where(any_excluded, n_excluded, 1)
    return torch.where(any_excluded, per_excluded, 0), any_excluded


def count_rows(scores: Tensor, weight: Tensor | None) -> Tensor:
    """Return n, or the sum of the weights, (): a row of weight 2 counts as two rows."""
    return scores.new_full((), scores.shape[0]) if weight is None else weight.sum()


def times_weight(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return every row of (n, q) times its weight."""
    return values if weight is None else values * weight[:, None]


def mean_of_rows(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over rows, a row of weight 2 counted twice; (q,) for (n, q), () for (n,)."""
    if weight is None:
        return values.mean(dim=0)
    columns = weight if values.ndim == 1 else weight[:, None]
    return (columns * values).sum(dim=0) / weight.sum().clamp(min=SMALLEST_WEIGHT)


def mean_of_pairs(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over rows, a row of weight 2 counted twice, and over labels, ()."""
    return values.mean() if weight is None else mean_of_rows(values, weight).mean()
