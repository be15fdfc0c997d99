"""COMES-HL: of candidates, and of states where it is known who was asked."""

import itertools

import pytest
import torch
from torch import Tensor

from comes.answers import State
from comes.risks import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
    losses,
)
from comes.risks.losses import BinaryLoss
from drawn_problems import N, Q, annotate, hamming_by_loops, prior_of, problem, softplus, value

SCORES, RELEVANT = problem()
PRIOR = prior_of(RELEVANT)
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)
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
            for seed in range(100, 600)
        ]
    )
    standard_error = risks.std() / len(risks) ** 0.5
    assert standard_error < 0.02
    assert abs(risks.mean() - supervised_risk()) < 4 * standard_error


def test_is_unbiased_at_batch_size_one_with_the_share_of_the_data_set() -> None:
    risk = HammingRisk(PRIOR, correction=identity, exclude_share=0.3 * (1 - PRIOR))
    annotations = (annotate(RELEVANT, 0.3, seed) for seed in range(25))
    risks = torch.stack(
        [
            risk(SCORES[i : i + 1], candidates[i : i + 1])
            for candidates in annotations
            for i in range(N)
        ]
    )
    assert abs(risks.mean() - supervised_risk()) < 4 * risks.std() / len(risks) ** 0.5


def test_is_equation_8_or_7_written_as_loops() -> None:
    for loss in (losses.logistic_loss, losses.squared_loss, losses.ramp_loss):
        for corrected in (True, False):
            expected, _ = hamming_by_loops(SHARP, CANDIDATES, PRIOR, loss, corrected)
            correction = torch.abs if corrected else identity
            risk = hamming_risk(SHARP, CANDIDATES, PRIOR, loss=loss, correction=correction)
            assert risk.item() == pytest.approx(expected, rel=1e-12), (loss.name, corrected)


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
        scores += 2 * (2 * relevant.double() - 1)  # the relevant part is small: a close call
        gaps = []
        for seed in range(100):
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


def test_gradients_are_those_of_finite_differences() -> None:
    for answers in (CANDIDATES, STATES):
        for correction in (torch.abs, identity):
            risk = HammingRisk(PRIOR, correction=correction)
            scores = SCORES.clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda g, f=risk, s=answers: f(g, s), (scores,))


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


def test_scores_have_a_gradient_where_something_is_excluded() -> None:
    for shape in ((1, 1), (1, 5), (8, 1), (64, 217)):
        for excluded in (True, False):
            scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
            scores.requires_grad_()
            hamming_risk(
                scores, torch.full(shape, not excluded), torch.full(shape[1:], 0.2)
            ).backward()
            assert scores.grad is not None and scores.grad.isfinite().all()
            assert (scores.grad.abs().max() > 0) == excluded


def test_sums_of_parts_add_to_those_of_the_whole() -> None:
    for answers in (CANDIDATES, STATES):
        parts = [hamming_sums(SCORES[rows], answers[rows]) for rows in (slice(0, 7), slice(7, N))]
        sums = HammingSums(*(first + second for first, second in zip(*parts, strict=True)))
        whole = hamming_risk(SCORES, answers, PRIOR)
        torch.testing.assert_close(hamming_risk_from_sums(sums, PRIOR), whole)
    assert sums.n_asked.tolist() == (STATES != State.NOT_ASKED).sum(dim=0).tolist()


def test_module_is_the_function_and_keeps_its_prior() -> None:
    share = (~CANDIDATES).double().mean(dim=0)
    options = {
        "loss": losses.squared_loss,
        "correction": torch.relu,
        "exclude_share": share,
        "skip_empty": False,
    }
    module = HammingRisk(PRIOR, **options)  # type: ignore[arg-type]
    expected = hamming_risk(SCORES, CANDIDATES, PRIOR, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(module(SCORES, CANDIDATES), expected)
    assert set(module.state_dict()) == {"class_prior", "exclude_share"}


def asked_by_loops(
    scores: Tensor,
    states: Tensor,
    prior: Tensor,
    loss: BinaryLoss,
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


def test_where_it_is_known_who_was_asked_it_is_its_formula_written_as_loops() -> None:
    given = torch.linspace(0.3, 0.9, Q, dtype=torch.float64), torch.full((Q,), 0.2).double()
    for loss, corrected, shares in itertools.product(
        (losses.logistic_loss, losses.squared_loss), (True, False), (given, (None, None))
    ):
        expected = asked_by_loops(SCORES, STATES, PRIOR, loss, corrected, *shares)
        module = HammingRisk(
            PRIOR,
            loss=loss,
            correction=torch.abs if corrected else identity,
            asked_share=shares[0],
            exclude_share=shares[1],
        )
        found = module(SCORES, STATES).item()
        assert found == pytest.approx(expected, rel=1e-12), (loss.name, corrected, shares)


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


def test_a_label_that_nobody_was_asked_about_is_finite() -> None:
    states = STATES.clone()
    states[:, 1] = State.NOT_ASKED
    for skip_empty in (True, False):
        for share in (torch.tensor([0.5, 0.0, 0.5, 0.5]), None):
            scores = SCORES.clone().requires_grad_()
            risk = hamming_risk(
                scores, states, PRIOR, skip_empty=skip_empty, asked_share=share, exclude_share=share
            )
            risk.backward()
            assert risk.isfinite() and scores.grad is not None
            assert scores.grad.isfinite().all()
            assert scores.grad[:, 1].abs().max() == 0 and scores.grad[:, 0].abs().max() > 0
