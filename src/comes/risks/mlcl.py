r"""MLCL: the network predicts the excluded labels through a transition matrix.

With :math:`T_{jk}` the probability that label j is excluded if label k is relevant, the network's
probabilities :math:`\sigma(g_i)` predict the excluded labels as :math:`v_i = T \sigma(g_i)`:

.. math:: \frac{1}{nq} \sum_i \sum_j \mathrm{BCE}(v_{ij}, 1 - s_{ij})
    + \Big( \sum_i \sum_j (1 - s_{ij} - v_{ij})^2 \Big)^{1/2}

`comes.priors.estimate_transition` estimates T. The norm is over the whole batch and not squared.
The released code treats v as a logit in the first term, though it is a mixture of probabilities;
``as_released`` does the same.

References
----------
Gao, Xu and Zhang, "Complementary to Multiple Labels: A Correlation-Aware Correction Approach",
TPAMI 2024.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from comes.errors import ComesError
from comes.risks.excluded import (
    as_tensor,
    check_batch,
    check_weight,
    excluded_mask,
    in_full_precision,
    may_read,
    mean_of_rows,
    times_weight,
)

EPSILON = 1e-6  # v is kept this far from 0 and 1


def mlcl_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    transition: Tensor,  # T, columns sum to 1, (q, q)
    *,
    as_released: bool = False,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the MLCL risk of one batch.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    transition : float tensor of shape (n_labels, n_labels)
        Entry (j, k): the probability that label j is excluded if label k is relevant.
    as_released : bool
        Treat the predicted probabilities as logits, as the released code does.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows, also in the norm, which grows with the weights.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> mlcl_risk(torch.tensor([[9.0, -9.0]]), torch.tensor([[True, False]]), swapped)
    tensor(0.0003)
    """
    scores, candidates = check_batch(scores, candidates)
    weight = check_weight(scores, sample_weight)
    q = scores.shape[1]
    transition = as_tensor(transition, "transition")
    if transition.shape != (q, q):
        raise ComesError(
            f"scores for {q} labels need a transition matrix of shape {(q, q)}; got "
            f"{tuple(transition.shape)}."
        )
    _check_transition(transition)
    with torch.autocast(scores.device.type, enabled=False):  # the product also needs full precision
        scores = in_full_precision(scores)
        excluded = excluded_mask(candidates, scores)
        predicted = scores.sigmoid() @ transition.to(scores).T
        if as_released:
            entropy = F.binary_cross_entropy_with_logits(predicted, excluded, reduction="none")
        else:
            inside = predicted.clamp(EPSILON, 1 - EPSILON)
            entropy = F.binary_cross_entropy(inside, excluded, reduction="none")
        squares = times_weight((excluded - predicted).square(), weight)
        return mean_of_rows(entropy, weight) + squares.sum().clamp(min=EPSILON**2).sqrt()


def _check_transition(transition: Tensor) -> None:
    """Raise an error unless all entries are probabilities, where reading does not stop a device."""
    if may_read(transition) and not ((transition >= 0) & (transition <= 1)).all():
        raise ComesError(
            "transition must hold probabilities, in [0, 1]; got values from "
            f"{float(transition.min()):g} to {float(transition.max()):g}. Estimate it with "
            "comes.priors.estimate_transition."
        )


class MlclRisk(nn.Module):
    """`mlcl_risk` as a module that keeps its transition matrix and moves with ``.to(device)``.

    Examples
    --------
    >>> risk = MlclRisk(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> risk(torch.tensor([[9.0, -9.0]]), torch.tensor([[True, False]]))
    tensor(0.0003)
    """

    transition: Tensor

    def __init__(self, transition: Tensor, *, as_released: bool = False) -> None:
        super().__init__()
        transition = as_tensor(transition, "transition")
        _check_transition(transition)
        self.register_buffer("transition", transition)
        self.as_released = as_released

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return mlcl_risk(
            scores,
            candidates,
            self.transition,
            as_released=self.as_released,
            sample_weight=sample_weight,
        )
