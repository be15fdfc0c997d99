import pytest
import torch
from torch import Tensor

from comes import losses
from comes.errors import ComesError
from comes.losses import MarginLoss
from comes.risks import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
)
from drawn_problems import N, Q, annotate, hamming_by_loops, prior_of, problem, softplus

SCORES, RELEVANT = problem()
PRIOR = prior_of(RELEVANT)
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
# Well separated scores: the relevant part is small, so that some estimates of it turn negative.
SHARP = 2 * SCORES + 2 * (2 * RELEVANT.double() - 1)


def identity(part: Tensor) -> Tensor:
    return part


def supervised_risk(scores: Tensor = SCORES, relevant: Tensor = RELEVANT) -> Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, relevant.double())


def test_is_the_supervised_risk_when_every_irrelevant_label_is_excluded() -> None:
    risk = hamming_risk(SCORES, RELEVANT, PRIOR, correction=identity)
    torch.testing.assert_close(risk, supervised_risk())


def test_averages_to_the_supervised_risk_over_annotations() -> None:
    risks = torch.stack(
        [
            hamming_risk(SCORES, annotate(RELEVANT, 0.5, seed), PRIOR, correction=identity)
            for seed in range(100, 2100)
        ]
    )
    standard_error = risks.std() / len(risks) ** 0.5
    assert standard_error < 0.01
    assert abs(risks.mean() - supervised_risk()) < 4 * standard_error


def test_is_unbiased_at_batch_size_one_with_the_share_of_the_data_set() -> None:
    share = 0.3 * (1 - PRIOR)
    risks = torch.stack(
        [
            hamming_risk(
                SCORES[i : i + 1],
                annotate(RELEVANT, 0.3, seed)[i : i + 1],
                PRIOR,
                correction=identity,
                exclude_share=share,
            )
            for seed in range(100)
            for i in range(N)
        ]
    )
    assert abs(risks.mean() - supervised_risk()) < 4 * risks.std() / len(risks) ** 0.5


@pytest.mark.parametrize("loss", [losses.logistic_loss, losses.squared_loss, losses.ramp_loss])
@pytest.mark.parametrize("corrected", [True, False])
def test_is_equation_8_or_7_written_as_loops(loss: MarginLoss, corrected: bool) -> None:
    expected, _ = hamming_by_loops(SHARP, CANDIDATES, PRIOR, loss, corrected)
    correction = torch.abs if corrected else identity
    risk = hamming_risk(SHARP, CANDIDATES, PRIOR, loss=loss, correction=correction)
    assert risk.item() == pytest.approx(expected, rel=1e-12)


def test_the_correction_acts_on_a_negative_and_on_a_positive_part() -> None:
    _, parts = hamming_by_loops(SHARP, CANDIDATES, PRIOR, losses.logistic_loss, True)
    assert min(parts) < -0.01
    assert max(parts) > 0.01
    unbiased = hamming_risk(SHARP, CANDIDATES, PRIOR, correction=identity)
    gap = hamming_risk(SHARP, CANDIDATES, PRIOR) - unbiased
    assert gap.item() == pytest.approx(sum(-2 * part for part in parts if part < 0) / Q)


def test_corrected_risk_is_never_below_the_unbiased_and_its_bias_shrinks() -> None:
    """Theorem 2: 0 <= bias, and the bias vanishes as n grows."""
    biases = []
    for n in (25, 100, 800):
        scores, relevant = problem(seed=3, n=n)
        scores = scores + 2 * (
            2 * relevant.double() - 1
        )  # the relevant part is small: a close call
        gaps = []
        for seed in range(200):
            candidates = annotate(relevant, 0.3, seed)
            corrected = hamming_risk(scores, candidates, prior_of(relevant))
            unbiased = hamming_risk(scores, candidates, prior_of(relevant), correction=identity)
            gaps.append((corrected - unbiased).item())
        assert min(gaps) >= 0
        biases.append(sum(gaps) / len(gaps))
    assert biases[0] > 2 * biases[1] > 4 * biases[2]


def test_equals_the_sample_form_of_ccmn() -> None:
    """With rates read off the prior, Equation 7 is CCMN's estimator, sample by sample."""
    share = (~CANDIDATES).double().mean(dim=0)
    flip_rate = 1 - share / (1 - PRIOR)
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g, rho = SCORES[i, j].item(), flip_rate[j].item()
            total += softplus(-g) if CANDIDATES[i, j] else softplus(g) + rho / (1 - rho) * g
    risk = hamming_risk(SCORES, CANDIDATES, PRIOR, correction=identity, exclude_share=share)
    assert risk.item() == pytest.approx(total / (N * Q), rel=1e-12)


@pytest.mark.parametrize("correction", [torch.abs, identity])
def test_gradient_in_float64(correction: object) -> None:
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda g: hamming_risk(g, CANDIDATES, PRIOR, correction=correction),  # type: ignore[arg-type]
        (scores,),
    )


def test_a_label_nobody_excludes_has_no_gradient_and_costs_nothing() -> None:
    candidates = CANDIDATES.clone()
    candidates[:, 2] = True
    scores = SCORES.clone().requires_grad_()
    risk = hamming_risk(scores, candidates, PRIOR)
    risk.backward()
    assert scores.grad is not None
    assert scores.grad[:, 2].abs().max() == 0
    assert scores.grad[:, [0, 1, 3]].abs().min(dim=0).values.max() > 0
    others = [0, 1, 3]
    expected = hamming_risk(SCORES[:, others], candidates[:, others], PRIOR[others]) * 3 / 4
    torch.testing.assert_close(risk.detach(), expected)


def test_skip_empty_false_keeps_the_first_term() -> None:
    nothing_excluded = torch.ones_like(CANDIDATES)
    risk = hamming_risk(SCORES, nothing_excluded, PRIOR, skip_empty=False)
    torch.testing.assert_close(risk, losses.logistic_loss(SCORES, 1).mean())


def test_with_the_share_of_the_data_set_only_labels_that_it_never_excludes_are_left_out() -> None:
    nothing_excluded = torch.ones_like(CANDIDATES)
    share = torch.tensor([0.0, 0.2, 0.2, 0.2], dtype=torch.float64)
    risk = hamming_risk(SCORES, nothing_excluded, PRIOR, exclude_share=share)
    expected = losses.logistic_loss(SCORES, 1).mean(dim=0)[1:].sum() / Q
    torch.testing.assert_close(risk, expected)


@pytest.mark.parametrize("excluded", [True, False], ids=["everything", "nothing"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (8, 1), (64, 217)])
def test_edges_are_finite_and_connected(excluded: bool, shape: tuple[int, int]) -> None:
    scores = torch.randn(shape, requires_grad=True)
    candidates = torch.full(shape, not excluded)
    risk = hamming_risk(scores, candidates, torch.full((shape[1],), 0.2))
    risk.backward()
    assert risk.isfinite()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad.abs().max() > 0) == excluded


@pytest.mark.parametrize("q", [1, 217])
def test_huge_scores_are_finite(q: int) -> None:
    scores = (1e6 * torch.randn(30, q, generator=torch.Generator().manual_seed(0))).requires_grad_()
    candidates = torch.rand(30, q, generator=torch.Generator().manual_seed(1)) < 0.5
    risk = hamming_risk(scores, candidates, torch.full((q,), 0.3))
    risk.backward()
    assert risk.isfinite()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    scores = SCORES.to(dtype)
    risk = hamming_risk(scores, CANDIDATES, PRIOR)
    assert risk.dtype == torch.float32
    torch.testing.assert_close(risk, hamming_risk(scores.float(), CANDIDATES, PRIOR))


def test_autocast_changes_nothing() -> None:
    scores = SCORES.float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        risk = hamming_risk(scores, CANDIDATES, PRIOR)
    torch.testing.assert_close(risk, hamming_risk(scores, CANDIDATES, PRIOR), rtol=0, atol=0)


def test_sums_of_parts_add_to_those_of_the_whole() -> None:
    parts = [hamming_sums(SCORES[rows], CANDIDATES[rows]) for rows in (slice(0, 7), slice(7, N))]
    sums = HammingSums(*(first + second for first, second in zip(*parts, strict=True)))
    whole = hamming_risk(SCORES, CANDIDATES, PRIOR)
    torch.testing.assert_close(hamming_risk_from_sums(sums, PRIOR), whole)


def test_module_is_the_function_and_keeps_its_prior() -> None:
    share = (~CANDIDATES).double().mean(dim=0)
    module = HammingRisk(
        PRIOR,
        loss=losses.squared_loss,
        correction=torch.relu,
        exclude_share=share,
        skip_empty=False,
    )
    expected = hamming_risk(
        SCORES,
        CANDIDATES,
        PRIOR,
        loss=losses.squared_loss,
        correction=torch.relu,
        exclude_share=share,
        skip_empty=False,
    )
    torch.testing.assert_close(module(SCORES, CANDIDATES), expected)
    assert set(module.state_dict()) == {"class_prior", "exclude_share"}


def test_the_function_compiles_whole_with_its_prior_as_an_input() -> None:
    torch.compiler.reset()
    compiled = torch.compile(hamming_risk, fullgraph=True, backend="aot_eager")
    given = SCORES.float(), CANDIDATES, PRIOR.float()
    torch.testing.assert_close(compiled(*given), hamming_risk(*given))


def test_compiles_to_the_same_value_and_gradient() -> None:
    compiled = torch.compile(HammingRisk(PRIOR.float()), fullgraph=True, backend="aot_eager")
    gradients = []
    for risk in (compiled, HammingRisk(PRIOR.float())):
        scores = SCORES.float().requires_grad_()
        risk(scores, CANDIDATES).backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(*gradients)


def test_wrong_shapes_say_which_were_wanted() -> None:
    with pytest.raises(ComesError, match=r"class_prior of shape \(4,\); got \(40, 1\)"):
        hamming_risk(SCORES, CANDIDATES, torch.full((N, 1), 0.3))
    with pytest.raises(ComesError, match=r"one shape \(n, q\); got \(40, 4\) and \(40, 3\)"):
        hamming_risk(SCORES, CANDIDATES[:, :3], PRIOR)
    with pytest.raises(ComesError, match=r"exclude_share of shape \(4,\); got \(1,\)"):
        hamming_risk(SCORES, CANDIDATES, PRIOR, exclude_share=torch.ones(1))


def test_candidates_that_are_not_bool_are_refused() -> None:
    with pytest.raises(ComesError, match=r"must be bool.*torch.float32.*candidates.bool\(\)"):
        hamming_risk(SCORES, CANDIDATES.float(), PRIOR)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_module_refuses_a_prior_outside_0_and_1(wrong: float) -> None:
    with pytest.raises(ComesError, match=r"one number in \[0, 1\]"):
        HammingRisk(torch.tensor([0.5, wrong]))
    with pytest.raises(ComesError, match=r"got shape \(1, 2\)"):
        HammingRisk(torch.full((1, 2), 0.5))
