"""Which steps are recorded as CUDA graphs: decided here without a GPU."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from comes.training import TrainOptions, make_optimizer, steps
from comes.training.batch_sources import OnDevice, Streamed

SGD = make_optimizer("sgd", learning_rate=0.1)
ON_DEVICE, STREAMED = OnDevice(lambda rows: rows), Streamed(lambda batches: batches)


@pytest.mark.parametrize(
    ("source", "device", "part_size", "record", "is_recorded"),
    [
        (ON_DEVICE, "cuda", None, True, True),
        (ON_DEVICE, "cuda", None, False, False),
        (ON_DEVICE, "cuda", 8, True, False),  # parts read random states from the device
        (ON_DEVICE, "cpu", None, True, False),
        (STREAMED, "cuda", None, True, False),
    ],
)
def test_steps_on_a_gpu_are_recorded_if_they_select_their_rows(
    source: Any,
    device: str,
    part_size: int | None,
    record: bool,
    is_recorded: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    step: Any = Step(
        options=TrainOptions(SGD, part_size=part_size),
        optimiser="optimiser",
    )
    seen: Any = SimpleNamespace(index_select=lambda dim, rows: rows)
    take_steps = steps.plan_steps(step, source, seen, torch.device(device), record=record)
    left: Any = SimpleNamespace(split=lambda device: torch.arange(6).split(2))
    assert torch.cat(list(take_steps(left))).tolist() == [111 * k for k in range(6)]
    assert recorded == ([("optimiser", torch.device(device))] if is_recorded else [])
