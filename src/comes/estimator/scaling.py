"""Feature scaling as part of a fitted model: x becomes (x - shift) / scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from comes.errors import ComesError


@dataclass(frozen=True)
class Scaling:
    """What to subtract from and divide each feature by; None for nothing."""

    shift: npt.NDArray[np.float64] | None = None  # (d,)
    scale: npt.NDArray[np.float64] | None = None  # (d,)

    def __call__(self, X: Any) -> Any:
        """Return X scaled, as float32; sparse stays sparse."""
        if sparse.issparse(X):
            scaled = X if self.scale is None else X @ sparse.diags_array(1 / self.scale)
            with np.errstate(over="ignore"):
                result = sparse.csr_array(scaled, dtype=np.float32)
            _check_finite(result.data)
            return result
        scaled = np.asarray(X)
        if self.shift is not None:
            scaled = scaled - self.shift
        if self.scale is not None:
            scaled = scaled / self.scale
        with np.errstate(over="ignore"):
            result = scaled.astype(np.float32)
        _check_finite(result)
        return result


def _check_finite(scaled: npt.NDArray[np.float32]) -> None:
    if not np.isfinite(scaled).all():
        raise ComesError(
            "X is too large for float32 after scaling: a value is far outside the range that the "
            "model was fitted on. Correct it, or fit with other scaling."
        )


def fit_scaling(X: Any, how: str | None) -> Scaling:
    """Learn a scaling from X.

    ``standard`` subtracts the mean and divides by the standard deviation, ``centre`` subtracts the
    mean alone (dense X), ``maxabs`` divides by the largest absolute value, None does nothing;
    ``auto`` is ``standard`` for dense X and nothing for sparse.
    """
    is_sparse = sparse.issparse(X)
    if how == "auto":
        how = None if is_sparse else "standard"
    if how is None:
        return Scaling()
    if how in ("standard", "centre") and is_sparse:
        raise ComesError(
            f"scale={how!r} subtracts the mean, which would fill a sparse X. "
            "Take scale='maxabs' or None, or pass a dense X."
        )
    if how == "standard":
        scaler = StandardScaler().fit(X)
        return Scaling(scaler.mean_, scaler.scale_)
    if how == "centre":
        return Scaling(shift=np.asarray(X).mean(axis=0, dtype=np.float64))
    if how == "maxabs":
        return Scaling(scale=MaxAbsScaler().fit(X).scale_)
    raise ComesError(f"scale must be 'auto', 'standard', 'centre', 'maxabs' or None; got {how!r}.")
