import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from comes.risks import comrank_risk, pairs
from drawn_problems import N, Q, annotate, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)


def test_is_the_sum_over_pairs_written_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    p = SCORES.sigmoid().tolist()
    forms: dict[Any, Callable[[float], float]] = {
        torch.exp: math.exp,
        torch.nn.functional.softplus: lambda z: math.log1p(math.exp(z)),
    }
    for pair_loss, phi in forms.items():
        total = sum(
            phi(p[i][j] - p[i][k])
            for i, j, k in itertools.product(range(N), range(Q), range(Q))
            if not CANDIDATES[i, j] and CANDIDATES[i, k]
        )
        for at_once in (2**22, 2 * N * Q, 1):  # whole, in chunks, by columns
            monkeypatch.setattr(pairs, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
            risk = comrank_risk(SCORES, CANDIDATES, pair_loss=pair_loss)
            assert risk.item() == pytest.approx(total / N, rel=1e-12), (pair_loss, at_once)
    torch.testing.assert_close(risk, comrank_risk(SCORES, CANDIDATES))  # softplus is the default


def test_one_excluded_label_is_compared_with_all_others() -> None:
    scores = torch.tensor([[0.0, 1.0, -1.0]], dtype=torch.float64)
    p = scores.sigmoid()[0]
    risk = comrank_risk(scores, torch.tensor([[False, True, True]]), pair_loss=torch.exp)
    torch.testing.assert_close(risk, torch.exp(p[0] - p[1]) + torch.exp(p[0] - p[2]))
