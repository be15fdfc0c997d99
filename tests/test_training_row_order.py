"""The order of rows that lie in blocks."""

import pytest
import torch

from comes.errors import ComesError
from comes.training import BlockOrder

SIZES = (5, 3, 9, 1, 7, 4)
BUFFER = 10


def draws(n: int) -> list[tuple[list[int], tuple[tuple[int, ...], ...]]]:
    shuffle = torch.Generator().manual_seed(3)
    drawn = [BlockOrder(SIZES, BUFFER).draw(shuffle) for _ in range(n)]
    return [(order.rows.tolist(), order.groups) for order in drawn]


def rows_of(blocks: tuple[int, ...]) -> set[int]:
    return {sum(SIZES[:block]) + row for block in blocks for row in range(SIZES[block])}


def test_every_row_comes_once_in_every_epoch() -> None:
    for rows, groups in draws(20):
        assert sorted(rows) == list(range(sum(SIZES)))
        assert sorted(block for blocks in groups for block in blocks) == list(range(len(SIZES)))


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
        sizes = [sum(SIZES[block] for block in blocks) for blocks in groups]
        assert max(sizes) <= BUFFER
        following = [SIZES[blocks[0]] for blocks in groups[1:]]
        assert all(a + b > BUFFER for a, b in zip(sizes[:-1], following, strict=True))


def test_a_block_larger_than_the_buffer_is_a_group_of_its_own() -> None:
    drawn = BlockOrder((3, 20, 3), 6).draw(torch.Generator().manual_seed(0))
    assert sorted(map(sorted, drawn.groups)) in ([[0, 2], [1]], [[0], [1], [2]])
    drawn = BlockOrder((2, 2), 1).draw(torch.Generator().manual_seed(0))
    assert sorted(map(sorted, drawn.groups)) == [[0], [1]]


def test_the_order_is_a_function_of_the_state_of_the_generator() -> None:
    assert draws(3) == draws(3)
    assert draws(2)[0] != draws(2)[1]


def test_all_rows_in_one_group_are_mixed_as_a_whole() -> None:
    (order,) = [BlockOrder((50, 50), 100).draw(torch.Generator().manual_seed(1))]
    assert 20 < (order.rows[:50] < 50).sum() < 30


def test_orders_of_nothing_are_refused() -> None:
    wrong: list[tuple[tuple[int, ...], int]] = [((), 3), ((2, 0), 3), ((2, 2), 0)]
    for sizes, buffer in wrong:
        with pytest.raises(ComesError, match="needs a block, a row in every block, and a buffer"):
            BlockOrder(sizes, buffer)
