"""What every risk promises, whatever it estimates."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from comes import risks
from comes.errors import ComesError
from comes.losses import hinge_loss, ramp_loss
from drawn_problems import Q, annotate, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)


def rates(q: int) -> Tensor:
    return torch.linspace(0.1, 0.6, q)


def transition(q: int) -> Tensor:
    """Columns that sum to 1, with a zero diagonal."""
    matrix = torch.rand(q, q, generator=torch.Generator().manual_seed(0)) * (1 - torch.eye(q))
    return matrix / matrix.sum(dim=0).clamp(min=1e-9)


# For q labels: the risk as a function, and its module.
RISKS: dict[str, Callable[[int], tuple[Callable[[Tensor, Tensor], Tensor], nn.Module]]] = {
    "hamming": lambda q: (
        lambda g, s: risks.hamming_risk(g, s, rates(q)),
        risks.HammingRisk(rates(q)),
    ),
    "ranking": lambda q: (
        lambda g, s: risks.ranking_risk(g, s, rates(q)),
        risks.RankingRisk(rates(q)),
    ),
    "bce": lambda q: (risks.bce_risk, risks.BceRisk()),
    "ccmn_hamming": lambda q: (
        lambda g, s: risks.ccmn_hamming_risk(g, s, rates(q), correction=torch.abs, loss=hinge_loss),
        risks.CcmnHammingRisk(rates(q), correction=torch.abs, loss=hinge_loss),
    ),
    "ccmn_ranking": lambda q: (
        lambda g, s: risks.ccmn_ranking_risk(g, s, rates(q), loss=ramp_loss),
        risks.CcmnRankingRisk(rates(q), loss=ramp_loss),
    ),
    "gdf": lambda q: (
        lambda g, s: risks.gdf_risk(g, s, loss=hinge_loss),
        risks.GdfRisk(loss=hinge_loss),
    ),
    "gdf_unbiased": lambda q: (
        lambda g, s: risks.gdf_risk(g, s, unbiased=True),
        risks.GdfRisk(unbiased=True),
    ),
    "ctl": lambda q: (
        lambda g, s: risks.ctl_risk(g, s, loss=hinge_loss),
        risks.CtlRisk(loss=hinge_loss),
    ),
    "ctl_unbiased": lambda q: (
        lambda g, s: risks.ctl_unbiased_risk(g, s, loss=hinge_loss),
        risks.CtlUnbiasedRisk(loss=hinge_loss),
    ),
    "ctl_released": lambda q: (
        lambda g, s: risks.ctl_unbiased_risk(g, s, released_weight=True),
        risks.CtlUnbiasedRisk(released_weight=True),
    ),
    "mlcl": lambda q: (
        lambda g, s: risks.mlcl_risk(g, s, transition(q)),
        risks.MlclRisk(transition(q)),
    ),
    "mlcl_released": lambda q: (
        lambda g, s: risks.mlcl_risk(g, s, transition(q), as_released=True),
        risks.MlclRisk(transition(q), as_released=True),
    ),
    "comrank": lambda q: (risks.comrank_risk, risks.ComrankRisk()),
    "comrank_exp": lambda q: (
        lambda g, s: risks.comrank_risk(g, s, pair_loss=torch.exp),
        risks.ComrankRisk(pair_loss=torch.exp),
    ),
}
NEEDS_TWO_LABELS = ("gdf_unbiased", "ctl_unbiased", "ctl_released")
every_risk = pytest.mark.parametrize("name", RISKS)


@every_risk
def test_module_is_the_function(name: str) -> None:
    function, module = RISKS[name](Q)
    torch.testing.assert_close(module(SCORES, CANDIDATES), function(SCORES, CANDIDATES))


@every_risk
@pytest.mark.parametrize("candidates", ["everything", "nothing", "some"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (8, 1), (16, 217), (3, 1000)])
def test_edges_are_finite_and_connected(name: str, candidates: str, shape: tuple[int, int]) -> None:
    if shape[1] == 1 and name in NEEDS_TWO_LABELS:
        with pytest.raises(ComesError, match="at least two labels; got 1"):
            RISKS[name](1)[0](torch.zeros(shape), torch.ones(shape, dtype=torch.bool))
        return
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, requires_grad=True)
    share = {"everything": 2.0, "nothing": -1.0, "some": 0.5}[candidates]
    possible = torch.rand(shape, generator=generator) < share
    risk = RISKS[name](shape[1])[0](scores, possible)
    assert risk.shape == ()
    risk.backward()
    assert risk.isfinite()
    assert scores.grad is not None and scores.grad.isfinite().all()


@every_risk
@pytest.mark.parametrize("size", [1e4, 1e18])
def test_huge_scores_are_finite(name: str, size: float) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = (size * torch.randn(20, 217, generator=generator)).requires_grad_()
    candidates = torch.rand(20, 217, generator=generator) < 0.5
    risk = RISKS[name](217)[0](scores, candidates)
    risk.backward()
    assert risk.isfinite()
    assert scores.grad is not None and scores.grad.isfinite().all()


@every_risk
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    scores, (function, _) = SCORES.to(dtype), RISKS[name](Q)
    risk = function(scores, CANDIDATES)
    assert risk.dtype == torch.float32
    torch.testing.assert_close(risk, function(scores.float(), CANDIDATES))


@every_risk
def test_autocast_changes_nothing(name: str) -> None:
    scores, (function, _) = SCORES.float(), RISKS[name](Q)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        risk = function(scores, CANDIDATES)
    torch.testing.assert_close(risk, function(scores, CANDIDATES), rtol=0, atol=0)


SMOOTH = [name for name in RISKS if name not in ("ccmn_hamming", "ccmn_ranking", "gdf", "ctl")]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_in_float64(name: str) -> None:
    if name == "ctl_unbiased":  # with the smooth loss
        function: Callable[[Tensor, Tensor], Tensor] = risks.ctl_unbiased_risk
    else:
        function = RISKS[name](Q)[0]
    scores = SCORES[:8].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda g: function(g, CANDIDATES[:8]), (scores,))


@every_risk
def test_wrong_shapes_and_types_are_refused(name: str) -> None:
    function, _ = RISKS[name](Q)
    with pytest.raises(ComesError, match="must be bool"):
        function(SCORES, CANDIDATES.float())
    with pytest.raises(ComesError, match="one shape"):
        function(SCORES, CANDIDATES[:, :1])


@pytest.mark.parametrize("name", [name for name in RISKS if name not in ("hamming", "ranking")])
def test_compiles_to_the_same_value(name: str) -> None:
    torch.compiler.reset()
    module = RISKS[name](Q)[1]
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    scores = SCORES.float()
    torch.testing.assert_close(compiled(scores, CANDIDATES), module(scores, CANDIDATES))


@pytest.mark.parametrize("bad", [torch.tensor([0.5, 1.0]), torch.tensor([-0.1]), torch.zeros(2, 2)])
def test_flip_rates_must_be_below_1(bad: Tensor) -> None:
    for module in (risks.CcmnHammingRisk, risks.CcmnRankingRisk):
        with pytest.raises(ComesError, match=r"flip_rate must hold one number in \[0, 1\)"):
            module(bad)


def test_what_a_risk_knows_must_fit_the_scores() -> None:
    for function in (risks.ccmn_hamming_risk, risks.ccmn_ranking_risk):
        with pytest.raises(ComesError, match=r"flip_rate of shape \(4,\); got \(3,\)"):
            function(SCORES, CANDIDATES, rates(3))
    with pytest.raises(ComesError, match=r"transition matrix of shape \(4, 4\); got \(3, 3\)"):
        risks.mlcl_risk(SCORES, CANDIDATES, transition(3))


BAD = [[0.5] * (Q - 1) + [bad] for bad in (23.0, 1.3, -0.1, float("nan"))]
OF_RATES: dict[str, Callable[[Tensor], object]] = {
    "hamming": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, bad),
    "hamming sums": lambda bad: risks.hamming_risk_from_sums(
        risks.hamming_sums(SCORES, CANDIDATES), bad
    ),
    "share": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, rates(Q), exclude_share=bad),
    "asked": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, rates(Q), asked_share=bad),
    "ranking": lambda bad: risks.ranking_risk(SCORES, CANDIDATES, bad),
    "ranking sums": lambda bad: risks.ranking_risk_from_sums(
        risks.ranking_sums(SCORES, CANDIDATES), bad
    ),
    "flood": risks.flood_level_of_prior,
    "ccmn": lambda bad: risks.ccmn_hamming_risk(SCORES, CANDIDATES, bad),
    "ccmn ranking": lambda bad: risks.ccmn_ranking_risk(SCORES, CANDIDATES, bad),
    "likelihood": lambda bad: risks.likelihood_risk(SCORES, CANDIDATES, bad),
    "likelihood prior": lambda bad: risks.likelihood_risk(
        SCORES, CANDIDATES, rates(Q), class_prior=bad
    ),
    "module": risks.HammingRisk,
    "ranking module": risks.RankingRisk,
    "share of a module": lambda bad: risks.HammingRisk(rates(Q), exclude_share=bad),
}


@pytest.mark.parametrize("values", BAD)
@pytest.mark.parametrize("use", list(OF_RATES))
def test_priors_and_rates_outside_their_range_are_refused(use: str, values: list[float]) -> None:
    with pytest.raises(ComesError, match=r"must hold one number in \[0, 1.* for each label; got"):
        OF_RATES[use](torch.tensor(values))
