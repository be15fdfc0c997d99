r"""GDF: one complementary label per row, every other label pushed up.

.. math:: \frac1n \sum_i \Big( \sum_{j: s_{ij} = 1} \ell(g_{ij}, 1)
    + \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0) \Big)

(Equation 12 of the paper below, which has one excluded label per row; its code does the same with
several.) The unbiased estimator (Equation 9) assumes that, given the excluded label, all
non-empty sets of the other labels are equally likely. It replaces :math:`\ell(g_{ij}, 1)` by the
mean over these sets,

.. math:: a \, \ell(g_{ij}, 1) + (1 - a) \, \ell(g_{ij}, 0), \qquad
    a = \frac{2^{q-2}}{2^{q-1} - 1} = \frac{1/2}{1 - 2^{1-q}}

A row that excludes nothing is outside this setting and is left out. If all excluded labels are
used, the plain form is q times BCE on the rows that exclude something.

References
----------
Gao, Xu and Zhang, "Unbiased Risk Estimator to Multi-Labeled Complementary Label Learning",
IJCAI 2023.
"""

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.losses import BinaryLoss, logistic_loss
from comes.risks.excluded import check_batch, check_weight, in_full_precision, mean_of_rows


def gdf_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    unbiased: bool = False,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the GDF risk of one batch: a sum over labels, averaged over rows that exclude any.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
        The authors' setting has one False per row.
    unbiased : bool
        Equation 9 instead of Equation 12; needs at least two labels.
    loss : callable (scores, 0 or 1) -> tensor
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor
        0 if no row excludes anything.

    Examples
    --------
    >>> gdf_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.0794)
    """
    scores, candidates = check_batch(scores, candidates)
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    if_candidate, if_excluded = loss(scores, 1), loss(scores, 0)
    if unbiased:
        share = _compute_share_of_sets(scores.shape[1])
        if_candidate = share * if_candidate + (1 - share) * if_excluded
    per_row = torch.where(candidates, if_candidate, if_excluded).sum(dim=1)
    excludes = (~candidates).any(dim=1)
    if weight is None:
        return torch.where(excludes, per_row, 0).sum() / excludes.sum().clamp(min=1)
    return mean_of_rows(torch.where(excludes, per_row, 0), weight * excludes)


class GdfRisk(nn.Module):
    """`gdf_risk` as a module.

    Examples
    --------
    >>> risk = GdfRisk(unbiased=True)
    >>> risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.0794)
    """

    def __init__(self, *, unbiased: bool = False, loss: BinaryLoss = logistic_loss) -> None:
        super().__init__()
        self.unbiased = unbiased
        self.loss = loss

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return gdf_risk(
            scores,
            candidates,
            unbiased=self.unbiased,
            loss=self.loss,
            sample_weight=sample_weight,
        )


def _compute_share_of_sets(q: int) -> float:
    """Return a, the share of the non-empty sets of q - 1 labels that contain a given label."""
    if q < 2:
        raise ComesError(
            f"the unbiased form of GDF needs at least two labels; got {q}. Take the plain form."
        )
    return 0.5 / (1 - 2.0 ** (1 - q))
