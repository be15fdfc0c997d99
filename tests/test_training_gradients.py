"""The gradient of a batch in parts is that of the whole; rows can be mixed in pairs."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.models import mlp
from comes.risks import hamming_risk, ranking_risk
from comes.training import TrainOptions, add_gradient, make_optimizer, split_risk, train
from comes.training.seeding import seeded
from drawn_problems import annotate, prior_of, problem

CPU = torch.device("cpu")
X, _ = problem(seed=5, q=6)
_, RELEVANT = problem(seed=6)
CANDIDATES = annotate(RELEVANT, 0.3, seed=7)
PRIOR = prior_of(RELEVANT)


def risk_of(name: str, q: int = 4) -> Callable[[Tensor, Tensor], Tensor]:
    prior = PRIOR[:q]
    if name == "hamming":
        return lambda scores, candidates: hamming_risk(scores, candidates, prior.to(scores.dtype))
    return lambda scores, candidates: ranking_risk(
        scores, candidates, prior.to(scores.dtype), flood_level=100.0
    )


def network(*extra: nn.Module) -> nn.Module:
    with seeded(0, CPU):
        made = nn.Sequential(nn.Linear(6, 8), *extra, nn.ReLU(), nn.Linear(8, 4)).double()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
            assert module.running_var is not None
            module.running_var.copy_(torch.linspace(0.5, 2, 8))
    return made


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("name", ["hamming", "ranking"])
@pytest.mark.parametrize("normalised", [True, False])
def test_in_parts_risk_and_gradient_are_those_of_the_batch(name: str, normalised: bool) -> None:
    found = []
    for size in (None, 1, 7, 20, 39, 40):
        model = network(nn.BatchNorm1d(8)) if normalised else network()
        value = add_gradient(model, X, CANDIDATES, risk_of(name), scale=3.0, part_size=size)
        assert not value.requires_grad
        found.append((value, gradients(model)))
        torch.testing.assert_close(found[-1], found[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[0][0], risk_of(name)(model(X), CANDIDATES).detach())


def test_the_gradient_is_added_and_scaled() -> None:
    model = network()
    risk_of("hamming")(model(X), CANDIDATES).backward()
    expected = 3.5 * gradients(model)
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), scale=2.0, part_size=9)
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), scale=0.5)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_risks_of_parts_have_another_gradient(name: str) -> None:
    whole, naive = network(), network()
    add_gradient(whole, X, CANDIDATES, risk_of(name), part_size=7)
    for part in torch.arange(40).split(7):
        share = len(part) / 40
        add_gradient(naive, X[part], CANDIDATES[part], risk_of(name), scale=share)
    difference = gradients(whole) - gradients(naive)
    assert difference.norm() > 0.01 * gradients(whole).norm()


def test_in_parts_dropout_is_that_of_the_scores_in_the_risk() -> None:
    model = network(nn.Dropout(0.5))
    seen: list[Tensor] = []

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        seen.append(scores.detach().clone())
        return risk_of("hamming")(scores, candidates)

    with seeded(3, CPU):
        add_gradient(model, X, CANDIDATES, risk, part_size=7)
        after = torch.rand(1)
    found = gradients(model)
    model.zero_grad()
    with seeded(3, CPU):
        scores = torch.cat([model(part) for part in X.split(7)])
        assert torch.equal(torch.rand(1), after)  # as many numbers are drawn as once through
    torch.testing.assert_close(seen, [scores.detach()], rtol=0, atol=0)
    risk_of("hamming")(scores, CANDIDATES).backward()
    torch.testing.assert_close(found, gradients(model), rtol=1e-12, atol=1e-12)
    assert not torch.equal(seen[0], model(X))


def test_running_statistics_count_every_part_once() -> None:
    model, expected = (network(nn.BatchNorm1d(8)).train() for _ in range(2))
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), part_size=10)
    with torch.no_grad():
        for part in X.split(10):
            expected(part)
    torch.testing.assert_close(dict(model.named_buffers()), dict(expected.named_buffers()))
    assert dict(model.named_buffers())["1.num_batches_tracked"] == 4


@pytest.mark.parametrize("part_size", [None, 7])
def test_half_precision_gives_gradients_in_full_precision(part_size: int | None) -> None:
    exact, half = network().float(), network().float()
    add_gradient(exact, X.float(), CANDIDATES, risk_of("hamming"))
    value = add_gradient(
        half,
        X.float(),
        CANDIDATES,
        risk_of("hamming"),
        part_size=part_size,
        precision=torch.bfloat16,
    )
    assert value.dtype == torch.float32
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in half.parameters())
    difference = (gradients(half) - gradients(exact)).norm()
    assert 0 < difference < 0.05 * gradients(exact).norm()


def test_networks_for_rows_are_trained_in_parts_to_the_same_weights() -> None:
    weights = []
    for part_size in (None, 5):
        with seeded(0, CPU):
            model = mlp(6, 4, hidden=10).double()
        sgd = make_optimizer("sgd", learning_rate=0.01)
        options = TrainOptions(sgd, epochs=3, batch_size=13, part_size=part_size)
        train(model, X, CANDIDATES, risk_of("hamming"), options)
        weights.append(copy.deepcopy(model.state_dict()))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-10, atol=1e-12)


def test_losses_of_micro_batches_have_the_gradient_of_the_risk_of_all() -> None:
    """With the dropout of the first pass, and with running statistics that count each part once."""
    parts = (X[:9], X[9:30], X[30:])
    known = CANDIDATES.split([9, 21, 10])
    model = network(nn.BatchNorm1d(8), nn.Dropout(0.5)).train()
    whole = copy.deepcopy(model)
    with seeded(3, CPU):
        split = split_risk(model, parts, known, risk_of("ranking"))
    assert dict(model.named_buffers())["1.num_batches_tracked"] == 0
    total = torch.zeros(())
    for rows, part in zip(parts, split, strict=True):
        part.repeat_dropout()
        loss = part.loss(model(rows))
        loss.backward()
        total = total + loss.detach()
    with seeded(3, CPU):
        value = risk_of("ranking")(torch.cat([whole(rows) for rows in parts]), CANDIDATES)
    value.backward()
    torch.testing.assert_close(total, value.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients(model), gradients(whole), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dict(model.named_buffers()), dict(whole.named_buffers()))
    doubled = split_risk(model, parts, known, risk_of("ranking"), score=lambda x: model(x) * 0)
    assert not torch.allclose(doubled[0].share, split[0].share)


def test_a_risk_that_is_no_scalar_tensor_is_refused() -> None:
    wrong: dict[str, Callable[..., Any]] = {
        r"shape \(40, 4\)": lambda scores, candidates: scores,
        "got 0.5": lambda scores, candidates: 0.5,
    }
    for part_size in (None, 7):
        for message, risk in wrong.items():
            with pytest.raises(ComesError, match=f"a risk must return a scalar tensor.*{message}"):
                add_gradient(network(), X, CANDIDATES, risk, part_size=part_size)


def test_training_mixes_rows_and_targets_only_if_asked() -> None:
    class Spy(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(x.detach().clone())
            return super().forward(x)

    def risk(scores: Tensor, targets: Tensor) -> Tensor:
        seen_targets.append(targets)
        return nn.functional.binary_cross_entropy_with_logits(scores, targets)

    rows, targets = torch.eye(6), torch.eye(6)
    for mixes in (False, True):
        seen: list[Tensor] = []
        seen_targets: list[Tensor] = []
        sgd = make_optimizer("sgd", learning_rate=0.1)
        options = TrainOptions(sgd, epochs=1, mixes_pairs=mixes, progress=False)
        train(Spy(6, 6), rows, targets, risk, options)
        torch.testing.assert_close(seen, seen_targets)  # which are equal before they are mixed
        is_plain = all(set(batch.unique().tolist()) <= {0.0, 1.0} for batch in seen)
        assert is_plain != mixes
