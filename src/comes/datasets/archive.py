"""The npz form of a data set.

Arrays by name: ``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` of a CSR
matrix; ``candidates`` or ``complementary`` (n, q); ``relevant`` (n, q); ``label_names`` (q,).
All but X are optional, but labels of some kind are needed to fit.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from comes.datasets.dataset import Dataset
from comes.errors import ComesError
from comes.files import replacing_file
from comes.labels import as_candidates, as_relevant, from_complementary

CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")


def read_npz(path: Path) -> Dataset:
    """Read a data set from an npz file."""
    arrays = _load(path)
    X = _features(arrays, path)
    if "candidates" in arrays and "complementary" in arrays:
        raise ComesError(f"{path.name} has candidates and complementary labels; keep one of them.")
    candidates = relevant = None
    if "candidates" in arrays:
        candidates = as_candidates(arrays["candidates"])
    elif "complementary" in arrays:
        candidates = from_complementary(arrays["complementary"])
    if "relevant" in arrays:
        relevant = as_relevant(arrays["relevant"])
    known = candidates if candidates is not None else relevant
    if known is None:
        raise ComesError(
            f"{path.name} needs an array 'candidates', 'complementary' or 'relevant'; "
            f"it has {', '.join(arrays)}."
        )
    names = np.asarray(arrays.get("label_names", np.arange(known.shape[1])))
    if names.ndim != 1 or names.dtype.kind not in "Uiu":
        raise ComesError(
            f"label_names in {path.name} must be one row of text; got {names.dtype} of shape "
            f"{names.shape}."
        )
    return Dataset(
        X,
        [str(name) for name in names],
        candidates,
        relevant,
        from_complementary="complementary" in arrays,
    )


def read_npz_features(path: Path) -> Any:
    """Read the features of an npz file and nothing else."""
    return _features(_load(path), path)


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a data set as npz, replacing the file if the whole of it could be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two.npz"
    >>> write_npz(Dataset(np.eye(2), ["a"], relevant=np.array([[True], [False]])), path)
    >>> print(read_npz(path))
    2 rows, 2 features, 1 labels, 0.50 relevant per row, 1 rows without a relevant label
    """
    arrays: dict[str, Any] = {"label_names": np.asarray(dataset.label_names, dtype=np.str_)}
    if sparse.issparse(dataset.X):
        X = sparse.csr_array(dataset.X)
        parts = (X.data, X.indices, X.indptr, np.asarray(X.shape))
        arrays.update(zip(CSR_PARTS, parts, strict=True))
    else:
        arrays["X"] = np.asarray(dataset.X)
    if dataset.candidates is not None:
        arrays["candidates"] = dataset.candidates
    if dataset.relevant is not None:
        arrays["relevant"] = dataset.relevant
    with replacing_file(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ComesError(
            f"{path.name} cannot be read as npz ({error}); arrays of numbers and text are wanted, "
            "as numpy.savez writes them."
        ) from None


def _features(arrays: dict[str, Any], path: Path) -> Any:
    if "X" in arrays:
        return arrays["X"]
    if not all(part in arrays for part in CSR_PARTS):
        raise ComesError(
            f"{path.name} needs an array 'X', or {', '.join(CSR_PARTS)}; it has "
            f"{', '.join(arrays) or 'none'}."
        )
    data, indices, indptr, shape = (arrays[part] for part in CSR_PARTS)
    try:
        X = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise ComesError(f"the sparse matrix in {path.name} is damaged: {error}.") from None
    return X
