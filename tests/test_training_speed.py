"""Threads by work; memory that stays; CUDA graphs: which steps they record, the same weights."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import threadpoolctl  # type: ignore[import-untyped]
import torch
from torch import Tensor, nn

from comes.models import linear, mlp
from comes.risks import HammingRisk, RankingRisk
from comes.training import TrainOptions, loop, make_optimizer, train
from comes.training.pixels import PixelRows
from comes.training.speed import fastest_convolutions, few_threads, kept_memory, threads_for
from comes.training.stacked import Trainee, train_together
from pictures import SIZE, pictures

SGD = make_optimizer("sgd", learning_rate=0.1)


@pytest.mark.parametrize(
    ("rows", "device", "options", "is_recorded"),
    [
        ("tensor", "cuda", {"graph": True}, True),
        ("tensor", "cuda", {"graph": False}, False),
        ("tensor", "cuda", {"graph": True, "part_size": 8}, False),  # parts read random states
        ("tensor", "cpu", {"graph": True}, False),
        ("pictures", "cuda", {"graph": True}, False),  # in main memory
    ],
)
def test_steps_on_a_gpu_are_recorded_if_they_select_their_rows(
    rows: str, device: str, options: Any, is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decided here without a GPU."""
    recorded: list[Any] = []

    def record_step(step: Any, optimizer: Any, device: torch.device) -> Any:
        recorded.append((step, optimizer, device))
        return "recorded"

    monkeypatch.setattr(loop, "GraphedStep", record_step)
    where, model = torch.device(device), nn.Linear(3, 2)
    pixels = PixelRows(list(pictures(6)[0]), 4, where, keep="memory")
    targets: Any = SimpleNamespace(device=where)
    training = loop.Training(
        model,
        pixels if rows == "pictures" else torch.zeros(6, 3),
        targets,
        HammingRisk(torch.full((2,), 0.3)),
        TrainOptions(SGD, **options),
    )
    step: Any = training.step_on_rows
    assert (step == "recorded") == is_recorded
    expected = [(training.select_and_step, training.optimizer, where)]
    assert recorded == (expected if is_recorded else [])


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


def test_the_choice_of_algorithms_is_restored() -> None:
    for before in (True, False):
        with torch.backends.cudnn.flags(benchmark=before):
            with pytest.raises(ZeroDivisionError), fastest_convolutions():
                assert torch.backends.cudnn.benchmark
                _ = 1 / 0
            assert torch.backends.cudnn.benchmark == before


def test_memory_is_kept_while_training_and_handed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []

    class Glibc:
        def mallopt(self, name: int, value: int) -> int:
            calls.append((f"mallopt {name}", value))
            return 1

        def malloc_trim(self, pad: int) -> int:
            calls.append(("malloc_trim", pad))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Glibc())
    with pytest.raises(ZeroDivisionError), kept_memory():
        assert calls == [("mallopt -3", 2**25), ("mallopt -1", 2**30), ("mallopt -4", 0)]
        _ = 1 / 0
    assert calls[3:] == [("mallopt -4", 2**16), ("mallopt -1", 2**26), ("malloc_trim", 0)]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with kept_memory():
        pass


@pytest.mark.parametrize(
    ("model", "rows", "batch_size", "expected"),
    [
        (mlp(100, 10), torch.zeros(1, 100), 256, 1),  # 42 million multiplications
        (mlp(20_000, 100), torch.zeros(1, 1), 128, 2),  # 3.9 billion
        (linear(20_000, 100), torch.zeros(1, 1), 4096, 4),  # 25 billion, and no more threads
        (mlp(20_000, 100), "sparse rows", 512, 1),
        (nn.Linear(3, 2), torch.zeros(1, 3), 1, 4),  # a network of the user
    ],
)
def test_steps_have_the_threads_that_their_work_is_worth(
    model: nn.Module, rows: object, batch_size: int, expected: int
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with pytest.raises(KeyboardInterrupt), few_threads(model, rows, batch_size):
            assert torch.get_num_threads() == expected
            raise KeyboardInterrupt
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def count_blas_threads() -> set[int]:
    found = threadpoolctl.threadpool_info()
    return {library["num_threads"] for library in found if library["user_api"] == "blas"}


def test_small_work_has_one_thread_of_blas_until_the_last_block_ends() -> None:
    torch_before = torch.get_num_threads()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if count_blas_threads() != {2}:
            pytest.skip("BLAS has one thread here")
        torch.set_num_threads(2)
        try:
            with threads_for(1e12):
                assert count_blas_threads() == {2}
            first, second = threads_for(0), threads_for(0)
            first.__enter__()
            second.__enter__()  # as in another thread, which ends later
            first.__exit__(None, None, None)
            assert count_blas_threads() == {1}
            second.__exit__(None, None, None)
            assert count_blas_threads() == {2}
        finally:
            torch.set_num_threads(torch_before)


def test_a_training_of_a_small_network_has_one_thread_and_leaves_the_number_as_it_was() -> None:
    before, seen = torch.get_num_threads(), []

    def note(epoch: object) -> None:
        seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    try:
        options = TrainOptions(SGD, epochs=2, callbacks=[note])
        risk = HammingRisk(torch.full((2,), 0.3))
        train(mlp(3, 2, 4), torch.zeros(8, 3), torch.ones(8, 2, dtype=torch.bool), risk, options)
        assert seen == [1, 1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
