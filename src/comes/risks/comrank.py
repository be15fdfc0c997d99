r"""ComRank: an excluded label should rank below the other labels of its row.

.. math:: \frac1n \sum_i \sum_{j: s_{ij} = 0} \sum_{k: s_{ik} = 1}
    \phi\big( \sigma(g_{ij}) - \sigma(g_{ik}) \big)

With one excluded label per row and :math:`\phi = \exp` this is the loss of the paper. For several,
its code has :math:`\phi(z) = \log(1 + e^z)`, the default here. It needs no class prior.

References
----------
"ComRank: Ranking Loss for Multi-Label Complementary Label Learning", NeurIPS 2025.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from comes.risks.excluded import (
    SMALLEST_WEIGHT,
    check_batch,
    check_callable,
    check_weight,
    excluded_mask,
    in_full_precision,
    times_weight,
)
from comes.risks.pairs import sum_over_pairs

PairLoss = Callable[[Tensor], Tensor]


def comrank_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    pair_loss: PairLoss = F.softplus,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the ComRank risk of one batch: a sum over pairs, averaged over rows.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    pair_loss : callable tensor -> tensor
        A function of the difference of two probabilities, elementwise and increasing.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> import torch
    >>> comrank_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]), pair_loss=torch.exp)
    tensor(2.)
    """
    scores, candidates = check_batch(scores, candidates)
    check_callable(pair_loss, "pair_loss")
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    excluded = excluded_mask(candidates, scores)
    weighted, others = times_weight(excluded, weight), 1 - excluded
    sums = sum_over_pairs(scores.sigmoid(), weighted, pair_loss, others=others)
    n = scores.shape[0] if weight is None else weight.sum().clamp(min=SMALLEST_WEIGHT)
    return sums.sum() / n


class ComrankRisk(nn.Module):
    """`comrank_risk` as a module.

    Examples
    --------
    >>> import torch
    >>> risk = ComrankRisk(pair_loss=torch.exp)
    >>> risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.)
    """

    def __init__(self, *, pair_loss: PairLoss = F.softplus) -> None:
        super().__init__()
        self.pair_loss = pair_loss

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return comrank_risk(
            scores, candidates, pair_loss=self.pair_loss, sample_weight=sample_weight
        )
