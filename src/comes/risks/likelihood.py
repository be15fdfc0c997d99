r"""The likelihood of answers: candidates, "no", "yes" and "maybe" by one formula.

With :math:`\eta = \sigma(g)` the probability that a label is relevant, and
:math:`w_0, w_1` the probabilities of the answer about a pair if it is irrelevant or relevant,

.. math:: -\log\big( w_0 (1 - \eta) + w_1 \eta \big)
    = -\log\big( 1 - |r| \, \sigma(-t) \big) + \text{constant},
    \qquad t = \operatorname{sign}(r) \, g

where the *evidence* r in [-1, 1] holds the ratio of the two (`comes.answers.state_evidence`): "no"
is -1, "yes" is 1, a pair that nobody was asked about is 0 and costs nothing, and a label still
possible has its exclude rate p: :math:`-\log(1 - p (1 - \eta))`. On full answers this is BCE.
It adds up over rows, so parts of a batch and processes need nothing special.
The loss defines its own gradient, so it cannot be differentiated twice.

Class priors that are known keep the mean probability of a batch near them: a penalty, the
divergence of the two, which does not add up over rows.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from comes.answers import AnswerRates, State
from comes.answers.evidence import state_evidence
from comes.errors import ComesError
from comes.risks.checks import (
    MAYBE,
    NO,
    SMALLEST_WEIGHT,
    as_tensor,
    check_batch,
    check_optional_rate,
    check_rate,
    check_weight,
    check_width,
)
from comes.risks.sparse import SparseTargets, check_sparse

SURE = 1e-6  # mean probabilities are kept this far from 0 and 1
FAR = 80.0  # exp(80) and exp(-80) are numbers in single precision


def likelihood_risk(
    scores: Tensor,  # g, real, (n, q)
    answers: Tensor | SparseTargets,  # bool, int8 or real, (n, q)
    no_rate: Tensor,  # a, or p for candidates, in [0, 1], (q,)
    yes_rate: Tensor | None = None,  # b, in [0, 1], (q,)
    *,
    mistake_rate: float = 0.0,
    label_weight: Tensor | None = None,
    class_prior: Tensor | None = None,
    prior_weight: float = 1.0,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return minus the mean log-likelihood of answers, up to a constant.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
        Raw scores (logits). Half precision is computed in float32.
    answers : tensor of shape (n_samples, n_labels), or SparseTargets
        bool: candidates, True where the label is still possible. int8: `comes.answers.State`, 0 not
        asked, 1 no, 2 yes, 3 maybe. float: `comes.answers.answer_evidence`, where several people
        answered; the rates are in them already.
    no_rate : float tensor of shape (n_labels,)
        How often an irrelevant pair that is asked about is called "no"; for candidates, how often
        an irrelevant label is excluded.
    yes_rate : float tensor of shape (n_labels,), optional
        How often a relevant pair that is asked about is called "yes"; by default, and where it is
        0, nobody can say yes.
    mistake_rate : float
        How often a relevant pair is called "no", or an irrelevant one "yes". Above 0 it bounds what
        one mistake can cost.
    label_weight : float tensor of shape (n_labels,), optional
        Multiplies the losses of a label. Where little is known about a label, 1 / (share of pairs
        with an answer) gives it the same say as others.
    class_prior : float tensor of shape (n_labels,), optional
        How often each label is relevant, if that is known. The mean probability of the batch is
        then kept near it.
    prior_weight : float
        The weight of that penalty.
    sample_weight : float tensor of shape (n_samples,), optional
        A row of weight 2 counts as two rows, also in the mean probability.

    Returns
    -------
    risk : scalar tensor
        The mean over rows and labels.

    Examples
    --------
    >>> import torch
    >>> scores, half = torch.zeros(1, 2), torch.tensor([0.5, 0.5])
    >>> likelihood_risk(scores, torch.tensor([[True, False]]), half)
    tensor(0.4904)
    >>> likelihood_risk(scores, torch.tensor([[1, 2]], dtype=torch.int8), half, half)  # no, yes
    tensor(0.6931)
    """
    risk = LikelihoodRisk(
        no_rate,
        yes_rate,
        mistake_rate=mistake_rate,
        label_weight=label_weight,
        class_prior=class_prior,
        prior_weight=prior_weight,
    )
    scores = as_tensor(scores, "scores")
    return risk.to(scores.device).forward(scores, answers, sample_weight)


class LikelihoodRisk(nn.Module):
    """`likelihood_risk` as a module that keeps its rates and moves with ``.to(device)``.

    Examples
    --------
    >>> import torch
    >>> risk = LikelihoodRisk(no_rate=torch.tensor([0.5, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.4904)
    """

    evidence: Tensor  # r of every state, (4, q)
    label_weight: Tensor  # over q, so that the weighted sum over labels is a mean, (q,)
    class_prior: Tensor | None

    def __init__(
        self,
        no_rate: Tensor,
        yes_rate: Tensor | None = None,
        *,
        mistake_rate: float = 0.0,
        label_weight: Tensor | None = None,
        class_prior: Tensor | None = None,
        prior_weight: float = 1.0,
    ) -> None:
        super().__init__()
        if no_rate is None:
            raise ComesError("no_rate must hold one number in [0, 1] for each label; got None.")
        a = check_rate(no_rate, "no_rate")
        b = torch.zeros_like(a) if yes_rate is None else check_rate(yes_rate, "yes_rate")
        label_weight = check_weight(label_weight, "label_weight")
        class_prior = check_optional_rate(class_prior, "class_prior")
        check_width(a, yes_rate=b, label_weight=label_weight, class_prior=class_prior)
        if not 0 <= mistake_rate < 0.5:
            raise ComesError(
                f"mistake_rate must be at least 0 and below 0.5; got {mistake_rate!r}."
            )
        no, yes = (rate.detach().cpu().double().numpy() for rate in (a, b))
        evidence = torch.as_tensor(state_evidence(AnswerRates(no, yes, mistake_rate)))
        precision = torch.promote_types(a.dtype, torch.float32)
        weight = torch.ones(len(a), dtype=precision) if label_weight is None else label_weight
        self.register_buffer("evidence", evidence.to(precision))
        self.register_buffer("label_weight", weight / len(a))
        self.register_buffer("class_prior", class_prior)
        self.prior_weight = prior_weight
        self.can_say_yes = bool(b.any())
        self.only_excludes = mistake_rate == 0 and not self.can_say_yes

    @property
    def costs_unasked(self) -> bool:
        """Whether pairs that nobody was asked about count: they do where a prior is kept."""
        return self.class_prior is not None

    def select_labels(self, labels: slice | Tensor) -> "LikelihoodRisk":
        """Return the risk of some labels, by index; the whole is the mean over labels."""
        part, weight = copy.copy(self), self.label_weight[labels]
        part._buffers = {
            "evidence": self.evidence[:, labels],
            "label_weight": weight * (len(self.label_weight) / len(weight)),  # it is over q
            "class_prior": None if self.class_prior is None else self.class_prior[labels],
        }
        return part

    def forward(
        self, scores: Tensor, answers: Tensor | SparseTargets, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        if isinstance(answers, SparseTargets):
            scores = check_sparse(scores, answers, sample_weight)
            check_width(scores, no_rate=self.label_weight)
            value, slopes = self._sparse_risk(scores.detach(), answers)
            divisor = 1
        else:
            scores, answers, sample_weight = check_batch(
                scores, answers, sample_weight, states=True, evidence=True
            )
            check_width(scores, no_rate=self.label_weight)
            value, slopes = self._dense_risk(scores.detach(), answers, sample_weight)
            divisor = -len(scores)
        # ``Function.apply`` looks up default arguments, which on small batches takes longer than
        # the loss. Only vmap and the compiler need it.
        needs_all = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
        apply = _Sloped.apply if needs_all else super(torch.autograd.Function, _Sloped).apply
        risk: Tensor = apply(scores, value, slopes, divisor)  # type: ignore[no-untyped-call]
        return risk

    def _dense_risk(
        self, scores: Tensor, answers: Tensor, sample_weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the risk of a matrix of answers, and minus n times its gradient, (n, q)."""
        evidence, weight = self.evidence.to(scores.dtype), self.label_weight.to(scores.dtype)
        is_bool = answers.dtype == torch.bool
        if is_bool and self.can_say_yes:
            raise ComesError(
                "yes_rate is for answers, and candidates (bool) do not say yes. Leave it out, or "
                "give states (int8, Answers.codes)."
            )
        if is_bool and self.only_excludes:
            losses, descents = candidate_loss(scores, answers, evidence[MAYBE])
        else:
            losses, descents = evidence_loss(scores, _evidence_of_pairs(answers, evidence))
        row_weight = None  # with mean 1, (n, 1)
        if sample_weight is not None:
            row_weight = (sample_weight / sample_weight.mean().clamp(min=SMALLEST_WEIGHT))[:, None]
            losses = losses * row_weight
        descents.mul_(weight)
        risk = torch.dot(losses.mean(dim=0), weight)  # autocast would round a @
        if self.class_prior is not None:
            away, pull = prior_divergence(scores, self.class_prior, row_weight)
            share = self.prior_weight / len(weight)
            risk = risk.add(away, alpha=share)
            descents.add_(pull, alpha=share)
        return risk, descents if row_weight is None else descents * row_weight

    def _sparse_risk(self, scores: Tensor, targets: SparseTargets) -> tuple[Tensor, Tensor]:
        """Return the risk by index, and its gradient: all pairs as unlisted, then corrected."""
        evidence, weight = self.evidence.to(scores), self.label_weight.to(scores)
        n, pairs = max(1, len(scores)), (targets.rows, targets.labels)
        share, weight = self.prior_weight / len(weight), weight / n
        listed, listed_weight = scores[pairs], weight[targets.labels]
        losses, descents = evidence_loss(listed, evidence[targets.states.long(), targets.labels])
        if targets.default == State.NOT_ASKED:
            sums, slopes = torch.zeros_like(weight), torch.zeros_like(scores)
        else:
            of_default = evidence[targets.default]
            sums, slopes = default_loss(scores, of_default, weight)
            losses = losses - evidence_loss(listed, of_default[targets.labels])[0]
        slopes[pairs] = -descents * listed_weight
        risk = torch.dot(sums, weight) + torch.dot(losses, listed_weight)
        if self.class_prior is not None:
            away, pull = prior_divergence(scores, self.class_prior, None)
            risk = risk.add(away, alpha=share)
            slopes.sub_(pull, alpha=share / n)
        return risk, slopes


class _Sloped(torch.autograd.Function):
    """A value computed without autograd, whose gradient by the scores is slopes / divisor."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, value: Tensor, slopes: Tensor, divisor: int) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])
        ctx.divisor = inputs[3]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return slopes * (gradient / ctx.divisor), None, None, None


def _evidence_of_pairs(answers: Tensor, evidence: Tensor) -> Tensor:
    """Return r of every pair, (n, q)."""
    if answers.is_floating_point():
        return answers.to(evidence.dtype)
    if answers.dtype == torch.bool:
        return torch.where(answers, evidence[MAYBE], evidence[NO])
    try:
        return evidence.gather(0, answers.long())
    except RuntimeError as error:  # a check beforehand would cost a pass over the batch
        if "index" not in str(error):
            raise
        raise ComesError(
            "answers (int8) must be 0 not asked, 1 no, 2 yes or 3 maybe; got other numbers. Take "
            "them from Answers.codes."
        ) from error


def evidence_loss(g: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses log(1 + |r| / (1 - |r| + e^t)), and minus their slopes, each (n, q).

    This form of the loss has no difference that could cancel. Few passes, as each costs time.
    """
    t = (g * r.sign()).clamp(min=-FAR)
    surely = (g * r.trunc()).neg_()  # -t where |r| = 1: what the loss is where e^t underflows
    odds = r / t.exp().add_(1 - r.abs())
    losses = torch.maximum(odds.abs().log1p_(), surely)
    return losses, t.sigmoid_().mul_(odds)


def candidate_loss(g: Tensor, possible: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """Return `evidence_loss` where nobody says yes: r is p for what is possible, else -1."""
    odds = p / g.exp().add_(1 - p)
    losses = torch.where(possible, odds.log1p(), F.softplus(g))
    return losses, torch.where(possible, odds, -1).mul_(g.sigmoid())


def default_loss(g: Tensor, r: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return sums over rows, (q,), of `evidence_loss` for one r a label, |r| < 1.

    The second are their slopes times the weight of the label, (n, q).
    """
    size, side = r.abs(), r.sign()
    odds = g * side
    slopes = odds.sigmoid()
    torch.div(size, odds.exp_().add_(1 - size), out=odds)
    slopes.mul_(odds).mul_(side * -weight)
    return odds.log1p_().sum(dim=0), slopes


def prior_divergence(
    scores: Tensor, class_prior: Tensor, row_weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return how far mean probabilities are from their prior, over labels, and the way back.

    The sum of divergences of Bernoulli distributions, and minus n times its gradient, (n, q).
    """
    probability, prior = scores.sigmoid(), class_prior.to(scores)
    weighted = probability if row_weight is None else probability * row_weight
    mean = weighted.mean(dim=0).clamp(SURE, 1 - SURE)
    rest, other = 1 - mean, 1 - prior
    away = torch.special.xlogy(prior, prior / mean).add_(torch.special.xlogy(other, other / rest))
    slope = (prior - mean).div_(rest.mul_(mean))
    return away.sum(), torch.addcmul(probability, probability, probability, value=-1).mul_(slope)
