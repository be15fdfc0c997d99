"""Every risk is compiled by torch as one graph, to the same value and gradient."""

import pytest
import torch

from comes import risks
from drawn_problems import N, Q
from every_risk import RISKS, SCORES, value_and_gradient


def assert_compiles(name: str) -> None:
    torch.compiler.reset()
    case = RISKS[name]
    risk = case.make(Q)[1]
    compiled = torch.compile(risk, fullgraph=True, backend="aot_eager")
    for scores, tolerance in ((SCORES, 1e-12), (SCORES.float(), 1e-5)):
        found, expected = (
            value_and_gradient(each, scores, case.targets) for each in (compiled, risk)
        )
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance / 100)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.parametrize("name", RISKS)
def test_a_risk_compiles_to_the_same_value_and_gradient(name: str) -> None:
    assert_compiles(name)


def test_sums_over_pairs_in_parts_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risks.pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": N * Q})
    assert_compiles("ranking")
