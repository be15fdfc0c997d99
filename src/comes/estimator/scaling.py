"""Feature scaling as part of a fitted model: x becomes (x - shift) / scale."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from comes.errors import ComesError, warn_user
from comes.estimator.inputs import check_entries, has_finite_entries

FAR = 1e6  # deviations: no row of training is as far from the others
SCALINGS = ("rows", "columns", "dense", "standard", "centre", "maxabs")
LEAST_LENGTH = 10.0  # of rows of a hundred columns and more, where there are
FEW_ROWS = 1000  # or less; of n times as many rows a root of n less: they take n times the steps


@dataclass(frozen=True, eq=False)
class Scaling:
    """What to subtract from and divide each feature by; None for nothing."""

    shift: npt.NDArray[np.float64] | None = None  # (d,)
    scale: npt.NDArray[np.float64] | None = None  # (d,)

    def __call__(self, X: Any) -> Any:
        """Return X scaled, as float32, all entries finite; sparse stays sparse."""
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(X):
                scaled = X if self.scale is None else X @ sparse.diags_array(1 / self.scale)
                result = sparse.csr_array(scaled, dtype=np.float32)
            else:
                scaled = np.asarray(X) if self.shift is None else np.asarray(X) - self.shift
                scaled = scaled if self.scale is None else scaled / self.scale
                result = scaled.astype(np.float32)
        if has_finite_entries(result, FAR):
            return result
        if not has_finite_entries(result):
            check_entries(X)  # has the better message, if the fault is there
            raise ComesError(
                "X is too large for float32 after scaling: a value is far outside the range that "
                "the model was fitted on. Correct it, or fit with other scaling."
            )
        if self.scale is not None:
            warn_user(
                f"some values of X are more than {FAR:g} deviations outside the range that the "
                "model was fitted on: what it says of those rows is a guess. Look for other units."
            )
        return result


def find_flags(X: Any) -> npt.NDArray[np.bool_]:
    """Return which columns hold nothing but 0 and 1, (d,)."""
    values = np.asarray(X)
    return np.asarray(((values == 0) | (values == 1)).all(axis=0))


def fit_scaling(X: Any, how: str | None, weight: npt.NDArray[np.float64] | None = None) -> Scaling:
    """Learn a scaling from X, whose rows may have weights."""
    fold = ScaleFold(how, sparse.issparse(X))
    if how == "centre":
        if weight is None:
            return Scaling(shift=np.asarray(X).mean(axis=0, dtype=np.float64))
        return Scaling(shift=np.average(np.asarray(X, np.float64), axis=0, weights=weight))
    fold.add(X, weight)
    return fold.finish()


class ScaleFold:
    """Learn a scaling in one pass over blocks of rows.

    ``standard`` subtracts the mean and divides by the standard deviation, ``centre`` subtracts the
    mean alone, ``maxabs`` divides by the largest absolute value, None does nothing; ``dense`` is
    ``standard`` for dense X and nothing for sparse X; ``columns`` is the same, but columns of 0 and
    1 stay as they are: divided by its standard deviation, a rare flag would outweigh everything
    else. ``rows`` is ``columns``, and then multiplies the whole matrix, so that the root mean
    square length of its rows is at least that of standardised columns, or 10 where these are more
    than a hundred, and of n times a thousand rows 10 by the root of n: short rows, such as TF-IDF,
    are learned slowly, and few rows take few steps.
    """

    def __init__(self, how: str | None, is_sparse: bool) -> None:
        if how is not None and how not in SCALINGS:
            names = ", ".join(map(repr, SCALINGS))
            raise ComesError(f"scale must be {names} or None; got {how!r}.")
        if is_sparse and how in ("standard", "centre"):
            raise ComesError(
                f"scale={how!r} subtracts the mean, which would fill a sparse X. "
                "Take scale='maxabs' or None, or pass a dense X."
            )
        self.how = None if is_sparse and how in ("rows", "columns", "dense") else how
        self.lengthens, self._squares, self._n_rows = how == "rows", 0.0, 0  # of sparse rows
        self._moments, self._largest = StandardScaler(), MaxAbsScaler()
        self._flags: Any = True  # which columns hold nothing but 0 and 1

    def add(self, X: Any, weight: npt.NDArray[np.float64] | None = None) -> None:
        """Learn from some rows."""
        if self.how == "maxabs":
            self._largest.partial_fit(X)
        elif self.how is not None:
            self._moments.partial_fit(X, sample_weight=weight)
        if self.how in ("rows", "columns"):
            self._flags &= find_flags(X)
        if self.lengthens:
            self._n_rows += X.shape[0] if weight is None else weight.sum()
            self._n_columns = X.shape[1]
        if self.lengthens and sparse.issparse(X):
            squares = X.multiply(X).sum(axis=1)
            self._squares += float(squares.sum() if weight is None else weight @ squares)

    def finish(self) -> Scaling:
        """Return the scaling."""
        if self.how is None and self._squares:
            share = self._share_of_least(self._squares / self._n_rows)
            return Scaling(scale=np.full(self._n_columns, share))
        if self.how is None:
            return Scaling()
        if self.how == "maxabs":
            return Scaling(scale=self._largest.scale_)
        mean, deviation = self._moments.mean_, self._moments.scale_
        if self.how == "centre":
            return Scaling(mean)
        if self.how in ("rows", "columns"):
            squares = np.where(self._flags, mean, self._moments.var_ / deviation**2)
            deviation = np.where(self._flags, 1.0, deviation)
            if self.lengthens:
                deviation *= self._share_of_least(squares.sum())
            return Scaling(np.where(self._flags, 0.0, mean), deviation)
        return Scaling(mean, deviation)

    def _share_of_least(self, mean_square: float) -> float:
        """Return the root mean square length of rows by the least that is wanted, at most 1."""
        least = LEAST_LENGTH * math.sqrt(min(1.0, FEW_ROWS / self._n_rows))
        return min(1.0, math.sqrt(mean_square) / min(least, math.sqrt(self._n_columns))) or 1.0
