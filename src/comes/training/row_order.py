"""The order of rows in an epoch: a function of the state of a generator, and of nothing else."""

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from comes.errors import ComesError


@dataclass(frozen=True, eq=False)
class DrawnOrder:
    """The order of the rows in one epoch."""

    rows: Tensor  # all row numbers, int64 (n,)
    groups: tuple[tuple[int, ...], ...] = ()  # blocks whose rows are mixed, group after group


@dataclass(frozen=True)
class BlockOrder:
    """A random order of rows that lie in blocks, for data that do not fit into memory.

    Blocks are shuffled, consecutive ones form groups, and the rows of a group are shuffled. So a
    reader needs one group at a time. Rows in memory can be trained on in the same order, which
    gives the same model.

    Parameters
    ----------
    sizes : tuple of int
        Rows of every block; a block is a file, or a part of one.
    buffer : int
        A group has at most this many rows; a larger block is a group of its own.

    Examples
    --------
    >>> order = BlockOrder((2, 2, 2), buffer=4)
    >>> order.draw(torch.Generator().manual_seed(0)).rows
    tensor([5, 4, 1, 0, 3, 2])
    """

    sizes: tuple[int, ...]
    buffer: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        if not self.sizes or min(self.sizes) < 1 or self.buffer < 1:
            raise ComesError(
                "an order of blocks needs a block, a row in every block, and a buffer of at least "
                f"1; got sizes {self.sizes[:5]} and buffer {self.buffer}. Correct them."
            )

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of every block."""
        return [0, *accumulate(self.sizes)][:-1]

    def draw(self, generator: torch.Generator) -> DrawnOrder:
        """Return a new order of all rows, and the groups that it goes through."""
        groups = self._group(torch.randperm(len(self.sizes), generator=generator).tolist())
        starts, parts = self.starts, []
        for blocks in groups:
            rows = torch.cat([torch.arange(self.sizes[b]) + starts[b] for b in blocks])
            parts.append(rows[torch.randperm(len(rows), generator=generator)])
        return DrawnOrder(torch.cat(parts), groups)

    def _group(self, blocks: list[int]) -> tuple[tuple[int, ...], ...]:
        """Return consecutive blocks in groups that fit into the buffer."""
        groups: list[list[int]] = []
        room = 0
        for block in blocks:
            if self.sizes[block] > room:
                groups.append([])
                room = self.buffer
            groups[-1].append(block)
            room -= self.sizes[block]
        return tuple(map(tuple, groups))


def draw_order(n: int, order: BlockOrder | None, generator: torch.Generator) -> DrawnOrder:
    """Return the order of n rows in an epoch: a plain permutation, unless they lie in blocks."""
    if order is None:
        return DrawnOrder(torch.randperm(n, generator=generator))
    return order.draw(generator)
