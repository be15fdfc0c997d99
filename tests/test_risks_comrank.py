import math
from typing import Any

import pytest
import torch

from comes.risks import comrank_risk, pairs
from drawn_problems import N, Q, annotate, problem

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)


@pytest.mark.parametrize("at_once", [2**22, 2 * N * Q, 1], ids=["whole", "chunks", "columns"])
@pytest.mark.parametrize("form", ["softplus", "exp"])
def test_is_the_sum_over_pairs_written_as_loops(
    form: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
    total = 0.0
    p = SCORES.sigmoid().tolist()
    for i in range(N):
        for j in range(Q):
            for k in range(Q):
                if not CANDIDATES[i, j] and CANDIDATES[i, k]:
                    z = p[i][j] - p[i][k]
                    total += math.exp(z) if form == "exp" else math.log1p(math.exp(z))
    options: dict[str, Any] = {"pair_loss": torch.exp} if form == "exp" else {}
    risk = comrank_risk(SCORES, CANDIDATES, **options)
    assert risk.item() == pytest.approx(total / N, rel=1e-12)


def test_one_excluded_label_is_compared_with_all_others() -> None:
    scores = torch.tensor([[0.0, 1.0, -1.0]], dtype=torch.float64)
    p = scores.sigmoid()[0]
    risk = comrank_risk(scores, torch.tensor([[False, True, True]]), pair_loss=torch.exp)
    torch.testing.assert_close(risk, torch.exp(p[0] - p[1]) + torch.exp(p[0] - p[2]))
