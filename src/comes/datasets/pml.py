"""The .mat files of partial multi-label learning.

Variables: ``data`` (n, d); ``target``, the truth, and ``partial_labels``, the candidates, usually
(q, n) and 0/1 or -1/+1.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat

from comes.datasets.dataset import Dataset
from comes.errors import ComesError
from comes.labels import BoolMatrix

# Stored dense, but with fewer non-zeros than this share: kept as CSR.
SPARSE_BELOW = 0.1


def read_pml_mat(path: Path) -> Dataset:
    """Read features, candidates and the truth of a PML .mat file."""
    names = ("data", "target", "partial_labels")
    try:
        variables = loadmat(path, variable_names=names)
    except Exception as error:  # a damaged file makes scipy raise almost anything
        raise ComesError(f"{path.name} cannot be read as a .mat file: {error}.") from None
    missing = [name for name in names if name not in variables]
    if missing:
        raise ComesError(f"{path.name} has no variable {missing[0]!r}; {', '.join(names)} wanted.")
    data, target, partial = (variables[name] for name in names)
    X: Any = data
    if sparse.issparse(data) or np.count_nonzero(data) < SPARSE_BELOW * data.size:
        X = sparse.csr_array(data, dtype=np.float32)
    n = data.shape[0]
    candidates, relevant = _labels(partial, n, path), _labels(target, n, path)
    return Dataset(X, [str(j) for j in range(candidates.shape[1])], candidates, relevant)


def _labels(values: Any, n: int, path: Path) -> BoolMatrix:
    """Return labels as (n, q); a square matrix is taken as (q, n), the field's habit."""
    dense = np.asarray(values.toarray() if sparse.issparse(values) else values)
    if dense.ndim != 2 or n not in dense.shape:
        raise ComesError(
            f"{path.name} has {n} rows of data, and labels of shape {dense.shape}, which fit "
            "neither as they are nor transposed."
        )
    known = {*np.unique(dense).tolist()}
    if not (known <= {0, 1} or known <= {-1, 1}):
        raise ComesError(
            f"labels in {path.name} must be 0 and 1, or -1 and 1; got {sorted(known, key=str)[:5]}."
        )
    return np.asarray((dense.T if dense.shape[1] == n else dense) == 1)
