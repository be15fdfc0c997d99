"""Weights of rows: a row of weight k is k rows, for every method. Arrays in place of tensors."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn

from comes import risks
from comes.answers import State
from comes.errors import ComesError
from comes.methods import METHODS, Counts, Method, Rates
from comes.models.tabular import EnsembleRisk

N, Q = 14, 5
DRAW = torch.Generator().manual_seed(3)
SCORES = torch.randn(N, Q, generator=DRAW, dtype=torch.float64) * 2
CANDIDATES = torch.rand(N, Q, generator=DRAW) < 0.6
CANDIDATES[:2] = True  # rows that exclude nothing
STATES = torch.randint(0, 4, (N, Q), generator=DRAW, dtype=torch.int8)
TIMES = torch.tensor([1, 3, 0, 2, 5, 1, 0, 4, 2, 1, 1, 2, 3, 1])  # how often each row counts
RATES: Any = np.linspace(0.2, 0.7, Q)
TRANSITION: Any = np.full((Q, Q), 1 / (Q - 1)) * (1 - np.eye(Q))
COUNTS = Counts(N, N * (1 - RATES / 2), drawn=N * RATES, asked=N * RATES)
VARIANTS: list[Method] = [
    clone(method).set_params(**({"variant": variant} if variant else {}))
    for method in METHODS.values()
    for variant in method.variants or (None,)
]
SIGHTS = {"candidates": CANDIDATES, "states": STATES}


def sights_of(method: Method) -> list[str]:
    """Return what a method learns from: candidates, and states where it can."""
    return ["candidates"] if method.uses_only_candidates else ["candidates", "states"]


def make(method: Method, sight: str, *, by_dataset: bool = True, prior_weight: float = 0.0) -> Any:
    """Return the risk of a method in float64; n_j are those of the data set or of a batch."""
    yes_rate = RATES if sight == "states" else np.zeros(Q)
    rates = Rates(
        RATES, RATES, TRANSITION, no_rate=RATES, yes_rate=yes_rate, prior_weight=prior_weight
    )
    if not by_dataset and "normaliser" in method.get_params():
        method = clone(method).set_params(normaliser="batch")
    risk = method.make_risk(rates, COUNTS)
    assert isinstance(risk, nn.Module)
    return risk.double()


def value_and_gradient(risk: Any, scores: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """Return the risk and its gradient by the scores."""
    scores = scores.clone().requires_grad_()
    value = risk(scores, *rest)
    return value.detach(), torch.autograd.grad(value, scores)[0]


@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_a_row_of_weight_k_is_k_rows(method: Method) -> None:
    copies = torch.repeat_interleave(torch.arange(N), TIMES)  # none of a row of weight 0
    for sight, by_dataset in itertools.product(sights_of(method), (False, True)):
        risk = make(method, sight, by_dataset=by_dataset, prior_weight=float(by_dataset))
        seen = SIGHTS[sight]
        repeated, each = value_and_gradient(risk, SCORES[copies], seen[copies])
        weighted, gradient = value_and_gradient(risk, SCORES, seen, TIMES.double())
        torch.testing.assert_close(weighted, repeated, rtol=1e-12, atol=1e-12)
        expected = torch.zeros_like(SCORES).index_add_(0, copies, each)
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-13)
        plain, _ = value_and_gradient(risk, SCORES, seen)
        assert abs(plain - repeated) > 1e-6, "the weights change nothing here: it cannot fail"
        ones, _ = value_and_gradient(risk, SCORES, seen, torch.ones(N))
        torch.testing.assert_close(ones, plain, rtol=1e-12, atol=1e-12)


def test_a_batch_that_weighs_nothing_is_finite() -> None:
    for method in VARIANTS:
        for sight in sights_of(method):
            risk = make(method, sight, prior_weight=1.0)
            value, gradient = value_and_gradient(risk, SCORES, SIGHTS[sight], torch.zeros(N))
            assert value.isfinite() and gradient.isfinite().all(), (method, sight)


def test_arrays_are_taken_as_tensors_are() -> None:
    for method in VARIANTS:
        for sight in sights_of(method):
            risk, seen = make(method, sight), SIGHTS[sight]
            expected = risk(SCORES, seen)
            torch.testing.assert_close(risk(SCORES, seen.numpy()), expected)
            torch.testing.assert_close(risk(SCORES.numpy(), seen.numpy()), expected)
        with pytest.raises(ComesError, match=r"scores must be a tensor .*of numbers; got str"):
            risk("scores", seen)


def test_modules_and_functions_take_arrays_for_what_they_know() -> None:
    g, prior = SCORES, RATES
    s: Any = CANDIDATES.numpy()
    made = {
        risks.HammingRisk(prior): risks.hamming_risk(g, s, prior),
        risks.RankingRisk(prior, flood_level="auto"): None,
        risks.LikelihoodRisk(prior, class_prior=prior): risks.likelihood_risk(
            g, s, prior, class_prior=prior
        ),
        risks.BceRisk(label_weight=prior): risks.bce_risk(g, s, label_weight=prior),
    }
    for module, expected in made.items():
        value = module(g, s)
        assert value.isfinite()
        if expected is not None:
            torch.testing.assert_close(value, expected)
    functions: dict[Any, Any] = {
        risks.ccmn_hamming_risk: prior,
        risks.ccmn_ranking_risk: prior,
        risks.mlcl_risk: TRANSITION,
    }
    for function, array in functions.items():
        expected = function(g, s, torch.as_tensor(array))
        torch.testing.assert_close(function(g, s, array), expected)
    plain: Any = [0.2, 0.3]
    lists = risks.HammingRisk(plain)(torch.zeros(1, 2), np.array([[True, False]]))
    torch.testing.assert_close(lists, torch.tensor(np.log(2) / 2, dtype=torch.float32))


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(ComesError, match=r"class_prior must be a tensor or an array of numbers"):
        risks.HammingRisk({"sky": 0.3})  # type: ignore[arg-type]
    with pytest.raises(ComesError, match=r"must be bool.*got torch.int64.*candidates.bool\(\)"):
        risks.HammingRisk(RATES)(SCORES, CANDIDATES.numpy().astype(int))
    with pytest.raises(ComesError, match=r"one number for each of 14 rows; got shape \(14, 1\)"):
        risks.BceRisk()(SCORES, CANDIDATES, torch.ones(N, 1))
    with pytest.raises(ComesError, match=r"sample_weight must be 0 or more; got .*-1"):
        risks.BceRisk()(SCORES, CANDIDATES, TIMES - 1)


def test_every_network_of_several_has_the_weights() -> None:
    risk, weight = risks.BceRisk(), TIMES.double()
    scores = torch.randn(N, 3, Q, generator=DRAW, dtype=torch.float64)
    own = [risk(scores[:, k], CANDIDATES, weight) for k in range(3)]
    found = EnsembleRisk(risk)(scores, CANDIDATES, weight)
    torch.testing.assert_close(found, sum(own) / 3)


def test_the_prior_penalty_is_of_the_weighted_mean() -> None:
    risk = risks.LikelihoodRisk(torch.full((1,), 0.5), class_prior=torch.full((1,), 0.25))
    silent = torch.full((4, 1), State.NOT_ASKED, dtype=torch.int8)  # nothing but the penalty
    scores = torch.logit(torch.tensor([[0.1], [0.7], [0.2], [0.4]], dtype=torch.float64))
    weight = torch.tensor([8.0, 2.0, 0.0, 0.0])  # mean probability 0.22
    mean = torch.tensor(0.22, dtype=torch.float64)
    expected = 0.25 * torch.log(0.25 / mean) + 0.75 * torch.log(0.75 / (1 - mean))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(risk.double()(scores, silent, weight), expected)
