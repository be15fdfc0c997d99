"""What every risk promises, whatever it estimates."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from comes import risks
from comes.errors import ComesError
from comes.losses import hinge_loss, ramp_loss
from drawn_problems import Q, annotate, prior_of, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
PRIOR = prior_of(RELEVANT)


def rates(q: int) -> Tensor:
    return torch.linspace(0.1, 0.6, q)


def transition(q: int) -> Tensor:
    """Columns that sum to 1, with a zero diagonal."""
    matrix = torch.rand(q, q, generator=torch.Generator().manual_seed(0)) * (1 - torch.eye(q))
    return matrix / matrix.sum(dim=0).clamp(min=1e-9)


Risk = Callable[[Tensor, Tensor], Tensor]
# For q labels: the risk as a function, and its module.
RISKS: dict[str, Callable[[int], tuple[Risk, nn.Module]]] = {
    "hamming": lambda q: (
        lambda g, s: risks.hamming_risk(g, s, rates(q)),
        risks.HammingRisk(rates(q)),
    ),
    "ranking": lambda q: (
        lambda g, s: risks.ranking_risk(g, s, rates(q)),
        risks.RankingRisk(rates(q)),
    ),
    "likelihood": lambda q: (
        lambda g, s: risks.likelihood_risk(g, s, rates(q)),
        risks.LikelihoodRisk(rates(q)),
    ),
    "bce": lambda q: (risks.bce_risk, risks.BceRisk()),
    "bce_hinge": lambda q: (
        lambda g, s: risks.bce_risk(g, s, loss=hinge_loss),
        risks.BceRisk(loss=hinge_loss),
    ),
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
NOT_SMOOTH = ("bce_hinge", "ccmn_hamming", "ccmn_ranking", "gdf", "ctl")


def every_risk(q: int = Q) -> Iterator[tuple[str, Risk, nn.Module]]:
    for name, make in RISKS.items():
        yield name, *make(q)


def assert_close(name: str, found: object, expected: object, **tolerance: Any) -> None:
    torch.testing.assert_close(found, expected, msg=lambda text: f"{name}: {text}", **tolerance)


def test_modules_are_the_functions() -> None:
    for name, function, module in every_risk():
        assert_close(name, module(SCORES, CANDIDATES), function(SCORES, CANDIDATES))


@pytest.mark.parametrize("name", RISKS)
def test_edges_are_finite_and_connected(name: str) -> None:
    for n, q in ((1, 1), (1, 5), (8, 1), (16, 217), (3, 1000)):
        if q == 1 and name in NEEDS_TWO_LABELS:
            with pytest.raises(ComesError, match="at least two labels; got 1"):
                RISKS[name](1)[0](torch.zeros(n, 1), torch.ones(n, 1, dtype=torch.bool))
            continue
        risk = RISKS[name](q)[0]
        for share_of_candidates in (0.0, 0.5, 1.0):
            generator = torch.Generator().manual_seed(0)
            scores = torch.randn(n, q, generator=generator, requires_grad=True)
            candidates = torch.rand(n, q, generator=generator) < share_of_candidates
            value = risk(scores, candidates)
            assert value.shape == ()
            value.backward()
            case = f"{n} rows, {q} labels, {share_of_candidates} of them candidates"
            assert value.isfinite(), case
            assert scores.grad is not None and scores.grad.isfinite().all(), case


def test_huge_scores_are_finite() -> None:
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(20, 217, generator=generator)
    candidates = torch.rand(20, 217, generator=generator) < 0.5
    for name, risk, _ in every_risk(217):
        for size in (1e4, 1e6, 1e18):
            scores = (size * directions).requires_grad_()
            value = risk(scores, candidates)
            value.backward()
            assert value.isfinite(), (name, size)
            assert scores.grad is not None and scores.grad.isfinite().all(), (name, size)


def test_half_precision_is_computed_in_float32() -> None:
    for name, risk, _ in every_risk():
        for dtype in (torch.float16, torch.bfloat16):
            scores = SCORES.to(dtype)
            value = risk(scores, CANDIDATES)
            assert value.dtype == torch.float32, name
            assert_close(name, value, risk(scores.float(), CANDIDATES))


def test_autocast_changes_nothing() -> None:
    scores = SCORES.float()
    for name, risk, _ in every_risk():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = risk(scores, CANDIDATES)
        assert_close(name, value, risk(scores, CANDIDATES), rtol=0, atol=0)


def test_gradients_are_those_of_finite_differences() -> None:
    for name, risk, _ in every_risk():
        if name == "ctl_unbiased":
            risk = risks.ctl_unbiased_risk  # with the smooth loss
        if name not in NOT_SMOOTH:
            scores = SCORES[:8].clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda g, f=risk: f(g, CANDIDATES[:8]), (scores,)), name


def test_scores_and_candidates_of_other_shapes_or_types_are_refused() -> None:
    for name, risk, _ in every_risk():
        with pytest.raises(ComesError, match=r"must be bool.*torch.int64|int8.*got torch.int64"):
            risk(SCORES, CANDIDATES.long())
        for wrong in (CANDIDATES[:, :3], CANDIDATES[:3]):
            with pytest.raises(ComesError, match=r"one shape \(n, q\); got \(40, 4\) and "):
                risk(SCORES, wrong)
        with pytest.raises(ComesError, match="one shape"):
            risk(SCORES[0], CANDIDATES[0])
        if name != "likelihood":  # which reads floats as leanings
            with pytest.raises(ComesError, match=r"torch.float32. Call candidates.bool\(\)"):
                risk(SCORES, CANDIDATES.float())


def test_what_a_risk_knows_must_fit_the_scores() -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: risks.hamming_risk(SCORES, CANDIDATES, PRIOR[:3]), "class_prior"),
        (lambda: risks.hamming_risk(SCORES, CANDIDATES, PRIOR, exclude_share=PRIOR[:3]), "exclude"),
        (lambda: risks.hamming_risk(SCORES, CANDIDATES, PRIOR, asked_share=PRIOR[:3]), "asked"),
        (lambda: risks.ranking_risk(SCORES, CANDIDATES, PRIOR[:3]), "class_prior"),
        (lambda: risks.ranking_risk(SCORES, CANDIDATES, PRIOR, exclude_share=PRIOR[:3]), "exclude"),
        (lambda: risks.ccmn_hamming_risk(SCORES, CANDIDATES, PRIOR[:3]), "flip_rate"),
        (lambda: risks.ccmn_ranking_risk(SCORES, CANDIDATES, PRIOR[:3]), "flip_rate"),
        (lambda: risks.bce_risk(SCORES, CANDIDATES, label_weight=PRIOR[:3]), "label_weight"),
    ]
    for call, name in cases:
        with pytest.raises(ComesError, match=rf"4 labels need a {name}.* \(4,\); got \(3,\)"):
            call()
    with pytest.raises(ComesError, match=r"transition matrix of shape \(4, 4\); got \(3, 3\)"):
        risks.mlcl_risk(SCORES, CANDIDATES, transition(3))


OF_RATES: dict[str, Callable[[Any], object]] = {
    "hamming": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, bad),
    "hamming sums": lambda bad: risks.hamming_risk_from_sums(
        risks.hamming_sums(SCORES, CANDIDATES), bad
    ),
    "exclude share": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, PRIOR, exclude_share=bad),
    "asked share": lambda bad: risks.hamming_risk(SCORES, CANDIDATES, PRIOR, asked_share=bad),
    "ranking": lambda bad: risks.ranking_risk(SCORES, CANDIDATES, bad),
    "ranking sums": lambda bad: risks.ranking_risk_from_sums(
        risks.ranking_sums(SCORES, CANDIDATES), bad
    ),
    "flood level": risks.flood_level_of_prior,
    "ccmn hamming": lambda bad: risks.ccmn_hamming_risk(SCORES, CANDIDATES, bad),
    "ccmn ranking": lambda bad: risks.ccmn_ranking_risk(SCORES, CANDIDATES, bad),
    "likelihood": lambda bad: risks.likelihood_risk(SCORES, CANDIDATES, bad),
    "likelihood prior": lambda bad: risks.likelihood_risk(
        SCORES, CANDIDATES, PRIOR, class_prior=bad
    ),
    "hamming module": risks.HammingRisk,
    "ranking module": risks.RankingRisk,
    "ccmn hamming module": risks.CcmnHammingRisk,
    "ccmn ranking module": risks.CcmnRankingRisk,
    "likelihood module": risks.LikelihoodRisk,
    "share of a module": lambda bad: risks.HammingRisk(PRIOR, exclude_share=bad),
}


@pytest.mark.parametrize("use", OF_RATES)
def test_priors_and_rates_outside_their_range_are_refused(use: str) -> None:
    refused = r"must hold one number in \[0, 1.* for each label; got"
    for wrong in (23.0, 1.3, -0.1, float("nan")):
        with pytest.raises(ComesError, match=refused):
            OF_RATES[use](torch.tensor([0.5] * (Q - 1) + [wrong]))
    if use.endswith("module"):
        with pytest.raises(ComesError, match=refused + r" shape \(1, 4\)"):
            OF_RATES[use](torch.full((1, Q), 0.5))
    if use.startswith("ccmn"):  # where the flip rate 1 leaves nothing excluded
        with pytest.raises(ComesError, match=refused):
            OF_RATES[use](torch.tensor([0.5, 0.0, 0.5, 1.0]))
    else:
        OF_RATES[use](torch.tensor([0.5, 0.0, 0.5, 1.0]))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.long
def test_torch_compiles_risks_whole() -> None:
    """All of them are compiled in tests/system/test_risks_compiled.py."""
    compiled = torch.compile(risks.hamming_risk, fullgraph=True, backend="aot_eager")
    given = SCORES.float(), CANDIDATES, PRIOR.float()
    assert_close("the class prior is an input", compiled(*given), risks.hamming_risk(*given))
    for module in (risks.RankingRisk(PRIOR.float()), risks.LikelihoodRisk(PRIOR.float())):
        found = []
        for risk in (torch.compile(module, fullgraph=True, backend="aot_eager"), module):
            scores = SCORES.float().requires_grad_()
            value = risk(scores, CANDIDATES)
            value.backward()
            found.append((value.detach(), scores.grad))
        assert_close(type(module).__name__, *found)
