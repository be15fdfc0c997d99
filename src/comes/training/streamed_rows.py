"""Rows that do not fit into memory, read block by block ahead of the steps."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from threading import Event
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from comes.errors import ComesError
from comes.models.tabular import as_csr_tensor
from comes.training.rows import SparseRows, to_device

Key = TypeVar("Key")
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Features and what the risk sees, in blocks that are read when they are needed.

    Training holds the group of blocks that it is at, and the next, which a thread reads meanwhile.

    Parameters
    ----------
    sizes : tuple of int
        Rows of every block.
    read : callable block -> (X, seen)
        The float32 array or scipy CSR matrix of a block, and a tensor of what the risk sees of its
        rows. Called in another thread.
    device : torch device
    join : callable (seen of some blocks) -> seen of all their rows, optional
        Where ``seen`` is no tensor: what it returns has ``index_select(0, rows)``, as a tensor has,
        and is on the device.

    Examples
    --------
    >>> from comes.risks import BceRisk
    >>> from comes.training import BlockOrder, TrainOptions, make_optimizer, train
    >>> X = np.random.default_rng(0).normal(size=(3, 50, 4)).astype(np.float32)
    >>> def read(block):
    ...     return X[block], torch.from_numpy(X[block] > 0)
    >>> rows = StreamedRows((50, 50, 50), read, torch.device("cpu"))
    >>> order = BlockOrder(rows.sizes, buffer=100)
    >>> options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=5, order=order)
    >>> history = train(torch.nn.Linear(4, 4), rows, None, BceRisk(), options)
    >>> history.risk[-1] < history.risk[0]
    True
    """

    sizes: tuple[int, ...]
    read: Callable[[int], tuple[Any, Any]]
    device: torch.device
    join: Callable[[Sequence[Any]], Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))

    def __len__(self) -> int:
        return sum(self.sizes)

    def batches(
        self,
        batches: Sequence[Tensor],
        groups: Sequence[Sequence[int]],
        own: Callable[[Tensor], Tensor] = lambda rows: rows,
    ) -> Iterator[tuple[Tensor, Any]]:
        """Give the features of each batch, and what the risk sees of it.

        Parameters
        ----------
        batches : sequence of int64 tensors
            Row numbers, in the order of the groups.
        groups : sequence of sequences of int
            The blocks of each group; those before the first batch are not read.
        own : callable rows -> rows
            Of which rows of a batch the features are wanted.
        """
        places = _Places(self.sizes, groups)
        needed: Sequence[int] = ()
        if batches:
            ends = places.find_groups(batches[0]), places.find_groups(batches[-1])
            needed = range(ends[0][0], ends[1][-1] + 1)
        coming = read_ahead(lambda group, stop: self._read_group(groups[group], stop), needed)
        number, held = -1, None
        for rows in batches:
            parts = []
            for group in places.find_groups(rows):
                if group != number:
                    held = None  # so that only the next two are in memory
                    number, held = group, next(coming)
                assert held is not None
                parts.append(self._take(held, places, group, rows, own(rows)))
            yield self._put_together(parts)

    def read_features(self) -> Iterator[Tensor | SparseRows]:
        """Give the features of every block, in order."""
        for X in read_ahead(lambda block, _: self._read_block(block)[0], range(len(self.sizes))):
            yield to_device(X, self.device)

    def _read_block(self, block: int) -> tuple[Any, Any]:
        """Return one block, if it has the rows that it should have."""
        X, seen = self.read(block)
        if X.shape[0] != self.sizes[block]:
            raise ComesError(
                f"block {block} should have {self.sizes[block]} rows; got {X.shape[0]}. Count the "
                "rows of the blocks again."
            )
        return X, seen

    def _read_group(self, blocks: Sequence[int], stop: Event) -> "_Group":
        """Return the rows of some blocks as one; an empty group if nobody waits for it."""
        features: list[Any] = []
        seen: list[Any] = []
        for block in blocks:
            if stop.is_set():
                return _Group(torch.empty(0), None)
            X, seen_of_block = self._read_block(block)
            features.append(X)
            seen.append(seen_of_block)
        is_sparse = sparse.issparse(features[0])
        X = sparse.vstack(features, "csr") if is_sparse else np.concatenate(features)
        joined = torch.cat(seen).to(self.device) if self.join is None else self.join(seen)
        return _Group(to_device(X, self.device), joined)

    def _take(
        self, held: "_Group", places: "_Places", group: int, rows: Tensor, own: Tensor
    ) -> "_Part":
        """Return what a batch has in one group."""
        X, rows = held.X, places.find_rows(rows, group).to(self.device)
        own = places.find_rows(own, group)
        x = (
            X.matrix[own.numpy()]
            if isinstance(X, SparseRows)
            else X.index_select(0, own.to(X.device))
        )
        return _Part(x, held.seen if self.join else held.seen.index_select(0, rows), rows, len(X))

    def _put_together(self, parts: "list[_Part]") -> tuple[Tensor, Any]:
        """Return a batch that may lie in several groups."""
        x = [part.x for part in parts]
        if isinstance(x[0], Tensor):
            features = x[0] if len(x) == 1 else torch.cat(x)
        else:
            whole = x[0] if len(x) == 1 else sparse.vstack(x, "csr")
            features = as_csr_tensor(whole).to(self.device)
        seen = [part.seen for part in parts]
        if self.join is None:
            return features, seen[0] if len(seen) == 1 else torch.cat(seen)
        starts = [0, *accumulate(part.n for part in parts)]
        rows = torch.cat([part.rows + start for part, start in zip(parts, starts, strict=False)])
        of_all = seen[0] if len(seen) == 1 else self.join(seen)
        return features, of_all.index_select(0, rows)


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows that are in memory."""

    X: Tensor | SparseRows
    seen: Any


@dataclass(frozen=True, eq=False)
class _Part:
    """What a batch has in one group."""

    x: Any  # the features of its own rows, a tensor or a CSR matrix
    seen: Any  # of its rows, or of all rows of the group if these are selected later
    rows: Tensor  # numbers in the group
    n: int  # rows of the group


class _Places:
    """Where rows lie: in which group, and where in it."""

    def __init__(self, sizes: Sequence[int], groups: Sequence[Sequence[int]]) -> None:
        self.ends = torch.tensor(list(accumulate(sizes)))
        self.group_of = torch.zeros(len(sizes), dtype=torch.int64)
        self.shift = torch.zeros(len(sizes), dtype=torch.int64)  # from the data set to the group
        for group, blocks in enumerate(groups):
            start = 0
            for block in blocks:
                self.group_of[block] = group
                self.shift[block] = start - (int(self.ends[block]) - sizes[block])
                start += sizes[block]

    def find_groups(self, rows: Tensor) -> list[int]:
        """Return the groups of some rows, in the order in which they come."""
        return [int(group) for group in self.group_of[self._find_blocks(rows)].unique()]

    def find_rows(self, rows: Tensor, group: int) -> Tensor:
        """Return the numbers, in a group, of those rows that lie in it."""
        blocks = self._find_blocks(rows)
        return (rows + self.shift[blocks])[self.group_of[blocks] == group]

    def _find_blocks(self, rows: Tensor) -> Tensor:
        """Return the block of every row."""
        return torch.bucketize(rows.contiguous(), self.ends, right=True)


def read_ahead(read: Callable[[Key, Event], Found], keys: Sequence[Key]) -> Iterator[Found]:
    """Give what is read for every key, while a thread reads for the next one.

    An error in the thread is raised here. The thread ends with the iterator; reading may look at
    the event, which is then set, and give up.
    """
    stop = Event()
    with ThreadPoolExecutor(1, "read-ahead") as pool:
        try:
            coming = pool.submit(read, keys[0], stop) if keys else None
            for number in range(len(keys)):
                assert coming is not None
                found = coming.result()  # the one before is forgotten now
                is_last = number + 1 == len(keys)
                coming = None if is_last else pool.submit(read, keys[number + 1], stop)
                yield found
        finally:
            stop.set()
