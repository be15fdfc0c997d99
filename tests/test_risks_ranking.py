import pytest
import torch

from comes.errors import ComesError
from comes.risks import (
    RankingRisk,
    RankingSums,
    losses,
    pair_sums,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)
from comes.risks.ranking import default_flood_level
from drawn_problems import (
    N,
    Q,
    annotate,
    prior_of,
    problem,
    ranking_by_loops,
    share_both_irrelevant,
    supervised_ranking_risk,
)

SCORES, RELEVANT = problem()
PRIOR = prior_of(RELEVANT)
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
SUPERVISED = supervised_ranking_risk(SCORES, RELEVANT, losses.sigmoid_loss)
SYMMETRIC = [losses.sigmoid_loss, losses.ramp_loss, losses.unhinged_loss]


def test_is_the_supervised_risk_plus_a_constant_when_everything_irrelevant_is_excluded() -> None:
    """Theorem 4; the constant is M sum_{j<k} p(y_j = 0, y_k = 0)."""
    for loss in SYMMETRIC:
        constant = share_both_irrelevant(RELEVANT) * (loss.symmetry_constant or 0)
        expected = supervised_ranking_risk(SCORES, RELEVANT, loss) + constant
        risk = ranking_risk(SCORES, RELEVANT, PRIOR, loss=loss)
        assert risk.item() == pytest.approx(expected, rel=1e-12), loss.name


def test_averages_to_the_supervised_risk_plus_the_constant_over_annotations() -> None:
    risks = torch.stack(
        [ranking_risk(SCORES, annotate(RELEVANT, 0.5, seed), PRIOR) for seed in range(100, 600)]
    )
    standard_error = risks.std() / len(risks) ** 0.5
    expected = SUPERVISED + share_both_irrelevant(RELEVANT)
    assert standard_error < 0.02
    assert abs(risks.mean() - expected) < 4 * standard_error


def test_is_equation_13_written_as_loops_over_pairs() -> None:
    for loss in SYMMETRIC:
        expected = ranking_by_loops(SCORES, CANDIDATES, PRIOR, loss)
        risk = ranking_risk(SCORES, CANDIDATES, PRIOR, loss=loss)
        assert risk.item() == pytest.approx(expected, rel=1e-12), loss.name


def test_flood_level_is_equation_14() -> None:
    risk = ranking_risk(SCORES, CANDIDATES, PRIOR).item()
    for level in (0.01, risk / 2, 2 * risk):
        flooded = ranking_risk(SCORES, CANDIDATES, PRIOR, flood_level=level).item()
        assert flooded == pytest.approx(abs(risk - level) + level)
    below, one = torch.tensor([[-5.0, 5.0]]), torch.tensor([[False, True]])
    small = ranking_risk(below, one, torch.full((2,), 0.5)).item()
    flooded = ranking_risk(below, one, torch.full((2,), 0.5), flood_level=0.5).item()
    assert flooded == pytest.approx(1 - small)
    with pytest.raises(ComesError, match="0 or more; got -1"):
        ranking_risk(SCORES, CANDIDATES, PRIOR, flood_level=-1)
    scores = SCORES.clone().requires_grad_()
    (plain,) = torch.autograd.grad(ranking_risk(scores, CANDIDATES, PRIOR), scores)
    flooded_risk = ranking_risk(scores, CANDIDATES, PRIOR, flood_level=2 * risk)
    (turned,) = torch.autograd.grad(flooded_risk, scores)
    torch.testing.assert_close(turned, -plain)


def test_the_rule_for_the_flood_level_is_a_sum_over_pairs() -> None:
    expected = sum(
        0.75 * (1 - PRIOR[j]) * (1 - PRIOR[k]) for j in range(Q) for k in range(j + 1, Q)
    )
    torch.testing.assert_close(default_flood_level(PRIOR), expected)
    assert default_flood_level(PRIOR[:1]) == 0  # no pair, no flood


def test_the_rule_leaves_out_labels_that_nothing_excludes() -> None:
    """Their part of the risk can be 0: whatever is excluded may score below them."""
    share = torch.full((Q,), 0.3)
    share[1] = 0
    others = torch.arange(Q) != 1
    expected = default_flood_level(PRIOR[others])
    torch.testing.assert_close(default_flood_level(PRIOR, exclude_share=share), expected)


def test_the_rule_is_three_quarters_of_the_least_risk_of_independent_labels() -> None:
    """Scores that rank every row right reach it, with the truth as candidates (Theorem 4)."""
    prior = torch.tensor([0.2, 0.5, 0.7], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    relevant = torch.rand(200_000, 3, generator=generator, dtype=torch.float64) < prior
    risk = ranking_risk(200.0 * relevant.double(), relevant, prior)
    assert 0.75 * risk.item() == pytest.approx(default_flood_level(prior).item(), rel=0.01)


def test_a_module_may_find_its_flood_level() -> None:
    for loss in SYMMETRIC:
        level = (loss.symmetry_constant or 0) * default_flood_level(PRIOR)
        module = RankingRisk(PRIOR, loss=loss, flood_level="auto")
        expected = ranking_risk(SCORES, CANDIDATES, PRIOR, loss=loss, flood_level=level.item())
        torch.testing.assert_close(module(SCORES, CANDIDATES), expected)
        assert RankingRisk(PRIOR, loss=loss).flood_level is None
    with pytest.raises(ComesError, match="0 or more; got nan"):
        RankingRisk(PRIOR, flood_level=float("nan"))


def test_gradient_is_that_of_ccmn_and_differs_by_a_constant() -> None:
    """With rates read off the prior: CCMN's four cases of a pair, in the PML special case."""
    share = (~CANDIDATES).double().mean(dim=0)
    keep = share / (1 - PRIOR)  # 1 - rho
    scores = SCORES.clone().requires_grad_()
    loss = losses.sigmoid_loss
    ccmn = torch.zeros((), dtype=torch.float64)
    constant = 0.0
    for i in range(N):
        for j in range(Q):
            for k in range(j + 1, Q):
                f = scores[i, j] - scores[i, k]
                if CANDIDATES[i, j] and not CANDIDATES[i, k]:
                    ccmn = ccmn + loss(f, 1) / keep[k]
                elif CANDIDATES[i, k] and not CANDIDATES[i, j]:
                    ccmn = ccmn + loss(f, 0) / keep[j]
                elif not CANDIDATES[i, j] and not CANDIDATES[i, k]:
                    both = (1 - keep[j]) * loss(f, 1) + (1 - keep[k]) * loss(f, 0)
                    ccmn = ccmn - both / (keep[j] * keep[k])
                    constant += (1 / (keep[j] * keep[k])).item()
    risk = ranking_risk(scores, CANDIDATES, PRIOR, exclude_share=share)
    assert (risk - ccmn / N).item() == pytest.approx(constant / N, rel=1e-10)
    (expected,) = torch.autograd.grad(ccmn / N, scores)
    (gradient,) = torch.autograd.grad(risk, scores)
    torch.testing.assert_close(gradient, expected)


def test_gradient_in_float64_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ranking_risk(SCORES, CANDIDATES, PRIOR)
    few, some = SCORES[:8].clone().requires_grad_(), CANDIDATES[:8]
    for parts, chunk in (("whole", 2**19), ("chunks of two", 2 * Q), ("columns", 0)):
        monkeypatch.setattr(pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": max(1, N * chunk)})
        torch.testing.assert_close(ranking_risk(SCORES, CANDIDATES, PRIOR), expected)
        monkeypatch.setattr(pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": max(1, 8 * chunk)})
        assert torch.autograd.gradcheck(lambda g: ranking_risk(g, some, PRIOR), (few,)), parts


def test_never_holds_all_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the forward pass nor in what is saved for the backward pass."""
    n, q = 8, 60
    monkeypatch.setattr(pair_sums, "DIFFERENCES_AT_ONCE", {"cpu": n * q * 4})
    scores, relevant = problem(n=n, q=q)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: (sizes.append(tensor.numel()), tensor)[1],  # type: ignore[func-returns-value]
        lambda tensor: tensor,
    ):
        ranking_risk(scores.requires_grad_(), relevant, prior_of(relevant)).backward()
    assert sizes
    assert max(sizes) <= n * q * 4


def test_gradients_sum_to_zero_in_every_row() -> None:
    scores = SCORES.clone().requires_grad_()
    ranking_risk(scores, CANDIDATES, PRIOR).backward()
    assert scores.grad is not None
    assert scores.grad.abs().max() > 1e-3
    torch.testing.assert_close(scores.grad.sum(dim=1), torch.zeros(N, dtype=torch.float64))


def test_a_label_nobody_excludes_takes_part_only_as_the_other_label() -> None:
    candidates = CANDIDATES.clone()
    candidates[:, 2] = True
    expected = 0.0
    for j in (0, 1, 3):
        rows = (~candidates[:, j]).nonzero()[:, 0]
        for k in set(range(Q)) - {j}:
            below = torch.sigmoid(SCORES[rows, j] - SCORES[rows, k])
            expected += ((1 - PRIOR[j]) * below.mean()).item()
    assert ranking_risk(SCORES, candidates, PRIOR).item() == pytest.approx(expected)


def test_scores_have_a_gradient_where_something_is_excluded_and_there_are_pairs() -> None:
    for shape in ((1, 1), (1, 5), (8, 1), (64, 217)):
        for excluded in (True, False):
            scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
            scores.requires_grad_()
            candidates = torch.full(shape, not excluded)
            risk = ranking_risk(scores, candidates, torch.linspace(0.1, 0.5, shape[1]))
            risk.backward()
            assert risk.isfinite() and scores.grad is not None and scores.grad.isfinite().all()
            assert (scores.grad.abs().max() > 0) == (excluded and shape[1] > 1)
            if shape[1] == 1 or not excluded:
                assert risk == 0


def test_sums_of_parts_add_to_those_of_the_whole() -> None:
    parts = [ranking_sums(SCORES[rows], CANDIDATES[rows]) for rows in (slice(0, 7), slice(7, N))]
    sums = RankingSums(*(first + second for first, second in zip(*parts, strict=True)))
    for share in (None, (~CANDIDATES).double().mean(dim=0)):
        whole = ranking_risk(SCORES, CANDIDATES, PRIOR, exclude_share=share)
        torch.testing.assert_close(ranking_risk_from_sums(sums, PRIOR, exclude_share=share), whole)


def test_module_is_the_function_and_keeps_its_prior() -> None:
    share = (~CANDIDATES).double().mean(dim=0) / 2
    module = RankingRisk(PRIOR, loss=losses.ramp_loss, flood_level=9.0, exclude_share=share)
    expected = ranking_risk(
        SCORES, CANDIDATES, PRIOR, loss=losses.ramp_loss, flood_level=9.0, exclude_share=share
    )
    torch.testing.assert_close(module(SCORES, CANDIDATES), expected)
    assert set(module.state_dict()) == {"class_prior", "exclude_share"}


def test_a_loss_that_is_not_symmetric_is_refused_with_the_reason() -> None:
    for loss in (losses.logistic_loss, losses.hinge_loss, losses.squared_loss):
        with pytest.raises(ComesError, match=f"symmetric loss.*{loss.name} is not; take sigmoid"):
            ranking_risk(SCORES, CANDIDATES, PRIOR, loss=loss)
        with pytest.raises(ComesError, match="symmetric loss"):
            RankingRisk(PRIOR, loss=loss)


def test_a_label_with_no_share_has_no_weight() -> None:
    """Though the batch excludes it: what the data set never excludes says nothing."""
    share = (~CANDIDATES).double().mean(dim=0)
    share[2] = 0
    expected = ranking_risk(SCORES, CANDIDATES | (torch.arange(Q) == 2), PRIOR, exclude_share=share)
    torch.testing.assert_close(
        ranking_risk(SCORES, CANDIDATES, PRIOR, exclude_share=share), expected
    )
