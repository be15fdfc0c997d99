"""Every risk in one table: its function, its module and what it learns from."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from comes import risks
from comes.risks import hinge_loss, ramp_loss
from comes.risks.baselines import BaselineRisk
from drawn_problems import N, Q, annotate, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)
EVIDENCE = torch.linspace(-1, 1, N * Q, dtype=torch.float64).reshape(N, Q)

Function = Callable[[Tensor, Tensor], Tensor]


class Case(NamedTuple):
    """A risk: for q labels, the function and the module; its targets; and what it is not."""

    make: Callable[[int], tuple[Function, nn.Module]]
    targets: Tensor = CANDIDATES
    is_smooth: bool = True
    needs_two_labels: bool = False


def rates(q: int) -> Tensor:
    return torch.linspace(0.1, 0.6, q, dtype=torch.float64)


def transition(q: int) -> Tensor:
    """Columns that sum to 1, with a zero diagonal."""
    matrix = torch.rand(q, q, generator=torch.Generator().manual_seed(0)) * (1 - torch.eye(q))
    return (matrix / matrix.sum(dim=0).clamp(min=1e-9)).double()


RISKS: dict[str, Case] = {
    "hamming": Case(
        lambda q: (
            lambda g, s: risks.hamming_risk(g, s, rates(q)),
            risks.HammingRisk(rates(q)),
        ),
    ),
    "hamming of states": Case(
        lambda q: (
            lambda g, s: risks.hamming_risk(g, s, rates(q), asked_share=rates(q)),
            risks.HammingRisk(rates(q), asked_share=rates(q)),
        ),
        STATES,
    ),
    "ranking": Case(
        lambda q: (
            lambda g, s: risks.ranking_risk(g, s, rates(q)),
            risks.RankingRisk(rates(q)),
        ),
    ),
    "ranking, flooded": Case(
        lambda q: (
            lambda g, s: risks.ranking_risk(g, s, rates(q), flood_level=100.0),  # where it acts
            risks.RankingRisk(rates(q), flood_level=100.0),
        ),
    ),
    "likelihood": Case(
        lambda q: (
            lambda g, s: risks.likelihood_risk(g, s, rates(q)),
            risks.LikelihoodRisk(rates(q)),
        ),
    ),
    "likelihood with mistakes and a prior": Case(
        lambda q: (
            lambda g, s: risks.likelihood_risk(
                g, s, rates(q), mistake_rate=0.01, class_prior=rates(q)
            ),
            risks.LikelihoodRisk(rates(q), mistake_rate=0.01, class_prior=rates(q)),
        ),
    ),
    "likelihood of states": Case(
        lambda q: (
            lambda g, s: risks.likelihood_risk(g, s, rates(q), rates(q), class_prior=rates(q)),
            risks.LikelihoodRisk(rates(q), rates(q), class_prior=rates(q)),
        ),
        STATES,
    ),
    "likelihood of evidence": Case(
        lambda q: (
            lambda g, s: risks.likelihood_risk(g, s, rates(q)),
            risks.LikelihoodRisk(rates(q)),
        ),
        EVIDENCE,
    ),
    "bce": Case(lambda q: (risks.bce_risk, risks.BceRisk())),
    "bce of states": Case(lambda q: (risks.bce_risk, risks.BceRisk()), STATES),
    "bce, hinge": Case(
        lambda q: (
            lambda g, s: risks.bce_risk(g, s, loss=hinge_loss),
            risks.BceRisk(loss=hinge_loss),
        ),
        is_smooth=False,
    ),
    "ccmn hamming": Case(
        lambda q: (
            lambda g, s: risks.ccmn_hamming_risk(
                g, s, rates(q), correction=torch.abs, loss=hinge_loss
            ),
            BaselineRisk(
                risks.ccmn_hamming_risk, flip_rate=rates(q), correction=torch.abs, loss=hinge_loss
            ),
        ),
        is_smooth=False,
    ),
    "ccmn ranking": Case(
        lambda q: (
            lambda g, s: risks.ccmn_ranking_risk(g, s, rates(q), loss=ramp_loss),
            BaselineRisk(risks.ccmn_ranking_risk, flip_rate=rates(q), loss=ramp_loss),
        ),
        is_smooth=False,
    ),
    "gdf": Case(
        lambda q: (
            lambda g, s: risks.gdf_risk(g, s, loss=hinge_loss),
            BaselineRisk(risks.gdf_risk, loss=hinge_loss),
        ),
        is_smooth=False,
    ),
    "gdf, unbiased": Case(
        lambda q: (
            lambda g, s: risks.gdf_risk(g, s, unbiased=True),
            BaselineRisk(risks.gdf_risk, unbiased=True),
        ),
        needs_two_labels=True,
    ),
    "ctl": Case(
        lambda q: (
            lambda g, s: risks.ctl_risk(g, s, loss=hinge_loss),
            BaselineRisk(risks.ctl_risk, loss=hinge_loss),
        ),
        is_smooth=False,
    ),
    "ctl, unbiased": Case(
        lambda q: (
            lambda g, s: risks.ctl_risk(g, s, unbiased=True),
            BaselineRisk(risks.ctl_risk, unbiased=True),
        ),
        needs_two_labels=True,
    ),
    "mlcl": Case(
        lambda q: (
            lambda g, s: risks.mlcl_risk(g, s, transition(q)),
            BaselineRisk(risks.mlcl_risk, transition=transition(q)),
        ),
    ),
    "comrank": Case(lambda q: (risks.comrank_risk, BaselineRisk(risks.comrank_risk))),
    "comrank, exponential": Case(
        lambda q: (
            lambda g, s: risks.comrank_risk(g, s, pair_loss=torch.exp),
            BaselineRisk(risks.comrank_risk, pair_loss=torch.exp),
        ),
    ),
}
# Those that are functions of sums over rows, with a flood level that acts.
BY_SUMS: dict[str, tuple[Callable[..., tuple[Tensor, ...]], Callable[[list[Tensor]], Tensor]]] = {
    "hamming": (
        risks.hamming_sums,
        lambda sums: risks.hamming_risk_from_sums(risks.HammingSums(*sums), rates(Q)),
    ),
    "hamming of states": (
        risks.hamming_sums,
        lambda sums: risks.hamming_risk_from_sums(
            risks.HammingSums(*sums), rates(Q), asked_share=rates(Q)
        ),
    ),
    "ranking, flooded": (
        risks.ranking_sums,
        lambda sums: risks.ranking_risk_from_sums(
            risks.RankingSums(*sums), rates(Q), flood_level=100.0
        ),
    ),
}


def linear_model() -> nn.Module:
    """Return a small model in float64, the same at every call."""
    torch.manual_seed(0)
    return nn.Linear(3, Q).double()


X, _ = problem(seed=5, q=3)  # what it takes


def value_and_gradient(risk: Function, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the risk and its gradient by the scores."""
    scores = scores.detach().clone().requires_grad_()
    value = risk(scores, targets)
    value.backward()
    assert scores.grad is not None
    return value.detach(), scores.grad


def whole_batch(name: str) -> tuple[Tensor, Tensor]:
    """Return a risk of the model on all rows, and the gradient of its weights, in float64."""
    case, model = RISKS[name], linear_model()
    value = case.make(Q)[0](model(X), case.targets)
    value.backward()
    assert isinstance(model.weight.grad, Tensor)
    return value.detach(), model.weight.grad
