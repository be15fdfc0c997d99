"""What every risk promises, whatever it estimates."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from comes import risks
from comes.answers import State
from comes.errors import ComesError
from comes.risks.checks import value_or_nan
from comes.risks.ranking import default_flood_level
from comes.training import TrainOptions, add_gradient, make_optimizer, train
from drawn_problems import N, Q, prior_of
from every_risk import (
    BY_SUMS,
    CANDIDATES,
    RELEVANT,
    RISKS,
    SCORES,
    Function,
    X,
    linear_model,
    rates,
    transition,
    value_and_gradient,
    whole_batch,
)

PRIOR = prior_of(RELEVANT)
every_risk = pytest.mark.parametrize("name", RISKS)


def risks_of_candidates(q: int = Q) -> Iterator[tuple[str, Function, nn.Module]]:
    for name, case in RISKS.items():
        if case.targets is CANDIDATES:
            yield name, *case.make(q)


def assert_close(name: str, found: object, expected: object, **tolerance: Any) -> None:
    torch.testing.assert_close(found, expected, msg=lambda text: f"{name}: {text}", **tolerance)


def test_modules_are_the_functions() -> None:
    for name, case in RISKS.items():
        function, module = case.make(Q)
        assert_close(name, module(SCORES, case.targets), function(SCORES, case.targets))


@every_risk
def test_edges_are_finite_and_connected(name: str) -> None:
    case = RISKS[name]
    for n, q in ((1, 1), (1, 5), (8, 1), (16, 217), (3, 1000)):
        if q == 1 and case.needs_two_labels:
            with pytest.raises(ComesError, match="at least two labels; got 1"):
                case.make(1)[0](torch.zeros(n, 1), torch.ones(n, 1, dtype=torch.bool))
            continue
        risk = case.make(q)[0]
        for share_of_candidates in (0.0, 0.5, 1.0):
            generator = torch.Generator().manual_seed(0)
            scores = torch.randn(n, q, generator=generator)
            targets = torch.rand(n, q, generator=generator) < share_of_candidates
            if case.targets.dtype != torch.bool:
                is_float = case.targets.is_floating_point()
                possible, excluded = (0.3, -1.0) if is_float else (State.MAYBE, State.NO)
                targets = torch.where(targets, possible, excluded).to(case.targets.dtype)
            value, gradient = value_and_gradient(risk, scores, targets)
            assert value.shape == ()
            at = f"{n} rows, {q} labels, {share_of_candidates} of them candidates"
            assert value.isfinite() and gradient.isfinite().all(), at


def test_huge_scores_are_finite() -> None:
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(20, 217, generator=generator)
    candidates = torch.rand(20, 217, generator=generator) < 0.5
    for name, risk, _ in risks_of_candidates(217):
        for size in (1e4, 1e6, 1e18):
            value, gradient = value_and_gradient(risk, size * directions, candidates)
            assert value.isfinite() and gradient.isfinite().all(), (name, size)


NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@every_risk
def test_scores_that_are_not_finite_are_refused_wherever_they_are(name: str) -> None:
    case = RISKS[name]
    targets = case.targets.clone()
    if targets.dtype == torch.int8:
        targets[3] = torch.tensor([State.NOT_ASKED, State.NO, State.YES, State.MAYBE])
    else:
        targets[3] = 1  # a row that excludes nothing
    some: Any
    for (said, bad), label in itertools.product(NOT_FINITE.items(), range(Q)):
        scores = SCORES.clone()
        scores[3, label] = scores[7, 0] = bad
        for risk in case.make(Q):
            for some in (scores, scores.float(), scores.half(), scores.numpy()):
                with pytest.raises(
                    ComesError,
                    match=rf"got {said} at row 3, label {label} \(2 of {N * Q} are not\)",
                ):
                    risk(some, targets)
            assert math.isnan(value_or_nan(risk, scores, targets))


def test_sums_and_sparse_targets_refuse_them_too() -> None:
    wrong = SCORES.clone()
    wrong[1, 2] = math.nan
    none = torch.tensor([], dtype=torch.long)
    sparse = risks.SparseTargets(none, none, none.to(torch.int8), State.NOT_ASKED, (N, Q))
    calls: list[Callable[[], object]] = [
        lambda: risks.hamming_sums(wrong, CANDIDATES),
        lambda: risks.ranking_sums(wrong, CANDIDATES),
        lambda: risks.bce_risk(wrong, sparse),
        lambda: risks.hamming_risk(wrong, sparse, PRIOR),
        lambda: risks.likelihood_risk(wrong, sparse, PRIOR),
    ]
    for call in calls:
        with pytest.raises(ComesError, match=r"must be finite; got nan at row 1, label 2 \(1 of"):
            call()


def test_large_scores_whose_sum_is_infinite_are_not_refused() -> None:
    scores = torch.full((2, 2), 3e38)
    assert risks.bce_risk(scores, torch.ones(2, 2, dtype=torch.bool)) == 0
    assert risks.likelihood_risk(scores, torch.ones(2, 2, dtype=torch.bool), rates(2)) == 0


def test_where_torch_transforms_a_risk_no_score_is_read() -> None:
    scores = torch.stack([SCORES, SCORES * math.nan])
    values = torch.vmap(lambda g: risks.bce_risk(g, CANDIDATES))(scores)
    assert values.isfinite().tolist() == [True, False]


def test_a_training_says_in_which_epoch_its_scores_were_not_finite() -> None:
    options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=2, progress=False)
    for risk in (risks.BceRisk(), risks.HammingRisk(PRIOR)):
        model = linear_model()
        nn.init.constant_(next(model.parameters()), math.inf)
        with pytest.raises(ComesError, match=r"became nan in epoch 1. Lower the learning rate"):
            train(model, X, CANDIDATES, risk, options)


def test_half_precision_is_computed_in_float32() -> None:
    for name, case in RISKS.items():
        risk = case.make(Q)[0]
        for dtype in (torch.float16, torch.bfloat16):
            scores = SCORES.to(dtype)
            value = risk(scores, case.targets)
            assert value.dtype == torch.float32, name
            assert_close(name, value, risk(scores.float(), case.targets))


@every_risk
def test_under_autocast_a_risk_is_that_of_its_scores_in_float64(name: str) -> None:
    """The value to float32; the gradient to bfloat16, in which the model wants it."""
    case, model = RISKS[name], linear_model().float()
    risk = case.make(Q)[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(X.float())
        assert scores.dtype == torch.bfloat16
        value = risk(scores, case.targets)
    (gradient,) = torch.autograd.grad(value, scores)
    expected, exact = value_and_gradient(risk, scores.double(), case.targets)
    assert value.dtype == torch.float32 and gradient.dtype == torch.bfloat16
    assert_close(name, value.double(), expected, rtol=1e-5, atol=1e-7)
    assert_close(name, gradient.double(), exact, rtol=2**-7, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = risk(SCORES.float(), case.targets)
    assert_close(name, within, risk(SCORES.float(), case.targets), rtol=0, atol=0)


@every_risk
def test_accumulated_over_micro_batches_the_gradient_is_that_of_the_whole(name: str) -> None:
    case, expected = RISKS[name], whole_batch(name)
    for part_size in (1, 11, N):
        model = linear_model()
        value = add_gradient(model, X, case.targets, case.make(Q)[1], part_size=part_size)
        assert_close(name, (value, model.weight.grad), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", BY_SUMS)
def test_sums_of_micro_batches_give_the_gradient_of_the_whole(name: str) -> None:
    """First pass: sums without gradient; second: each part's sums against dR/dsums."""
    (sum_rows, combine), targets, model = BY_SUMS[name], RISKS[name].targets, linear_model()
    parts = [slice(0, 11), slice(11, 30), slice(30, None)]
    with torch.no_grad():
        of_parts = [sum_rows(model(X[rows]), targets[rows]) for rows in parts]
    total = [torch.stack(sums).sum(dim=0).requires_grad_() for sums in zip(*of_parts, strict=True)]
    value = combine(total)
    sensitivity = torch.autograd.grad(value, total, allow_unused=True)
    for rows in parts:
        sums = sum_rows(model(X[rows]), targets[rows])
        pairs = [(s, d) for s, d in zip(sums, sensitivity, strict=True) if s.requires_grad]
        torch.autograd.backward([s for s, _ in pairs], [d for _, d in pairs])
    found = value.detach(), model.weight.grad
    assert_close(name, found, whole_batch(name), rtol=1e-10, atol=1e-13)


def test_gradients_are_those_of_finite_differences() -> None:
    for name, case in RISKS.items():
        if case.is_smooth:
            risk, targets = case.make(Q)[0], case.targets[:8]
            scores = SCORES[:8].clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda g, f=risk, s=targets: f(g, s), (scores,)), name


def test_scores_and_candidates_of_other_shapes_or_types_are_refused() -> None:
    for name, risk, _ in risks_of_candidates():
        with pytest.raises(ComesError, match=r"must be bool.*; got torch.int64"):
            risk(SCORES, CANDIDATES.long())
        for wrong in (CANDIDATES[:, :3], CANDIDATES[:3]):
            with pytest.raises(ComesError, match=r"one shape \(n, q\); got \(40, 4\) and "):
                risk(SCORES, wrong)
        with pytest.raises(ComesError, match="one shape"):
            risk(SCORES[0], CANDIDATES[0])
        if not name.startswith("likelihood"):  # which reads floats as evidence
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
    "flood level": default_flood_level,
    "ccmn hamming": lambda bad: risks.ccmn_hamming_risk(SCORES, CANDIDATES, bad),
    "ccmn ranking": lambda bad: risks.ccmn_ranking_risk(SCORES, CANDIDATES, bad),
    "likelihood": lambda bad: risks.likelihood_risk(SCORES, CANDIDATES, bad),
    "likelihood prior": lambda bad: risks.likelihood_risk(
        SCORES, CANDIDATES, PRIOR, class_prior=bad
    ),
    "hamming module": risks.HammingRisk,
    "ranking module": risks.RankingRisk,
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
        OF_RATES[use](torch.zeros(Q, dtype=torch.long))  # integers are numbers too
    else:
        OF_RATES[use](torch.tensor([0.5, 0.0, 0.5, 1.0]))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.long
def test_torch_compiles_risks_whole() -> None:
    """All of them are compiled in tests/system/test_risks_compiled.py."""
    compiled = torch.compile(risks.hamming_risk, fullgraph=True, backend="aot_eager")
    given = SCORES.float(), CANDIDATES, PRIOR.float()
    assert_close("the class prior is an input", compiled(*given), risks.hamming_risk(*given))
    assert compiled(SCORES.float() * math.nan, CANDIDATES, PRIOR.float()).isnan()
    for module in (risks.RankingRisk(PRIOR.float()), risks.LikelihoodRisk(PRIOR.float())):
        as_one: Any = torch.compile(module, fullgraph=True, backend="aot_eager")
        expected = value_and_gradient(module, SCORES.float(), CANDIDATES)
        found = value_and_gradient(as_one, SCORES.float(), CANDIDATES)
        assert_close(type(module).__name__, found, expected)
