"""Every risk is compiled by torch as one graph, to the same value and gradient."""

import pytest
import torch
from torch import Tensor, nn

from comes import risks
from comes.losses import hinge_loss, ramp_loss
from drawn_problems import N, Q, annotate, prior_of, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)
PRIOR = prior_of(RELEVANT).float()
RATE = torch.linspace(0.1, 0.6, Q)
TRANSITION = (1 - torch.eye(Q)) / (Q - 1)

RISKS: dict[str, tuple[nn.Module, Tensor]] = {
    "hamming": (risks.HammingRisk(PRIOR), CANDIDATES),
    "ranking": (risks.RankingRisk(PRIOR), CANDIDATES),
    "bce": (risks.BceRisk(), CANDIDATES),
    "ccmn hamming": (
        risks.CcmnHammingRisk(RATE, correction=torch.abs, loss=hinge_loss),
        CANDIDATES,
    ),
    "ccmn ranking": (risks.CcmnRankingRisk(RATE, loss=ramp_loss), CANDIDATES),
    "gdf": (risks.GdfRisk(loss=hinge_loss), CANDIDATES),
    "gdf unbiased": (risks.GdfRisk(unbiased=True), CANDIDATES),
    "ctl": (risks.CtlRisk(loss=hinge_loss), CANDIDATES),
    "ctl unbiased": (risks.CtlUnbiasedRisk(loss=hinge_loss), CANDIDATES),
    "ctl released": (risks.CtlUnbiasedRisk(released_weight=True), CANDIDATES),
    "mlcl": (risks.MlclRisk(TRANSITION), CANDIDATES),
    "mlcl released": (risks.MlclRisk(TRANSITION, as_released=True), CANDIDATES),
    "comrank": (risks.ComrankRisk(), CANDIDATES),
    "comrank exp": (risks.ComrankRisk(pair_loss=torch.exp), CANDIDATES),
    "likelihood of candidates": (risks.LikelihoodRisk(RATE, class_prior=PRIOR), CANDIDATES),
    "likelihood of states": (risks.LikelihoodRisk(RATE, class_prior=PRIOR), STATES),
    "likelihood with mistakes": (
        risks.LikelihoodRisk(RATE, mistake_rate=0.01, class_prior=PRIOR),
        CANDIDATES,
    ),
}


def assert_compiles(risk: nn.Module, answers: Tensor) -> None:
    torch.compiler.reset()
    found = []
    for each in (torch.compile(risk, fullgraph=True, backend="aot_eager"), risk):
        scores = SCORES.float().requires_grad_()
        value = each(scores, answers)
        value.backward()
        found.append((value.detach(), scores.grad))
    torch.testing.assert_close(*found)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.parametrize("name", RISKS)
def test_a_risk_compiles_to_the_same_value_and_gradient(name: str) -> None:
    assert_compiles(*RISKS[name])


def test_sums_over_pairs_in_parts_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risks.pairs, "DIFFERENCES_AT_ONCE", {"cpu": N * Q})
    assert_compiles(risks.RankingRisk(PRIOR), CANDIDATES)
