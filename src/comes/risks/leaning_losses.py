"""Losses of pairs by how far their answers lean, and their slopes (`comes.risks.likelihood`)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from comes.answers import State
from comes.risks.said_pairs import SparseTargets

SURE = 1e-6  # mean probabilities are kept this far from 0 and 1
FAR = 80.0  # exp(80) and exp(-80) are numbers in single precision


def lose_by_leaning(g: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses log(1 + |r| / (1 - |r| + e^t)), and minus their slopes, each (n, q).

    This form of the loss has no difference that could cancel. Few passes, as each costs time.
    """
    t = (g * r.sign()).clamp(min=-FAR)
    surely = (g * r.trunc()).neg_()  # -t where |r| = 1: what the loss is where e^t underflows
    odds = r / t.exp().add_(1 - r.abs())
    losses = torch.maximum(odds.abs().log1p_(), surely)
    return losses, t.sigmoid_().mul_(odds)


def lose_by_candidates(g: Tensor, possible: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same where nobody says yes: r is p for what is possible, else -1."""
    odds = p / g.exp().add_(1 - p)
    losses = torch.where(possible, odds.log1p(), F.softplus(g))
    return losses, torch.where(possible, odds, -1).mul_(g.sigmoid())


def diverge(probability: Tensor, prior: Tensor, of_rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return how far mean probabilities are from their prior, over labels, and the way back.

    The sum of divergences of Bernoulli distributions, and minus n times its gradient, (n, q).
    """
    weighted = probability if of_rows is None else probability * of_rows
    mean = weighted.mean(dim=0).clamp(SURE, 1 - SURE)
    rest, other = 1 - mean, 1 - prior
    away = torch.special.xlogy(prior, prior / mean).add_(torch.special.xlogy(other, other / rest))
    slope = (prior - mean).div_(rest.mul_(mean))
    return away.sum(), torch.addcmul(probability, probability, probability, value=-1).mul_(slope)


def said_loss(
    scores: Tensor,
    said: SparseTargets,
    leanings: Tensor,  # of every state, (4, q)
    weight: Tensor,  # of every label, over q, (q,)
    class_prior: Tensor | None,
    prior_weight: float,
) -> Tensor:
    """Return the mean over rows, and weighted sum over labels, where pairs are given by index."""
    of_pairs = leanings[said.states.long(), said.labels]
    of_silence = None if said.silence == State.NOT_ASKED else leanings[said.silence]
    value: Tensor = _SaidLoss.apply(  # type: ignore[no-untyped-call]
        scores, said, of_pairs, of_silence, weight, class_prior, prior_weight
    )
    return value


class _SaidLoss(torch.autograd.Function):
    """Every pair costs what silence costs, in one pass; pairs with an answer what they say."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        said: SparseTargets,
        of_pairs: Tensor,
        of_silence: Tensor | None,
        weight: Tensor,
        class_prior: Tensor | None,
        prior_weight: float,
    ) -> Tensor:
        places, weight = (said.rows, said.labels), weight / max(1, len(scores))
        own, own_weight = scores[places], weight[said.labels]
        losses, descents = lose_by_leaning(own, of_pairs)
        if of_silence is None:
            sums, slopes = torch.zeros_like(weight), torch.zeros_like(scores)
        else:
            sums, slopes = _lose_by_silence(scores, of_silence, weight)
            losses = losses - lose_by_leaning(own, of_silence[said.labels])[0]
        slopes[places] = -descents * own_weight
        risk = torch.dot(sums, weight) + torch.dot(losses, own_weight)
        if class_prior is not None:
            away, pull = diverge(scores.sigmoid(), class_prior, None)
            share = prior_weight / len(class_prior)
            risk = risk.add(away, alpha=share)
            slopes.sub_(pull, alpha=share / max(1, len(scores)))
        ctx.save_for_backward(slopes)
        return risk

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return slopes * gradient, None, None, None, None, None, None


def _lose_by_silence(g: Tensor, r: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return sums over rows, (q,), of `lose_by_leaning` for one r a label, |r| < 1.

    The second are their slopes times the weight of the label, (n, q).
    """
    size, side = r.abs(), r.sign()
    odds = g * side
    slopes = odds.sigmoid()
    torch.div(size, odds.exp_().add_(1 - size), out=odds)
    slopes.mul_(odds).mul_(side * -weight)
    return odds.log1p_().sum(dim=0), slopes
