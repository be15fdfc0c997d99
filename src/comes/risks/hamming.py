r"""COMES-HL: the Hamming-loss risk, estimated from candidate labels alone (Equations 7 and 8).

The paper is "Rethinking Consistent Multi-Label Classification Under Inexact Supervision", ICLR
2026. With scores :math:`g`, ``candidates`` :math:`s`, ``class_prior`` :math:`\pi`, ``loss``
:math:`\ell`, n rows, of which :math:`n_j` exclude label j, and q labels, the risk is

.. math:: \frac1q \sum_j \Big( \Big| \frac1n \sum_i \ell(g_{ij}, 1)
    - \frac{1-\pi_j}{n_j} \sum_{i: s_{ij}=0} \ell(g_{ij}, 1) \Big|
    + \frac{1-\pi_j}{n_j} \sum_{i: s_{ij}=0} \ell(g_{ij}, 0) \Big)

(Equation 8; without the absolute value, the ``correction``, Equation 7.) The absolute value acts on
sums over rows, so the risk of a batch is not the mean of the risks of its parts. It is a function
of per-label sums, `HammingSums`, that do add up: over micro-batches and processes.

Which :math:`n_j` a batch has: with ``exclude_share``, the share of the rows of the data set that
exclude label j, it is that share times the rows of the batch; the estimators do this by default
(``normaliser="dataset"``). Without, it is the batch's own count (``normaliser="batch"``). With the
share, the mean over batches of Equation 7 is Equation 7 of the whole data set, whatever the size of
the batches. Of Equation 8 it is not: a first term that is below 0 in a batch by chance is counted
as if it were above, so that the mean is too high, and the gradient of the term is reversed there;
the more so, the smaller the batches and the fewer the rows that exclude the label.

Where it is known who was asked, the mean over all rows becomes the mean over the rows that somebody
was asked about, and the class prior is that of these rows.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from comes.answers import State
from comes.risks.checks import (
    NO,
    NOT_ASKED,
    check_batch,
    check_callable,
    check_optional_rate,
    check_rate,
    check_width,
    count_rows,
    excluded_mask,
    scale_excluded,
    times_weight,
)
from comes.risks.losses import BinaryLoss, logistic_loss
from comes.risks.sparse import SparseTargets, check_sparse


def hamming_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor | SparseTargets,  # s, bool, or states, int8, (n, q)
    class_prior: Tensor,  # pi, in [0, 1], (q,)
    *,
    loss: BinaryLoss = logistic_loss,
    correction: Callable[[Tensor], Tensor] = torch.abs,
    exclude_share: Tensor | None = None,
    asked_share: Tensor | None = None,
    skip_empty: bool = True,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return the COMES-HL risk of one batch: Equation 8 of the paper.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
        Raw scores (logits). Half precision is computed in float32.
    candidates : bool or int8 tensor of shape (n_samples, n_labels), or SparseTargets
        bool: True where the label is still possible. int8: `comes.answers.State`, where it is known
        who was asked. `SparseTargets`: the same by index.
    class_prior : float tensor of shape (n_labels,)
        How often each label is relevant, in [0, 1]; among asked rows, if these are known.
    loss : callable (scores, 0 or 1) -> tensor
        A binary loss, such as `logistic_loss`, or your own.
    correction : callable tensor -> tensor
        Acts on each label's estimate of the relevant part, which is negative only by sampling
        error. ``torch.abs`` gives Equation 8, the identity Equation 7 (unbiased, but unbounded
        below), ``torch.relu`` a clamp.
    exclude_share : float tensor of shape (n_labels,), optional
        n_j / n of the whole data set. By default n_j is the batch's own count; with this it is
        the share times the batch size: see the head of this file. If rows have weights, the share
        must be weighted too.
    asked_share : float tensor of shape (n_labels,), optional
        Likewise the share of the rows that somebody was asked about.
    skip_empty : bool
        Leave out a label that no row excludes (in the batch, or by its ``exclude_share``). False
        keeps its first term, which pushes the label's scores up.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows: in both means, and in n and n_j.

    Returns
    -------
    risk : scalar tensor
        The mean over labels.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[2.0, -1.0], [0.5, 1.0], [-3.0, 0.0]])
    >>> candidates = torch.tensor([[True, False], [True, True], [False, True]])
    >>> hamming_risk(scores, candidates, torch.tensor([0.6, 0.5]))
    tensor(0.1478)
    """
    return hamming_risk_from_sums(
        hamming_sums(scores, candidates, loss=loss, sample_weight=sample_weight),
        class_prior,
        correction=correction,
        exclude_share=exclude_share,
        asked_share=asked_share,
        skip_empty=skip_empty,
    )


class HammingRisk(nn.Module):
    """`hamming_risk` as a module that keeps its class prior and moves with ``.to(device)``.

    Examples
    --------
    >>> import torch
    >>> risk = HammingRisk(torch.tensor([0.6, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.3466)
    """

    class_prior: Tensor
    exclude_share: Tensor | None
    asked_share: Tensor | None

    def __init__(
        self,
        class_prior: Tensor,
        *,
        loss: BinaryLoss = logistic_loss,
        correction: Callable[[Tensor], Tensor] = torch.abs,
        exclude_share: Tensor | None = None,
        asked_share: Tensor | None = None,
        skip_empty: bool = True,
    ) -> None:
        super().__init__()
        self.register_buffer("class_prior", check_rate(class_prior, "class_prior"))
        self.register_buffer("exclude_share", check_optional_rate(exclude_share, "exclude_share"))
        self.register_buffer("asked_share", check_optional_rate(asked_share, "asked_share"))
        self.loss = loss
        self.correction = correction
        self.skip_empty = skip_empty

    def select_labels(self, labels: slice | Tensor) -> "HammingRisk":
        """Return the risk of some labels, by index; the whole is the mean over labels."""
        part = copy.copy(self)
        part._buffers = {
            name: None if values is None else values[labels]
            for name, values in self._buffers.items()
        }
        return part

    def forward(
        self,
        scores: Tensor,
        candidates: Tensor | SparseTargets,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        return _equation_8(
            hamming_sums(scores, candidates, loss=self.loss, sample_weight=sample_weight),
            self.class_prior,
            self.correction,
            self.exclude_share,
            self.asked_share,
            self.skip_empty,
        )


class HammingSums(NamedTuple):
    """The sums over rows that the risk is a function of; those of two batches add up.

    Examples
    --------
    >>> import torch
    >>> scores, candidates = torch.zeros(4, 1), torch.tensor([[True], [False], [True], [False]])
    >>> parts = [hamming_sums(*batch) for batch in zip(scores.split(2), candidates.split(2))]
    >>> HammingSums(*map(sum, zip(*parts))) == hamming_sums(scores, candidates)
    True
    """

    n_rows: Tensor  # n, or the sum of the rows' weights, (); likewise in the next two
    n_excluded: Tensor  # n_j, (q,)
    n_asked: Tensor  # rows that somebody was asked about, (q,); n if that is not known
    if_relevant: Tensor  # sum over all rows, or those asked about, of l(g, 1), (q,)
    excluded_if_relevant: Tensor  # sum over the excluded of l(g, 1), (q,)
    excluded_if_irrelevant: Tensor  # sum over the excluded of l(g, 0), (q,)


def hamming_risk_from_sums(
    sums: HammingSums,
    class_prior: Tensor,  # pi, in [0, 1], (q,)
    *,
    correction: Callable[[Tensor], Tensor] = torch.abs,
    exclude_share: Tensor | None = None,
    asked_share: Tensor | None = None,
    skip_empty: bool = True,
) -> Tensor:
    """Return the risk of the rows that were summed.

    Parameters
    ----------
    sums : HammingSums
    class_prior, correction, exclude_share, asked_share, skip_empty
        As in `hamming_risk`.

    Returns
    -------
    risk : scalar tensor

    Examples
    --------
    >>> import torch
    >>> sums = hamming_sums(torch.zeros(1, 2), torch.tensor([[True, False]]))
    >>> hamming_risk_from_sums(sums, torch.tensor([0.6, 0.5]))
    tensor(0.3466)
    """
    pi = check_rate(class_prior, "class_prior")
    exclude_share = check_optional_rate(exclude_share, "exclude_share")
    asked_share = check_optional_rate(asked_share, "asked_share")
    return _equation_8(sums, pi, correction, exclude_share, asked_share, skip_empty)


def _equation_8(
    sums: HammingSums,
    pi: Tensor,
    correction: Callable[[Tensor], Tensor],
    exclude_share: Tensor | None,
    asked_share: Tensor | None,
    skip_empty: bool,
) -> Tensor:
    """Return the formula of this file; `HammingRisk` has checked its values once."""
    shares = {"exclude_share": exclude_share, "asked_share": asked_share}
    check_width(sums.n_excluded, class_prior=pi, **shares)
    per_excluded, any_excluded = scale_excluded(sums.n_rows, sums.n_excluded, pi, exclude_share)
    n = sums.n_asked if asked_share is None else asked_share.to(per_excluded) * sums.n_rows
    mean_if_relevant = sums.if_relevant / torch.where(n > 0, n, 1)
    # Estimates pi_j E[l(g_j, 1) | y_j = 1]: negative only by sampling error.
    relevant = mean_if_relevant - per_excluded * sums.excluded_if_relevant
    irrelevant = per_excluded * sums.excluded_if_irrelevant
    risk_per_label = correction(relevant) + irrelevant
    if skip_empty:
        risk_per_label = torch.where(any_excluded, risk_per_label, 0)
    return risk_per_label.mean()


def hamming_sums(
    scores: Tensor,
    candidates: Tensor | SparseTargets,
    *,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> HammingSums:
    """Return the per-label sums of a batch that `hamming_risk_from_sums` combines.

    Parameters
    ----------
    scores, candidates, loss, sample_weight
        As in `hamming_risk`; the weight of a row multiplies it in the sums and counts.

    Returns
    -------
    sums : HammingSums

    Examples
    --------
    >>> import torch
    >>> sums = hamming_sums(torch.zeros(3, 2), torch.tensor([[True, False]] * 3))
    >>> sums.n_rows, sums.n_excluded
    (tensor(3.), tensor([0., 3.]))
    """
    check_callable(loss, "loss")
    if isinstance(candidates, SparseTargets):
        return _sum_sparse(check_sparse(scores, candidates, sample_weight), candidates, loss)
    scores, targets, weight = check_batch(scores, candidates, sample_weight, states=True)
    excluded = excluded_mask(targets, scores)
    if_relevant = times_weight(loss(scores, 1), weight)
    if_irrelevant = times_weight(loss(scores, 0), weight)
    n_rows = n_asked = count_rows(scores, weight)
    if targets.dtype == torch.bool:
        sum_if_relevant = if_relevant.sum(dim=0)
    else:
        asked = (targets != NOT_ASKED).to(scores.dtype)
        n_asked = times_weight(asked, weight).sum(dim=0)
        sum_if_relevant = (asked * if_relevant).sum(dim=0)
    return HammingSums(
        n_rows=n_rows,
        n_excluded=times_weight(excluded, weight).sum(dim=0),
        n_asked=n_asked,
        if_relevant=sum_if_relevant,
        excluded_if_relevant=(excluded * if_relevant).sum(dim=0),
        excluded_if_irrelevant=(excluded * if_irrelevant).sum(dim=0),
    )


def _sum_sparse(scores: Tensor, targets: SparseTargets, loss: BinaryLoss) -> HammingSums:
    """Return the sums of targets by index: at most one pass over all scores."""
    listed = targets.select(scores)
    excluded = (targets.states == NO).to(scores.dtype)
    listed_if_relevant = loss(listed, 1)
    n_rows = n_asked = scores.new_full((), scores.shape[0])
    if targets.default == State.NOT_ASKED:
        n_asked = targets.sum_by_label(torch.ones_like(listed))
        if_relevant = targets.sum_by_label(listed_if_relevant)
    else:
        if_relevant = loss(scores, 1).sum(dim=0)
    return HammingSums(
        n_rows=n_rows,
        n_excluded=targets.sum_by_label(excluded),
        n_asked=n_asked,
        if_relevant=if_relevant,
        excluded_if_relevant=targets.sum_by_label(excluded * listed_if_relevant),
        excluded_if_irrelevant=targets.sum_by_label(excluded * loss(listed, 0)),
    )
