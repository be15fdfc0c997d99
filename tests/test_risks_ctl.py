import math

import pytest
import torch

from comes.risks import ctl_risk, ctl_unbiased_risk, gdf_risk
from drawn_problems import N, Q, annotate, mean_over_possible_sets, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
CANDIDATES[0] = True
CANDIDATES[1] = False


def test_is_the_weighted_loss_written_as_loops() -> None:
    total, n_low = 0.0, 0
    for i in range(N):
        probability = [1 / (1 + math.exp(-g)) for g in SCORES[i].tolist()]
        low, high = min(probability), max(probability)
        m = int((~CANDIDATES[i]).sum())
        alpha, beta = math.exp(-(2.0**-m)), math.exp(2.0 ** (1 - m))
        for j in range(Q):
            g = SCORES[i, j].item()
            u = (probability[j] - low) / (high - low)
            if not CANDIDATES[i, j]:
                total += beta * softplus(g)
                continue
            w = 0 < u <= 0.3
            n_low += w
            total += alpha * (softplus(-g) + w * softplus(g))
    assert n_low > 5
    assert ctl_risk(SCORES, CANDIDATES).item() == pytest.approx(total / N, rel=1e-12)


def test_weights_by_the_number_of_excluded_labels() -> None:
    """0.607 and 2.718 for one excluded label, 0.779 and 1.649 for two, as in the released code."""
    for candidates, alpha, beta in (
        ([True, True, False], 0.6065, 2.7183),
        ([True, False, False], 0.7788, 1.6487),
        ([True, True, True], 0.3679, 0.0),
    ):
        n_left = sum(candidates)
        expected = math.log(2) * (alpha * n_left + beta * (3 - n_left))
        risk = ctl_risk(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([candidates]))
        assert risk.item() == pytest.approx(expected, rel=1e-4)


def test_a_row_of_equal_scores_is_not_stretched() -> None:
    """Their probability itself says whether they are low."""
    candidates = torch.tensor([[True, True, False]])
    low, high = (torch.full((1, 3), g, dtype=torch.float64) for g in (-2.0, 2.0))
    alpha, beta = math.exp(-0.5), math.e
    both = 2 * alpha * (softplus(2.0) + softplus(-2.0)) + beta * softplus(-2.0)
    assert ctl_risk(low, candidates).item() == pytest.approx(both)
    one = 2 * alpha * softplus(-2.0) + beta * softplus(2.0)
    assert ctl_risk(high, candidates).item() == pytest.approx(one)


def test_what_is_low_has_no_gradient() -> None:
    """Between the places where a candidate becomes low, the gradient is that of the terms."""
    scores = torch.tensor([[3.0, -1.0, 0.5, -3.0]], dtype=torch.float64, requires_grad=True)
    candidates = torch.tensor([[True, True, True, False]])
    (gradient,) = torch.autograd.grad(ctl_risk(scores, candidates), scores)
    alpha, beta = math.exp(-0.5), math.e
    p = scores.detach().sigmoid()[0]
    # Label 1 is low: both of its losses count. Label 3 is excluded.
    expected = torch.stack(
        [alpha * (p[0] - 1), alpha * (2 * p[1] - 1), alpha * (p[2] - 1), beta * p[3]]
    )
    torch.testing.assert_close(gradient[0], expected)


def test_the_unbiased_form_is_the_mean_over_all_possible_sets() -> None:
    expected = 0.0
    for i in range(N):
        if CANDIDATES[i].any():
            expected += mean_over_possible_sets(SCORES[i], CANDIDATES[i])
        else:  # only the empty set is left
            expected += sum(softplus(g) for g in SCORES[i].tolist())
    assert ctl_unbiased_risk(SCORES, CANDIDATES).item() == pytest.approx(expected / N, rel=1e-12)


def test_the_unbiased_form_is_that_of_gdf_for_one_excluded_label() -> None:
    single = torch.ones_like(CANDIDATES)
    single[:, 2] = False
    torch.testing.assert_close(
        ctl_unbiased_risk(SCORES, single), gdf_risk(SCORES, single, unbiased=True)
    )


def test_the_released_weight_is_the_sum_over_sets_and_a_factor() -> None:
    """The bracket of the released code: the sum over all possible sets, over 2^q - 2."""
    expected = 0.0
    for i in range(N):
        n_sets = 2 ** int(CANDIDATES[i].sum()) - 1
        if n_sets:
            expected += n_sets * mean_over_possible_sets(SCORES[i], CANDIDATES[i]) / (2**Q - 2)
    risk = ctl_unbiased_risk(SCORES, CANDIDATES, released_weight=True)
    assert risk.item() == pytest.approx(expected / N, rel=1e-10)


def test_the_released_weight_vanishes_for_many_excluded_labels() -> None:
    scores = torch.zeros(1, 400)
    candidates = torch.arange(400)[None] < 200
    assert ctl_unbiased_risk(scores, candidates, released_weight=True) == 0
    assert ctl_unbiased_risk(scores, candidates) > 100
