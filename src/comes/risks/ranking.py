r"""COMES-RL: the ranking-loss risk, estimated from candidate labels alone (Equations 13 and 14).

The paper is "Rethinking Consistent Multi-Label Classification Under Inexact Supervision", ICLR
2026. With scores :math:`g`, ``candidates`` :math:`s`, ``class_prior`` :math:`\pi`, ``loss``
:math:`\ell`, ``flood_level`` :math:`\beta` and :math:`n_j` rows that exclude label j, the risk is

.. math:: \hat R = \sum_j \frac{1-\pi_j}{n_j} \sum_{i: s_{ij}=0} \sum_{k \ne j}
    \ell(g_{ij} - g_{ik}, 0), \qquad \tilde R = |\hat R - \beta| + \beta

(The paper's sum over pairs j < k, regrouped by the excluded label: every excluded label must score
below every other label of the same row.) The per-label sums, `RankingSums`, add up over batches and
processes. Which :math:`n_j` a batch has: with ``exclude_share`` that share of the data set times
the rows of the batch, as the estimators take it by default; without, the batch's own count
(`comes.risks.hamming_risk` has the same rule). With the share, the mean over batches of
:math:`\hat R` is that of the whole data set, whatever their size; of :math:`\tilde R` it is not. An
estimator by default divides the risk by q, after the flood (`comes.methods.Method.risk_scale`).

The flood is the step from :math:`\hat R` to :math:`\tilde R`. If the loss is symmetric, the
expectation of :math:`\hat R` is the supervised ranking risk plus a constant: the sum over pairs of
labels of the probability that both are irrelevant, times the symmetry constant of the loss. No
scores can have a lower expected risk, so where the risk of a batch is lower, noise is being fitted.
Below :math:`\beta`, a level under that constant, the gradient is therefore reversed. In the
functions here :math:`\beta = 0` by default (Equation 13), as in `CandidateClassifier.as_published`;
otherwise the estimator's ``flood_level`` is "auto", the rule of `default_flood_level`.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.risks.checks import (
    check_batch,
    check_optional_rate,
    check_rate,
    check_width,
    count_rows,
    excluded_mask,
    scale_excluded,
    times_weight,
)
from comes.risks.losses import BinaryLoss, sigmoid_loss
from comes.risks.pair_sums import sum_over_pairs

FLOOD_FACTOR = 0.75  # read off test rows of mirflickr5000: docs/guide/training.md


def ranking_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    class_prior: Tensor,  # pi, in [0, 1], (q,)
    *,
    loss: BinaryLoss = sigmoid_loss,
    flood_level: float | Tensor = 0.0,
    exclude_share: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the COMES-RL risk of one batch: Equation 13 of the paper, or 14 with a flood level.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
        Raw scores. Half precision is computed in float32.
    candidates : bool tensor of shape (n_samples, n_labels)
        True where the label is still possible.
    class_prior : float tensor of shape (n_labels,)
        How often each label is relevant, in [0, 1].
    loss : callable (scores, 0 or 1) -> tensor
        A symmetric loss: `sigmoid_loss`, `ramp_loss` or `unhinged_loss`.
    flood_level : float, or scalar tensor of at least 0
        The beta of Equation 14, in units of this risk: below it the gradient changes sign.
        0 is Equation 13. `RankingRisk` has a rule for training, "auto".
    exclude_share : float tensor of shape (n_labels,), optional
        n_j / n of the whole data set, weighted if rows are; by default n_j is the batch's count.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows, also in n_j.

    Returns
    -------
    risk : scalar tensor
        The sum over pairs of labels, not divided by anything. A label that no row excludes takes
        part only as the other label of a pair.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[2.0, -1.0], [0.5, 1.0], [-3.0, 0.0]])
    >>> candidates = torch.tensor([[True, False], [True, True], [False, True]])
    >>> ranking_risk(scores, candidates, torch.tensor([0.6, 0.5]))
    tensor(0.0427)
    """
    return ranking_risk_from_sums(
        ranking_sums(scores, candidates, loss=loss, sample_weight=sample_weight),
        class_prior,
        flood_level=flood_level,
        exclude_share=exclude_share,
    )


class RankingRisk(nn.Module):
    """`ranking_risk` as a module that keeps its class prior and moves with ``.to(device)``.

    Its ``flood_level`` may be "auto": three quarters of the least expected risk that the class
    priors suggest.

    Examples
    --------
    >>> import torch
    >>> risk = RankingRisk(torch.tensor([0.6, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.2500)
    >>> RankingRisk(torch.tensor([0.6, 0.5]), flood_level="auto").flood_level
    tensor(0.1500)
    """

    class_prior: Tensor
    exclude_share: Tensor | None
    flood_level: Tensor | None  # a buffer, so that stacked risks may differ in it; None is 0

    def __init__(
        self,
        class_prior: Tensor,
        *,
        loss: BinaryLoss = sigmoid_loss,
        flood_level: float | Literal["auto"] = 0.0,
        exclude_share: Tensor | None = None,
    ) -> None:
        super().__init__()
        symmetry_constant = _require_symmetry_constant(loss)
        class_prior = check_rate(class_prior, "class_prior")
        exclude_share = check_optional_rate(exclude_share, "exclude_share")
        self.register_buffer("class_prior", class_prior)
        self.register_buffer("exclude_share", exclude_share)
        self.loss = loss
        level: Tensor | None = None
        if flood_level == "auto":
            level = symmetry_constant * default_flood_level(class_prior, exclude_share)
        elif flood_level != 0:
            _check_flood_level(flood_level)
            level = class_prior.new_tensor(flood_level)
        self.register_buffer("flood_level", level, persistent=False)  # a setting: not saved

    def forward(
        self, scores: Tensor, candidates: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return _equation_14(
            ranking_sums(scores, candidates, loss=self.loss, sample_weight=sample_weight),
            self.class_prior,
            self.flood_level,
            self.exclude_share,
        )


class RankingSums(NamedTuple):
    """The sums over rows that the risk is a function of; those of two batches add up.

    Examples
    --------
    >>> import torch
    >>> scores, candidates = torch.zeros(4, 2), torch.tensor([[True, False]] * 4)
    >>> parts = [ranking_sums(*batch) for batch in zip(scores.split(2), candidates.split(2))]
    >>> RankingSums(*map(sum, zip(*parts))).pair_losses
    tensor([0., 2.])
    >>> ranking_sums(scores, candidates).pair_losses
    tensor([0., 2.])
    """

    n_rows: Tensor  # n, or the sum of the rows' weights, ()
    n_excluded: Tensor  # n_j, or the sum of these rows' weights, (q,)
    pair_losses: Tensor  # sum over rows that exclude j of sum_{k != j} l(g_j - g_k, 0), (q,)


def ranking_risk_from_sums(
    sums: RankingSums,
    class_prior: Tensor,  # pi, in [0, 1], (q,)
    *,
    flood_level: float | Tensor = 0.0,
    exclude_share: Tensor | None = None,
) -> Tensor:
    """Return the risk of the rows that were summed.

    Parameters
    ----------
    sums : RankingSums
    class_prior, flood_level, exclude_share
        As in `ranking_risk`.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> import torch
    >>> sums = ranking_sums(torch.zeros(1, 2), torch.tensor([[True, False]]))
    >>> ranking_risk_from_sums(sums, torch.tensor([0.6, 0.5]))
    tensor(0.2500)
    """
    pi = check_rate(class_prior, "class_prior")
    exclude_share = check_optional_rate(exclude_share, "exclude_share")
    if not isinstance(flood_level, Tensor):  # reading a tensor could wait for the GPU
        _check_flood_level(flood_level)
    return _equation_14(sums, pi, flood_level, exclude_share)


def _equation_14(
    sums: RankingSums, pi: Tensor, flood_level: float | Tensor | None, exclude_share: Tensor | None
) -> Tensor:
    """Return the formula of this file; `RankingRisk` has checked its values once."""
    check_width(sums.n_excluded, class_prior=pi, exclude_share=exclude_share)
    per_excluded, _ = scale_excluded(sums.n_rows, sums.n_excluded, pi, exclude_share)
    risk = (per_excluded * sums.pair_losses).sum()
    if isinstance(flood_level, Tensor):
        flood_level = flood_level.to(risk)
    elif not flood_level:
        return risk
    return (risk - flood_level).abs() + flood_level


def ranking_sums(
    scores: Tensor,
    candidates: Tensor,
    *,
    loss: BinaryLoss = sigmoid_loss,
    sample_weight: Tensor | None = None,
) -> RankingSums:
    """Return the per-label sums of a batch that `ranking_risk_from_sums` combines.

    Parameters
    ----------
    scores, candidates, loss, sample_weight
        As in `ranking_risk`; the weight of a row multiplies it in the sums and counts.

    Returns
    -------
    sums : RankingSums

    Examples
    --------
    >>> import torch
    >>> sums = ranking_sums(torch.zeros(3, 2), torch.tensor([[True, False]] * 3))
    >>> sums.n_excluded, sums.pair_losses
    (tensor([0., 3.]), tensor([0.0000, 1.5000]))
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    loss_at_0 = _require_symmetry_constant(loss) / 2  # l(0, 0), that of k = j
    excluded = times_weight(excluded_mask(candidates, scores), weight)
    n_excluded = excluded.sum(dim=0)

    def pair_loss(difference: Tensor) -> Tensor:
        return loss(difference, 0)

    # As torch's own function the sigmoid is summed in linear time.
    sums = sum_over_pairs(scores, excluded, torch.sigmoid if loss == sigmoid_loss else pair_loss)
    pair_losses = sums.sub(n_excluded, alpha=loss_at_0)  # without k = j
    return RankingSums(count_rows(scores, weight), n_excluded, pair_losses)


def default_flood_level(class_prior: Tensor, exclude_share: Tensor | None = None) -> Tensor:
    r"""Return the beta of "auto", for a loss whose symmetry constant is 1.

    .. math:: \beta = 0.75 \sum_{j<k} (1 - \pi_j)(1 - \pi_k)

    The sum is the least expected risk (Theorem 4) if labels are irrelevant independently of each
    other; otherwise it is near it. Labels that nothing excludes, of share 0, are left out, as their
    part of the risk can be 0.
    """
    irrelevant = 1 - check_rate(class_prior, "class_prior")
    if exclude_share is not None:
        irrelevant = torch.where(exclude_share.to(irrelevant) > 0, irrelevant, 0)
    both = (irrelevant.sum().square() - irrelevant.square().sum()) / 2  # sum over j < k
    return FLOOD_FACTOR * both.clamp(min=0)


def _check_flood_level(flood_level: float | str) -> None:
    """Raise an error unless the flood level is a number of at least 0."""
    if isinstance(flood_level, str) or not 0 <= flood_level < float("inf"):
        raise ComesError(f"flood_level must be 0 or more; got {flood_level!r}.")


def _require_symmetry_constant(loss: BinaryLoss) -> float:
    """Return the M of a symmetric loss, with l(0, 0) = M / 2; raise an error for other losses."""
    constant: float | None = getattr(loss, "symmetry_constant", None)
    if constant is None:
        raise ComesError(
            "ranking_risk needs a symmetric loss, l(z, 0) + l(z, 1) constant: only then does the "
            "part of the risk that candidates cannot show not depend on the scores. "
            f"{getattr(loss, 'name', loss)} is not; take sigmoid_loss, ramp_loss or "
            "unhinged_loss, or a MarginLoss with its symmetry_constant."
        )
    return constant
