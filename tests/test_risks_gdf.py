import pytest
import torch

from comes.losses import logistic_loss
from comes.risks import bce_risk, gdf_risk
from drawn_problems import N, Q, annotate, mean_over_possible_sets, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
EXCLUDES = (~CANDIDATES).any(dim=1)


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


def test_the_unbiased_form_is_the_mean_over_all_possible_sets() -> None:
    """Equation 9 is the expectation of the supervised loss under the uniform assumption."""
    for q in (2, 3, 5):
        scores, _ = problem(n=6, q=q)
        single = torch.ones(6, q, dtype=torch.bool)
        single[torch.arange(6), torch.arange(6) % q] = False
        rows = zip(scores, single, strict=True)
        expected = sum(mean_over_possible_sets(row, possible) for row, possible in rows)
        risk = gdf_risk(scores, single, unbiased=True)
        assert risk.item() == pytest.approx(expected / 6, rel=1e-12), q


def test_the_unbiased_form_is_exact_for_many_labels() -> None:
    """For q = 1000 the share of sets is 1/2 to the last digit, and nothing overflows."""
    scores = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
    single = torch.ones(4, 1000, dtype=torch.bool)
    single[:, 3] = False
    halves = (logistic_loss(scores, 0) + logistic_loss(scores, 1)) / 2
    expected = torch.where(single, halves, logistic_loss(scores, 0)).sum(dim=1).mean()
    torch.testing.assert_close(gdf_risk(scores, single, unbiased=True), expected)
