"""Risks on pairs given by index: those on the matrix of all pairs, value and gradient."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError
from comes.risks import BceRisk, HammingRisk, LikelihoodRisk, SparseTargets, sigmoid_loss

N, Q = 7, 11
RATE = torch.linspace(0.1, 0.9, Q, dtype=torch.float64)
PRIOR = torch.linspace(0.05, 0.6, Q, dtype=torch.float64)
WEIGHT = torch.linspace(0.5, 2.0, Q, dtype=torch.float64)
ALL = (State.NOT_ASKED, State.NO, State.YES, State.MAYBE)

RISKS: dict[str, tuple[Callable[[], Any], tuple[State, ...]]] = {
    "bce": (BceRisk, ALL),
    "bce, sigmoid loss, weighted": (partial(BceRisk, loss=sigmoid_loss, label_weight=WEIGHT), ALL),
    "hamming": (partial(HammingRisk, PRIOR), (State.NOT_ASKED, State.MAYBE)),
    "hamming, shares of the data set": (
        partial(HammingRisk, PRIOR, exclude_share=RATE / 3, asked_share=RATE),
        (State.NOT_ASKED, State.MAYBE),
    ),
    "hamming, unbiased": (
        partial(HammingRisk, PRIOR, correction=torch.positive, skip_empty=False),
        (State.NOT_ASKED, State.MAYBE),
    ),
    "likelihood of candidates": (partial(LikelihoodRisk, RATE), (State.NOT_ASKED, State.MAYBE)),
    "likelihood of ticked labels": (
        partial(LikelihoodRisk, torch.zeros_like(RATE), RATE),
        (State.NOT_ASKED, State.MAYBE),
    ),
    "likelihood with mistakes, weights and a prior": (
        partial(
            LikelihoodRisk,
            RATE,
            RATE.flip(0) / 20,
            mistake_rate=0.01,
            label_weight=WEIGHT,
            class_prior=PRIOR,
            prior_weight=0.3,
        ),
        (State.NOT_ASKED,),
    ),
}
every_risk = pytest.mark.parametrize("name", RISKS)


def draw_targets(default: State, share: float = 0.3, n: int = N, q: int = Q) -> SparseTargets:
    generator = torch.Generator().manual_seed(3)
    labels, rows = torch.nonzero(torch.rand(q, n, generator=generator) < share).T
    states = torch.randint(1, 4, rows.shape, generator=generator).to(torch.int8)
    return SparseTargets(rows, labels, states, default, (n, q))


def draw_scores(n: int = N, q: int = Q, size: float = 3.0) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return size * torch.randn(n, q, generator=generator, dtype=torch.float64)


def assert_close(found: Tensor, expected: Tensor, case: str) -> None:
    torch.testing.assert_close(
        found, expected, rtol=1e-12, atol=1e-14, msg=lambda text: f"{case}: {text}"
    )


def differentiate(risk: Any, scores: Tensor, targets: Any) -> tuple[Tensor, Tensor]:
    own = scores.clone().requires_grad_()
    value = risk(own, targets)
    return value.detach(), torch.autograd.grad(value, own)[0]


@every_risk
def test_a_risk_by_index_is_the_risk_of_the_matrix(name: str) -> None:
    (make, defaults), scores = RISKS[name], draw_scores()
    for default, share in itertools.product(defaults, (0.0, 0.3, 1.0)):
        risk, targets = make(), draw_targets(default, share)
        expected = differentiate(risk, scores, targets.as_matrix())
        for one, other in zip(differentiate(risk, scores, targets), expected, strict=True):
            assert_close(one, other, f"{share} of pairs, others {default.name}")


@every_risk
def test_the_mean_over_parts_of_the_labels_is_the_whole(name: str) -> None:
    (make, defaults), scores = RISKS[name], draw_scores()
    for default in defaults:
        risk, targets = make(), draw_targets(default)
        value, gradient = differentiate(risk, scores, targets)
        total, parts = torch.zeros_like(value), []
        for start, stop in ((0, 4), (4, 5), (5, Q)):
            part = risk.select_labels(slice(start, stop))
            own = differentiate(part, scores[:, start:stop], targets.select_labels(start, stop))
            total += own[0] * (stop - start) / Q
            parts.append(own[1] * (stop - start) / Q)
        assert_close(total, value, default.name)
        assert_close(torch.cat(parts, dim=1), gradient, default.name)


def test_labels_without_an_answer_can_be_left_out() -> None:
    targets = SparseTargets(
        torch.tensor([1, 0, 1]),
        torch.tensor([2, 5, 5]),
        torch.tensor([1, 2, 3], dtype=torch.int8),
        State.NOT_ASKED,
        (2, 7),
    )
    labels, asked = targets.of_asked_labels()
    assert labels.tolist() == [2, 5]
    assert asked.as_matrix().tolist() == targets.as_matrix()[:, [2, 5]].tolist() == [[0, 2], [1, 3]]


def test_huge_scores_and_half_precision_give_numbers() -> None:
    for name, (make, defaults) in RISKS.items():
        risk, targets = make().float(), draw_targets(defaults[-1])
        for size, precision in itertools.product(
            (1e3, 1e-8), (torch.float32, torch.float16, torch.bfloat16)
        ):
            value, gradient = differentiate(risk, draw_scores(size=size).to(precision), targets)
            assert value.dtype == torch.float32, name
            assert value.isfinite() and gradient.isfinite().all(), (name, size, precision)


def test_one_row_and_one_label() -> None:
    targets = draw_targets(State.MAYBE, 1.0, 1, 1)
    scores = torch.zeros(1, 1, dtype=torch.float64)
    for make in (partial(LikelihoodRisk, RATE[:1]), partial(HammingRisk, PRIOR[:1]), BceRisk):
        assert make()(scores, targets) == make()(scores, targets.as_matrix())


def test_shapes_and_weights_are_checked() -> None:
    targets, risk = draw_targets(State.MAYBE), LikelihoodRisk(RATE)
    with pytest.raises(ComesError, match=r"one shape \(n, q\); got \(7, 10\) and \(7, 11\)"):
        risk(draw_scores()[:, :10], targets)
    with pytest.raises(ComesError, match=r"sample_weight .*got SparseTargets. Repeat rows"):
        risk(draw_scores(), targets, torch.ones(N))
