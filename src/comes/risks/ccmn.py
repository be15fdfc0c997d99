r"""CCMN: unbiased estimators under class-conditional label noise, for candidate labels.

Candidates are seen as noisy relevant labels: an irrelevant label j becomes a candidate with
the ``flip_rate`` :math:`\rho_j`, and a relevant one always is. For the Hamming loss,

.. math:: \max\Big(0, \frac{1}{nq} \sum_i \sum_j \tilde\ell_{ij}\Big), \qquad \tilde\ell_{ij} =
    \begin{cases} \ell(g_{ij}, 1) & s_{ij} = 1 \\
    \ell(g_{ij}, 0) + \frac{\rho_j}{1 - \rho_j} \big( \ell(g_{ij}, 0) - \ell(g_{ij}, 1) \big)
    & s_{ij} = 0 \end{cases}

where the maximum comes from the authors' code: without it the estimate has no lower bound. For the
ranking loss and a symmetric loss, up to a constant,

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
from torch import Tensor

from comes.risks.checks import (
    SMALLEST_WEIGHT,
    check_batch,
    check_callable,
    check_rate,
    check_width,
    mean_of_pairs,
)
from comes.risks.losses import BinaryLoss, logistic_loss, sigmoid_loss
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
        Acts on the mean over rows and labels. ``torch.relu`` is that of the authors' code; while
        it clamps, nothing is learned. The identity gives the unbiased estimate.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> import torch
    >>> candidates = torch.tensor([[True, False]])
    >>> ccmn_hamming_risk(torch.tensor([[1.0, -1.0]]), candidates, torch.tensor([0.5, 0.5]))
    tensor(0.)
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    rho = check_rate(flip_rate, "flip_rate", is_below_1=True)
    check_width(scores, flip_rate=rho)
    check_callable(loss, "loss")

    if_relevant, if_irrelevant = loss(scores, 1), loss(scores, 0)
    odds = (rho / (1 - rho)).to(scores)
    if_excluded = if_irrelevant + odds * (if_irrelevant - if_relevant)
    return correction(mean_of_pairs(torch.where(candidates, if_relevant, if_excluded), weight))


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
    scores, candidates, flip_rate, sample_weight
        As in `ccmn_hamming_risk`.
    loss : callable (scores, 0 or 1) -> tensor
        A symmetric loss: `sigmoid_loss`, `ramp_loss` or `unhinged_loss`.

    Returns
    -------
    risk : scalar tensor
        A sum over pairs of labels, averaged over rows. No term is negative. The part that does not
        depend on the scores is left out: M / ((1 - rho_j)(1 - rho_k)) for every pair of excluded
        labels.

    Examples
    --------
    >>> import torch
    >>> candidates = torch.tensor([[True, False]])
    >>> ccmn_ranking_risk(torch.zeros(1, 2), candidates, torch.tensor([0.5, 0.5]))
    tensor(1.)
    """
    sums = ranking_sums(scores, candidates, loss=loss, sample_weight=sample_weight)
    rho = check_rate(flip_rate, "flip_rate", is_below_1=True)
    check_width(sums.n_excluded, flip_rate=rho)

    per_label = sums.pair_losses / (1 - rho).to(sums.pair_losses)
    return per_label.sum() / sums.n_rows.clamp(min=SMALLEST_WEIGHT)
