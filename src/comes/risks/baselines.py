r"""The risks that the paper compares with: BCE, GDF, CTL and MLCL; and ComRank.

Each function is the formula in its docstring, with scores :math:`g`, ``candidates`` :math:`s`,
``loss`` :math:`\ell`, n rows and q labels. None of them knows a class prior. (`comes.risks.ccmn`
has the fifth of the paper.)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from comes.errors import ComesError
from comes.risks.checks import (
    NO,
    SMALLEST_WEIGHT,
    YES,
    as_tensor,
    check_batch,
    check_callable,
    check_weight,
    check_width,
    count_rows,
    excluded_mask,
    may_read,
    mean_of_pairs,
    mean_of_rows,
    times_weight,
)
from comes.risks.losses import BinaryLoss, MarginLoss, logistic_loss
from comes.risks.pair_sums import Function, sum_over_pairs
from comes.risks.sparse import SparseTargets, check_sparse

LOW = 0.3  # CTL: candidates with a rescaled probability up to this also count as irrelevant
EPSILON = 1e-6  # MLCL: predicted probabilities are kept this far from 0 and 1


def bce_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor | SparseTargets,  # s, bool, or states, int8, (n, q)
    *,
    loss: BinaryLoss = logistic_loss,
    label_weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the mean loss if candidates count as relevant and excluded labels as irrelevant.

    .. math:: \frac{1}{nq} \sum_i \sum_j s_{ij} \, \ell(g_{ij}, 1) + (1 - s_{ij}) \, \ell(g_{ij}, 0)

    On true labels this is plain supervised training. Of answers, "no" is irrelevant, "yes" is
    relevant, and "maybe" and pairs that nobody was asked about are left out.

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
    >>> import torch
    >>> bce_risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """
    check_callable(loss, "loss")
    label_weight = check_weight(label_weight, "label_weight")
    if isinstance(candidates, SparseTargets):
        scores = check_sparse(scores, candidates, sample_weight)
        check_width(scores, label_weight=label_weight)
        listed, states, default = candidates.select(scores), candidates.states, candidates.default
        losses = torch.where(states == NO, loss(listed, 0), 0)
        losses = torch.where(states == YES, loss(listed, 1), losses)
        if default in (NO, YES):  # a loss of every pair, corrected for those that are listed
            target = int(default == YES)
            sums = loss(scores, target).sum(dim=0)
            sums = sums + candidates.sum_by_label(losses - loss(listed, target))
        else:
            sums = candidates.sum_by_label(losses)
        per_label = sums / max(1, len(scores))
        return (per_label if label_weight is None else per_label * label_weight).mean()
    scores, targets, weight = check_batch(scores, candidates, sample_weight, states=True)
    check_width(scores, label_weight=label_weight)
    if targets.dtype == torch.int8:
        losses = torch.where(targets == YES, loss(scores, 1), 0)
        losses = torch.where(targets == NO, loss(scores, 0), losses)
    elif isinstance(loss, MarginLoss):  # computed once: phi of the margin
        losses = loss.of_margin(scores * targets.to(scores.dtype).mul_(2).sub_(1))
    else:
        losses = torch.where(targets, loss(scores, 1), loss(scores, 0))
    if label_weight is not None:
        return (mean_of_rows(losses, weight) * label_weight).mean()
    return mean_of_pairs(losses, weight)


def gdf_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    unbiased: bool = False,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the GDF risk of one batch: a sum over labels, averaged over rows that exclude any.

    .. math:: \frac1n \sum_i \Big( \sum_{j: s_{ij} = 1} \ell(g_{ij}, 1)
        + \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0) \Big)

    (Equation 12 of the paper below, which has one excluded label per row; its code does the same
    with several.) The unbiased estimator (Equation 9) assumes that, given the excluded label, all
    non-empty sets of the other labels are equally likely. It replaces :math:`\ell(g_{ij}, 1)` by
    the mean over these sets,

    .. math:: a \, \ell(g_{ij}, 1) + (1 - a) \, \ell(g_{ij}, 0), \qquad
        a = \frac{2^{q-2}}{2^{q-1} - 1} = \frac{1/2}{1 - 2^{1-q}}

    A row that excludes nothing is outside this setting and is left out. If all excluded labels are
    used, the plain form is q times BCE on the rows that exclude something.

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

    References
    ----------
    Gao, Xu and Zhang, "Unbiased Risk Estimator to Multi-Labeled Complementary Label Learning",
    IJCAI 2023.

    Examples
    --------
    >>> import torch
    >>> gdf_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor(2.0794)
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    if_candidate, if_excluded = loss(scores, 1), loss(scores, 0)
    if unbiased:
        q = _require_two_labels(scores, "GDF")
        a = 0.5 / (1 - 2.0 ** (1 - q))
        if_candidate = a * if_candidate + (1 - a) * if_excluded
    per_row = torch.where(candidates, if_candidate, if_excluded).sum(dim=1)
    excludes = (~candidates).any(dim=1)
    per_row = torch.where(excludes, per_row, 0)
    if weight is None:
        return per_row.sum() / excludes.sum().clamp(min=1)
    return mean_of_rows(per_row, weight * excludes)


def ctl_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    unbiased: bool = False,
    loss: BinaryLoss = logistic_loss,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the CTL risk of one batch: a sum over labels, averaged over rows.

    With :math:`m` excluded labels in a row, they are weighted by their number,

    .. math:: \alpha_m \sum_{j: s_{ij} = 1} \big( \ell(g_{ij}, 1) + w_{ij} \, \ell(g_{ij}, 0) \big)
        + \beta_m \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0), \qquad
        \alpha_m = e^{-2^{-m}}, \quad \beta_m = e^{2^{1-m}}

    :math:`w_{ij} = 1` for candidates that score low in their row, :math:`0 < u_{ij} \le 0.3`. Here
    u is the sigmoid of the scores, without a gradient, rescaled to [0, 1] within the row unless all
    scores of the row are equal.

    The unbiased estimator assumes that, given the excluded labels, all non-empty sets of the other
    labels are equally likely. It is the mean of the supervised loss over these sets,

    .. math:: \sum_{j: s_{ij} = 1} \big( a_m \, \ell(g_{ij}, 1) + (1 - a_m) \, \ell(g_{ij}, 0)
        \big) + \sum_{j: s_{ij} = 0} \ell(g_{ij}, 0), \qquad
        a_m = \frac{2^{q-m-1}}{2^{q-m} - 1} = \frac{1/2}{1 - 2^{m-q}}

    which for :math:`m = 1` is the unbiased GDF.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    unbiased : bool
        The unbiased estimator instead of the weighted form; needs at least two labels.
    loss : callable (scores, 0 or 1) -> tensor
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    References
    ----------
    Gao, Zhu, Xu and Zhang, "Multi-Label Learning with Multiple Complementary Labels", TPAMI 2025.

    Examples
    --------
    >>> import torch
    >>> ctl_risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(2.3046)
    >>> ctl_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]), unbiased=True)
    tensor(2.0794)
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    if_relevant, if_irrelevant = loss(scores, 1), loss(scores, 0)
    if unbiased:
        _require_two_labels(scores, "CTL")
        n_candidates = candidates.sum(dim=1, keepdim=True).to(scores)  # q - m
        a = 0.5 / (1 - 2.0 ** -n_candidates.clamp(min=1))  # unused in rows without a candidate
        if_candidate = a * if_relevant + (1 - a) * if_irrelevant
        per_row = torch.where(candidates, if_candidate, if_irrelevant).sum(dim=1)
        return mean_of_rows(per_row, weight)
    m = (~candidates).sum(dim=1).to(scores)
    alpha, beta = torch.exp(-(2.0**-m)), torch.exp(2.0 ** (1 - m))
    u = scores.detach().sigmoid()
    lowest, highest = u.amin(dim=1, keepdim=True), u.amax(dim=1, keepdim=True)
    spread = highest - lowest
    u = torch.where(spread > 0, (u - lowest) / torch.where(spread > 0, spread, 1), u)
    w = ((u > 0) & (u <= LOW)).to(scores)
    if_candidate = if_relevant + w * if_irrelevant
    zero = scores.new_zeros(())
    of_candidates = torch.where(candidates, if_candidate, zero).sum(dim=1)
    of_excluded = torch.where(candidates, zero, if_irrelevant).sum(dim=1)
    return mean_of_rows(alpha * of_candidates + beta * of_excluded, weight)


def mlcl_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    transition: Tensor,  # T, columns sum to 1, (q, q)
    *,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the MLCL risk of one batch: excluded labels predicted through a transition matrix.

    With :math:`T_{jk}` the probability that label j is excluded if label k is relevant, the
    network's probabilities :math:`\sigma(g_i)` predict the excluded labels as
    :math:`v_i = T \sigma(g_i)`:

    .. math:: \frac{1}{nq} \sum_i \sum_j \mathrm{BCE}(v_{ij}, 1 - s_{ij})
        + \Big( \sum_i \sum_j (1 - s_{ij} - v_{ij})^2 \Big)^{1/2}

    The norm is over the whole batch and not squared. The authors' code takes v for a logit in the
    first term, though it is a mixture of probabilities; here it is a probability.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    transition : float tensor of shape (n_labels, n_labels)
        Entry (j, k): the probability that label j is excluded if label k is relevant.
        `comes.priors.estimate_transition` estimates it.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows, also in the norm, which grows with the weights.

    Returns
    -------
    risk : scalar tensor

    References
    ----------
    Gao, Xu and Zhang, "Complementary to Multiple Labels: A Correlation-Aware Correction Approach",
    TPAMI 2024.

    Examples
    --------
    >>> import torch
    >>> swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> mlcl_risk(torch.tensor([[9.0, -9.0]]), torch.tensor([[True, False]]), swapped)
    tensor(0.0003)
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    transition, q = as_tensor(transition, "transition"), scores.shape[1]
    if transition.shape != (q, q):
        raise ComesError(
            f"scores for {q} labels need a transition matrix of shape {(q, q)}; got "
            f"{tuple(transition.shape)}."
        )
    if may_read(transition) and not ((transition >= 0) & (transition <= 1)).all():
        raise ComesError(
            "transition must hold probabilities, in [0, 1]; got values from "
            f"{float(transition.min()):g} to {float(transition.max()):g}. Estimate it with "
            "comes.priors.estimate_transition."
        )
    with torch.autocast(scores.device.type, enabled=False):  # the product needs full precision
        excluded = excluded_mask(candidates, scores)
        v = scores.sigmoid() @ transition.to(scores).T
        inside = v.clamp(EPSILON, 1 - EPSILON)
        entropy = F.binary_cross_entropy(inside, excluded, reduction="none")
        squares = times_weight((excluded - v).square(), weight)
        return mean_of_pairs(entropy, weight) + squares.sum().clamp(min=EPSILON**2).sqrt()


def comrank_risk(
    scores: Tensor,  # g, real, (n, q)
    candidates: Tensor,  # s, bool, (n, q)
    *,
    pair_loss: Function = F.softplus,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the ComRank risk of one batch: a sum over pairs, averaged over rows.

    An excluded label should rank below the candidates of its row:

    .. math:: \frac1n \sum_i \sum_{j: s_{ij} = 0} \sum_{k: s_{ik} = 1}
        \phi\big( \sigma(g_{ij}) - \sigma(g_{ik}) \big)

    With one excluded label per row and :math:`\phi = \exp` this is the loss of the paper. For
    several, its code has :math:`\phi(z) = \log(1 + e^z)`, the default here.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
    candidates : bool tensor of shape (n_samples, n_labels)
    pair_loss : callable tensor -> tensor
        The phi of the difference of two probabilities, elementwise and increasing.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    risk : scalar tensor

    References
    ----------
    "ComRank: Ranking Loss for Multi-Label Complementary Label Learning", NeurIPS 2025.

    Examples
    --------
    >>> import torch
    >>> comrank_risk(torch.zeros(1, 3), torch.tensor([[True, True, False]]), pair_loss=torch.exp)
    tensor(2.)
    """
    scores, candidates, weight = check_batch(scores, candidates, sample_weight)
    check_callable(pair_loss, "pair_loss")
    excluded = excluded_mask(candidates, scores)
    weighted, others = times_weight(excluded, weight), 1 - excluded
    sums = sum_over_pairs(scores.sigmoid(), weighted, pair_loss, others=others)
    return sums.sum() / count_rows(scores, weight).clamp(min=SMALLEST_WEIGHT)


class BaselineRisk(nn.Module):
    """A risk function with its parameters, of which tensors move with ``.to(device)``.

    As buffers, these can be stacked: `comes.training.stacked` trains with many risks at once.
    """

    def __init__(self, function: Callable[..., Tensor], **parameters: Any) -> None:
        super().__init__()
        self.function = function
        self.options = {}
        for name, value in parameters.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                self.options[name] = value

    def forward(
        self,
        scores: Tensor,
        candidates: Tensor | SparseTargets,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        parameters = {**self._buffers, **self.options}
        return self.function(scores, candidates, sample_weight=sample_weight, **parameters)


class BceRisk(BaselineRisk):
    """`bce_risk` as a module.

    Examples
    --------
    >>> import torch
    >>> risk = BceRisk()
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.6931)
    """

    def __init__(
        self, *, loss: BinaryLoss = logistic_loss, label_weight: Tensor | None = None
    ) -> None:
        label_weight = check_weight(label_weight, "label_weight")
        super().__init__(bce_risk, loss=loss, label_weight=label_weight)

    def select_labels(self, labels: slice | Tensor) -> "BceRisk":
        """Return the risk of some labels, by index; the whole is the mean over labels."""
        weight = self._buffers.get("label_weight")
        weight = None if weight is None else weight[labels]
        return BceRisk(loss=self.options["loss"], label_weight=weight)


def _require_two_labels(scores: Tensor, title: str) -> int:
    """Return the number of labels, which an unbiased form needs to be two or more."""
    q = scores.shape[1]
    if q < 2:
        raise ComesError(
            f"the unbiased form of {title} needs at least two labels; got {q}. Take the plain form."
        )
    return q
