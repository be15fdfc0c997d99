r"""The excluded entries of a batch: their mask, and their weight :math:`(1 - \pi_j) / n_j`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError

SMALLEST_WEIGHT = 1e-30  # of all rows of a batch: no division by 0 where all weigh nothing


def check_batch(scores: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores and candidates as tensors of one shape (n, q), or raise an error.

    Candidates must be bool. Either may be an array of numpy.
    """
    scores, candidates = as_tensors(scores, candidates)
    if scores.ndim != 2 or candidates.shape != scores.shape:
        raise ComesError(
            "scores and candidates must be two matrices of one shape (n, q); "
            f"got {tuple(scores.shape)} and {tuple(candidates.shape)}."
        )
    if candidates.dtype != torch.bool:
        raise ComesError(
            f"candidates must be bool, True where a label is still possible; got "
            f"{candidates.dtype}. Call candidates.bool()."
        )
    return scores, candidates


def as_tensors(scores: Any, answers: Any) -> tuple[Tensor, Tensor]:
    """Return scores and what was said as tensors on the device of the scores."""
    scores = as_tensor(scores, "scores")
    return scores, as_tensor(answers, "candidates or answers").to(scores.device)


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


def optional_tensor(values: Any, name: str) -> Tensor | None:
    """Return `as_tensor`, and None for None."""
    return None if values is None else as_tensor(values, name)


def check_states(scores: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores, and candidates or states in their shape, as tensors; or raise an error."""
    scores, answers = as_tensors(scores, answers)
    if answers.dtype == torch.int8 and answers.shape == scores.shape and scores.ndim == 2:
        return scores, answers
    return check_batch(scores, answers)


def check_answers(scores: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores, and candidates, states or leanings in their shape, as tensors; or raise."""
    scores, answers = as_tensors(scores, answers)
    if scores.ndim != 2 or answers.shape != scores.shape:
        raise ComesError(
            "scores and answers must be two matrices of one shape (n, q); "
            f"got {tuple(scores.shape)} and {tuple(answers.shape)}."
        )
    if answers.dtype not in (torch.bool, torch.int8) and not answers.is_floating_point():
        raise ComesError(
            "answers must be bool (candidates), int8 (comes.answers.State) or float (leanings); "
            f"got {answers.dtype}."
        )
    return scores, answers


def check_weight(scores: Tensor, sample_weight: Tensor | None) -> Tensor | None:
    """Return the weights of the rows in the precision of the scores, (n,); None stays None."""
    if sample_weight is None:
        return None
    weight = as_tensor(sample_weight, "sample_weight")
    if weight.shape != scores.shape[:1]:
        raise ComesError(
            f"sample_weight must hold one number for each of {scores.shape[0]} rows; got shape "
            f"{tuple(weight.shape)}."
        )
    check_weights(weight, "sample_weight")
    return weight.to(scores.device, torch.promote_types(scores.dtype, torch.float32))


def check_weights(weight: Tensor | None, name: str) -> None:
    """Raise an error if a weight is below 0, where reading it does not stop a device."""
    if weight is not None and may_read(weight) and not (weight >= 0).all():
        raise ComesError(
            f"{name} must be 0 or more; got {weight.flatten()[:8].tolist()}. A row or label of "
            "weight 2 counts twice."
        )


def may_read(values: Tensor) -> bool:
    """Return whether values can be read at once: not on a GPU, nor where torch traces code."""
    traced = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
    return values.device.type == "cpu" and not traced


def check_callable(function: object, name: str) -> None:
    """Raise an error unless what is given as a loss can be called."""
    if not callable(function):
        raise ComesError(
            f"{name} must be a function, such as those of comes.losses; got {function!r}. Pass the "
            "function, not its name."
        )


def count_rows(scores: Tensor, weight: Tensor | None) -> Tensor:
    """Return n, or the sum of the weights, (): a row of weight 2 counts as two rows."""
    return scores.new_full((), scores.shape[0]) if weight is None else weight.sum()


def times_weight(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return every row of (n, q) times its weight."""
    return values if weight is None else values * weight[:, None]


def mean_of_rows(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over rows, a row of weight 2 counted twice, and over labels, ()."""
    if weight is None:
        return values.mean()
    return mean_of_each(values, weight).mean()


def mean_of_each(values: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over rows, a row of weight 2 counted twice, (q,) for values (n, q)."""
    if weight is None:
        return values.mean(dim=0)
    columns = weight if values.ndim == 1 else weight[:, None]
    return (columns * values).sum(dim=0) / weight.sum().clamp(min=SMALLEST_WEIGHT)


def check_width(scores: Tensor, **of_labels: Tensor | None) -> None:
    """Raise an error unless what is given by label, under its name, is given for each label."""
    q = scores.shape[-1]
    for name, values in of_labels.items():
        if values is not None and values.shape != (q,):
            raise ComesError(
                f"scores for {q} labels need a {name} of shape {(q,)}; got {tuple(values.shape)}."
            )


def in_full_precision(scores: Tensor) -> Tensor:
    """Return half-precision scores (from autocast) as float32, others unchanged."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def excluded_mask(candidates: Tensor, scores: Tensor) -> Tensor:
    """Return 1 where a label is excluded, 0 elsewhere, in the precision of the scores."""
    excluded = ~candidates if candidates.dtype == torch.bool else candidates == State.NO
    return excluded.to(scores.dtype)


def asked_mask(answers: Tensor, scores: Tensor) -> Tensor | None:
    """Return 1 where somebody was asked, 0 elsewhere; None for candidates, which do not say so."""
    return None if answers.dtype == torch.bool else (answers != State.NOT_ASKED).to(scores.dtype)


def excluded_weight(
    n_rows: Tensor,  # n, ()
    n_excluded: Tensor,  # n_j, (q,)
    class_prior: Tensor,  # pi, (q,)
    exclude_share: Tensor | None,  # n_j / n of the whole data set, (q,)
) -> tuple[Tensor, Tensor]:
    """Return (1 - pi_j) / n_j and whether anything excludes label j, each of shape (q,).

    n_j is the batch's own count, or the data set's share times the batch size.
    """
    class_prior = as_tensor(class_prior, "class_prior")
    exclude_share = optional_tensor(exclude_share, "exclude_share")
    check_width(n_excluded, class_prior=class_prior, exclude_share=exclude_share)
    if exclude_share is not None:
        n_excluded = exclude_share.to(n_excluded) * n_rows
    any_excluded = n_excluded > 0
    weight = (1 - class_prior.to(n_excluded)) / torch.where(any_excluded, n_excluded, 1)
    return torch.where(any_excluded, weight, 0), any_excluded


def check_share(share: Tensor | None, name: str) -> Tensor | None:
    """Return `check_prior` of a share of all rows, and None for None."""
    return None if share is None else check_prior(share, name)


def check_prior(class_prior: Tensor, name: str = "class_prior") -> Tensor:
    """Return the class prior, or rates, if it is a vector of numbers in [0, 1], else raise.

    Numbers on a GPU are not read, which would stop it at every step.
    """
    class_prior = as_tensor(class_prior, name)
    is_wrong = class_prior.ndim != 1
    if not is_wrong and may_read(class_prior):
        is_wrong = not ((class_prior >= 0) & (class_prior <= 1)).all()
    if is_wrong:
        raise ComesError(
            f"{name} must hold one number in [0, 1] for each label; got "
            f"shape {tuple(class_prior.shape)} with values {class_prior.flatten()[:8].tolist()}."
        )
    return class_prior
