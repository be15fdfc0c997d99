r"""BCE: every candidate counts as relevant.

.. math:: \frac{1}{nq} \sum_i \sum_j s_{ij} \, \ell(g_{ij}, 1) + (1 - s_{ij}) \, \ell(g_{ij}, 0)

The baseline of the paper; on true labels it is plain supervised training.
"""

import torch
from torch import Tensor, nn

from comes.losses import BinaryLoss, logistic_loss
from comes.risks.excluded import check_batch, in_full_precision


def bce_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    loss: BinaryLoss = logistic_loss,
) -> Tensor:
    """Return the mean loss if candidates count as relevant and excluded labels as irrelevant.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    loss : callable (scores, 0 or 1) -> tensor

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> bce_risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """
    check_batch(scores, candidates)
    scores = in_full_precision(scores)
    return torch.where(candidates, loss(scores, 1), loss(scores, 0)).mean()


class BceRisk(nn.Module):
    """`bce_risk` as a module.

    Examples
    --------
    >>> risk = BceRisk()
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """

    def __init__(self, *, loss: BinaryLoss = logistic_loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, scores: Tensor, candidates: Tensor) -> Tensor:
        """Return the scalar risk of one batch."""
        return bce_risk(scores, candidates, loss=self.loss)
