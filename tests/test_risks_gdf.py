import itertools

import pytest
import torch
from torch import Tensor

from comes.answers import keep_one_excluded
from comes.losses import logistic_loss
from comes.risks import bce_risk, gdf_risk
from drawn_problems import N, Q, annotate, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
EXCLUDES = (~CANDIDATES).any(dim=1)


def mean_over_possible_sets(scores: Tensor, candidates: Tensor) -> float:
    """Return the mean supervised loss over all non-empty label sets inside the candidates."""
    q = len(scores)
    losses = []
    for size in range(1, q + 1):
        for chosen in itertools.combinations(range(q), size):
            if all(candidates[j] for j in chosen):
                terms = (softplus(-g) if j in chosen else softplus(g) for j, g in enumerate(scores))
                losses.append(sum(terms))
    return float(sum(losses) / len(losses))


def test_is_equation_12_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        if EXCLUDES[i]:
            for j in range(Q):
                g = SCORES[i, j].item()
                total += softplus(-g) if CANDIDATES[i, j] else softplus(g)
    expected = total / int(EXCLUDES.sum())
    assert gdf_risk(SCORES, CANDIDATES).item() == pytest.approx(expected, rel=1e-12)


def test_with_all_excluded_labels_it_is_q_times_bce() -> None:
    rows = EXCLUDES
    assert 0 < rows.sum() < N
    expected = Q * bce_risk(SCORES[rows], CANDIDATES[rows])
    torch.testing.assert_close(gdf_risk(SCORES[rows], CANDIDATES[rows]), expected)


def test_a_row_that_excludes_nothing_is_left_out() -> None:
    torch.testing.assert_close(
        gdf_risk(SCORES, CANDIDATES), gdf_risk(SCORES[EXCLUDES], CANDIDATES[EXCLUDES])
    )
    nothing = torch.ones_like(CANDIDATES)
    assert gdf_risk(SCORES, nothing) == 0


@pytest.mark.parametrize("q", [2, 3, 5])
def test_the_unbiased_form_is_the_mean_over_all_possible_sets(q: int) -> None:
    """Equation 9 is the expectation of the supervised loss under the uniform assumption."""
    scores, _ = problem(n=6, q=q)
    single = torch.ones(6, q, dtype=torch.bool)
    single[torch.arange(6), torch.arange(6) % q] = False
    expected = sum(
        mean_over_possible_sets(row, possible) for row, possible in zip(scores, single, strict=True)
    )
    risk = gdf_risk(scores, single, unbiased=True)
    assert risk.item() == pytest.approx(expected / 6, rel=1e-12)


def test_the_unbiased_form_is_exact_for_many_labels() -> None:
    """For q = 1000 the share of sets is 1/2 to the last digit, and nothing overflows."""
    scores = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
    single = torch.ones(4, 1000, dtype=torch.bool)
    single[:, 3] = False
    halves = (logistic_loss(scores, 0) + logistic_loss(scores, 1)) / 2
    expected = torch.where(single, halves, logistic_loss(scores, 0)).sum(dim=1).mean()
    torch.testing.assert_close(gdf_risk(scores, single, unbiased=True), expected)


def test_one_excluded_label_per_row_is_drawn_uniformly() -> None:
    candidates = torch.tensor([[False, True, False, False]]).expand(30000, 4).numpy()
    kept = keep_one_excluded(candidates, seed=0)
    excluded = ~kept
    assert (excluded.sum(axis=1) == 1).all() and not excluded[:, 1].any()
    assert abs(excluded.mean(axis=0)[[0, 2, 3]] - 1 / 3).max() < 0.012
    assert (keep_one_excluded(candidates, seed=0) == kept).all()
    assert (keep_one_excluded(candidates, seed=1) != kept).any()
    everything = torch.ones(5, 3, dtype=torch.bool).numpy()
    assert keep_one_excluded(everything).all()
