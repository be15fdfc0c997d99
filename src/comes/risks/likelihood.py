r"""The likelihood of answers: candidates, "no", "yes" and "maybe" by one formula.

With :math:`\eta = \sigma(g)` the probability that a label is relevant, and
:math:`w_0, w_1` the probabilities of what was said about a pair if it is irrelevant or relevant,

.. math:: -\log\big( w_0 (1 - \eta) + w_1 \eta \big)
    = -\log\big( 1 - |r| \, \sigma(-t) \big) + \text{constant},
    \qquad t = \operatorname{sign}(r) \, g

where the *leaning* r in [-1, 1] holds the ratio of the two (`comes.answers.state_evidence`): "no"
is -1, "yes" is 1, a pair that nobody was asked about is 0 and costs nothing, and a label still
possible leans by its exclude rate p: :math:`-\log(1 - p (1 - \eta))`. On full answers this is BCE.
It adds up over rows, so parts of a batch and processes need nothing special.
The loss defines its own gradient, so it cannot be differentiated twice.

Class priors that are known keep the mean probability of a batch near them: a penalty, the
divergence of the two, which does not add up over rows.
"""

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from comes.answers import AnswerRates, State
from comes.answers.evidence import state_evidence
from comes.errors import ComesError
from comes.risks.excluded import (
    SMALLEST_WEIGHT,
    as_tensor,
    check_answers,
    check_prior,
    check_weight,
    check_weights,
    check_width,
    in_full_precision,
    optional_tensor,
)
from comes.risks.leaning_losses import (
    diverge,
    lose_by_candidates,
    lose_by_leaning,
    said_loss,
)
from comes.risks.said_pairs import SparseTargets, check_said


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
    >>> risk = LikelihoodRisk(no_rate=torch.tensor([0.5, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.4904)
    """

    leanings: Tensor  # of every state, (4, q)
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
        a = check_prior(no_rate, "no_rate")
        b = torch.zeros_like(a) if yes_rate is None else check_prior(yes_rate, "yes_rate")
        label_weight = optional_tensor(label_weight, "label_weight")
        class_prior = None if class_prior is None else check_prior(class_prior)
        check_width(a, yes_rate=b, label_weight=label_weight, class_prior=class_prior)
        check_weights(label_weight, "label_weight")
        if not 0 <= mistake_rate < 0.5:
            raise ComesError(
                f"mistake_rate must be at least 0 and below 0.5; got {mistake_rate!r}."
            )
        rates = AnswerRates(_as_array(a), _as_array(b), mistake_rate)
        precision = torch.promote_types(a.dtype, torch.float32)
        self.register_buffer("leanings", torch.as_tensor(state_evidence(rates), dtype=precision))
        weight = torch.ones(len(a), dtype=precision) if label_weight is None else label_weight
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
        """Return the risk of some labels, by place; the whole is the mean over labels."""
        part, weight = copy.copy(self), self.label_weight[labels]
        part._buffers = {
            "leanings": self.leanings[:, labels],
            "label_weight": weight * (len(self.label_weight) / len(weight)),  # it is over q
            "class_prior": None if self.class_prior is None else self.class_prior[labels],
        }
        return part

    def forward(
        self, scores: Tensor, answers: Tensor | SparseTargets, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Return the scalar risk of one batch."""
        if isinstance(answers, SparseTargets):
            check_said(scores, answers, sample_weight)
            check_width(scores, no_rate=self.label_weight)
            scores, prior = in_full_precision(scores), self.class_prior
            leanings, weight = self.leanings.to(scores), self.label_weight.to(scores)
            prior = None if prior is None else prior.to(scores)
            return said_loss(scores, answers, leanings, weight, prior, self.prior_weight)
        scores, answers = check_answers(scores, answers)
        if self.can_say_yes and answers.dtype == torch.bool:
            raise ComesError(
                "yes_rate is for answers, and candidates (bool) do not say yes. Leave it out, or "
                "give states (int8, Answers.codes)."
            )
        weight = self.label_weight  # as many as rates
        check_width(scores, no_rate=weight)
        scores = in_full_precision(scores)
        leanings, exclude_rate = self.leanings.to(scores.dtype), None
        if self.only_excludes and answers.dtype == torch.bool:
            exclude_rate = leanings[State.MAYBE]
        else:
            answers = _lean_pairs(answers, leanings)
        prior = None if self.class_prior is None else self.class_prior.to(scores.dtype)
        weight = weight.to(scores.dtype)
        of_rows = _relative_weight(check_weight(scores, sample_weight))
        return _mean_loss(scores, answers, exclude_rate, weight, prior, self.prior_weight, of_rows)


def _relative_weight(weight: Tensor | None) -> Tensor | None:
    """Return the weights of the rows over their mean, as a column, (n, 1)."""
    if weight is None:
        return None
    return (weight / weight.mean().clamp(min=SMALLEST_WEIGHT))[:, None]


def _as_array(values: Tensor) -> npt.NDArray[np.float64]:
    """Return a tensor as an array in double precision."""
    array: npt.NDArray[np.float64] = values.detach().cpu().double().numpy()
    return array


def _lean_pairs(answers: Tensor, leanings: Tensor) -> Tensor:
    """Return how far what was said about every pair leans, (n, q)."""
    if answers.is_floating_point():
        return answers.to(leanings.dtype)
    if answers.dtype == torch.bool:
        return torch.where(answers, leanings[State.MAYBE], leanings[State.NO])
    try:
        return leanings.gather(0, answers.long())
    except RuntimeError as error:  # a check beforehand would cost a pass over the batch
        if "index" not in str(error):
            raise
        raise ComesError(
            "answers (int8) must be 0 not asked, 1 no, 2 yes or 3 maybe; got other numbers. Take "
            "them from Answers.codes."
        ) from error


class _MeanLoss(torch.autograd.Function):
    """The mean over rows, and weighted sum over labels, of the losses, and its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        scores: Tensor,
        answers: Tensor,
        exclude_rate: Tensor | None,
        weight: Tensor,
        class_prior: Tensor | None,
        prior_weight: float,
        of_rows: Tensor | None,  # weights with mean 1, (n, 1)
    ) -> tuple[Tensor, Tensor]:
        if exclude_rate is None:
            losses, descents = lose_by_leaning(scores, answers)
        else:
            losses, descents = lose_by_candidates(scores, answers, exclude_rate)
        if of_rows is not None:
            losses = losses * of_rows
        descents.mul_(weight)
        risk = torch.dot(losses.mean(dim=0), weight)  # autocast would round a @
        if class_prior is not None:
            away, pull = diverge(scores.sigmoid(), class_prior, of_rows)
            share = prior_weight / len(class_prior)
            risk = risk.add(away, alpha=share)
            descents.add_(pull, alpha=share)
        return risk, descents if of_rows is None else descents * of_rows

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (descents,) = ctx.saved_tensors
        return descents * (gradient / -len(descents)), None, None, None, None, None, None


def _mean_loss(*arguments: Tensor | float | None) -> Tensor:
    """Return the value of `_MeanLoss`, on the shortest way that is open.

    ``Function.apply`` looks up default arguments, which on small batches takes longer than the
    loss. Only vmap and the compiler need it.
    """
    needs_all = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
    apply = _MeanLoss.apply if needs_all else super(torch.autograd.Function, _MeanLoss).apply
    value: Tensor = apply(*arguments)[0]  # type: ignore[no-untyped-call]
    return value
