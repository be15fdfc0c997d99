"""Features on a device, of which a batch is an index."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from comes.errors import ComesError, first_line
from comes.models import as_csr_tensor

# On a GPU a product with zeros costs less than taking rows of a sparse matrix: up to so many
# numbers (2 GiB) sparse features are kept dense there.
DENSE_ON_GPU = 2**29


@dataclass(frozen=True)
class SparseRows:
    """A scipy CSR matrix, of which batches of rows become torch CSR tensors on a device."""

    matrix: sparse.csr_array  # float32, (n, d)
    device: torch.device

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Tensor) -> Tensor:
        return as_csr_tensor(self.matrix[rows.numpy()]).to(self.device)


def choose_device(device: str) -> torch.device:
    """Return the named device; ``auto`` is the GPU if torch sees one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ComesError(
            f"device {device!r} cannot be used here ({first_line(error)}). Take 'auto', 'cpu' or "
            "one that torch sees."
        ) from None
    return chosen


def to_device(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Return a numpy or scipy matrix as float32 rows on the device."""
    if not sparse.issparse(X):
        return torch.as_tensor(np.require(X, np.float32, ["C", "W"]), device=device)
    X = sparse.csr_array(X, dtype=np.float32)
    with warnings.catch_warnings():  # The first CSR tensor warns, once, that they are in beta.
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1), check_invariants=False)
    if becomes_dense(X, device):
        return as_csr_tensor(X).to(device).to_dense()
    return SparseRows(X, device)


def becomes_dense(X: Any, device: torch.device) -> bool:
    """Return whether `to_device` gives a dense tensor of a matrix."""
    small = X.shape[0] * X.shape[1] <= DENSE_ON_GPU
    return not sparse.issparse(X) or (device.type == "cuda" and small)
