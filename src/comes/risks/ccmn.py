r"""CCMN: unbiased estimators under class-conditional label noise, for candidate labels.

Candidates are seen as noisy relevant labels: an irrelevant label j becomes a candidate with
the *flip rate* :math:`\rho_j`, and a relevant one always is. For the Hamming loss,

.. math:: \max\Big(0, \frac{1}{nq} \sum_i \sum_j \tilde\ell_{ij}\Big), \qquad \tilde\ell_{ij} =
    \begin{cases} \ell(g_{ij}, 1) & s_{ij} = 1 \\
    \ell(g_{ij}, 0) + \frac{\rho_j}{1 - \rho_j} \big( \ell(g_{ij}, 0) - \ell(g_{ij}, 1) \big)
    & s_{ij} = 0 \end{cases}

where the maximum comes from the authors' released code: without it the estimate has no lower
bound. For the ranking loss and a symmetric loss, up to a constant,

.. math:: \frac1n \sum_i \sum_{j: s_{ij} = 0} \frac{1}{1 - \rho_j}
    \sum_{k \ne j} \ell(g_{ij} - g_{ik}, 0)

With :math:`\rho_j = 1 - \frac{n_j / n}{1 - \pi_j}`, where n_j and n count the whole data set, and
without corrections these are COMES-HL and COMES-RL.

References
----------
Xie and Huang, "CCMN: A General Framework for Learning with Class-Conditional Multi-Label Noise",
TPAMI 2023, sections 4 and 5.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.losses import BinaryLoss, logistic_loss, sigmoid_loss
from comes.risks.excluded import (
    SMALLEST_WEIGHT,
    as_tensor,
    check_batch,
    check_callable,
    check_weight,
    check_width,
    in_full_precision,
    mean_of_rows,
)
from comes.risks.ranking import ranking_sums


def ccmn_hamming_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    flip_rate: Tensor,  # rho, in [0, 1), (q,)
    *,
    loss: BinaryLoss = logistic_loss,
    correction: Callable[[Tensor], Tensor] = torch.relu,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return CCMN's estimate of the Hamming risk of one batch.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    flip_rate : float tensor of shape (n_labels,)
        How often an irrelevant label is a candidate, in [0, 1).
    loss : callable (scores, 0 or 1) -> tensor
    correction : callable tensor -> tensor
        Acts on the mean over rows and labels. ``torch.relu`` is that of the released code; while
        it clamps, nothing is learned. The identity gives the unbiased estimate.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> candidates = torch.tensor([[True, False]])
    >>> ccmn_hamming_risk(torch.tensor([[1.0, -1.0]]), candidates, torch.tensor([0.5, 0.5]))
    tensor(0.)
    """
    flip_rate = check_flip_rate(flip_rate)
    return _hamming_risk(scores, candidates, flip_rate, loss, correction, sample_weight)


def _hamming_risk(
    scores: Tensor,
    candidates: Tensor,
    flip_rate: Tensor,
    loss: BinaryLoss,
    correction: Callable[[Tensor], Tensor],
    sample_weight: Tensor | None,
) -> Tensor:
    """Return the risk; values are not read, as that would stop a GPU at every step."""
    scores, candidates = check_batch(scores, candidates)
    check_width(scores, flip_rate=flip_rate)
    check_callable(loss, "loss")
    scores, weight = in_full_precision(scores), check_weight(scores, sample_weight)
    odds = (flip_rate / (1 - flip_rate)).to(scores)
    if_relevant, if_irrelevant = loss(scores, 1), loss(scores, 0)
    if_excluded = if_irrelevant + odds * (if_irrelevant - if_relevant)
    losses = torch.where(candidates, if_relevant, if_excluded)
    return correction(mean_of_rows(losses, weight))


def ccmn_ranking_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    flip_rate: Tensor,  # rho, in [0, 1), (q,)
    *,
    loss: BinaryLoss = sigmoid_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return CCMN's estimate of the ranking risk of one batch, up to a constant.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    flip_rate : float tensor of shape (n_labels,)
        How often an irrelevant label is a candidate, in [0, 1).
    loss : callable (scores, 0 or 1) -> tensor
        A symmetric loss of `comes.losses`.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor
        A sum over pairs of labels, averaged over rows. No term is negative. The part that does not
        depend on the scores is left out: M / ((1 - rho_j)(1 - rho_k)) for every pair of excluded
        labels.

    Examples
    --------
    >>> candidates = torch.tensor([[True, False]])
    >>> ccmn_ranking_risk(torch.zeros(1, 2), candidates, torch.tensor([0.5, 0.5]))
    tensor(1.)
    """
    return _ranking_risk(scores, candidates, check_flip_rate(flip_rate), loss, sample_weight)


def _ranking_risk(
    scores: Tensor,
    candidates: Tensor,
    flip_rate: Tensor,
    loss: BinaryLoss,
    sample_weight: Tensor | None,
) -> Tensor:
    """Return the risk; values are not read, as that would stop a GPU at every step."""
    scores, candidates = check_batch(scores, candidates)
    check_width(scores, flip_rate=flip_rate)
    sums = ranking_sums(scores, candidates, loss=loss, sample_weight=sample_weight)
    n = sums.n_rows.clamp(min=SMALLEST_WEIGHT)
    return (sums.excluded_above / (1 - flip_rate).to(sums.excluded_above)).sum() / n


class CcmnHammingRisk(nn.Module):
    """`ccmn_hamming_risk` as a module that keeps its flip rates and moves with ``.to(device)``.

    Examples
    --------
    >>> risk = CcmnHammingRisk(torch.tensor([0.5, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """

    flip_rate: Tensor

    def __init__(
        self,
        flip_rate: Tensor,
        *,
        loss: BinaryLoss = logistic_loss,
        correction: Callable[[Tensor], Tensor] = torch.relu,
    ) -> None:
        super().__init__()
        self.register_buffer("flip_rate", check_flip_rate(flip_rate))
        self.loss = loss
        self.correction = correction

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return _hamming_risk(
            scores, candidates, self.flip_rate, self.loss, self.correction, sample_weight
        )


class CcmnRankingRisk(nn.Module):
    """`ccmn_ranking_risk` as a module that keeps its flip rates and moves with ``.to(device)``.

    Examples
    --------
    >>> risk = CcmnRankingRisk(torch.tensor([0.5, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(1.)
    """

    flip_rate: Tensor

    def __init__(self, flip_rate: Tensor, *, loss: BinaryLoss = sigmoid_loss) -> None:
        super().__init__()
        self.register_buffer("flip_rate", check_flip_rate(flip_rate))
        self.loss = loss

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return _ranking_risk(scores, candidates, self.flip_rate, self.loss, sample_weight)


def check_flip_rate(flip_rate: Tensor) -> Tensor:
    """Return the flip rates if they are a vector of numbers in [0, 1), else raise an error."""
    flip_rate = as_tensor(flip_rate, "flip_rate")
    if flip_rate.ndim != 1 or not ((flip_rate >= 0) & (flip_rate < 1)).all():
        raise ComesError(
            "flip_rate must hold one number in [0, 1) for each label; got "
            f"shape {tuple(flip_rate.shape)} with values {flip_rate.flatten()[:8].tolist()}."
        )
    return flip_rate
