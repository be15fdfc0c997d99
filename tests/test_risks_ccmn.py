import pytest
import torch

from comes.risks import (
    ccmn_hamming_risk,
    ccmn_ranking_risk,
    hamming_risk,
    logistic_loss,
    ranking_risk,
    sigmoid_loss,
)
from drawn_problems import (
    N,
    Q,
    annotate,
    prior_of,
    problem,
    share_both_irrelevant,
    softplus,
    supervised_ranking_risk,
)

SCORES, RELEVANT = problem()
PRIOR = prior_of(RELEVANT)
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
FLIP_RATE = torch.tensor([0.0, 0.2, 0.5, 0.9], dtype=torch.float64)
SHARE = (~CANDIDATES).double().mean(dim=0)
RATE_OF_PRIOR = 1 - SHARE / (1 - PRIOR)


def test_hamming_form_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        for j in range(Q):
            g, rho = SCORES[i, j].item(), FLIP_RATE[j].item()
            if CANDIDATES[i, j]:
                total += softplus(-g)
            else:
                total += (softplus(g) - rho * softplus(-g)) / (1 - rho)
    risk = ccmn_hamming_risk(SCORES, CANDIDATES, FLIP_RATE, correction=torch.positive)
    assert risk.item() == pytest.approx(total / (N * Q), rel=1e-12)


def test_hamming_form_averages_to_the_supervised_risk() -> None:
    rate = torch.full((Q,), 0.5, dtype=torch.float64)
    risks = torch.stack(
        [
            ccmn_hamming_risk(SCORES, annotate(RELEVANT, 0.5, s), rate, correction=torch.positive)
            for s in range(300)
        ]
    )
    supervised = torch.where(RELEVANT, logistic_loss(SCORES, 1), logistic_loss(SCORES, 0)).mean()
    assert abs(risks.mean() - supervised) < 4 * risks.std() / len(risks) ** 0.5


def test_the_mean_of_a_batch_is_clamped_as_a_whole() -> None:
    scores = (4 * (2 * RELEVANT.double() - 1)).requires_grad_()
    plain = ccmn_hamming_risk(scores, CANDIDATES, FLIP_RATE, correction=torch.positive)
    assert plain < -0.1
    clamped = ccmn_hamming_risk(scores, CANDIDATES, FLIP_RATE)
    assert clamped == 0
    (gradient,) = torch.autograd.grad(clamped, scores)
    assert (gradient == 0).all()
    assert ccmn_hamming_risk(-scores, CANDIDATES, FLIP_RATE) > 0


def test_with_rates_of_the_prior_it_is_comes_hl_without_correction() -> None:
    """The identity of methods.md 3.3, sample by sample: values and gradients."""
    scores = SCORES.clone().requires_grad_()
    ccmn = ccmn_hamming_risk(scores, CANDIDATES, RATE_OF_PRIOR, correction=torch.positive)
    comes = hamming_risk(scores, CANDIDATES, PRIOR, correction=torch.positive, exclude_share=SHARE)
    torch.testing.assert_close(ccmn, comes)
    torch.testing.assert_close(*(torch.autograd.grad(risk, scores)[0] for risk in (ccmn, comes)))


def test_with_rates_of_the_prior_the_ranking_form_is_comes_rl() -> None:
    scores = SCORES.clone().requires_grad_()
    ccmn = ccmn_ranking_risk(scores, CANDIDATES, RATE_OF_PRIOR)
    comes = ranking_risk(scores, CANDIDATES, PRIOR, exclude_share=SHARE)
    torch.testing.assert_close(ccmn, comes)
    torch.testing.assert_close(*(torch.autograd.grad(risk, scores)[0] for risk in (ccmn, comes)))


def test_ranking_form_written_as_loops() -> None:
    total = 0.0
    for i in range(N):
        for j in range(Q):
            for k in range(Q):
                if k != j and not CANDIDATES[i, j]:
                    difference = SCORES[i, j] - SCORES[i, k]
                    total += (sigmoid_loss(difference, 0) / (1 - FLIP_RATE[j])).item()
    risk = ccmn_ranking_risk(SCORES, CANDIDATES, FLIP_RATE)
    assert risk.item() == pytest.approx(total / N, rel=1e-12)


def test_ranking_form_averages_to_the_supervised_risk_and_a_constant() -> None:
    rate = torch.full((Q,), 0.5, dtype=torch.float64)
    risks = torch.stack(
        [ccmn_ranking_risk(SCORES, annotate(RELEVANT, 0.5, s), rate) for s in range(300)]
    )
    supervised = supervised_ranking_risk(SCORES, RELEVANT, sigmoid_loss)
    expected = supervised + share_both_irrelevant(RELEVANT)
    assert abs(risks.mean() - expected) < 4 * risks.std() / len(risks) ** 0.5
