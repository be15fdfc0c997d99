"""BCE, GDF, CTL, MLCL and ComRank: each is its formula written as loops."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError
from comes.risks import (
    BceRisk,
    bce_risk,
    comrank_risk,
    ctl_risk,
    gdf_risk,
    logistic_loss,
    losses,
    mlcl_risk,
    pair_sums,
)
from drawn_problems import N, Q, annotate, mean_over_possible_sets, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
EXCLUDES = (~CANDIDATES).any(dim=1)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)
CTL_CANDIDATES = CANDIDATES.clone()
CTL_CANDIDATES[0], CTL_CANDIDATES[1] = True, False
TRANSITION = torch.tensor(
    [[0, 0.2, 0.5, 0.3], [0.3, 0, 0.2, 0.5], [0.5, 0.3, 0, 0.2], [0.2, 0.5, 0.3, 0]],
    dtype=torch.float64,
)


def test_bce_takes_every_candidate_for_relevant_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g = SCORES[i, j].item()
            total += softplus(-g) if CANDIDATES[i, j] else softplus(g)
    expected = torch.tensor(total / (N * Q), dtype=torch.float64)
    torch.testing.assert_close(bce_risk(SCORES, CANDIDATES), expected)


def test_bce_your_own_loss_is_that_of_a_margin_loss_with_the_same_formula() -> None:
    def own(scores: Tensor, target: int) -> Tensor:
        return losses.hinge_loss(scores, target)

    for answers in (CANDIDATES, STATES):
        expected = bce_risk(SCORES, answers, loss=losses.hinge_loss)
        torch.testing.assert_close(bce_risk(SCORES, answers, loss=own), expected)


def states_by_loops(weight: list[float]) -> float:
    """Return the mean over all pairs, of which only no and yes cost something."""
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g = SCORES[i, j].item()
            if STATES[i, j] == State.YES:
                total += weight[j] * softplus(-g)
            elif STATES[i, j] == State.NO:
                total += weight[j] * softplus(g)
    return total / (N * Q)


def test_bce_of_states_only_no_and_yes_count_written_as_loops() -> None:
    for weight in (None, [2.0, 0.0, 0.5, 1.0]):
        label_weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
        risk = bce_risk(SCORES, STATES, label_weight=label_weight)
        assert risk.item() == pytest.approx(states_by_loops(weight or [1.0] * Q), rel=1e-12)
        torch.testing.assert_close(BceRisk(label_weight=label_weight)(SCORES, STATES), risk)


def gradient_on(states: Tensor) -> Tensor:
    scores = (1e4 * SCORES).requires_grad_()
    risk = bce_risk(scores, states)
    assert risk.isfinite()
    risk.backward()
    assert scores.grad is not None
    return scores.grad


def test_bce_maybe_and_not_asked_have_no_gradient() -> None:
    gradient = gradient_on(STATES)
    assert gradient.isfinite().all()
    sure = (STATES == State.NO) | (STATES == State.YES)
    assert gradient[~sure].abs().max() == 0 and gradient[sure].abs().max() > 0
    assert gradient_on(torch.zeros_like(STATES)).abs().max() == 0


def test_bce_full_answers_are_true_labels() -> None:
    states = torch.where(RELEVANT, State.YES, State.NO).to(torch.int8)
    torch.testing.assert_close(bce_risk(SCORES, states), bce_risk(SCORES, RELEVANT))


def test_bce_what_is_no_loss_or_no_weight_is_refused() -> None:
    with pytest.raises(ComesError, match="loss must be a function.*got 'hinge'"):
        bce_risk(SCORES, CANDIDATES, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="label_weight must be 0 or more; got .*-1"):
        bce_risk(SCORES, CANDIDATES, label_weight=torch.tensor([1.0, 0.0, 2.0, -1.0]))


def test_gdf_is_equation_12_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        if EXCLUDES[i]:
            for j in range(Q):
                g = SCORES[i, j].item()
                total += softplus(-g) if CANDIDATES[i, j] else softplus(g)
    expected = total / int(EXCLUDES.sum())
    assert gdf_risk(SCORES, CANDIDATES).item() == pytest.approx(expected, rel=1e-12)


def test_gdf_with_all_excluded_labels_it_is_q_times_bce() -> None:
    rows = EXCLUDES
    assert 0 < rows.sum() < N
    expected = Q * bce_risk(SCORES[rows], CANDIDATES[rows])
    torch.testing.assert_close(gdf_risk(SCORES[rows], CANDIDATES[rows]), expected)


def test_gdf_a_row_that_excludes_nothing_is_left_out() -> None:
    torch.testing.assert_close(
        gdf_risk(SCORES, CANDIDATES), gdf_risk(SCORES[EXCLUDES], CANDIDATES[EXCLUDES])
    )
    nothing = torch.ones_like(CANDIDATES)
    assert gdf_risk(SCORES, nothing) == 0


def test_gdf_the_unbiased_form_is_the_mean_over_all_possible_sets() -> None:
    """Equation 9 is the expectation of the supervised loss under the uniform assumption."""
    for q in (2, 3, 5):
        scores, _ = problem(n=6, q=q)
        single = torch.ones(6, q, dtype=torch.bool)
        single[torch.arange(6), torch.arange(6) % q] = False
        rows = zip(scores, single, strict=True)
        expected = sum(mean_over_possible_sets(row, possible) for row, possible in rows)
        risk = gdf_risk(scores, single, unbiased=True)
        assert risk.item() == pytest.approx(expected / 6, rel=1e-12), q


def test_gdf_the_unbiased_form_is_exact_for_many_labels() -> None:
    """For q = 1000 the share of sets is 1/2 to the last digit, and nothing overflows."""
    scores = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
    single = torch.ones(4, 1000, dtype=torch.bool)
    single[:, 3] = False
    halves = (logistic_loss(scores, 0) + logistic_loss(scores, 1)) / 2
    expected = torch.where(single, halves, logistic_loss(scores, 0)).sum(dim=1).mean()
    torch.testing.assert_close(gdf_risk(scores, single, unbiased=True), expected)


def test_ctl_is_the_weighted_loss_written_as_loops() -> None:
    total, n_low = 0.0, 0
    for i in range(N):
        probability = [1 / (1 + math.exp(-g)) for g in SCORES[i].tolist()]
        low, high = min(probability), max(probability)
        m = int((~CTL_CANDIDATES[i]).sum())
        alpha, beta = math.exp(-(2.0**-m)), math.exp(2.0 ** (1 - m))
        for j in range(Q):
            g = SCORES[i, j].item()
            u = (probability[j] - low) / (high - low)
            if not CTL_CANDIDATES[i, j]:
                total += beta * softplus(g)
                continue
            w = 0 < u <= 0.3
            n_low += w
            total += alpha * (softplus(-g) + w * softplus(g))
    assert n_low > 5
    assert ctl_risk(SCORES, CTL_CANDIDATES).item() == pytest.approx(total / N, rel=1e-12)


def test_ctl_weights_by_the_number_of_excluded_labels() -> None:
    """0.607 and 2.718 for one excluded label, 0.779 and 1.649 for two, as in the authors' code."""
    for candidates, alpha, beta in (
        ([True, True, False], 0.6065, 2.7183),
        ([True, False, False], 0.7788, 1.6487),
        ([True, True, True], 0.3679, 0.0),
    ):
        n_left = sum(candidates)
        expected = math.log(2) * (alpha * n_left + beta * (3 - n_left))
        risk = ctl_risk(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([candidates]))
        assert risk.item() == pytest.approx(expected, rel=1e-4)


def test_ctl_a_row_of_equal_scores_is_not_stretched() -> None:
    """Their probability itself says whether they are low."""
    candidates = torch.tensor([[True, True, False]])
    low, high = (torch.full((1, 3), g, dtype=torch.float64) for g in (-2.0, 2.0))
    alpha, beta = math.exp(-0.5), math.e
    both = 2 * alpha * (softplus(2.0) + softplus(-2.0)) + beta * softplus(-2.0)
    assert ctl_risk(low, candidates).item() == pytest.approx(both)
    one = 2 * alpha * softplus(-2.0) + beta * softplus(2.0)
    assert ctl_risk(high, candidates).item() == pytest.approx(one)


def test_ctl_what_is_low_has_no_gradient() -> None:
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


def test_ctl_the_unbiased_form_is_the_mean_over_all_possible_sets() -> None:
    expected = 0.0
    for i in range(N):
        if CTL_CANDIDATES[i].any():
            expected += mean_over_possible_sets(SCORES[i], CTL_CANDIDATES[i])
        else:  # only the empty set is left
            expected += sum(softplus(g) for g in SCORES[i].tolist())
    assert ctl_risk(SCORES, CTL_CANDIDATES, unbiased=True).item() == pytest.approx(
        expected / N, rel=1e-12
    )


def test_ctl_the_unbiased_form_is_that_of_gdf_for_one_excluded_label() -> None:
    single = torch.ones_like(CANDIDATES)
    single[:, 2] = False
    torch.testing.assert_close(
        ctl_risk(SCORES, single, unbiased=True), gdf_risk(SCORES, single, unbiased=True)
    )


def mlcl_by_loops() -> float:
    entropy = squares = 0.0
    for i in range(N):
        p = [1 / (1 + math.exp(-g)) for g in SCORES[i].tolist()]
        for j in range(Q):
            v = sum(TRANSITION[j, k].item() * p[k] for k in range(Q))
            c = float(not CANDIDATES[i, j])
            squares += (c - v) ** 2
            entropy -= c * math.log(v) + (1 - c) * math.log(1 - v)
    return entropy / (N * Q) + math.sqrt(squares)


def test_mlcl_is_the_loss_written_as_loops() -> None:
    risk = mlcl_risk(SCORES, CANDIDATES, TRANSITION)
    assert risk.item() == pytest.approx(mlcl_by_loops(), rel=1e-10)


def test_mlcl_probabilities_above_1_are_clamped() -> None:
    """Rows of the transition matrix may sum to more than 1."""
    doubled = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    risk = mlcl_risk(torch.full((2, 3), 9.0), torch.zeros(2, 3, dtype=torch.bool), doubled)
    assert risk.isfinite()


def test_mlcl_a_perfect_prediction_has_a_finite_gradient() -> None:
    """The norm is not squared: at 0 its gradient would not exist."""
    swapped = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    scores = torch.tensor([[200.0, -200.0]], requires_grad=True)
    mlcl_risk(scores, torch.tensor([[True, False]]), swapped).backward()
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_comrank_is_the_sum_over_pairs_written_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
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
            monkeypatch.setattr(pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": at_once})
            risk = comrank_risk(SCORES, CANDIDATES, pair_loss=pair_loss)
            assert risk.item() == pytest.approx(total / N, rel=1e-12), (pair_loss, at_once)
    torch.testing.assert_close(risk, comrank_risk(SCORES, CANDIDATES))  # softplus is the default


def test_comrank_one_excluded_label_is_compared_with_all_others() -> None:
    scores = torch.tensor([[0.0, 1.0, -1.0]], dtype=torch.float64)
    p = scores.sigmoid()[0]
    risk = comrank_risk(scores, torch.tensor([[False, True, True]]), pair_loss=torch.exp)
    torch.testing.assert_close(risk, torch.exp(p[0] - p[1]) + torch.exp(p[0] - p[2]))
