"""Rows of features and targets: on a device, sparse, or in blocks on disk; and their order."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError, first_line
from comes.models.tabular import as_csr_tensor
from comes.risks import SparseTargets

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
        return as_csr_tensor(self.matrix[rows.numpy()]).to(self.device)


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


@dataclass(frozen=True, eq=False)
class SparseTargetRows:
    """Sparse targets for very many labels: a CSR matrix of states, taken batch by batch.

    Takes the place of the matrix of candidates in `comes.training.train`, with `LabelChunks`.

    Parameters
    ----------
    states : int8 CSR matrix of shape (n_samples, n_labels)
        See `comes.Answers.states`.
    default : State
        What a pair without an answer counts as.
    device : torch device

    Examples
    --------
    >>> states = sparse.csr_array(np.array([[0, 1], [2, 0]], dtype=np.int8))
    >>> targets = SparseTargetRows(states, State.MAYBE, torch.device("cpu"))
    >>> targets.index_select(0, torch.tensor([1])).as_matrix()
    tensor([[2, 3]], dtype=torch.int8)
    """

    states: Any
    default: State
    device: torch.device

    def __len__(self) -> int:
        return int(self.states.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        n, q = self.states.shape
        return int(n), int(q)

    def index_select(self, dim: int, rows: Tensor) -> SparseTargets:
        """Return the targets of some rows, sorted by label; ``dim`` is 0."""
        states = self.states[rows.cpu().numpy()]
        by_label = np.argsort(states.indices, kind="stable")
        row_of_each = np.repeat(np.arange(len(rows)), np.diff(states.indptr))
        targets = SparseTargets(
            torch.from_numpy(row_of_each[by_label]),
            torch.from_numpy(states.indices[by_label].astype(np.int64)),
            torch.from_numpy(states.data[by_label]),
            self.default,
            (len(rows), self.shape[1]),
        )
        return targets.to(self.device)


Groups = tuple[tuple[int, ...], ...]  # numbers of blocks; rows are mixed within a group


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
    >>> rows, groups = order.draw(torch.Generator().manual_seed(0))
    >>> rows
    tensor([5, 4, 1, 0, 3, 2])
    >>> groups
    ((2, 0), (1,))
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

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Groups]:
        """Return all row numbers in a new order, and the groups of blocks that it goes through."""
        groups: list[list[int]] = []
        room = 0
        for block in torch.randperm(len(self.sizes), generator=generator).tolist():
            if self.sizes[block] > room:
                groups.append([])
                room = self.buffer
            groups[-1].append(block)
            room -= self.sizes[block]
        starts, parts = self.starts, []
        for blocks in groups:
            rows = torch.cat([torch.arange(self.sizes[b]) + starts[b] for b in blocks])
            parts.append(rows[torch.randperm(len(rows), generator=generator)])
        return torch.cat(parts), tuple(map(tuple, groups))


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Features and targets in blocks that are read when they are needed.

    Training holds the group of blocks that it is at, and the next, which a thread reads meanwhile.

    Parameters
    ----------
    sizes : tuple of int
        Rows of every block.
    read : callable block -> (X, targets)
        The float32 array or scipy CSR matrix of a block, and a tensor of the targets of its rows.
        Called in another thread.
    device : torch device
    join : callable (targets of some blocks) -> targets of all their rows, optional
        Where the targets of a block are no tensor: what it returns has ``index_select(0, rows)``,
        as a tensor has, and is on the device.

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

    def read_features(self) -> Iterator[Tensor | SparseRows]:
        """Yield the features of every block, in order."""
        for X in read_ahead(lambda block, _: self._read_block(block)[0], range(len(self.sizes))):
            yield to_device(X, self.device)

    def batches(
        self,
        batches: Sequence[Tensor],  # row numbers: what is left of an order that a BlockOrder drew
        groups: Groups,  # of that order; those before the first batch are not read
        share: Callable[[Tensor], Tensor] = lambda rows: rows,  # rows whose features are wanted
    ) -> Iterator[tuple[Tensor, Any]]:
        """Yield the features and the targets of each batch."""
        block_ends = torch.tensor(list(accumulate(self.sizes)))
        shift = torch.zeros_like(block_ends)  # from a row number to the place in its group
        for blocks in groups:
            ends = list(accumulate(self.sizes[block] for block in blocks))
            shift[list(blocks)] = torch.tensor(ends) - block_ends[list(blocks)]
        group_ends = list(accumulate(sum(self.sizes[b] for b in blocks) for blocks in groups))
        position = len(self) - sum(map(len, batches))  # in the order
        first = bisect_right(group_ends, position)
        reading = read_ahead(self._read_group, groups[first:])
        coming_ends, end = iter(group_ends[first:]), position  # no group is in memory
        X: Any = None
        targets: Any = None
        for batch in batches:
            places = batch + shift[torch.bucketize(batch.contiguous(), block_ends, right=True)]
            mine = share(torch.arange(len(batch)))
            x: list[Any] = []  # of each group that the batch has rows in
            held: list[Any] = []
            start = n_held = 0
            while start < len(batch):
                if position == end:
                    X = targets = None  # so that only this group and the next are in memory
                    (X, targets), end = next(reading), next(coming_ends)
                stop = min(len(batch), start + end - position)
                wanted = places[mine[(mine >= start) & (mine < stop)]]
                if isinstance(X, SparseRows):
                    x.append(X.matrix[wanted.numpy()])
                else:
                    x.append(X.index_select(0, wanted.to(X.device)))
                if self.join is None:
                    held.append(targets.index_select(0, places[start:stop].to(self.device)))
                else:  # can only be joined before rows are selected
                    held.append(targets)
                    places[start:stop] += n_held
                    n_held += len(X)
                position, start = position + stop - start, stop
            if self.join is None:
                selected = held[0] if len(held) == 1 else torch.cat(held)
            else:
                joined = held[0] if len(held) == 1 else self.join(held)
                selected = joined.index_select(0, places.to(self.device))
            if isinstance(x[0], Tensor):
                features = x[0] if len(x) == 1 else torch.cat(x)
            else:
                matrix = x[0] if len(x) == 1 else sparse.vstack(x, "csr")
                features = as_csr_tensor(matrix).to(self.device)
            yield features, selected

    def _read_group(self, blocks: Sequence[int], stop: Event) -> tuple[Any, Any]:
        """Return the features and targets of some blocks; None if nobody waits for them."""
        features, targets = [], []
        for block in blocks:
            if stop.is_set():
                return None, None
            X, targets_of_block = self._read_block(block)
            features.append(X)
            targets.append(targets_of_block)
        is_sparse = sparse.issparse(features[0])
        X = sparse.vstack(features, "csr") if is_sparse else np.concatenate(features)
        joined = torch.cat(targets).to(self.device) if self.join is None else self.join(targets)
        return to_device(X, self.device), joined

    def _read_block(self, block: int) -> tuple[Any, Any]:
        """Return one block, if it has the rows that it should have."""
        X, targets = self.read(block)
        if X.shape[0] != self.sizes[block]:
            raise ComesError(
                f"block {block} should have {self.sizes[block]} rows; got {X.shape[0]}. Count the "
                "rows of the blocks again."
            )
        return X, targets


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
