r"""BCE: every candidate counts as relevant.

.. math:: \frac{1}{nq} \sum_i \sum_j s_{ij} \, \ell(g_{ij}, 1) + (1 - s_{ij}) \, \ell(g_{ij}, 0)

The baseline of the paper; on true labels it is plain supervised training. Of answers, "no" is
irrelevant, "yes" is relevant, and "maybe" and pairs that nobody was asked about are left out.
"""

import torch
from torch import Tensor, nn

from comes.answers import State
from comes.losses import BinaryLoss, MarginLoss, logistic_loss
from comes.risks.excluded import (
    check_callable,
    check_states,
    check_weight,
    check_weights,
    check_width,
    in_full_precision,
    mean_of_each,
    mean_of_rows,
    optional_tensor,
)
from comes.risks.said_pairs import SparseTargets, check_said, sum_losses


def bce_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor | SparseTargets,  # s, bool, or states, int8, (n, q)
    *,
    loss: BinaryLoss = logistic_loss,
    label_weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the mean loss if candidates count as relevant and excluded labels as irrelevant.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool or int8 tensor of shape (n_samples, n_labels), or SparseTargets
        bool: candidates. int8: `comes.answers.State`, of which only NO and YES count.
    loss : callable (scores, 0 or 1) -> tensor
    label_weight : float tensor of shape (n_labels,), optional
        Multiplies the losses of a label. Of answers, 1 / (share of pairs with "no" or "yes") makes
        the sum over these pairs their mean.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor
        The mean over all pairs; those that are left out count as 0.

    Examples
    --------
    >>> bce_risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """
    label_weight = optional_tensor(label_weight, "label_weight")
    check_weights(label_weight, "label_weight")
    check_callable(loss, "loss")
    if isinstance(candidates, SparseTargets):
        check_said(scores, candidates, sample_weight)
        return _risk_of_said(scores, candidates, loss, label_weight)
    scores, candidates = check_states(scores, candidates)
    check_width(scores, label_weight=label_weight)
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    if candidates.dtype == torch.bool:
        losses = _loss_of_each(loss, scores, candidates)
    else:
        losses = torch.where(candidates == State.YES, loss(scores, 1), 0)
        losses = torch.where(candidates == State.NO, loss(scores, 0), losses)
    if label_weight is not None:
        return (mean_of_each(losses, weight) * label_weight).mean()
    return mean_of_rows(losses, weight)


def _risk_of_said(
    scores: Tensor, said: SparseTargets, loss: BinaryLoss, label_weight: Tensor | None
) -> Tensor:
    """Return the risk where what was said is given by index."""
    check_width(scores, label_weight=label_weight)
    targets = {State.YES: 1, State.NO: 0}
    per_label = sum_losses(
        in_full_precision(scores),
        said,
        lambda own, state: loss(own, targets[state]) if state in targets else None,
    )
    per_label = per_label / max(1, said.shape[0])
    return (per_label if label_weight is None else per_label * label_weight).mean()


def _loss_of_each(loss: BinaryLoss, scores: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of every score with its own target; a margin loss is computed once."""
    if isinstance(loss, MarginLoss):
        return loss.of_margin(scores * (2 * targets.to(scores.dtype) - 1))
    return torch.where(targets, loss(scores, 1), loss(scores, 0))


class BceRisk(nn.Module):
    """`bce_risk` as a module.

    Examples
    --------
    >>> risk = BceRisk()
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """

    label_weight: Tensor | None

    def __init__(
        self, *, loss: BinaryLoss = logistic_loss, label_weight: Tensor | None = None
    ) -> None:
        super().__init__()
        self.loss = loss
        self.register_buffer("label_weight", optional_tensor(label_weight, "label_weight"))

    def select_labels(self, labels: slice | Tensor) -> "BceRisk":
        """Return the risk of some labels, by place; the whole is the mean over labels."""
        weight = self.label_weight
        return BceRisk(loss=self.loss, label_weight=None if weight is None else weight[labels])

    def forward(
        self,
        scores: Tensor,
        candidates: Tensor | SparseTargets,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return bce_risk(
            scores,
            candidates,
            loss=self.loss,
            label_weight=self.label_weight,
            sample_weight=sample_weight,
        )
