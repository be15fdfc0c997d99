"""Features: a matrix of finite numbers, dense or sparse."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.columns import needs_encoding
from comes.errors import ComesError


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of features or images, by number; None of None.

    Examples
    --------
    >>> take_rows(pd.DataFrame({"red": [0.1, 0.5]}, index=["a", "b"]), [1])["red"].tolist()
    [0.5]
    """
    if X is None:
        return None
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def compact(X: Any) -> Any:
    """Return a sparse matrix in float32 if that loses nothing, as with counts."""
    with np.errstate(over="ignore"):
        small = X.astype(np.float32)
    return small if (small.data == X.data).all() else X.astype(np.float64)


def is_table(X: Any) -> bool:
    """Return whether X is a table that is more than complete numbers."""
    return isinstance(X, pd.DataFrame) and needs_encoding(X)


def check_features(X: Any) -> None:
    """Raise unless X has a row and a column, and is a matrix of finite numbers or a table."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ComesError(
            f"features must be a matrix with at least one row and one column; got shape {X.shape}."
        )
    if is_table(X):
        return  # a classifier encodes it, and knows what is wrong with a column
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind not in "buif":
        raise ComesError(f"features must be real numbers; got {values.dtype}.")
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    if sparse.issparse(X):
        place = f"in row {int(np.searchsorted(X.indptr, np.argmax(wrong), side='right')) - 1}"
    else:
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        shown = repr(str(X.columns[column])) if isinstance(X, pd.DataFrame) else column
        place = f"at row {row}, column {shown}"
    raise ComesError(
        f"features must be finite; {int(wrong.sum())} entries are empty, NaN or infinite, the "
        f"first {place}. Fill them in (a median, say) or drop those rows."
    )
