"""The npz form of a data set, which holds all of it.

Arrays by name: ``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` of a CSR
matrix; ``feature_names`` (d,); ``candidates`` or ``complementary`` (n, q); ``relevant`` (n, q);
``asked`` (n, q); ``label_names`` (q,); ``items`` (n,). Labels of some kind are needed, the rest is
optional.
"""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import as_candidates, as_indicators, as_relevant, from_complementary
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.reading import Reading
from comes.errors import ComesError
from comes.files import replacing_file

CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")


def read_npz(path: Path, _: Reading) -> Dataset:
    """Read a data set from an npz file; the names of its arrays say what they are."""
    arrays = _load_arrays(path)
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
            f"it has {', '.join(arrays) or 'none'}."
        )
    has_features = "X" in arrays or any(part in arrays for part in CSR_PARTS)
    return Dataset(
        _make_features(arrays, path) if has_features else None,
        _read_names(arrays, "label_names", path) or [str(j) for j in range(known.shape[1])],
        candidates,
        relevant,
        as_indicators(arrays["asked"], "asked") if "asked" in arrays else None,
        _read_names(arrays, "items", path),
        from_complementary="complementary" in arrays,
    )


def read_npz_features(path: Path, _: Reading) -> tuple[Any, list[str] | None]:
    """Read the features of an npz file and the names of its items, and nothing else."""
    arrays = _load_arrays(path)
    return _make_features(arrays, path), _read_names(arrays, "items", path)


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a data set as npz, replacing the file if the whole of it could be written.

    Of images, their names are written, as items.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two.npz"
    >>> write_npz(Dataset(np.eye(2), ["a"], relevant=np.array([[True], [False]])), path)
    >>> print(read_npz(path, Reading()))
    2 rows, 2 features, 1 labels, 0.50 relevant per row, 1 rows without a relevant label
    """
    columns = dataset.X.columns if isinstance(dataset.X, pd.DataFrame) else ()
    texts = [*dataset.label_names, *(dataset.items or ()), *map(str, columns)]
    if any(text.endswith("\0") for text in texts):
        raise ComesError(
            "a name ends in a null character, which an npz file would lose. Rename it."
        )
    arrays = _feature_arrays(dataset.X) | _label_arrays(dataset)
    with replacing_file(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def _feature_arrays(X: Any) -> dict[str, Any]:
    """Return the arrays that hold features; none of images."""
    if X is None or isinstance(X, Images):
        return {}
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        parts = (X.data, X.indices, X.indptr, np.asarray(X.shape))
        return dict(zip(CSR_PARTS, parts, strict=True))
    arrays = {"X": np.asarray(X)}
    if isinstance(X, pd.DataFrame):
        arrays["feature_names"] = np.asarray(X.columns, dtype=np.str_)
    return arrays


def _label_arrays(dataset: Dataset) -> dict[str, Any]:
    """Return the arrays that hold labels, their names and those of the items."""
    arrays: dict[str, Any] = {"label_names": np.asarray(dataset.label_names, dtype=np.str_)}
    if dataset.candidates is not None and dataset.from_complementary:
        arrays["complementary"] = ~dataset.candidates
    elif dataset.candidates is not None:
        arrays["candidates"] = dataset.candidates
    if dataset.relevant is not None:
        arrays["relevant"] = dataset.relevant
    if dataset.asked is not None:
        arrays["asked"] = dataset.asked
    if dataset.items is not None:
        arrays["items"] = np.asarray(dataset.items, dtype=np.str_)
    return arrays


def _load_arrays(path: Path) -> dict[str, Any]:
    wanted = "arrays of numbers and text are wanted, as numpy.savez writes them"
    try:
        if not zipfile.is_zipfile(path):
            raise ComesError(f"{path.name} is not an npz file, which is a zip archive; {wanted}.")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
    except ComesError:
        raise
    except Exception as error:  # a damaged file makes numpy raise almost anything
        reason = str(error) if "allow_pickle" not in str(error) else "it has pickled objects"
        raise ComesError(f"{path.name} cannot be read as npz ({reason}); {wanted}.") from None
    foreign = [name for name, values in arrays.items() if not isinstance(values, np.ndarray)]
    if foreign:
        raise ComesError(f"{foreign[0]!r} in {path.name} is not an array; {wanted}.")
    return arrays


def _make_features(arrays: Mapping[str, Any], path: Path) -> Any:
    if "X" in arrays:
        names = _read_names(arrays, "feature_names", path)
        if names is None or arrays["X"].ndim != 2:
            return arrays["X"]
        if len(names) != arrays["X"].shape[-1]:
            raise ComesError(
                f"{path.name} has {arrays['X'].shape[-1]} features and {len(names)} feature_names."
            )
        return pd.DataFrame(arrays["X"], columns=names)
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


def _read_names(arrays: Mapping[str, Any], name: str, path: Path) -> list[str] | None:
    """Return a row of names, or None where there is none."""
    if name not in arrays:
        return None
    names = np.asarray(arrays[name])
    if names.ndim != 1 or names.dtype.kind not in "Uiu":
        raise ComesError(
            f"{name} in {path.name} must be one row of text; got {names.dtype} of shape "
            f"{names.shape}."
        )
    return [str(text) for text in names]
