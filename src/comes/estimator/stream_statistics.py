"""What a training must know of all rows before its first step, from one pass over blocks of them.

Numbers that are features as they are give exact means and deviations, and answers exact counts. A
table of numbers, words and dates is encoded as a sample of its rows says (`comes.columns`); its
texts are counted in every row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from comes.answers import Answers
from comes.answers.matrix import Kind
from comes.columns import SAMPLE_ROWS, ColumnEncoder, EncoderFold
from comes.datasets import Dataset, Images
from comes.errors import ComesError
from comes.estimator.scaling import Scaling, check_scaling, find_flags, fit_scaling
from comes.estimator.table_inputs import is_table
from comes.priors.pooled import AnswerCounts


@dataclass(frozen=True, eq=False)
class StreamStatistics:
    """What was learned of all rows before training.

    Attributes
    ----------
    n_rows : int
    kind : {"answers", "candidates", "positives"}
    counts : AnswerCounts
    encoder : ColumnEncoder, or None
        What makes a matrix of a table; None where X is one.
    scaling : Scaling

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=50).with_labels_as("positives", "scenes")
    >>> statistics = gather_statistics([scenes])
    >>> statistics.kind, statistics.prepare(scenes.X).dtype
    ('positives', dtype('float32'))
    """

    n_rows: int
    kind: Kind
    counts: AnswerCounts
    encoder: ColumnEncoder | None
    scaling: Scaling

    def prepare(self, X: Any) -> Any:
        """Return features as the network takes them: float32, a matrix or CSR; images as is."""
        if X is None or isinstance(X, Images):
            return X
        return self.scaling(X if self.encoder is None else self.encoder.transform(X))


def gather_statistics(
    blocks: Iterable[Dataset],
    *,
    scale: str | None = "auto",
    encoder: ColumnEncoder | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
) -> StreamStatistics:
    """Learn from all rows, in one pass over blocks of them, what a training must know.

    Parameters
    ----------
    blocks : iterable of Dataset
        With answers; such as a `comes.datasets.ShardedDataset`.
    scale : str or None
        As in `CandidateClassifier`. A table is scaled by the sample of its rows.
    encoder : ColumnEncoder, optional
        With the settings that are wanted for a table.
    sample_rows : int
        How many rows of a table are kept to fit its encoder.
    seed : int
        Of the draw of these rows.

    Returns
    -------
    statistics : StreamStatistics

    Examples
    --------
    >>> blocks = [Dataset(np.eye(2) + k, ["sky"], np.array([[True], [False]])) for k in range(3)]
    >>> statistics = gather_statistics(blocks)
    >>> statistics.n_rows, statistics.counts.no.tolist(), statistics.scaling.shift.tolist()
    (6, [[0], [3]], [1.5, 1.5])
    """
    answers, features = AnswerFold(), None
    for block in blocks:
        answers.add(block.known_answers())
        if features is None:
            features = _start_fold(block.X, scale, encoder, sample_rows, seed)
        if features is not None:
            features.add(block.X)
    if answers.counts is None or answers.kind is None:
        raise ComesError("statistics need rows; got no block. Open shards that hold some.")
    scaling, fitted = Scaling(), None
    if isinstance(features, ScaleFold):
        scaling = features.finish()
    elif features is not None:
        fitted = features.finish()
        scaling = fit_scaling(fitted.transform(features.sample.rows()), scale)
    n_rows = int(answers.counts.n_rows.sum())
    return StreamStatistics(n_rows, answers.kind, answers.counts, fitted, scaling)


def _start_fold(
    X: Any, scale: str | None, encoder: ColumnEncoder | None, sample_rows: int, seed: int
) -> "ScaleFold | EncoderFold | None":
    """Return what learns from features like these; None for images, and where there are none."""
    if X is None or isinstance(X, Images):
        return None
    if isinstance(X, pd.DataFrame) and (encoder is not None or is_table(X)):
        return EncoderFold(encoder, sample_rows, seed)
    return ScaleFold(scale, sparse.issparse(X))


class AnswerFold:
    """Count answers in one pass over blocks of rows: what `AnswerCounts.of` all of them gives."""

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self.counts: AnswerCounts | None = None

    def add(self, answers: Answers) -> None:
        """Count the answers about the next rows."""
        self.kind = self.kind or answers.kind
        if answers.kind != self.kind:
            raise ComesError(
                f"the labels must be of one kind in every block; got {self.kind} and "
                f"{answers.kind}. Read all of them alike."
            )
        counts = AnswerCounts.of(answers)
        if self.counts is None:
            self.counts = counts
            return
        if self.counts.n_rows.sum() % 2:  # the first row of the block has an odd number
            parts = (counts.n_rows, counts.no, counts.yes, counts.maybe)
            counts = AnswerCounts(*(part[::-1] for part in parts))
        self.counts = self.counts + counts


class ScaleFold:
    """Learn a scaling in one pass over blocks of rows: what `fit_scaling` learns of all of them."""

    def __init__(self, how: str | None, is_sparse: bool) -> None:
        check_scaling(how, is_sparse)
        self.how = None if is_sparse and how in ("auto", "dense") else how
        self._moments = StandardScaler()  # merges means and variances of blocks
        self._largest = MaxAbsScaler()
        self._flags: npt.NDArray[np.bool_] | None = None

    def add(self, X: Any) -> None:
        """Learn from some rows."""
        if self.how == "maxabs":
            self._largest.partial_fit(X)
        elif self.how is not None:
            self._moments.partial_fit(X)
            flags = find_flags(X)
            self._flags = flags if self._flags is None else self._flags & flags

    def finish(self) -> Scaling:
        """Return the scaling."""
        if self.how is None:
            return Scaling()
        if self.how == "maxabs":
            return Scaling(scale=self._largest.scale_)
        shift, spread = self._moments.mean_, self._moments.scale_
        if self.how == "centre":
            return Scaling(shift)
        if self.how == "auto" and self._flags is not None:
            return Scaling(np.where(self._flags, 0.0, shift), np.where(self._flags, 1.0, spread))
        return Scaling(shift, spread)
