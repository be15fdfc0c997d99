"""Steps that are recorded as CUDA graphs: which they are, and that they give the same weights."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from comes.models import mlp
from comes.risks import HammingRisk, RankingRisk
from comes.training import (
    PixelRows,
    Trainee,
    TrainOptions,
    make_optimizer,
    steps,
    train,
    train_together,
)
from comes.training.batch_sources import OnDevice, Streamed
from pictures import SIZE, pictures

SGD = make_optimizer("sgd", learning_rate=0.1)
ON_DEVICE, STREAMED = OnDevice(lambda rows: rows), Streamed(lambda batches: batches)


def test_steps_on_a_gpu_are_recorded_if_they_select_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Decided here without a GPU."""
    recorded: list[Any] = []

    def record_step(step: Any, optimiser: Any, device: torch.device) -> Any:
        recorded.append((optimiser, device))
        return step

    class Step(SimpleNamespace):
        def __call__(self, x: Tensor, seen: Tensor, rows: Tensor) -> Tensor:
            return 100 * seen + 10 * x + rows

        def own(self, rows: Tensor) -> Tensor:
            return rows

    monkeypatch.setattr(steps, "GraphedStep", record_step)
    seen: Any = SimpleNamespace(index_select=lambda dim, rows: rows)
    left: Any = SimpleNamespace(split=lambda device: torch.arange(6).split(2))
    cases: list[tuple[Any, str, int | None, bool, bool]] = [
        (ON_DEVICE, "cuda", None, True, True),
        (ON_DEVICE, "cuda", None, False, False),
        (ON_DEVICE, "cuda", 8, True, False),  # parts read random states from the device
        (ON_DEVICE, "cpu", None, True, False),
        (STREAMED, "cuda", None, True, False),
    ]
    for source, device, part_size, record, is_recorded in cases:
        case = (type(source).__name__, device, part_size, record)
        recorded.clear()
        step: Any = Step(options=TrainOptions(SGD, part_size=part_size), optimiser="optimiser")
        take_steps = steps.plan_steps(step, source, seen, torch.device(device), record=record)
        assert torch.cat(list(take_steps(left))).tolist() == [111 * k for k in range(6)], case
        assert recorded == ([("optimiser", torch.device(device))] if is_recorded else []), case


def assert_recording_changes_nothing(
    run: Callable[[bool], list[nn.Module]], rtol: float = 1e-3
) -> None:
    """Compare the weights of trainings without a graph and with one."""
    without, recorded = (
        [p.detach() for model in run(graph) for p in model.parameters()] for graph in (False, True)
    )
    for one, two in zip(without, recorded, strict=True):
        torch.testing.assert_close(one, two, rtol=rtol, atol=1e-5)


@pytest.mark.needs("cuda")
@pytest.mark.parametrize("augment", ["none", "flip", "crop"])
def test_a_recorded_step_draws_the_same_pictures_and_gives_the_same_weights(augment: Any) -> None:
    class AsNumbers(nn.Module):
        def forward(self, pixels: Tensor) -> Tensor:
            return pixels.float() / 255

    device, sgd = torch.device("cuda"), make_optimizer("sgd", learning_rate=0.1, momentum=0.0)
    candidates = torch.rand(50, 4, generator=torch.Generator().manual_seed(1)).to(device) < 0.6

    def run(graph: bool) -> list[nn.Module]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 4)).to(device)
        pixels = PixelRows(list(pictures(50)[0]), SIZE, device, augment)
        risk = HammingRisk(torch.full((4,), 0.3)).to(device)
        options = TrainOptions(sgd, epochs=8, batch_size=20, graph=graph)
        train(nn.Sequential(AsNumbers(), model), pixels, candidates, risk, options)
        return [model]

    assert_recording_changes_nothing(run)


@pytest.mark.needs("cuda")
@pytest.mark.parametrize("q", [6, 700])
def test_graphs_of_many_models_and_of_many_pairs(q: int) -> None:
    """Some steps have a row more for some models; 700 labels make parts of their pairs."""
    device, generator = torch.device("cuda"), torch.Generator().manual_seed(0)
    sizes = [103, 102, 102, 103]
    rows = [torch.randn(n, 9, generator=generator).to(device) for n in sizes]
    labels = [(torch.rand(n, q, generator=generator) < 0.6).to(device) for n in sizes]
    risks = [RankingRisk(torch.rand(q, generator=generator)).to(device) for _ in sizes]
    sgd = make_optimizer("sgd", learning_rate=1e-4)

    def run(graph: bool) -> list[nn.Module]:
        torch.manual_seed(0)
        models = [mlp(9, q, 8).to(device) for _ in sizes]
        own = zip(models, rows, labels, risks, range(5, 9), strict=True)
        options = TrainOptions(sgd, epochs=6, batch_size=20, graph=graph)
        train_together([Trainee(*each) for each in own], options, vectorised_risk=q < 10)
        return models

    assert_recording_changes_nothing(run)


@pytest.mark.needs("cuda")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_graph_gives_the_same_weights(optimizer: str) -> None:
    device, generator = torch.device("cuda"), torch.Generator().manual_seed(0)
    make = make_optimizer(optimizer, learning_rate=1e-2, weight_decay=1e-3)
    X = torch.randn(103, 9, generator=generator).to(device)
    candidates = (torch.rand(103, 6, generator=generator) < 0.6).to(device)

    def run(graph: bool) -> list[nn.Module]:
        torch.manual_seed(0)
        model, risk = mlp(9, 6, 8).to(device), HammingRisk(torch.full((6,), 0.3)).to(device)
        options = TrainOptions(make, epochs=6, batch_size=20, graph=graph)
        train(model, X, candidates, risk, options)
        return [model]

    assert_recording_changes_nothing(run, rtol=1e-4)
