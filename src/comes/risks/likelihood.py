r"""The likelihood of answers: candidates, "no", "yes" and "maybe" by one formula.

With :math:`\eta = \sigma(g)` the probability that a label is relevant, and
:math:`w_0, w_1` the probabilities of what was said about a pair if it is irrelevant or relevant,

.. math:: -\log\big( w_0 (1 - \eta) + w_1 \eta \big)
    = -\log\big( 1 - |r| \, \sigma(-t) \big) + \text{constant},
    \qquad t = \operatorname{sign}(r) \, g

where the *leaning* r in [-1, 1] holds the ratio of the two (`comes.answers.lean_states`): "no" is
-1, "yes" is 1, a pair that nobody was asked about is 0 and costs nothing, and a label that is still
possible leans by its exclude rate p: :math:`-\log(1 - p (1 - \eta))`. On full answers this is BCE.
It adds up over rows, so parts of a batch and processes need nothing special.

Class priors that are known keep the mean probability of a batch near them: a penalty, the
divergence of the two, which does not add up over rows.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from comes.answers import AnswerRates, State, lean_states
from comes.risks.excluded import check_answers, check_prior, in_full_precision


def likelihood_risk(
    scores: Tensor,  # g, real, (n, q)
    answers: Tensor,  # bool, int8 or real, (n, q)
    no_rate: Tensor,  # a, or p for candidates, in [0, 1], (q,)
    yes_rate: Tensor | None = None,  # b, in [0, 1], (q,)
    *,
    mistake_rate: float = 0.0,
    label_weight: Tensor | None = None,
    class_prior: Tensor | None = None,
    prior_weight: float = 1.0,
) -> Tensor:
    """Return minus the mean log-likelihood of answers, up to a constant.

    Parameters
    ----------
    scores : float tensor of shape (n_samples, n_labels)
        Raw scores (logits). Half precision is computed in float32.
    answers : tensor of shape (n_samples, n_labels)
        bool: candidates, True where the label is still possible. int8: `comes.answers.State`, 0 not
        asked, 1 no, 2 yes, 3 maybe. float: `comes.answers.lean_answers`, where several people
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
    return risk.to(scores.device).forward(scores, answers)


class LikelihoodRisk(nn.Module):
    """`likelihood_risk` as a module that keeps its rates and moves with ``.to(device)``.

    Examples
    --------
    >>> risk = LikelihoodRisk(no_rate=torch.tensor([0.5, 0.5]))
    >>> risk(torch.zeros(1, 2), torch.tensor([[True, False]]))
    tensor(0.4904)
    """

    leanings: Tensor  # of every state, (4, q)
    label_weight: Tensor | None
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
        a = check_prior(torch.as_tensor(no_rate), "no_rate").cpu().double().numpy()
        b = np.zeros_like(a)
        if yes_rate is not None:
            b = check_prior(torch.as_tensor(yes_rate), "yes_rate").cpu().double().numpy()
        leanings = torch.as_tensor(lean_states(AnswerRates(a, b, mistake_rate)))
        self.register_buffer("leanings", leanings.to(torch.float32))
        self.register_buffer("label_weight", label_weight)
        prior = None if class_prior is None else check_prior(class_prior)
        self.register_buffer("class_prior", prior)
        self.prior_weight = prior_weight

    def forward(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return the scalar risk of one batch."""
        check_answers(scores, answers)
        scores = in_full_precision(scores)
        leaning = _lean_pairs(answers, self.leanings.to(scores.dtype))
        losses: Tensor = _LeaningLoss.apply(scores, leaning)[0]  # type: ignore[no-untyped-call]
        of_labels = losses.mean(dim=0)
        if self.label_weight is not None:
            of_labels = of_labels * self.label_weight
        if self.class_prior is not None:
            of_labels = of_labels + self.prior_weight * _diverge(scores, self.class_prior)
        return of_labels.mean()


def _lean_pairs(answers: Tensor, leanings: Tensor) -> Tensor:
    """Return how far what was said about every pair leans, (n, q)."""
    if answers.is_floating_point():
        return answers.to(leanings.dtype)
    if answers.dtype == torch.bool:
        return torch.where(answers, leanings[State.MAYBE], leanings[State.NO])
    return leanings.gather(0, answers.long())


class _LeaningLoss(torch.autograd.Function):
    """-log(1 - |r| sigmoid(-t)) and its gradient, exact wherever float32 can hold them."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, leaning: Tensor) -> tuple[Tensor, Tensor]:
        size = leaning.abs()
        t = leaning.sign() * scores
        log_rest = torch.log1p(-size)  # log(1 - |r|), minus infinity for "no" and "yes"
        below = torch.sigmoid(-t)
        # Below zero, 1 - |r| sigmoid(-t) would cancel; above, the difference of logarithms would.
        at_most = F.softplus(t) - torch.logaddexp(log_rest, t)
        losses = torch.where(t < 0, at_most, -torch.log1p(-size * below))
        slope = -leaning * below * torch.sigmoid(t - log_rest)
        return losses, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return gradient * slope, None


def _diverge(scores: Tensor, class_prior: Tensor) -> Tensor:
    """Return the divergence of the batch's mean probability from the class prior, (q,)."""
    log_mean, log_rest = (torch.logsumexp(F.logsigmoid(g), dim=0) for g in (scores, -scores))
    log_n = np.log(len(scores))
    prior = class_prior.to(scores)
    cross: Tensor = -prior * (log_mean - log_n) - (1 - prior) * (log_rest - log_n)
    own: Tensor = torch.special.xlogy(prior, prior) + torch.special.xlogy(1 - prior, 1 - prior)
    return cross + own
