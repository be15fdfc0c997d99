"""Feature scaling as part of a fitted model: x becomes (x - shift) / scale."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from comes.errors import ComesError, ComesWarning
from comes.estimator.inputs import check_entries, has_finite_entries

FAR = 1e6  # deviations: no row of training is as far from the others
SCALINGS = ("auto", "dense", "standard", "centre", "maxabs")


@dataclass(frozen=True, eq=False)
class Scaling:
    """What to subtract from and divide each feature by; None for nothing."""

    shift: npt.NDArray[np.float64] | None = None  # (d,)
    scale: npt.NDArray[np.float64] | None = None  # (d,)

    def __call__(self, X: Any) -> Any:
        """Return X scaled, as float32, all entries finite; sparse stays sparse."""
        with np.errstate(over="ignore", invalid="ignore"):
            result = self._scale_sparse(X) if sparse.issparse(X) else self._scale_dense(X)
        if has_finite_entries(result, FAR):
            return result
        if not has_finite_entries(result):
            check_entries(X)  # has the better message, if the fault is there
            raise ComesError(
                "X is too large for float32 after scaling: a value is far outside the range that "
                "the model was fitted on. Correct it, or fit with other scaling."
            )
        if self.scale is not None:
            warnings.warn(
                f"some values of X are more than {FAR:g} deviations outside the range that the "
                "model was fitted on: what it says of those rows is a guess. Look for other units.",
                ComesWarning,
                stacklevel=2,
            )
        return result

    def _scale_sparse(self, X: Any) -> Any:
        scaled = X if self.scale is None else X @ sparse.diags_array(1 / self.scale)
        return sparse.csr_array(scaled, dtype=np.float32)

    def _scale_dense(self, X: Any) -> npt.NDArray[np.float32]:
        scaled = np.asarray(X)
        if self.shift is not None:
            scaled = scaled - self.shift
        if self.scale is not None:
            scaled = scaled / self.scale
        return scaled.astype(np.float32)


def is_scaled_for_priors(X: Any, how: str | None) -> bool:
    """Return whether X so scaled is, bit for bit, what the estimators of priors would train on."""
    if sparse.issparse(X) or X.dtype != np.float64:
        return False
    return how in ("dense", "standard") or (how == "auto" and not find_flags(X).any())


def fit_scaling(X: Any, how: str | None, weight: npt.NDArray[np.float64] | None = None) -> Scaling:
    """Learn a scaling from X, whose rows may have weights.

    ``standard`` subtracts the mean and divides by the standard deviation, ``centre`` subtracts the
    mean alone (dense X), ``maxabs`` divides by the largest absolute value, None does nothing;
    ``dense`` is ``standard`` for dense X and nothing for sparse X; ``auto`` is the same, but
    columns of 0 and 1 stay as they are: divided by its standard deviation, a rare flag would
    outweigh everything else.
    """
    is_sparse = sparse.issparse(X)
    check_scaling(how, is_sparse)
    if how is None or (is_sparse and how in ("auto", "dense")):
        return Scaling()
    if how in ("auto", "dense", "standard"):
        scaler = StandardScaler().fit(X, sample_weight=weight)
        flags = find_flags(X) if how == "auto" else None
        return _standard(scaler.mean_, scaler.scale_, flags)
    if how == "centre":
        if weight is not None:
            return Scaling(shift=np.average(np.asarray(X, np.float64), axis=0, weights=weight))
        return Scaling(shift=np.asarray(X).mean(axis=0, dtype=np.float64))
    return Scaling(scale=MaxAbsScaler().fit(X).scale_)


def check_scaling(how: str | None, is_sparse: bool) -> None:
    """Raise unless X, which may be sparse, can be scaled so."""
    if how is not None and how not in SCALINGS:
        names = ", ".join(map(repr, SCALINGS))
        raise ComesError(f"scale must be {names} or None; got {how!r}.")
    if is_sparse and how in ("standard", "centre"):
        raise ComesError(
            f"scale={how!r} subtracts the mean, which would fill a sparse X. "
            "Take scale='maxabs' or None, or pass a dense X."
        )


def find_flags(X: Any) -> npt.NDArray[np.bool_]:
    """Return which columns hold nothing but 0 and 1, (d,)."""
    values = np.asarray(X)
    found: npt.NDArray[np.bool_] = ((values == 0) | (values == 1)).all(axis=0)
    return found


def _standard(mean: Any, deviation: Any, flags: Any) -> Scaling:
    """Return the scaling by mean and standard deviation, with columns of 0 and 1 as they are."""
    if flags is None:
        return Scaling(mean, deviation)
    return Scaling(np.where(flags, 0.0, mean), np.where(flags, 1.0, deviation))


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
        if self.how == "centre":
            return Scaling(self._moments.mean_)
        flags = self._flags if self.how == "auto" else None
        return _standard(self._moments.mean_, self._moments.scale_, flags)
