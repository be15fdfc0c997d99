"""Weights of rows: read, checked, and what they do to class priors and risks."""

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from comes.answers import Answers
from comes.errors import ComesError
from comes.training.gradients import Risk

Array = npt.NDArray[np.float64]


def read_weight(sample_weight: Any, n: int) -> Array | None:
    """Return the weights of n rows; None where none are given."""
    if sample_weight is None:
        return None
    try:
        weight = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.full(1, np.nan)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ComesError(
            f"sample_weight must hold one number for each of the {n} rows; got shape "
            f"{np.shape(sample_weight)}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        wrong = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise ComesError(
            f"sample_weight must be finite numbers of at least 0; got {weight[wrong]:g} for row "
            f"{wrong}. Set what should not count to 0."
        )
    if not weight.any():
        raise ComesError("sample_weight must be above 0 for some row; got zero for all of them.")
    return weight


def check_takes_weight(risk: Any) -> None:
    """Raise an error if a risk of the user's own has no third argument for weights."""
    try:
        inspect.signature(risk).bind(None, None, None)
    except TypeError:
        raise ComesError(
            "sample_weight needs a risk of your own that takes the weights of the rows as its "
            "third argument, risk(scores, candidates, sample_weight); yours takes two. Add it, or "
            "leave sample_weight out."
        ) from None
    except ValueError:  # has no signature to look at
        return


def with_weight(risk: Risk, weight: Array | None, device: torch.device) -> Risk:
    """Return the risk of rows with these weights as a function of scores and answers."""
    if weight is None:
        return risk
    own = torch.tensor(weight, device=device).float()

    def weighted(scores: Tensor, seen: Tensor) -> Tensor:
        return risk(scores, seen, own)

    return weighted


def carry_prior(prior: Array, answers: Answers, weight: Array) -> Array:
    """Return the class prior of weighted rows, given that of the same rows without weights.

    Whether a pair is asked about, and what is said if it is relevant or not, does not depend on
    the weight of its row. So the share of "no" is in proportion to 1 - pi, and that of "yes" to
    pi, with weights and without; where both are said, their sum is made 1.
    """
    fair = answers.without_chosen()
    asked = np.ones(answers.shape, bool) if fair.asked is None else fair.asked
    of_asked = _grow(asked, weight)
    irrelevant = (1 - prior) * _grow(fair.excluded, weight) / of_asked
    relevant = prior * _grow(fair.confirmed, weight) / of_asked
    says_no, says_yes = fair.excluded.any(axis=0), fair.confirmed.any(axis=0)
    both = relevant / np.maximum(relevant + irrelevant, np.finfo(float).tiny)
    carried = np.where(says_no & says_yes, both, np.where(says_yes, relevant, 1 - irrelevant))
    return np.asarray(np.where(says_no | says_yes, np.clip(carried, 0, 1), prior))


def _grow(mask: npt.NDArray[np.bool_], weight: Array) -> Array:
    """Return how much larger the share of rows in a mask is with weights; 1 for no rows, (q,)."""
    plain, weighted = mask.mean(axis=0), (weight @ mask) / weight.sum()
    return np.where(plain > 0, weighted / np.where(plain > 0, plain, 1), 1.0)
