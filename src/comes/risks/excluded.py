r"""The excluded entries of a batch: their mask, and their weight :math:`(1 - \pi_j) / n_j`."""

import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError


def check_batch(scores: Tensor, candidates: Tensor) -> None:
    """Raise an error unless scores and candidates have one shape (n, q) and candidates are bool."""
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


def check_states(scores: Tensor, answers: Tensor) -> None:
    """Raise an error unless answers are candidates or states in the shape of scores."""
    if answers.dtype == torch.int8 and answers.shape == scores.shape and scores.ndim == 2:
        return
    check_batch(scores, answers)


def check_answers(scores: Tensor, answers: Tensor) -> None:
    """Raise an error unless answers are candidates, states or leanings in the shape of scores."""
    if not isinstance(answers, Tensor):
        raise ComesError(
            f"answers must be a tensor; got {type(answers).__name__}. Call torch.as_tensor."
        )
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
    check_width(n_excluded, class_prior=class_prior, exclude_share=exclude_share)
    if exclude_share is not None:
        n_excluded = exclude_share.to(n_excluded) * n_rows
    any_excluded = n_excluded > 0
    weight = (1 - class_prior.to(n_excluded)) / torch.where(any_excluded, n_excluded, 1)
    return torch.where(any_excluded, weight, 0), any_excluded


def check_prior(class_prior: Tensor, name: str = "class_prior") -> Tensor:
    """Return the class prior, or rates, if it is a vector of numbers in [0, 1], else raise."""
    if class_prior.ndim != 1 or not ((class_prior >= 0) & (class_prior <= 1)).all():
        raise ComesError(
            f"{name} must hold one number in [0, 1] for each label; got "
            f"shape {tuple(class_prior.shape)} with values {class_prior.flatten()[:8].tolist()}."
        )
    return class_prior
