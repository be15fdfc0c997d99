"""COMES-HL where it is known who was asked: the mean over rows is that over the asked."""

import itertools

import pytest
import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError
from comes.losses import MarginLoss, logistic_loss, squared_loss
from comes.risks import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
)
from drawn_problems import N, Q, prior_of, problem, value

SCORES, RELEVANT = problem()
PRIOR = prior_of(RELEVANT)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)


def identity(part: Tensor) -> Tensor:
    return part


def by_loops(
    scores: Tensor,
    states: Tensor,
    prior: Tensor,
    loss: MarginLoss,
    corrected: bool,
    asked_share: Tensor | None = None,
    exclude_share: Tensor | None = None,
) -> float:
    """Return the risk: n_j stays the count of "no", and n becomes the count of the asked."""
    n, q = scores.shape
    total = 0.0
    for j in range(q):
        asked = [i for i in range(n) if states[i, j] != State.NOT_ASKED]
        excluded = [i for i in range(n) if states[i, j] == State.NO]
        n_asked = len(asked) if asked_share is None else n * asked_share[j].item()
        n_excluded = len(excluded) if exclude_share is None else n * exclude_share[j].item()
        weight = (1 - prior[j].item()) / n_excluded
        part = sum(value(loss, scores[i, j].item(), 1) for i in asked) / n_asked
        part -= weight * sum(value(loss, scores[i, j].item(), 1) for i in excluded)
        total += abs(part) if corrected else part
        total += weight * sum(value(loss, scores[i, j].item(), 0) for i in excluded)
    return total / q


@pytest.mark.parametrize("loss", [logistic_loss, squared_loss])
@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_is_its_formula_written_as_loops(loss: MarginLoss, corrected: bool, shared: bool) -> None:
    shares = torch.linspace(0.3, 0.9, Q, dtype=torch.float64), torch.full((Q,), 0.2).double()
    asked_share, exclude_share = shares if shared else (None, None)
    expected = by_loops(SCORES, STATES, PRIOR, loss, corrected, asked_share, exclude_share)
    module = HammingRisk(
        PRIOR,
        loss=loss,
        correction=torch.abs if corrected else identity,
        asked_share=asked_share,
        exclude_share=exclude_share,
    )
    assert module(SCORES, STATES).item() == pytest.approx(expected, rel=1e-12)


def test_where_everything_was_asked_states_are_candidates() -> None:
    candidates = STATES != State.NO
    states = torch.where(candidates, State.MAYBE, State.NO).to(torch.int8)
    torch.testing.assert_close(
        hamming_risk(SCORES, states, PRIOR), hamming_risk(SCORES, candidates, PRIOR)
    )


def supervised_on_asked(scores: Tensor, relevant: Tensor, asked: Tensor) -> float:
    """Return the mean over labels of the mean loss of the pairs that were asked."""
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        scores, relevant.double(), reduction="none"
    )
    return (torch.where(asked, losses, 0).sum(dim=0) / asked.sum(dim=0)).mean().item()


def test_is_supervised_on_the_asked_where_every_irrelevant_pair_is_called_so() -> None:
    """With the class prior of the asked rows, whatever a relevant pair is called."""
    asked = torch.rand(N, Q, generator=torch.Generator().manual_seed(3)) < 0.5
    other = torch.where(SCORES < 0, State.YES, State.MAYBE)
    said = torch.where(RELEVANT, other, State.NO)
    states = torch.where(asked, said, State.NOT_ASKED).to(torch.int8)
    prior = (RELEVANT & asked).double().sum(dim=0) / asked.sum(dim=0)
    risk = hamming_risk(SCORES, states, prior, correction=identity)
    assert risk.item() == pytest.approx(supervised_on_asked(SCORES, RELEVANT, asked), rel=1e-12)


def test_is_unbiased_over_all_that_can_be_asked_and_said() -> None:
    """Every pair is asked with .4, an irrelevant one called no with .7; every case counted."""
    n, asked_rate, sure = 4, 0.4, 0.7
    scores, relevant = SCORES[:n, :1], torch.tensor([[True], [False], [False], [True]])
    prior, total, mass = prior_of(relevant), 0.0, 0.0
    module = HammingRisk(
        prior,
        correction=identity,
        asked_share=torch.tensor([asked_rate]),
        exclude_share=asked_rate * sure * (1 - prior),
    )
    for said in itertools.product([State.NOT_ASKED, State.NO, State.MAYBE], repeat=n):
        probability = 1.0
        for i, state in enumerate(said):
            no = 0.0 if relevant[i, 0] else sure
            probability *= {
                State.NOT_ASKED: 1 - asked_rate,
                State.NO: asked_rate * no,
                State.MAYBE: asked_rate * (1 - no),
            }[state]
        states = torch.tensor(said, dtype=torch.int8)[:, None]
        total += probability * module(scores, states).item()
        mass += probability
    assert mass == pytest.approx(1)
    expected = supervised_on_asked(scores, relevant, torch.ones_like(relevant))
    assert total == pytest.approx(expected, rel=1e-6)


def test_sums_of_parts_add_to_those_of_the_whole() -> None:
    parts = [hamming_sums(SCORES[rows], STATES[rows]) for rows in (slice(0, 7), slice(7, N))]
    sums = HammingSums(*(first + second for first, second in zip(*parts, strict=True)))
    torch.testing.assert_close(
        hamming_risk_from_sums(sums, PRIOR), hamming_risk(SCORES, STATES, PRIOR)
    )
    assert sums.n_asked.tolist() == (STATES != State.NOT_ASKED).sum(dim=0).tolist()


@pytest.mark.parametrize("skip_empty", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_label_that_nobody_was_asked_about_is_finite(skip_empty: bool, shared: bool) -> None:
    states = STATES.clone()
    states[:, 1] = State.NOT_ASKED
    share = torch.tensor([0.5, 0.0, 0.5, 0.5]) if shared else None
    scores = SCORES.clone().requires_grad_()
    risk = hamming_risk(
        scores, states, PRIOR, skip_empty=skip_empty, asked_share=share, exclude_share=share
    )
    risk.backward()
    assert risk.isfinite() and scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[:, 1].abs().max() == 0 and scores.grad[:, 0].abs().max() > 0


def test_gradient_in_float64() -> None:
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda g: hamming_risk(g, STATES, PRIOR), (scores,))


def test_wrong_types_and_shares_are_refused() -> None:
    with pytest.raises(ComesError, match="must be bool"):
        hamming_risk(SCORES, STATES.long(), PRIOR)
    with pytest.raises(ComesError, match=r"asked_share of shape \(4,\); got \(1,\)"):
        hamming_risk(SCORES, STATES, PRIOR, asked_share=torch.ones(1))
