"""Rows on devices; the order of rows in blocks; streams, which give the model of rows in memory."""

import gc
import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError, ComesWarning
from comes.models import mlp
from comes.risks import HammingRisk
from comes.training import TrainOptions, make_optimizer, train
from comes.training.label_chunks import SparseTargetRows
from comes.training.loop import Rows, Training
from comes.training.rows import StreamedRows, choose_device, read_ahead, to_device
from comes.training.seeding import seeded
from drawn_problems import annotate, prior_of, problem

CPU = torch.device("cpu")
SIZES = (17, 5, 30, 11, 23, 8, 6)
N = sum(SIZES)
X = problem(seed=5, n=N, q=6)[0].float()
_, RELEVANT = problem(seed=6, n=N)
CANDIDATES = annotate(RELEVANT, 0.5, seed=7)
SGD = make_optimizer("sgd", learning_rate=0.1)
ENDS = np.cumsum(SIZES)
ARRAY = X.numpy()


def dense(block: int) -> Any:
    return X[ENDS[block] - SIZES[block] : ENDS[block]].numpy()


def csr(block: int) -> Any:
    return sparse.csr_array(dense(block) * (dense(block) > 0))


def seen(block: int) -> Tensor:
    return CANDIDATES[ENDS[block] - SIZES[block] : ENDS[block]]


def streamed(features: Callable[[int], Any] = dense, targets: Any = seen) -> StreamedRows:
    return StreamedRows(SIZES, 40, lambda block: (features(block), targets(block)), CPU)


def draw_streamed_order(training: Training) -> Any:
    """Replaces the order of rows in memory by that of the stream."""
    return streamed().draw_order(training.shuffle)


def in_memory(features: Callable[[int], Any]) -> Rows:
    blocks = [features(block) for block in range(len(SIZES))]
    whole = np.concatenate(blocks) if features is dense else sparse.vstack(blocks)
    return to_device(whole, CPU)


def trained(
    rows: Rows | StreamedRows, candidates: Any = None, batch_size: int = 16, **options: Any
) -> Tensor:
    with seeded(1, CPU):
        model = mlp(X.shape[1], 4, 8, dropout=0.5)
    settings: dict[str, Any] = {"epochs": 3, "batch_size": batch_size, "seed": 4}
    risk = HammingRisk(prior_of(RELEVANT).float())
    train(model, rows, candidates, risk, TrainOptions(SGD, **(settings | options)))
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("features", [dense, csr])
def test_a_stream_gives_the_model_of_rows_in_memory(
    features: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = in_memory(features)
    in_one_group = trained(rows, CANDIDATES, 64)
    monkeypatch.setattr(Training, "draw_order", draw_streamed_order)
    for batch_size, epochs in ((1, 1), (16, 3), (64, 3), (1000, 3)):  # in groups of up to 40
        from_memory = trained(rows, CANDIDATES, batch_size, epochs=epochs)
        from_stream = trained(streamed(features), None, batch_size, epochs=epochs)
        assert torch.equal(from_stream, from_memory), batch_size
    assert not torch.equal(in_one_group, trained(rows, CANDIDATES, 64))


def test_sparse_targets_of_a_stream_are_those_of_rows_in_memory() -> None:
    states = sparse.csr_array(np.where(RELEVANT.numpy(), 2, 1) * CANDIDATES.numpy(), dtype=np.int8)
    targets = SparseTargetRows(states, State.MAYBE, CPU)

    def read(block: int) -> SparseTargetRows:
        return replace(targets, matrix=states[ENDS[block] - SIZES[block] : ENDS[block]])

    rows = streamed(targets=read)
    order, groups = rows.draw_order(torch.Generator().manual_seed(0))
    for size in (3, 16, 64, N):  # in groups of up to 40
        batches = order.split(size)
        for batch, (x, found) in zip(batches, rows.batches(batches, groups), strict=True):
            assert torch.equal(x, X[batch])
            expected = targets.index_select(0, batch)
            for name in ("rows", "labels", "states"):
                assert torch.equal(getattr(found, name), getattr(expected, name))
            assert (found.default, found.shape) == (State.MAYBE, (len(batch), 4))


def test_two_groups_are_in_memory_at_most() -> None:
    """While a group is read, the one that training is at is there, and none before it."""
    n_alive = 0
    changed = threading.Condition()
    beside: list[int] = []  # groups in memory while another is read
    limit = 60.0  # seconds until the training has forgotten a group; only a fault lets them pass

    def read(block: int) -> tuple[Any, Tensor]:
        nonlocal limit
        with changed:
            limit = 60.0 if changed.wait_for(lambda: n_alive <= 1, limit) else 0.0
            beside.append(n_alive)
        targets = CANDIDATES[10 * block : 10 * block + 10]
        count(1)
        weakref.finalize(targets, count, -1)
        return X[10 * block : 10 * block + 10].numpy(), targets

    def count(change: int) -> None:
        nonlocal n_alive
        with changed:
            n_alive += change
            changed.notify_all()

    options = TrainOptions(SGD, epochs=2, batch_size=5)
    rows = StreamedRows((10,) * 10, 10, read, CPU)
    train(nn.Linear(6, 4), rows, None, lambda scores, seen: scores.mean(), options)
    assert len(beside) == 20
    assert max(beside) == 1
    gc.collect()
    assert n_alive == 0


def test_groups_that_are_done_are_not_read_again() -> None:
    read: list[int] = []

    def noted(block: int) -> Any:
        read.append(block)
        return dense(block)

    rows, groups = streamed().draw_order(torch.Generator().manual_seed(0))
    first = sum(SIZES[block] for block in groups[0])
    batches = list(streamed(noted).batches(rows[first:].split(10), groups))
    assert len(batches) == math.ceil((N - first) / 10)
    assert read == [block for blocks in groups[1:] for block in blocks]


def broken(block: int) -> Any:
    if block == 3:
        raise OSError("the disk is gone")
    return dense(block)


def count_readers() -> int:
    return sum(thread.name.startswith("read-ahead") for thread in threading.enumerate())


def test_an_error_of_the_reader_reaches_the_caller_and_ends_the_thread() -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        trained(streamed(broken))
    assert count_readers() == 0


def test_an_error_of_a_step_and_ctrl_c_end_the_thread() -> None:
    def fail(scores: Tensor, seen: Tensor) -> Tensor:
        raise ZeroDivisionError

    def interrupt(scores: Tensor, seen: Tensor) -> Tensor:
        raise KeyboardInterrupt

    options = TrainOptions(SGD)
    with pytest.raises(ZeroDivisionError):
        train(nn.Linear(6, 4), streamed(), None, fail, options)
    assert count_readers() == 0
    with pytest.warns(ComesWarning, match="Interrupted after 0 of 200 epochs"):
        train(nn.Linear(6, 4), streamed(), None, interrupt, options)
    assert count_readers() == 0


def test_a_reader_that_nobody_waits_for_is_told_to_give_up() -> None:
    told: list[bool] = []

    def read(key: int, stop: threading.Event) -> int:
        if key == 1:
            told.append(stop.wait(600))  # is told at once, or after ten minutes that it was not
        return key

    found = read_ahead(read, [0, 1, 2])
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert told == [True]
    assert list(read_ahead(read, [])) == []


def test_a_block_with_other_rows_than_promised_is_refused() -> None:
    rows = streamed(lambda block: dense(0))
    with pytest.raises(ComesError, match=r"block \d should have \d+ rows; got 17"):
        trained(rows)


def test_what_does_not_go_together_is_refused() -> None:
    for rows, candidates in ((streamed(), CANDIDATES), (X, None)):
        with pytest.raises(ComesError, match="targets must be given; only rows of a stream"):
            trained(rows, candidates)


BLOCKS = (5, 3, 9, 1, 7, 4)
LIMIT = 10


def draw_order(sizes: tuple[int, ...], buffer: int, shuffle: torch.Generator) -> Any:
    return StreamedRows(sizes, buffer, lambda block: ((), ()), CPU).draw_order(shuffle)


def draws(n: int) -> list[tuple[list[int], tuple[tuple[int, ...], ...]]]:
    shuffle = torch.Generator().manual_seed(3)
    drawn = [draw_order(BLOCKS, LIMIT, shuffle) for _ in range(n)]
    return [(rows.tolist(), groups) for rows, groups in drawn]


def rows_of(blocks: tuple[int, ...]) -> set[int]:
    return {sum(BLOCKS[:block]) + row for block in blocks for row in range(BLOCKS[block])}


def test_every_row_comes_once_in_every_epoch() -> None:
    for rows, groups in draws(20):
        assert sorted(rows) == list(range(sum(BLOCKS)))
        assert sorted(block for blocks in groups for block in blocks) == list(range(len(BLOCKS)))


def test_rows_of_a_group_come_together_and_mixed() -> None:
    mixed = 0
    for rows, groups in draws(20):
        for blocks in groups:
            own, rows = rows[: len(rows_of(blocks))], rows[len(rows_of(blocks)) :]
            assert set(own) == rows_of(blocks)
            mixed += own != [row for block in blocks for row in sorted(rows_of((block,)))]
    assert mixed > 40


def test_groups_fit_into_the_buffer_and_are_as_large_as_that_allows() -> None:
    for _, groups in draws(20):
        sizes = [sum(BLOCKS[block] for block in blocks) for blocks in groups]
        assert max(sizes) <= LIMIT
        following = [BLOCKS[blocks[0]] for blocks in groups[1:]]
        assert all(a + b > LIMIT for a, b in zip(sizes[:-1], following, strict=True))


def test_a_block_larger_than_the_buffer_is_a_group_of_its_own() -> None:
    _, groups = draw_order((3, 20, 3), 6, torch.Generator().manual_seed(0))
    assert sorted(map(sorted, groups)) in ([[0, 2], [1]], [[0], [1], [2]])
    _, groups = draw_order((2, 2), 1, torch.Generator().manual_seed(0))
    assert sorted(map(sorted, groups)) == [[0], [1]]


def test_the_order_is_a_function_of_the_state_of_the_generator() -> None:
    assert draws(3) == draws(3)
    assert draws(2)[0] != draws(2)[1]


def test_all_rows_in_one_group_are_mixed_as_a_whole() -> None:
    rows, _ = draw_order((50, 50), 100, torch.Generator().manual_seed(1))
    assert 20 < (rows[:50] < 50).sum() < 30


def test_orders_of_nothing_are_refused() -> None:
    wrong: list[tuple[tuple[int, ...], int]] = [((), 3), ((2, 0), 3), ((2, 2), 0)]
    for sizes, buffer in wrong:
        with pytest.raises(ComesError, match="needs a block, a row in every block, and a buffer"):
            StreamedRows(sizes, buffer, lambda block: ((), ()), CPU)


def test_arrays_that_torch_cannot_share_are_copied() -> None:
    frozen = ARRAY.copy()
    frozen.flags.writeable = False
    torch.testing.assert_close(to_device(frozen, CPU), to_device(ARRAY[::-1][::-1], CPU))
    assert to_device(ARRAY[::-1], CPU)[torch.tensor([0])].tolist() == [ARRAY[-1].tolist()]


def test_auto_is_a_device_that_is_there() -> None:
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu").type == "cpu"
