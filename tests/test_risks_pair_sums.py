"""Sums over pairs: how they are computed, and in linear time equal to the plain sums."""

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from comes.risks import RankingRisk, comrank_risk, pair_sums
from comes.risks.pair_sums import (
    SLOPES,
    Centred,
    centre,
    choose_pair_sums,
    count_terms,
    expand,
    sum_in_linear_time,
)

CPU, CUDA, MPS = (torch.device(name) for name in ("cpu", "cuda", "mps"))
Function = Callable[[Tensor], Tensor]
FUNCTIONS: dict[str, Function] = {
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "exp": torch.exp,
}


def plain(g: Tensor, excluded: Tensor, function: Function, others: Tensor | None) -> Tensor:
    values = function(g[:, :, None] - g[:, None, :])
    if others is not None:
        values = values * others[:, None, :]
    return (excluded * values.sum(dim=2)).sum(dim=0)


def linear(g: Tensor, excluded: Tensor, function: Function, others: Tensor | None) -> Tensor:
    """Sum in linear time, or as pair by pair if the scores lie too far apart."""
    return pair_sums.sum_over_pairs(g, excluded, function, others)


def value_and_gradient(
    sums: Callable[..., Tensor], g: Tensor, excluded: Tensor, function: Function, others: object
) -> tuple[Tensor, Tensor]:
    """Return the sums, and the gradient of a weighted sum of them."""
    g = g.clone().requires_grad_()
    value = sums(g, excluded, function, others)
    weights = torch.linspace(-1, 2, g.shape[1], dtype=g.dtype)
    (value * weights).sum().backward()
    assert g.grad is not None
    return value.detach(), g.grad


def assert_as_plain(g: Tensor, function: Function, others: Tensor | None = None) -> None:
    """Compare with the plain sums in float64, relative to the largest entry."""
    excluded = (torch.rand(g.shape, generator=torch.Generator().manual_seed(1)) < 0.4).to(g)
    tolerance = 3e-6 if g.dtype == torch.float32 else 1e-12
    found = value_and_gradient(linear, g, excluded, function, others)
    exact = (t.double() if t is not None else None for t in (g, excluded, others))
    g64, excluded64, others64 = exact
    assert g64 is not None
    expected = value_and_gradient(plain, g64, excluded64, function, others64)  # type: ignore[arg-type]
    for one, two in zip(found, expected, strict=True):
        assert one.dtype == g.dtype
        assert one.isfinite().all()
        assert (one - two).abs().max() <= tolerance * max(1e-9, two.abs().max().item())


def random_scores(n: int, q: int, scale: float, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(q)
    return (scale * torch.randn(n, q, generator=generator, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_to_the_plain_sums(name: str) -> None:
    assert list(SLOPES) == list(FUNCTIONS.values())
    others = torch.rand(5, 300, generator=torch.Generator().manual_seed(2))
    for dtype in (torch.float32, torch.float64):
        scales = {"sigmoid": [0.0, 0.1, 2.0, 9.0], "softplus": [0.0, 0.1, 2.0, 9.0]}
        if dtype == torch.float64:
            scales["softplus"][-1] = 1.0  # torch's own softplus is only right to 2e-9 above 20
        for scale in scales.get(name, [0.0, 0.1, 0.5]):
            g = random_scores(5, 300, scale, dtype)
            assert_as_plain(g, FUNCTIONS[name])
            assert_as_plain(g, FUNCTIONS[name], others.to(dtype))


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_expansion_has_the_error_it_promises(name: str) -> None:
    """At every width, for the function and its slope, also at the very ends."""
    function = FUNCTIONS[name]
    for level in (0, 1, 8, 20, 31, 40, 55):
        width = 2 ** (level / pair_sums.WIDTHS_PER_DOUBLING)
        g = torch.linspace(-width / 2, width / 2, 301, dtype=torch.float64)
        expansion = expand(function, level, torch.float64, torch.device("cpu"))
        centred = Centred(g[None], g[None, :1], torch.tensor([[width]], dtype=g.dtype), level)
        room = pair_sums._allocate_basis(g[None], expansion.n_high)
        low, high = pair_sums._split_basis(
            pair_sums._compute_basis(centred, slice(1), expansion, room)
        )
        n_terms = count_terms(level, torch.float64)
        basis = (high[:, None] * low).flatten(0, 2)
        by_k = expansion.to_both.view(n_terms, 2, pair_sums.N_LOW, -1).transpose(2, 3).flatten(2)
        difference = g[:, None] - g
        for matrix, exact in zip(by_k.unbind(1), (function, SLOPES[function]), strict=True):
            found = basis.T @ matrix.T @ basis
            bound = 5e-9 if name == "softplus" else 1e-12  # torch's own softplus is right to 2e-9
            assert (found - exact(difference)).abs().max() < bound, level


WILD = {
    "all equal": torch.full((3, 200), 7.0),
    "one outlier": torch.cat([random_scores(3, 199, 1.0), torch.full((3, 1), 1e4)], dim=1),
    "outliers both ways": torch.cat(
        [random_scores(3, 198, 1.0), torch.full((3, 1), 1e6), torch.full((3, 1), -300.0)], dim=1
    ),
    "evenly spaced over 1e4": torch.linspace(-5e3, 5e3, 200).expand(3, -1).contiguous(),
    "two clusters": torch.cat([random_scores(3, 100, 1), random_scores(3, 100, 1) + 500], dim=1),
    "rows far apart": random_scores(3, 200, 1.0) + torch.tensor([[-1e3], [0.0], [1e3]]),
    "far from zero": 2**20 + torch.linspace(0, 8.625, 200).expand(3, -1),
    "clusters at the ends": torch.cat(
        [random_scores(3, 700, 0.5) - 30, random_scores(3, 700, 0.5) + 30], dim=1
    ),
    "clusters far apart": torch.cat(
        [random_scores(3, 950, 0.5) - 450, random_scores(3, 950, 0.5) + 450], dim=1
    ),
    "one row": random_scores(1, 200, 3.0),
    "huge": random_scores(3, 200, 1e30),
}


@pytest.mark.parametrize("name", list(WILD))
def test_wild_scores(name: str) -> None:
    assert_as_plain(WILD[name], torch.sigmoid)


def test_scores_may_lie_at_the_very_ends_of_an_interval() -> None:
    """Rounding there must not make the highest polynomials large."""
    for width in (0.5, 1.0, 2.0, 4.0, 8.0):
        assert_as_plain(torch.linspace(-width / 2, width / 2, 200).repeat(3, 1), torch.sigmoid)


def test_gaps_in_which_nothing_changes_do_not_cost_terms() -> None:
    for name in ("one outlier", "outliers both ways", "two clusters"):
        assert centre(WILD[name], torch.sigmoid) is not None, name
        assert centre(WILD[name], F.softplus) is None, name


def test_scores_too_far_apart_are_summed_pair_by_pair() -> None:
    for scores in (WILD["evenly spaced over 1e4"], torch.tensor([[0.0, math.inf]])):
        assert centre(scores, torch.sigmoid) is None


def test_what_is_not_finite_stays_so() -> None:
    g = torch.zeros(2, 100)
    g[0, 3] = math.nan
    assert pair_sums.sum_over_pairs(g, torch.ones(2, 100), torch.sigmoid).isnan().all()


def test_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for spread in (2.0, 1e4):
        for at_once in (1, 4000, 5500, 7000, 12_000, 10**9):  # 7, 4, 3, 2, 1 parts
            monkeypatch.setattr(pair_sums, "NUMBERS_AT_ONCE", {"cpu": at_once})
            assert_as_plain(random_scores(7, 90, spread), torch.sigmoid)


def test_memory_is_linear_in_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing larger than the room for cosines is saved for the gradient."""
    monkeypatch.setattr(pair_sums, "NUMBERS_AT_ONCE", {"cpu": 50_000})
    sizes: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    g = random_scores(4, 3000, 1.0).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        pair_sums.sum_over_pairs(g, torch.ones(4, 3000), torch.sigmoid).sum().backward()
    assert sizes
    assert max(sizes) <= 4 * 3000


def test_gradient_by_finite_differences() -> None:
    g = random_scores(1, 70, 1.0, torch.float64).requires_grad_()
    excluded = (torch.rand(1, 70, generator=torch.Generator().manual_seed(0)) < 0.5).double()
    others = 1 - excluded
    for function in FUNCTIONS.values():
        assert torch.autograd.gradcheck(
            lambda g, f=function: pair_sums.sum_over_pairs(g, excluded, f, others), (g,)
        )


def test_a_second_backward_pass_gives_the_same() -> None:
    g = random_scores(3, 100, 1.0).requires_grad_()
    sums = pair_sums.sum_over_pairs(g, torch.ones(3, 100), torch.sigmoid)[:50].sum()
    first, second = (torch.autograd.grad(sums, g, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_risks_of_many_labels_are_as_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice between both ways is made by the number of labels alone."""
    candidates = torch.rand(8, 217, generator=torch.Generator().manual_seed(3)) < 0.8
    both: tuple[Callable[[Tensor, Tensor], Tensor], ...]
    both = (RankingRisk(torch.full((217,), 0.1)), comrank_risk)
    for risk, dtype in itertools.product(both, (torch.float32, torch.float16, torch.bfloat16)):
        results = []
        for many in (1, 10**6):
            monkeypatch.setattr(pair_sums, "MANY_LABELS", {"cpu": many})
            g = random_scores(8, 217, 2.0).to(dtype).requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                value = risk(g, candidates)
                value.backward()
            assert g.grad is not None
            assert g.grad.dtype == dtype
            results.append((value.detach(), g.grad))
        (value, gradient), (expected, expected_gradient) = results
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)
        torch.testing.assert_close(gradient, expected_gradient)


def calls_of_linear_way(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> int:
    calls = []

    def spy(*arguments: Any) -> Tensor:
        calls.append(arguments)
        return sum_in_linear_time(*arguments)

    monkeypatch.setattr(pair_sums, "sum_in_linear_time", spy)
    run()
    return len(calls)


def test_many_labels_take_the_linear_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for q, calls in ((pair_sums.MANY_LABELS["cpu"] - 1, 0), (pair_sums.MANY_LABELS["cpu"], 1)):
        candidates = torch.arange(2 * q).view(2, q) % 3 > 0
        ranking = RankingRisk(torch.full((q,), 0.1))
        for risk in (ranking, copy.deepcopy(ranking), comrank_risk):
            run = partial(risk, torch.zeros(2, q), candidates)
            assert calls_of_linear_way(monkeypatch, run) == calls


def test_your_own_function_is_summed_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Squared:  # not hashable
        factor: float

        def __call__(self, difference: Tensor) -> Tensor:
            return self.factor * difference**2

    candidates = torch.arange(200).view(2, 100) % 3 > 0
    risk = partial(comrank_risk, pair_loss=Squared(2.0))
    assert calls_of_linear_way(monkeypatch, lambda: risk(torch.zeros(2, 100), candidates)) == 0


def test_no_rows_have_no_pairs() -> None:
    empty = torch.zeros(0, 100)
    assert pair_sums.sum_over_pairs(empty, empty, torch.sigmoid).tolist() == [0.0] * 100


def test_from_many_labels_on_sums_take_linear_time() -> None:
    for device in (CPU, CUDA):
        many = pair_sums.MANY_LABELS[device.type]
        assert choose_pair_sums(1, many, device) == "in linear time"
        assert choose_pair_sums(1, many - 1, device) == "whole"


def test_a_device_without_linear_sums_forms_differences() -> None:
    assert choose_pair_sums(1, 1000, MPS) == "whole"
    assert choose_pair_sums(10, 1000, MPS) == "in parts"


def test_more_differences_than_fit_are_formed_in_parts() -> None:
    for device, q in itertools.product((CPU, CUDA), (1, 16)):
        fitting = pair_sums.DIFFERENCES_AT_ONCE[device.type] // (q * q)
        assert choose_pair_sums(fitting, q, device) == "whole"
        assert choose_pair_sums(fitting + 1, q, device) == "in parts"


def test_sums_are_made_in_as_many_parts_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of four labels; a part is at least one label wide."""
    scores = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    excluded = torch.arange(12).reshape(3, 4) % 3 + 0.5
    expected = (excluded[:, :, None] * (scores[:, :, None] - scores[:, None, :]).exp()).sum((0, 2))
    cases = {48: [4], 47: [3, 1], 36: [3, 1], 35: [2, 2], 24: [2, 2], 23: [1] * 4, 1: [1] * 4}
    for at_once, expected_widths in cases.items():
        monkeypatch.setattr(pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
        widths: list[int] = []

        def exp_of_part(differences: torch.Tensor, widths: list[int] = widths) -> torch.Tensor:
            widths.append(differences.shape[1])
            return differences.exp()

        torch.testing.assert_close(
            pair_sums.sum_over_pairs(scores, excluded, exp_of_part), expected
        )
        assert widths == expected_widths, at_once
        assert choose_pair_sums(3, 4, CPU) == ("whole" if widths == [4] else "in parts"), at_once
