r"""CTL: several complementary labels per row, weighted by their number.

With :math:`m = |\bar S_i|` excluded labels in a row,

.. math:: \alpha_m \sum_{j: s_{ij} = 1} \big( \ell(g_{ij}, 1) + w_{ij} \, \ell(g_{ij}, 0) \big)
    + \beta_m \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0), \qquad
    \alpha_m = e^{-2^{-m}}, \quad \beta_m = e^{2^{1-m}}

averaged over rows. :math:`w_{ij} = 1` for candidates that score low in their row,
:math:`0 < u_{ij} \le 0.3`. Here u is the sigmoid of the scores, without a gradient, rescaled to
[0, 1] within the row unless all scores of the row are equal.

The unbiased estimator assumes that, given the excluded labels, all non-empty sets of the other
labels are equally likely. It is the mean of the supervised loss over these sets,

.. math:: \sum_{j: s_{ij} = 1} \big( a_m \, \ell(g_{ij}, 1) + (1 - a_m) \, \ell(g_{ij}, 0) \big)
    + \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0), \qquad
    a_m = \frac{2^{q-m-1}}{2^{q-m} - 1} = \frac{1/2}{1 - 2^{m-q}}

which for :math:`m = 1` is the unbiased GDF. With ``released_weight`` the mean is multiplied by
:math:`(2^{q-m} - 1) / (2^q - 2)`, as in the released code; in single precision this factor is 0 if
many labels are excluded.

References
----------
Gao, Zhu, Xu and Zhang, "Multi-Label Learning with Multiple Complementary Labels", TPAMI 2025.
"""

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.losses import BinaryLoss, logistic_loss
from comes.risks.excluded import check_batch, check_weight, in_full_precision, mean_of_rows

LOW = 0.3  # candidates with a rescaled probability up to this also count as irrelevant


def ctl_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the CTL risk of one batch: a sum over labels, averaged over rows.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    loss : callable (scores, 0 or 1) -> tensor
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> ctl_risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(2.3046)
    """
    scores, candidates = check_batch(scores, candidates)
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    n_excluded = (~candidates).sum(dim=1).to(scores)
    alpha, beta = torch.exp(-(2.0**-n_excluded)), torch.exp(2.0 ** (1 - n_excluded))
    if_relevant, if_irrelevant = loss(scores, 1), loss(scores, 0)
    if_candidate = if_relevant + _is_low(scores) * if_irrelevant
    zero = scores.new_zeros(())
    of_candidates = torch.where(candidates, if_candidate, zero).sum(dim=1)
    of_excluded = torch.where(candidates, zero, if_irrelevant).sum(dim=1)
    return mean_of_rows(alpha * of_candidates + beta * of_excluded, weight)


def ctl_unbiased_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    released_weight: bool = False,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the unbiased form of the CTL risk of one batch.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
        At least two labels.
    candidates : bool tensor of shape (n_samples, n_labels)
    released_weight : bool
        Weight every row, as the released code does, by the share of label sets that its m excluded
        labels leave possible: about 2^-m.
    loss : callable (scores, 0 or 1) -> tensor
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> ctl_unbiased_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.0794)
    """
    scores, candidates = check_batch(scores, candidates)
    q = scores.shape[1]
    if q < 2:
        raise ComesError(f"the unbiased form of CTL needs at least two labels; got {q}.")
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    n_left = candidates.sum(dim=1, keepdim=True).to(scores)  # q - m
    share = 0.5 / (1 - 2.0 ** -n_left.clamp(min=1))  # a_m; unused in rows without a candidate
    if_relevant, if_irrelevant = loss(scores, 1), loss(scores, 0)
    if_candidate = share * if_relevant + (1 - share) * if_irrelevant
    per_row = torch.where(candidates, if_candidate, if_irrelevant).sum(dim=1)
    if released_weight:  # (2^(q-m) - 1) / (2^q - 2), without forming 2^q
        left = 2.0 ** (n_left.squeeze(1) - q) - 2.0**-q
        per_row = per_row * left / (1 - 2.0 ** (1 - q))
    return mean_of_rows(per_row, weight)


class CtlRisk(nn.Module):
    """`ctl_risk` as a module.

    Examples
    --------
    >>> risk = CtlRisk()
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(2.3046)
    """

    def __init__(self, *, loss: BinaryLoss = logistic_loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return ctl_risk(scores, candidates, loss=self.loss, sample_weight=sample_weight)


class CtlUnbiasedRisk(nn.Module):
    """`ctl_unbiased_risk` as a module.

    Examples
    --------
    >>> risk = CtlUnbiasedRisk()
    >>> risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.0794)
    """

    def __init__(self, *, released_weight: bool = False, loss: BinaryLoss = logistic_loss) -> None:
        super().__init__()
        self.released_weight = released_weight
        self.loss = loss

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return ctl_unbiased_risk(
            scores,
            candidates,
            released_weight=self.released_weight,
            loss=self.loss,
            sample_weight=sample_weight,
        )


def _is_low(scores: Tensor) -> Tensor:
    """Return w: 1 where the sigmoid, rescaled to [0, 1] within the row, is in (0, LOW]."""
    probability = scores.detach().sigmoid()
    low, high = probability.amin(dim=1, keepdim=True), probability.amax(dim=1, keepdim=True)
    spread = high - low
    rescaled = (probability - low) / torch.where(spread > 0, spread, 1)
    rescaled = torch.where(spread > 0, rescaled, probability)
    return ((rescaled > 0) & (rescaled <= LOW)).to(scores)
