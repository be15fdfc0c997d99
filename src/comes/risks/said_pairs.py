"""What was said about the pairs of a batch, by index: for risks over very many labels.

A batch of 256 rows with ten answers each has 2560 pairs with an answer, and with 100000 labels
25 million without. A risk on `SparseTargets` is the risk on `SparseTargets.as_matrix`: silence
is one pass over the scores, and what was said corrects it at its places.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from comes.answers import State
from comes.errors import ComesError


@dataclass(frozen=True, eq=False)
class SparseTargets:
    """The pairs of a batch with an answer, in the order of their labels.

    Parameters
    ----------
    rows, labels : int64 tensors of shape (n_said,)
        Places of the pairs; labels ascend.
    states : int8 tensor of shape (n_said,)
        What was said: a `comes.answers.State`.
    silence : State
        What a pair that is not listed counts as.
    shape : (int, int)
        Numbers of rows and labels of the batch.

    Examples
    --------
    >>> places = torch.tensor([1, 0]), torch.tensor([0, 2])
    >>> said = SparseTargets(*places, torch.tensor([1, 2], dtype=torch.int8), State.MAYBE, (2, 3))
    >>> said.as_matrix()
    tensor([[3, 3, 2],
            [1, 3, 3]], dtype=torch.int8)
    >>> said.select_labels(1, 3).as_matrix()
    tensor([[3, 2],
            [3, 3]], dtype=torch.int8)
    """

    rows: Tensor
    labels: Tensor
    states: Tensor
    silence: State
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
        asked, places = torch.unique(self.labels, return_inverse=True)
        return asked, replace(self, labels=places, shape=(self.shape[0], len(asked)))

    def to(self, device: torch.device) -> "SparseTargets":
        """Return the same on a device."""
        moved = (values.to(device) for values in (self.rows, self.labels, self.states))
        rows, labels, states = moved
        return replace(self, rows=rows, labels=labels, states=states)

    def as_matrix(self) -> Tensor:
        """Return the states of all pairs, int8 (n, q)."""
        matrix = self.states.new_full(self.shape, int(self.silence))
        matrix[self.rows, self.labels] = self.states
        return matrix

    def select(self, scores: Tensor) -> Tensor:
        """Return the scores of the pairs, (n_said,)."""
        return scores[self.rows, self.labels]

    def sum_by_label(self, values: Tensor) -> Tensor:
        """Return the sums over the pairs of each label, (q,)."""
        return values.new_zeros(self.shape[1]).index_add(0, self.labels, values)


def check_said(scores: Tensor, said: SparseTargets, sample_weight: Tensor | None) -> None:
    """Raise an error unless scores have the shape of what was said, and rows no weights."""
    if tuple(scores.shape) != said.shape:
        raise ComesError(
            f"scores and answers must have one shape (n, q); got {tuple(scores.shape)} and "
            f"{said.shape}."
        )
    if sample_weight is not None:
        raise ComesError(
            "sample_weight is for answers that are a matrix; got SparseTargets. Repeat rows."
        )


def sum_losses(
    scores: Tensor, said: SparseTargets, lose: Callable[[Tensor, State], Tensor | None]
) -> Tensor:
    """Return the sums over rows of the losses of every pair, by label, (q,).

    ``lose(scores, state)`` is the loss of pairs in a state, elementwise; None for a state that
    costs nothing.
    """
    own = said.select(scores)
    losses = torch.zeros_like(own)
    for state in (State.NO, State.YES, State.MAYBE):
        of_state = lose(own, state)
        if of_state is not None:
            losses = torch.where(said.states == state, of_state, losses)
    of_silence = lose(scores, said.silence)
    if of_silence is None:
        return said.sum_by_label(losses)
    as_if_silent = lose(own, said.silence)
    assert as_if_silent is not None
    return of_silence.sum(dim=0) + said.sum_by_label(losses - as_if_silent)
