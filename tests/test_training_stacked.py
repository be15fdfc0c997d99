"""Many trainings at once: each as alone, to rounding."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning
from comes.models import linear, mlp
from comes.models.tabular import Stack
from comes.risks import (
    BceRisk,
    HammingRisk,
    LikelihoodRisk,
    RankingRisk,
    ccmn_hamming_risk,
    ccmn_ranking_risk,
    comrank_risk,
    ctl_risk,
    gdf_risk,
    mlcl_risk,
)
from comes.risks.baselines import BaselineRisk
from comes.training import TrainOptions, loop, make_optimizer, train
from comes.training.stacked import Trainee, train_together

Q, D = 6, 9
ROWS = [103, 102, 102, 103]  # in batches of 20: some steps have a row more for some models
SEEDS = [5, 6, 7, 8]
SGD = make_optimizer("sgd", learning_rate=0.1)
GENERATOR = torch.Generator().manual_seed(0)
X = [torch.randn(n, D, generator=GENERATOR) for n in ROWS]
CANDIDATES = [torch.rand(n, Q, generator=GENERATOR) < 0.6 for n in ROWS]


Draw = Callable[..., Tensor]  # numbers in [0, 1), of a shape

RISKS: dict[str, Callable[[Draw], nn.Module]] = {
    "bce": lambda draw: BceRisk(),
    "hamming": lambda draw: HammingRisk(draw(Q)),
    "hamming, share": lambda draw: HammingRisk(draw(Q), exclude_share=draw(Q) / 2 + 0.1),
    "ranking": lambda draw: RankingRisk(draw(Q), flood_level=0.1),
    "ranking, levels of their own": lambda draw: RankingRisk(draw(Q), flood_level="auto"),
    "ccmn hamming": lambda draw: BaselineRisk(ccmn_hamming_risk, flip_rate=draw(Q) * 0.8),
    "ccmn ranking": lambda draw: BaselineRisk(ccmn_ranking_risk, flip_rate=draw(Q) * 0.8),
    "gdf": lambda draw: BaselineRisk(gdf_risk),
    "gdf unbiased": lambda draw: BaselineRisk(gdf_risk, unbiased=True),
    "ctl": lambda draw: BaselineRisk(ctl_risk),
    "ctl unbiased": lambda draw: BaselineRisk(ctl_risk, unbiased=True),
    "mlcl": lambda draw: BaselineRisk(mlcl_risk, transition=draw(Q, Q).softmax(dim=0)),
    "comrank": lambda draw: BaselineRisk(comrank_risk),
    "likelihood": lambda draw: LikelihoodRisk(draw(Q), label_weight=draw(Q)),
    "likelihood, mistakes": lambda draw: LikelihoodRisk(
        draw(Q), mistake_rate=0.01, class_prior=draw(Q)
    ),
}
STATES = [torch.randint(0, 4, (n, Q), generator=GENERATOR).to(torch.int8) for n in ROWS]


def models(make: Callable[[int, int], nn.Module]) -> list[nn.Module]:
    torch.manual_seed(3)
    return [make(D, Q) for _ in ROWS]


def trainees(
    together: list[nn.Module],
    risks: Sequence[nn.Module],
    rows: list[Tensor] = X,
    answers: list[Tensor] = CANDIDATES,
) -> list[Trainee]:
    return [Trainee(*own) for own in zip(together, rows, answers, risks, SEEDS, strict=True)]


def compare(
    make_risk: Callable[[Draw], nn.Module],
    make_model: Callable[[int, int], nn.Module] = lambda d, q: mlp(d, q, 8),
    optimizer: str = "sgd",
    vectorised: bool = True,
    answers: list[Tensor] = CANDIDATES,
) -> None:
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 20, "risk_scale": 2.0, "progress": False}
    settings["optimizer"] = make_optimizer(optimizer, learning_rate=1e-2, weight_decay=1e-3)
    together = models(make_model)
    draw = partial(torch.rand, generator=torch.Generator().manual_seed(1))
    alone, risks = copy.deepcopy(together), [make_risk(draw) for _ in ROWS]
    options = TrainOptions(**settings)
    own = trainees(together, risks, answers=answers)
    histories = train_together(own, options, vectorised_risk=vectorised)
    for which, model in enumerate(alone):
        data = (X[which], answers[which], risks[which])
        history = train(model, *data, replace(options, seed=SEEDS[which]))
        torch.testing.assert_close(histories[which].risk, history.risk, rtol=1e-5, atol=1e-6)
        for one, two in zip(together[which].parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)
        assert not together[which].training


@pytest.mark.parametrize("name", list(RISKS))
def test_each_model_is_as_trained_alone(name: str) -> None:
    compare(RISKS[name])
    if name in ("bce", "hamming", "likelihood", "likelihood, mistakes"):
        compare(RISKS[name], answers=STATES)


def test_each_model_is_as_trained_alone_on_leanings() -> None:
    compare(RISKS["likelihood"], answers=[states / 1.5 - 1 for states in STATES])


def test_with_other_optimisers() -> None:
    for optimizer in ("adam", "adamw"):
        compare(RISKS["hamming"], optimizer=optimizer)


def test_linear_models_and_risks_one_by_one() -> None:
    compare(RISKS["hamming"], make_model=linear)
    compare(RISKS["ranking"], vectorised=False)


def test_models_stay_apart() -> None:
    """The rows of one model do not change another."""
    results = []
    for shift in (0.0, 5.0):
        together = models(linear)
        rows = [X[0], *(x + shift for x in X[1:])]
        options = TrainOptions(SGD, epochs=1, batch_size=20, progress=False)
        train_together(trainees(together, [BceRisk() for _ in ROWS], rows), options)
        results.append([p.detach().clone() for p in together[0].parameters()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_different_numbers_of_batches_are_refused() -> None:
    pair = [
        Trainee(linear(D, Q), X[0], CANDIDATES[0], BceRisk()),
        Trainee(linear(D, Q), X[1][:50], CANDIDATES[1][:50], BceRisk()),
    ]
    with pytest.raises(ComesError, match=r"same number of batches; got \[50, 103\] rows"):
        train_together(pair, TrainOptions(SGD, batch_size=20))


def test_other_networks_are_refused() -> None:
    deep = nn.Sequential(linear(D, 8), nn.Tanh(), nn.Linear(8, Q))
    with pytest.raises(
        ComesError, match="only networks made by .*linear and mlp.*; got Sequential"
    ):
        Stack([deep])


def test_a_risk_that_grows_without_bound_is_an_error() -> None:
    class Runaway(nn.Module):
        def forward(self, scores: Tensor, candidates: Tensor) -> Tensor:
            return -scores.exp().sum()

    with pytest.raises(ComesError, match="Lower the learning rate"):
        sgd = make_optimizer("sgd", learning_rate=1.0)
        runaways = [Runaway() for _ in ROWS]
        train_together(trainees(models(linear), runaways), TrainOptions(sgd, progress=False))


def test_interrupted_models_keep_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupting(risk: float, epoch: int) -> float:
        if epoch == 2:
            raise KeyboardInterrupt
        return risk

    monkeypatch.setattr(loop, "check_finite", interrupting)
    together = models(linear)
    before = copy.deepcopy(together)
    risks, options = [BceRisk() for _ in ROWS], TrainOptions(SGD, epochs=9, progress=False)
    with pytest.warns(ComesWarning, match="Interrupted after 2 of 9"):
        histories = train_together(trainees(together, risks), options)
    assert [history.interrupted for history in histories] == [True] * 4
    for one, two in zip(together[1].parameters(), before[1].parameters(), strict=True):
        assert not torch.equal(one, two)


def test_a_stack_scores_as_its_models() -> None:
    for make in (linear, mlp):
        singles = models(make)
        rows = torch.stack([x[:5] for x in X])
        expected = torch.stack([model(x) for model, x in zip(singles, rows, strict=True)])
        stack = Stack(singles)
        torch.testing.assert_close(stack(stack.pad(rows)), expected)
        others = [make(D, Q) for _ in ROWS]
        stack.copy_to(others)
        for one, two in zip(singles, others, strict=True):
            torch.testing.assert_close(one.state_dict(), two.state_dict(), rtol=0, atol=0)
