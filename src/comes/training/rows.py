"""Rows of features and targets: on a device, sparse, or in blocks on disk."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from comes.errors import ComesError, first_line
from comes.models.tabular import as_csr_tensor

# On a GPU a product with zeros costs less than selecting rows of a sparse matrix, so sparse
# features of up to this many numbers (2 GiB) are made dense there.
DENSE_ON_GPU = 2**29

Key = TypeVar("Key")
Value = TypeVar("Value")


def choose_device(device: str) -> torch.device:
    """Return the named device; ``auto`` is the GPU if torch sees one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ComesError(
            f"device {device!r} cannot be used here ({first_line(error)}). Use 'auto', 'cpu' or a "
            "device that torch sees."
        ) from None
    return chosen


def to_device(X: Any, device: torch.device) -> "Tensor | SparseRows":
    """Return an array or sparse matrix of shape (n, d) as float32 rows on the device."""
    if not sparse.issparse(X):
        return torch.as_tensor(np.require(X, np.float32, ["C", "W"]), device=device)
    X = sparse.csr_array(X, dtype=np.float32)
    if becomes_dense(X, device):
        return as_csr_tensor(X).to(device).to_dense()
    return SparseRows(X, device)


def becomes_dense(X: Any, device: torch.device) -> bool:
    """Return whether `to_device` makes a dense tensor of a matrix."""
    is_small = X.shape[0] * X.shape[1] <= DENSE_ON_GPU
    return not sparse.issparse(X) or (device.type == "cuda" and is_small)


@dataclass(frozen=True)
class SparseRows:
    """A float32 CSR matrix whose batches of rows are torch CSR tensors on a device."""

    matrix: sparse.csr_array
    device: torch.device

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Tensor) -> Tensor:
        return replace(self, matrix=self.matrix[rows.numpy()]).as_batch()

    def as_batch(self) -> Tensor:
        """Return all rows as a CSR tensor on the device."""
        return as_csr_tensor(self.matrix).to(self.device)


class TargetRows(Protocol):
    """The targets of all rows: a tensor, or what selects rows as a tensor does."""

    @property
    def device(self) -> torch.device:
        """Where selected rows are."""
        ...

    def __len__(self) -> int: ...

    def index_select(self, dim: int, index: Tensor, /) -> Any:
        """Return what the risk takes as the targets of some rows; ``dim`` is 0."""
        ...


Groups = tuple[tuple[int, ...], ...]  # numbers of blocks; rows are mixed within a group


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Features and targets in blocks, such as files, that are read when they are needed.

    Training holds the group of blocks that it is at, and the next, which a thread reads meanwhile.
    """

    sizes: tuple[int, ...]  # rows of every block
    buffer: int  # a group has at most this many rows; a larger block is a group of its own
    # The float32 array or CSR matrix of a block; a tensor or `SparseTargetRows` of its targets.
    read: Callable[[int], tuple[Any, Any]]
    device: torch.device

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or self.buffer < 1:
            raise ComesError(
                "a stream needs a block, a row in every block, and a buffer of at least 1; got "
                f"sizes {self.sizes[:5]} and buffer {self.buffer}. Correct them."
            )

    def __len__(self) -> int:
        return sum(self.sizes)

    def draw_order(self, generator: torch.Generator) -> tuple[Tensor, Groups]:
        """Return all row numbers in a random order, and the groups of blocks that it goes through.

        Blocks are shuffled, consecutive ones form groups, and the rows of a group are shuffled.
        """
        groups: list[list[int]] = []
        room = 0
        for block in torch.randperm(len(self.sizes), generator=generator).tolist():
            if self.sizes[block] > room:
                groups.append([])
                room = self.buffer
            groups[-1].append(block)
            room -= self.sizes[block]
        ends, parts = list(accumulate(self.sizes)), []
        for blocks in groups:
            rows = torch.cat([torch.arange(ends[b] - self.sizes[b], ends[b]) for b in blocks])
            parts.append(rows[torch.randperm(len(rows), generator=generator)])
        return torch.cat(parts), tuple(map(tuple, groups))

    def batches(
        self,
        batches: Sequence[Tensor],  # row numbers: what is left of an order that was drawn
        groups: Groups,  # of that order; those before the first batch are not read
        share: Callable[[Tensor], Tensor] = lambda rows: rows,  # rows whose features are wanted
    ) -> Iterator[tuple[Tensor, Any]]:
        """Yield the features and the targets of each batch."""
        block_ends = torch.tensor(list(accumulate(self.sizes)))
        shift = torch.zeros_like(block_ends)  # from a row number to the position in its group
        for blocks in groups:
            ends = list(accumulate(self.sizes[block] for block in blocks))
            shift[list(blocks)] = torch.tensor(ends) - block_ends[list(blocks)]
        group_ends = list(accumulate(sum(self.sizes[b] for b in blocks) for blocks in groups))
        position = len(self) - sum(map(len, batches))  # in the order
        first = bisect_right(group_ends, position)
        reading = read_ahead(self._read_group, groups[first:])
        next_ends, end = iter(group_ends[first:]), position  # no group is in memory
        X: Any = None
        targets: Any = None
        for batch in batches:
            in_group = batch + shift[torch.bucketize(batch.contiguous(), block_ends, right=True)]
            mine = share(torch.arange(len(batch)))
            parts: list[tuple[Any, Any]] = []  # from each group that the batch has rows in
            start = 0
            while start < len(batch):
                if position == end:
                    X = targets = None  # so that only this group and the next are in memory
                    (X, targets), end = next(reading), next(next_ends)
                stop = min(len(batch), start + end - position)
                wanted = in_group[mine[(mine >= start) & (mine < stop)]]
                parts.append((_select(X, wanted), _select(targets, in_group[start:stop])))
                position, start = position + stop - start, stop
            x, y = (_concatenate(values) for values in zip(*parts, strict=True))
            yield (
                x if isinstance(x, Tensor) else x.as_batch(),
                y if isinstance(y, Tensor) else y.as_batch(),
            )

    def _read_group(self, blocks: Sequence[int], stop: Event) -> tuple[Any, Any]:
        """Return the features and targets of some blocks; None if nobody waits for them."""
        parts = []
        for block in blocks:
            if stop.is_set():
                return None, None
            X, targets = self.read(block)
            if X.shape[0] != self.sizes[block]:
                raise ComesError(
                    f"block {block} should have {self.sizes[block]} rows; got {X.shape[0]}. Count "
                    "the rows of the blocks again."
                )
            parts.append((X, targets))
        features, targets_of_blocks = zip(*parts, strict=True)
        is_sparse = sparse.issparse(features[0])
        X = sparse.vstack(features, "csr") if is_sparse else np.concatenate(features)
        targets = _concatenate(targets_of_blocks)
        if isinstance(targets, Tensor):
            targets = targets.to(self.device)
        return to_device(X, self.device), targets


def _select(rows: Any, index: Tensor) -> Any:
    """Return some rows of a tensor, of `SparseRows` or of `SparseTargetRows`, as the same."""
    if isinstance(rows, Tensor):
        return rows.index_select(0, index.to(rows.device))
    return replace(rows, matrix=rows.matrix[index.numpy()])


def _concatenate(parts: Sequence[Any]) -> Any:
    """Return rows from several groups or blocks as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Tensor):
        return torch.cat(list(parts))
    return replace(parts[0], matrix=sparse.vstack([part.matrix for part in parts], "csr"))


def read_ahead(read: Callable[[Key, Event], Value], keys: Sequence[Key]) -> Iterator[Value]:
    """Yield what is read for every key, while a thread reads for the next one.

    An error in the thread is raised here. The thread ends with the iterator; reading may look at
    the event, which is then set, and give up.
    """
    stop = Event()
    with ThreadPoolExecutor(1, "read-ahead") as pool:
        try:
            coming = [pool.submit(read, key, stop) for key in keys[:1]]
            for number in range(len(keys)):
                value = coming.pop().result()  # the one before is forgotten now
                coming += [pool.submit(read, key, stop) for key in keys[number + 1 : number + 2]]
                yield value
        finally:
            stop.set()
