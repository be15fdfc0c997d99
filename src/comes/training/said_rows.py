"""What was said about rows, for very many labels: kept sparse, and taken batch by batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from comes.answers import State
from comes.risks import SparseTargets


@dataclass(frozen=True, eq=False)
class SparseTargetRows:
    """A CSR matrix of states whose batches are `comes.risks.SparseTargets` on a device.

    Takes the place of the matrix of candidates in `comes.training.train`.

    Parameters
    ----------
    states : int8 CSR matrix of shape (n_samples, n_labels)
        See `comes.Answers.states`.
    silence : State
        What a pair without an answer counts as.
    device : torch device

    Examples
    --------
    >>> from scipy import sparse
    >>> states = sparse.csr_array(np.array([[0, 1], [2, 0]], dtype=np.int8))
    >>> said = SparseTargetRows(states, State.MAYBE, torch.device("cpu"))
    >>> said.index_select(0, torch.tensor([1])).as_matrix()
    tensor([[2, 3]], dtype=torch.int8)
    """

    states: Any
    silence: State
    device: torch.device

    def __len__(self) -> int:
        return int(self.states.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        n, q = self.states.shape
        return int(n), int(q)

    def index_select(self, dim: int, rows: Tensor) -> SparseTargets:
        """Return what was said about some rows."""
        own = self.states[rows.cpu().numpy()]
        order = np.argsort(own.indices, kind="stable")
        of_each = np.repeat(np.arange(len(rows)), np.diff(own.indptr))
        said = SparseTargets(
            torch.from_numpy(of_each[order]),
            torch.from_numpy(own.indices[order].astype(np.int64)),
            torch.from_numpy(own.data[order]),
            self.silence,
            (len(rows), self.shape[1]),
        )
        return said.to(self.device)
