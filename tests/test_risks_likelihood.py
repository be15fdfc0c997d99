"""The likelihood of answers, against plain loops of its model and what defines it."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from comes.answers import AnswerRates, Answers, LongAnswers, State, answer_evidence
from comes.errors import ComesError
from comes.risks import BceRisk, LikelihoodRisk, likelihood_risk
from comes.training import add_gradient
from drawn_problems import N, Q, annotate, prior_of, problem, softplus

SCORES, RELEVANT = problem()
CANDIDATES = annotate(RELEVANT, 0.5, seed=1)
PRIOR = prior_of(RELEVANT)
STATES = torch.randint(0, 4, (N, Q), generator=torch.Generator().manual_seed(2)).to(torch.int8)
NO_RATE = torch.tensor([0.2, 0.5, 0.9, 0.7], dtype=torch.float64)
YES_RATE = torch.tensor([0.6, 0.3, 0.5, 0.7], dtype=torch.float64)  # more, less and as sure


SHAPES = ((1, 1), (1, 5), (8, 1), (64, 217))


def sigmoid(g: float) -> float:
    return 1 / (1 + math.exp(-g)) if g > 0 else math.exp(g) / (1 + math.exp(g))


def probabilities(state: int, a: float, b: float, f: float = 0.0) -> tuple[float, float]:
    """Return P(state | irrelevant) and P(state | relevant), as answers.md's table has them."""
    return {
        State.NOT_ASKED: (1.0, 1.0),
        State.NO: (a, f),
        State.YES: (f, b),
        State.MAYBE: (1 - a - f, 1 - b - f),
    }[State(state)]


def loss(g: float, weights: tuple[float, float]) -> float:
    """Return minus the log-likelihood, without the part that does not depend on the score."""
    return -math.log(weights[0] * sigmoid(-g) + weights[1] * sigmoid(g)) + math.log(max(weights))


def slope(g: float, weights: tuple[float, float]) -> float:
    irrelevant, relevant = weights[0] * sigmoid(-g), weights[1] * sigmoid(g)
    return (irrelevant * sigmoid(g) - relevant * sigmoid(-g)) / (irrelevant + relevant)


def by_loops(
    scores: Tensor, weights: Callable[[int, int], tuple[float, float]]
) -> tuple[float, Tensor]:
    """Return the mean loss and its gradient; ``weights(i, j)`` are those of what was said."""
    n, q = scores.shape
    total, gradient = 0.0, torch.zeros(n, q, dtype=torch.float64)
    for i, j in itertools.product(range(n), range(q)):
        g = scores[i, j].item()
        total += loss(g, weights(i, j)) / (n * q)
        gradient[i, j] = slope(g, weights(i, j)) / (n * q)
    return total, gradient


def value_and_gradient(
    risk: Callable[[Tensor, Tensor], Tensor], scores: Tensor, answers: Tensor
) -> tuple[Tensor, Tensor]:
    scores = scores.detach().clone().requires_grad_()
    value = risk(scores, answers)
    value.backward()
    assert scores.grad is not None
    return value.detach(), scores.grad


def test_states_are_the_model_written_as_loops() -> None:
    assert set(STATES.flatten().tolist()) == {0, 1, 2, 3}
    for mistake_rate in (0.0, 0.04):
        risk = LikelihoodRisk(NO_RATE, YES_RATE, mistake_rate=mistake_rate)
        value, gradient = value_and_gradient(risk, 3 * SCORES, STATES)

        def weights(i: int, j: int, f: float = mistake_rate) -> tuple[float, float]:
            return probabilities(int(STATES[i, j]), NO_RATE[j].item(), YES_RATE[j].item(), f)

        expected, slopes = by_loops(3 * SCORES, weights)
        assert value.item() == pytest.approx(expected, rel=1e-12)
        torch.testing.assert_close(gradient, slopes, rtol=1e-10, atol=1e-16)


def test_candidates_are_excluded_or_possible_written_as_loops() -> None:
    """Excluded with p (1 - eta), possible with 1 - p (1 - eta)."""
    for mistake_rate in (0.0, 0.04):
        risk = LikelihoodRisk(NO_RATE, mistake_rate=mistake_rate)
        value, gradient = value_and_gradient(risk, 3 * SCORES, CANDIDATES)

        def weights(i: int, j: int, f: float = mistake_rate) -> tuple[float, float]:
            p = NO_RATE[j].item()
            return (1 - p, 1 - f) if CANDIDATES[i, j] else (p, f)

        expected, slopes = by_loops(3 * SCORES, weights)
        assert value.item() == pytest.approx(expected, rel=1e-12)
        torch.testing.assert_close(gradient, slopes, rtol=1e-10, atol=1e-16)


def test_candidates_are_states_of_which_everything_was_asked_and_nobody_says_yes() -> None:
    states = torch.where(CANDIDATES, State.MAYBE, State.NO).to(torch.int8)
    for scores in (SCORES, 1e4 * SCORES):
        candidates = value_and_gradient(LikelihoodRisk(NO_RATE), scores, CANDIDATES)
        answers = value_and_gradient(LikelihoodRisk(NO_RATE), scores, states)
        torch.testing.assert_close(candidates, answers, rtol=1e-12, atol=1e-30)


def test_ticked_labels_are_the_mirror_image_of_candidates() -> None:
    ticked = torch.where(CANDIDATES, State.MAYBE, State.YES).to(torch.int8)
    no_rate = torch.zeros(Q, dtype=torch.float64)
    value, gradient = value_and_gradient(LikelihoodRisk(no_rate, YES_RATE), SCORES, ticked)
    mirrored = value_and_gradient(LikelihoodRisk(YES_RATE), -SCORES, CANDIDATES)
    torch.testing.assert_close((value, -gradient), mirrored)


def test_evidence_are_those_of_the_states() -> None:
    answers = Answers.from_codes(STATES.numpy())
    rates = AnswerRates(NO_RATE.numpy(), YES_RATE.numpy(), 0.05)
    evidence = torch.as_tensor(answer_evidence(answers, rates))
    risk = LikelihoodRisk(NO_RATE, YES_RATE, mistake_rate=0.05)
    torch.testing.assert_close(
        value_and_gradient(risk, SCORES, evidence),
        value_and_gradient(risk, SCORES, STATES),
        rtol=1e-5,
        atol=1e-9,
    )


def test_answers_of_people_are_factors_written_as_loops() -> None:
    said = LongAnswers.read(
        [0, 0, 0, 1, 2], [0, 0, 1, 0, 1], ["no", "yes", "maybe", "no", "yes"], list("abaab")
    )
    own = np.array([0.9, 0.4]), np.array([0.3, 0.8])
    rates = AnswerRates(np.array([0.6, 0.7]), np.array([0.5, 0.4]), people={"b": own})
    evidence = torch.as_tensor(answer_evidence(Answers.from_long(said, (3, 2)), rates))

    def weights(i: int, j: int) -> tuple[float, float]:
        irrelevant, relevant = 1.0, 1.0
        for row, label, person, code in zip(
            said.row, said.label, said.person, said.code, strict=True
        ):
            if (row, label) == (i, j):
                a, b = (rates.no_rate, rates.yes_rate) if person == 0 else own
                first, second = probabilities(int(code), a[j], b[j], 0.01)
                irrelevant, relevant = irrelevant * first, relevant * second
        return irrelevant, relevant

    value = likelihood_risk(SCORES[:3, :2], evidence, torch.ones(2))
    assert value.item() == pytest.approx(by_loops(SCORES[:3, :2], weights)[0], rel=1e-5)


def test_the_minimiser_is_the_posterior() -> None:
    """The expected risk over the answers that the model gives, minimised over a free score."""
    rates = [(0.3, 0.8), (0.8, 0.3), (0.5, 0.0), (0.0, 0.5), (1.0, 1.0)]
    for (a, b), eta in itertools.product(rates, (0.01, 0.4, 0.9)):
        shares = {
            state: (1 - eta) * probabilities(state, a, b)[0] + eta * probabilities(state, a, b)[1]
            for state in (State.NO, State.YES, State.MAYBE)
        }
        states = torch.tensor([[State.NOT_ASKED], *([state] for state in shares)]).to(torch.int8)
        share = torch.tensor([0.7, *(0.3 * s for s in shares.values())], dtype=torch.float64)
        risk = LikelihoodRisk(
            torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64)
        )

        def expected(
            g: Tensor, f: LikelihoodRisk = risk, s: Tensor = states, w: Tensor = share
        ) -> Tensor:
            alone = [f(g.reshape(1, 1), state[None]) for state in s]
            return (torch.stack(alone) * w).sum()

        assert_least_at(expected, eta, f"{a}, {b}, {eta}")


def test_the_minimiser_on_candidates_is_the_posterior() -> None:
    candidates = torch.tensor([[True], [False]])
    for p, eta in itertools.product((1e-3, 0.1, 0.9, 1.0), (0.01, 0.4, 0.9)):
        risk = LikelihoodRisk(torch.tensor([p], dtype=torch.float64))
        excluded = p * (1 - eta)

        def expected(g: Tensor, f: LikelihoodRisk = risk, share: float = excluded) -> Tensor:
            possible, impossible = (f(g.reshape(1, 1), row[None]) for row in candidates)
            mean: Tensor = (1 - share) * possible + share * impossible
            return mean

        assert_least_at(expected, eta, f"{p}, {eta}")


def assert_least_at(expected: Callable[[Tensor], Tensor], eta: float, case: str) -> None:
    """Check that a function of a score has no slope at the posterior, and falls towards it."""
    slopes = []
    for distance in (-2.0, -0.1, 0.0, 0.1, 2.0):
        best = math.log(eta / (1 - eta))
        g = torch.tensor(best + distance, dtype=torch.float64, requires_grad=True)
        slopes.append(torch.autograd.grad(expected(g), g)[0].item())
    assert max(slopes[:2]) < 0 < min(slopes[3:]), case
    nearest = min(-slopes[1], slopes[3])
    assert abs(slopes[2]) < 2e-3 * nearest, case  # rates of 1 are kept 1e-6 away from it


def test_is_bce_on_full_answers() -> None:
    states = torch.where(RELEVANT, State.YES, State.NO).to(torch.int8)
    bce = torch.nn.functional.binary_cross_entropy_with_logits(SCORES, RELEVANT.double())
    ones = torch.ones(Q, dtype=torch.float64)
    for rates in ((ones, ones), (NO_RATE, YES_RATE)):
        value, gradient = value_and_gradient(LikelihoodRisk(*rates), SCORES, states)
        torch.testing.assert_close(value, bce)
        torch.testing.assert_close((value, gradient), value_and_gradient(BceRisk(), SCORES, states))
    torch.testing.assert_close(likelihood_risk(SCORES, RELEVANT, ones), bce, rtol=1e-5, atol=0)


def test_the_exclude_rate_1_is_bce_on_candidates_without_nan() -> None:
    scores = torch.tensor([[-1e4, -20.0, 0.0, 20.0, 1e4]])
    for possible in (True, False):
        candidates = torch.full(scores.shape, possible)
        value, gradient = value_and_gradient(LikelihoodRisk(torch.ones(5)), scores, candidates)
        assert value.isfinite() and gradient.isfinite().all()


def test_gradients_are_those_of_finite_differences() -> None:
    n = 10
    evidence = torch.linspace(-1, 1, n * Q, dtype=torch.float64).reshape(n, Q)
    scores = SCORES[:n].clone().requires_grad_()
    for answers in (CANDIDATES[:n], STATES[:n], evidence):
        for mistake_rate in (0.0, 0.01):
            risk = LikelihoodRisk(
                NO_RATE,
                None if answers.dtype == torch.bool else YES_RATE,
                mistake_rate=mistake_rate,
                class_prior=PRIOR,
                prior_weight=0.7,
                label_weight=torch.linspace(0.5, 2, Q, dtype=torch.float64),
            )
            assert torch.autograd.gradcheck(lambda g, f=risk, s=answers: f(g, s), (scores,))


def test_cannot_be_differentiated_twice() -> None:
    scores = SCORES.clone().requires_grad_()
    risk = likelihood_risk(scores, CANDIDATES, NO_RATE)
    (gradient,) = torch.autograd.grad(risk.square(), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


EXTREMES = [-1e4, -100.0, -88.0, -81.0, -79.0, -30.0, -15.0, -1e-3, 0.0, 2.0, 15.0, 30.0, 79.0]
EXTREMES += [81.0, 89.0, 104.0, 1e4]


def exact(g: float, size: float) -> tuple[float, float]:
    """Return log(1 + r / (1 - r + e^g)) and its slope for 0 <= r <= 1, in double precision."""
    if size == 1:
        return softplus(-g), -sigmoid(-g)
    if g > 700:
        return 0.0, 0.0
    rest = 1 - size + math.exp(g)
    return math.log1p(size / rest), -size * sigmoid(-g) * math.exp(g) / rest


def test_float32_is_exact_at_all_scores() -> None:
    """Also at p = 1e-4 and g = 15, and at +-1e4."""
    scores = torch.tensor(EXTREMES)[:, None]
    for size in (1e-4, 0.1, 0.75, 1.0):
        rate = torch.tensor([size], dtype=torch.float32)
        held = rate.item()  # what single precision keeps of it
        if size == 1:
            cases: list[tuple[Tensor, Tensor | None, bool]] = [
                (torch.full_like(scores, State.YES, dtype=torch.int8), rate, False),
                (torch.full_like(scores, State.NO, dtype=torch.int8), rate, True),
                (torch.zeros_like(scores, dtype=torch.bool), None, True),
            ]
        else:
            cases = [
                (torch.ones_like(scores, dtype=torch.bool), None, False),
                (torch.full_like(scores, State.MAYBE, dtype=torch.int8), None, False),
                (torch.full_like(scores, held), rate, False),
                (torch.full_like(scores, -held), rate, True),
            ]
        for answers, yes_rate, mirrored in cases:
            risk, sign = LikelihoodRisk(rate, yes_rate), -1 if mirrored else 1
            for i, score in enumerate(scores[:, 0].tolist()):
                value, gradient = value_and_gradient(risk, scores[i : i + 1], answers[i : i + 1])
                expected, steepness = exact(sign * score, held)
                assert value.item() == pytest.approx(expected, rel=1e-5, abs=1e-34), (size, score)
                slope_there = pytest.approx(sign * steepness, rel=1e-5, abs=1e-34)
                assert gradient.item() == slope_there, (size, score)


def test_float16_and_autocast_are_computed_in_float32() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        for answers in (CANDIDATES, STATES):
            scores = (100 * SCORES).to(dtype)
            risk = LikelihoodRisk(NO_RATE, class_prior=PRIOR)
            value, gradient = value_and_gradient(risk, scores, answers)
            assert value.dtype == torch.float32 and gradient.dtype == dtype
            torch.testing.assert_close(value, risk(scores.float(), answers))
    scores = SCORES.float()
    for answers in (CANDIDATES, STATES):
        risk = LikelihoodRisk(NO_RATE.float(), class_prior=PRIOR.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            within = risk(scores, answers)
        torch.testing.assert_close(within, risk(scores, answers), rtol=0, atol=0)


def test_in_parts_it_is_that_of_the_batch() -> None:
    for class_prior in (PRIOR, None):
        risk = LikelihoodRisk(NO_RATE, YES_RATE, class_prior=class_prior)
        found = []
        for part_size in (None, 1, 7, 39):
            torch.manual_seed(0)
            model = torch.nn.Linear(Q, Q).double()
            value = add_gradient(model, SCORES, STATES, risk, part_size=part_size)
            found.append((value, model.weight.grad))
        for of_parts in found[1:]:
            torch.testing.assert_close(of_parts, found[0], rtol=1e-12, atol=1e-15)


def test_adds_up_over_rows() -> None:
    risk = LikelihoodRisk(NO_RATE, YES_RATE)
    parts = [(SCORES[rows], STATES[rows]) for rows in (slice(0, 7), slice(7, N))]
    total = torch.stack([len(scores) * risk(scores, states) for scores, states in parts]).sum()
    torch.testing.assert_close(total / N, risk(SCORES, STATES))


def test_many_at_once_are_each_alone() -> None:
    """As `train_together` computes them: rates, scores and answers stacked."""
    risks = [LikelihoodRisk(rate.expand(Q), class_prior=PRIOR) for rate in NO_RATE]
    buffers = {
        name: torch.stack([dict(risk.named_buffers())[name] for risk in risks])
        for name, _ in risks[0].named_buffers()
    }

    def one(own: dict[str, Tensor], g: Tensor, answers: Tensor) -> Any:
        return torch.func.functional_call(risks[0], own, (g, answers))

    for answers in (CANDIDATES, STATES, STATES.double() / 2 - 1):
        scores = torch.stack([SCORES, 2 * SCORES, -SCORES, SCORES - 1]).requires_grad_()
        stacked = torch.stack([answers, answers.flip(0), answers.flip(1), answers])
        values = torch.vmap(one)(buffers, scores, stacked)
        (gradients,) = torch.autograd.grad(values.sum(), scores)
        for k, risk in enumerate(risks):
            alone = value_and_gradient(risk, scores[k], stacked[k])
            torch.testing.assert_close((values[k].detach(), gradients[k]), alone)


def test_a_mistake_rate_bounds_the_loss_of_one_answer() -> None:
    """By log(a / f): what the answer weighs at most."""
    half, f = torch.tensor([0.5]), 0.01
    for answer, g in ((State.NO, 1e4), (State.YES, -1e4)):
        states = torch.tensor([[answer]], dtype=torch.int8)
        plain, bounded = (
            value_and_gradient(
                LikelihoodRisk(half, half, mistake_rate=rate), torch.tensor([[g]]), states
            )
            for rate in (0.0, f)
        )
        assert plain[0] == 1e4 and abs(plain[1].item()) == 1
        assert bounded[0].item() == pytest.approx(math.log(0.5 / f), rel=1e-5)
        assert abs(bounded[1].item()) < 1e-30


def test_label_weight_multiplies_the_losses_of_a_label() -> None:
    weight = torch.tensor([2.0, 0.0, 1.0, 0.5], dtype=torch.float64)
    value, gradient = value_and_gradient(
        LikelihoodRisk(NO_RATE, YES_RATE, label_weight=weight), SCORES, STATES
    )
    plain = [
        likelihood_risk(SCORES[:, [j]], STATES[:, [j]], NO_RATE[[j]], YES_RATE[[j]])
        for j in range(Q)
    ]
    torch.testing.assert_close(value, (torch.stack(plain) * weight).mean())
    _, unweighted = value_and_gradient(LikelihoodRisk(NO_RATE, YES_RATE), SCORES, STATES)
    torch.testing.assert_close(gradient, unweighted * weight)


def divergence_by_loops(scores: Tensor, prior: Tensor) -> float:
    total = 0.0
    for j in range(scores.shape[1]):
        pi = prior[j].item()
        mean = sum(sigmoid(g) for g in scores[:, j].tolist()) / len(scores)
        total += pi * math.log(pi / mean) + (1 - pi) * math.log((1 - pi) / (1 - mean))
    return total / scores.shape[1]


def test_the_penalty_is_the_divergence_from_the_class_prior() -> None:
    plain = likelihood_risk(SCORES, STATES, NO_RATE, YES_RATE)
    kept = likelihood_risk(SCORES, STATES, NO_RATE, YES_RATE, class_prior=PRIOR, prior_weight=0.3)
    expected = 0.3 * divergence_by_loops(SCORES, PRIOR)
    assert (kept - plain).item() == pytest.approx(expected, rel=1e-9)


def test_the_penalty_is_zero_at_the_prior_and_pulls_towards_it() -> None:
    nothing = torch.zeros(3, 1, dtype=torch.int8)
    risk = LikelihoodRisk(torch.tensor([0.5]), class_prior=torch.tensor([0.2]))
    for g, sign in ((math.log(0.25), 0), (0.0, 1), (-3.0, -1)):
        value, gradient = value_and_gradient(risk, torch.full((3, 1), g), nothing)
        if sign == 0:
            assert abs(value) < 1e-6 and gradient.abs().max() < 1e-6
        else:
            assert value > 0.01 and (sign * gradient > 0.01).all()


def test_the_penalty_is_finite_at_huge_scores() -> None:
    for prior, g in itertools.product((0.0, 0.3, 1.0), (-1e4, 1e4)):
        risk = LikelihoodRisk(torch.tensor([0.5]), class_prior=torch.tensor([prior]))
        answers = torch.zeros(3, 1, dtype=torch.int8)
        value, gradient = value_and_gradient(risk, torch.full((3, 1), g), answers)
        assert value.isfinite() and gradient.isfinite().all(), (prior, g)


def test_where_nobody_was_asked_it_is_zero_and_connected() -> None:
    for shape in SHAPES:
        risk = LikelihoodRisk(torch.full((shape[1],), 0.5), torch.full((shape[1],), 0.5))
        scores = 1e4 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
        value, gradient = value_and_gradient(risk, scores, torch.zeros(shape, dtype=torch.int8))
        assert value == 0
        assert gradient.abs().max() == 0


@pytest.mark.parametrize("state", list(State))
def test_edges_are_finite(state: State) -> None:
    for rate, shape in itertools.product((0.0, 1e-7, 0.5, 1.0), SHAPES):
        rates = torch.full((shape[1],), rate)
        sizes = torch.tensor([100.0, 1e18]).repeat(shape[0])[: shape[0], None]
        scores = sizes * torch.randn(shape, generator=torch.Generator().manual_seed(0))
        for risk in (LikelihoodRisk(rates), LikelihoodRisk(rates, rates, mistake_rate=0.01)):
            answers = [torch.full(shape, state, dtype=torch.int8)]
            if state in (State.NO, State.MAYBE) and not risk.can_say_yes:
                answers.append(torch.full(shape, state == State.MAYBE))
            for each in answers:
                value, gradient = value_and_gradient(risk, scores, each)
                assert value.isfinite() and gradient.isfinite().all(), (rate, shape)
                if state == State.NO and rate != 1e-7:  # which is below the mistake rate
                    assert (gradient >= 0).all() and gradient.max() > 0, (rate, shape)


def test_an_answer_that_its_rate_rules_out_is_taken_at_its_word() -> None:
    nobody = torch.zeros(Q, dtype=torch.float64)
    states = torch.where(RELEVANT, State.YES, State.NO).to(torch.int8)
    bce = torch.nn.functional.binary_cross_entropy_with_logits(SCORES, RELEVANT.double())
    torch.testing.assert_close(likelihood_risk(SCORES, states, nobody, nobody), bce)
    excluded = torch.zeros_like(CANDIDATES)
    expected = torch.nn.functional.softplus(SCORES).mean()
    torch.testing.assert_close(likelihood_risk(SCORES, excluded, nobody), expected)


def test_module_is_the_function_and_keeps_what_it_knows() -> None:
    known = {"label_weight": PRIOR, "class_prior": PRIOR}
    module = LikelihoodRisk(NO_RATE, YES_RATE, mistake_rate=0.02, prior_weight=0.5, **known)
    expected = likelihood_risk(
        SCORES, STATES, NO_RATE, YES_RATE, mistake_rate=0.02, prior_weight=0.5, **known
    )
    torch.testing.assert_close(module(SCORES, STATES), expected)
    assert set(module.state_dict()) == {"evidence", "label_weight", "class_prior"}


def test_wrong_shapes_and_rates_are_refused() -> None:
    with pytest.raises(ComesError, match=r"4 labels need a no_rate of shape \(4,\); got \(3,\)"):
        likelihood_risk(SCORES, STATES, NO_RATE[:3])
    with pytest.raises(ComesError, match=r"need a yes_rate of shape \(4,\); got \(3,\)"):
        likelihood_risk(SCORES, STATES, NO_RATE, YES_RATE[:3])
    with pytest.raises(ComesError, match=r"need a class_prior of shape \(4,\); got \(1,\)"):
        likelihood_risk(SCORES, STATES, NO_RATE, class_prior=PRIOR[:1])
    with pytest.raises(ComesError, match=r"need a label_weight of shape \(4,\); got \(1,\)"):
        likelihood_risk(SCORES, STATES, NO_RATE, label_weight=PRIOR[:1])
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ComesError, match=r"no_rate must hold one number in \[0, 1\]"):
            LikelihoodRisk(torch.tensor([wrong]))
        with pytest.raises(ComesError, match=r"yes_rate must hold one number in \[0, 1\]"):
            LikelihoodRisk(torch.tensor([0.5]), torch.tensor([wrong]))
    with pytest.raises(ComesError, match=r"mistake_rate must be at least 0 and below 0.5; got 0.5"):
        LikelihoodRisk(torch.tensor([0.5]), mistake_rate=0.5)


def test_what_is_no_answer_is_refused() -> None:
    risk = LikelihoodRisk(NO_RATE, YES_RATE)
    for wrong in (-1, 4):
        with pytest.raises(ComesError, match="0 not asked, 1 no, 2 yes or 3 maybe; got other"):
            risk(SCORES, torch.full_like(STATES, wrong))
    with pytest.raises(ComesError, match=r"candidates \(bool\) do not say yes. Leave it out"):
        risk(SCORES, CANDIDATES)
    with pytest.raises(ComesError, match="must be a tensor or an array of numbers; got str"):
        risk(SCORES, "no")
    with pytest.raises(ComesError, match="no_rate must hold .* got None"):
        LikelihoodRisk(None)  # type: ignore[arg-type]
