"""The best labels of every row, where a matrix of all scores would not fit into memory."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class TopPredictions:
    """The k labels of highest score of every row, the best first.

    Attributes
    ----------
    labels : int array of shape (n_samples, k)
        Numbers of labels, from 0: places in ``label_names_`` of the classifier.
    scores : float32 array of shape (n_samples, k)
        As in ``decision_function``; they do not rise along a row.
    probabilities : float array of shape (n_samples, k)
        As in ``predict_proba``. Where labels have levels of their own (``score_offset_``,
        `calibrate`), these may rise along a row: labels are ordered by their scores.
    n_labels : int
        Of all labels.

    Examples
    --------
    >>> labels, scores = np.array([[2, 0]]), np.array([[1.5, -1.0]], np.float32)
    >>> top = TopPredictions(labels, scores, np.array([[0.8, 0.3]]), n_labels=3)
    >>> top.to_csr().toarray()
    array([[0.3, 0. , 0.8]])
    """

    labels: npt.NDArray[np.int64]
    scores: FloatArray
    probabilities: FloatArray
    n_labels: int

    def __len__(self) -> int:
        return len(self.labels)

    def to_csr(self) -> sparse.csr_array:
        """Return the probabilities as a sparse matrix of shape (n_samples, n_labels)."""
        n, k = self.labels.shape
        starts = np.arange(0, n * k + 1, k)
        parts = self.probabilities.ravel(), self.labels.ravel(), starts
        found = sparse.csr_array(parts, shape=(n, self.n_labels), copy=True)
        found.sort_indices()
        return found

    @classmethod
    def join(cls, parts: Iterable["TopPredictions"]) -> "TopPredictions":
        """Return the rows of all parts, one after the other."""
        found = list(parts)
        return cls(
            np.concatenate([part.labels for part in found]),
            np.concatenate([part.scores for part in found]),
            np.concatenate([part.probabilities for part in found]),
            found[0].n_labels,
        )


def find_top(scores: Tensor, k: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the labels of the k highest scores of each row, ties by column, and these scores."""
    values, labels = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    tied = values[:, k - 1] == values[:, -1]  # so that topk took any of several labels
    labels = labels[:, :k]
    if k < scores.shape[1] and tied.any():
        # Those above the border and, of those at it, the first columns.
        border = values[tied, k - 1, None]
        above, at_border = scores[tied] > border, scores[tied] == border
        places_left = k - above.sum(dim=1, keepdim=True)
        first = at_border.cumsum(dim=1, dtype=torch.int32) <= places_left
        labels[tied] = (above | (at_border & first)).nonzero()[:, 1].view(-1, k)
    labels = labels.sort(dim=1).values
    values = scores.gather(1, labels)
    order = values.argsort(dim=1, descending=True, stable=True)
    return labels.gather(1, order).cpu().numpy(), values.gather(1, order).cpu().numpy()
