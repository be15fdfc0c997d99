"""Where the features of a batch come from, for each kind of rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from comes.training.pixels import PixelRows
from comes.training.rows import SparseRows
from comes.training.streamed_rows import StreamedRows

Rows = Tensor | SparseRows | PixelRows  # the features that a model can be trained on


@dataclass(frozen=True)
class OnDevice:
    """Features that lie on the device: a step selects its own, and so can be recorded."""

    select: Callable[[Tensor], Tensor]  # rows of a batch, on the device -> their features


@dataclass(frozen=True)
class Streamed:
    """Features that are brought to the device, batch after batch."""

    bring: Callable[[Sequence[Tensor]], Iterable[Tensor]]  # rows of each batch, in main memory


def find_source(X: Rows | StreamedRows) -> OnDevice | Streamed | StreamedRows:
    """Return where batches of these rows come from; pictures that are kept are decoded now."""
    if isinstance(X, StreamedRows):
        return X
    if isinstance(X, Tensor):
        return OnDevice(partial(X.index_select, 0))  # faster than X[rows]
    if isinstance(X, SparseRows):
        return Streamed(partial(map, X.__getitem__))
    if X.decode() == "device":
        return OnDevice(X.select_to_train)
    return Streamed(partial(X.batches, training=True))
