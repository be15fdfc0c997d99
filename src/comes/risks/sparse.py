"""Targets of a batch by index: for risks over very many labels.

A batch of 256 rows with ten answers each has 2560 pairs with an answer, and with 100000 labels
25 million without. A risk on `SparseTargets` equals the risk on `SparseTargets.as_matrix`: it takes
one pass over all scores as if no pair had an answer, and corrects the pairs that have one.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError
from comes.risks.checks import as_tensor, check_scores


@dataclass(frozen=True, eq=False)
class SparseTargets:
    """The pairs of a batch with an answer, in the order of their labels.

    Parameters
    ----------
    rows, labels : int64 tensors of shape (n_answers,)
        Indices of the pairs; labels ascend.
    states : int8 tensor of shape (n_answers,)
        The answers: a `comes.answers.State` each.
    default : State
        The state of a pair that is not listed.
    shape : (int, int)
        Numbers of rows and labels of the batch.

    Examples
    --------
    >>> import torch
    >>> from comes.answers import State
    >>> rows, labels = torch.tensor([1, 0]), torch.tensor([0, 2])
    >>> states = torch.tensor([State.NO, State.YES], dtype=torch.int8)
    >>> targets = SparseTargets(rows, labels, states, State.MAYBE, (2, 3))
    >>> targets.as_matrix()
    tensor([[3, 3, 2],
            [1, 3, 3]], dtype=torch.int8)
    >>> targets.select_labels(1, 3).as_matrix()
    tensor([[3, 2],
            [3, 3]], dtype=torch.int8)
    """

    rows: Tensor
    labels: Tensor
    states: Tensor
    default: State
    shape: tuple[int, int]

    def select_labels(self, start: int, stop: int) -> "SparseTargets":
        """Return the pairs of the labels from start to stop, which are numbered from 0."""
        ends = torch.tensor([start, stop], device=self.labels.device)
        first, last = torch.searchsorted(self.labels, ends).tolist()
        return replace(
            self,
            rows=self.rows[first:last],
            labels=self.labels[first:last] - start,
            states=self.states[first:last],
            shape=(self.shape[0], stop - start),
        )

    def of_asked_labels(self) -> tuple[Tensor, "SparseTargets"]:
        """Return the labels that have an answer, and the pairs with these alone, numbered anew."""
        asked, numbers = torch.unique(self.labels, return_inverse=True)
        return asked, replace(self, labels=numbers, shape=(self.shape[0], len(asked)))

    def to(self, device: torch.device) -> "SparseTargets":
        """Return the same on a device."""
        return replace(
            self,
            rows=self.rows.to(device),
            labels=self.labels.to(device),
            states=self.states.to(device),
        )

    def as_matrix(self) -> Tensor:
        """Return the states of all pairs, int8 (n, q)."""
        matrix = self.states.new_full(self.shape, int(self.default))
        matrix[self.rows, self.labels] = self.states
        return matrix

    def select(self, scores: Tensor) -> Tensor:
        """Return the scores of the pairs, (n_answers,)."""
        return scores[self.rows, self.labels]

    def sum_by_label(self, values: Tensor) -> Tensor:
        """Return the sums over the pairs of each label, (q,)."""
        return values.new_zeros(self.shape[1]).index_add(0, self.labels, values)


def check_sparse(scores: Any, targets: SparseTargets, sample_weight: Any) -> Tensor:
    """Return scores of the shape of the targets in float32 or float64, or raise an error."""
    scores = as_tensor(scores, "scores")
    if tuple(scores.shape) != targets.shape:
        raise ComesError(
            f"scores and answers must have one shape (n, q); got {tuple(scores.shape)} and "
            f"{targets.shape}."
        )
    if sample_weight is not None:
        raise ComesError(
            "sample_weight is for answers that are a matrix; got SparseTargets. Repeat rows."
        )
    return check_scores(scores)
