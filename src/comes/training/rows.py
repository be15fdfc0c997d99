"""Features of rows on a device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from comes.errors import ComesError, first_line
from comes.models.tabular import as_csr_tensor

# On a GPU a product with zeros costs less than selecting rows of a sparse matrix, so sparse
# features of up to this many numbers (2 GiB) are made dense there.
DENSE_ON_GPU = 2**29


@dataclass(frozen=True)
class SparseRows:
    """A scipy CSR matrix whose batches of rows are torch CSR tensors on a device.

    Parameters
    ----------
    matrix : float32 CSR array of shape (n_samples, n_features)
    device : torch device

    Examples
    --------
    >>> rows = to_device(sparse.csr_array(np.eye(3)), torch.device("cpu"))
    >>> rows[torch.tensor([2, 0])].to_dense()
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """

    matrix: sparse.csr_array
    device: torch.device

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Tensor) -> Tensor:
        return as_csr_tensor(self.matrix[rows.numpy()]).to(self.device)


def choose_device(device: str) -> torch.device:
    """Return the named device; ``auto`` is the GPU if torch sees one, else the CPU.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
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


def to_device(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Return a matrix as float32 rows on the device.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    device : torch device

    Returns
    -------
    rows : float32 tensor of shape (n_samples, n_features), or SparseRows

    Examples
    --------
    >>> to_device(np.eye(2), torch.device("cpu"))
    tensor([[1., 0.],
            [0., 1.]])
    >>> to_device(sparse.csr_array(np.eye(2)), torch.device("cpu"))[torch.tensor([0])].shape
    torch.Size([1, 2])
    """
    if not sparse.issparse(X):
        return torch.as_tensor(np.require(X, np.float32, ["C", "W"]), device=device)
    X = sparse.csr_array(X, dtype=np.float32)
    if becomes_dense(X, device):
        return as_csr_tensor(X).to(device).to_dense()
    return SparseRows(X, device)


def becomes_dense(X: Any, device: torch.device) -> bool:
    """Return whether `to_device` makes a dense tensor of a matrix.

    Examples
    --------
    >>> cpu = torch.device("cpu")
    >>> becomes_dense(np.eye(2), cpu), becomes_dense(sparse.eye(2), cpu)
    (True, False)
    """
    is_small = X.shape[0] * X.shape[1] <= DENSE_ON_GPU
    return not sparse.issparse(X) or (device.type == "cuda" and is_small)
