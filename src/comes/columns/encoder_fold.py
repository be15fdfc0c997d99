"""A `ColumnEncoder` fitted in one pass over blocks of rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from comes.columns.column_encoder import ColumnEncoder
from comes.columns.column_kinds import describe_columns
from comes.columns.term_counts import TermCounts
from comes.columns.text_columns import TfidfPart
from comes.errors import ComesError

SAMPLE_ROWS = 100_000


class RowSample:
    """At most so many rows of all that were added, drawn by chance, in their order.

    Examples
    --------
    >>> sample = RowSample(2, seed=0)
    >>> for start in (0, 3):
    ...     sample.add(pd.DataFrame({"row": range(start, start + 3)}))
    >>> sample.rows()["row"].tolist()
    [2, 3]
    """

    def __init__(self, most: int = SAMPLE_ROWS, seed: int = 0) -> None:
        self.most = most
        self.n_seen = 0
        self._draws = np.random.default_rng(seed)
        self._keys: npt.NDArray[np.float64] = np.zeros(0)
        self._parts: list[pd.DataFrame] = []
        self._limit = np.inf  # rows with a larger key are not among the smallest

    def add(self, frame: pd.DataFrame) -> None:
        """Let rows take part in the draw: those with the smallest random keys stay."""
        keys = self._draws.random(len(frame))
        self.n_seen += len(frame)
        is_kept = keys < self._limit
        self._parts.append(frame if is_kept.all() else frame[is_kept])
        self._keys = np.concatenate([self._keys, keys[is_kept]])
        if len(self._keys) > 2 * self.most:
            self._draw()

    def rows(self) -> pd.DataFrame:
        """Return the rows that were drawn."""
        if not self._parts:
            raise ComesError("a sample needs rows; got none. Add some first.")
        self._draw()
        return self._parts[0]

    def _draw(self) -> None:
        """Keep the rows with the smallest keys."""
        whole = pd.concat(self._parts, ignore_index=True)
        if len(self._keys) > self.most:
            kept = np.sort(np.argpartition(self._keys, self.most - 1)[: self.most])
            whole, self._keys = whole.iloc[kept].reset_index(drop=True), self._keys[kept]
            self._limit = self._keys.max()
        self._parts = [whole]


class EncoderFold:
    """Fit an encoder in one pass: from a sample of the rows, and texts from all of them.

    What a column is, and its numbers, categories and dates, are learned from a sample of the rows
    (all of them, if there are no more than ``sample_rows``). Terms of columns that are texts in the
    first block are counted in every row.

    Parameters
    ----------
    encoder : ColumnEncoder, optional
        With the settings that are wanted; it is not changed.
    sample_rows : int
    seed : int
        Of the draw of the sample.

    Examples
    --------
    >>> fold = EncoderFold()
    >>> for colours in (["red", "blue", "red"], ["blue", "blue", "red"]):
    ...     fold.add(pd.DataFrame({"colour": colours}))
    >>> fold.finish().get_feature_names_out().tolist()
    ['colour = blue', 'colour = red']
    """

    def __init__(
        self, encoder: ColumnEncoder | None = None, sample_rows: int = SAMPLE_ROWS, seed: int = 0
    ) -> None:
        self.encoder = ColumnEncoder() if encoder is None else clone(encoder)
        self.sample = RowSample(sample_rows, seed)
        self._terms: dict[str, TermCounts] | None = None

    def add(self, frame: pd.DataFrame) -> None:
        """Learn from some rows."""
        if self._terms is None:
            texts = [
                c.name for c in describe_columns(frame, self.encoder.kinds) if c.kind == "text"
            ]
            is_counted = self.encoder.text == TfidfPart.kind
            self._terms = {name: TermCounts() for name in texts} if is_counted else {}
        for name, counts in self._terms.items():
            counts.add(frame[name])
        self.sample.add(frame)

    def finish(self) -> ColumnEncoder:
        """Return the fitted encoder."""
        encoder = self.encoder.fit(self.sample.rows())
        parts: list[Any] = [self._count_terms(part) for part in encoder.parts_]
        n_features = {part.column: len(part.names) for part in parts}
        encoder.parts_ = tuple(parts)
        encoder.columns_ = tuple(
            replace(column, n_features=n_features.get(column.name, 0))
            for column in encoder.columns_
        )
        return encoder

    def _count_terms(self, part: Any) -> Any:
        """Return the part of a text column with the terms of all rows."""
        counts = (self._terms or {}).get(part.column)
        if counts is None or part.kind != TfidfPart.kind:
            return part
        return counts.fit_part(part.column)
