"""The .mat files of partial multi-label learning.

Variables: ``data`` (n, d); ``target``, the truth; ``partial_labels``, ``candidate_labels`` or
``partial_target``, the candidates. Labels are usually (q, n), sometimes (n, q), and 0/1 or -1/+1.
Instead of candidates we write ``no``, ``yes`` and ``maybe``, and ``chosen`` where a model chose the
question, or ``positives``. Anything may be dense or sparse. Files of MATLAB 7.3 are HDF5, with
every matrix transposed.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import compact
from comes.datasets.reading import Reading
from comes.errors import ComesError, listed
from comes.files import replacing_file

# Stored dense, but with fewer non-zeros than this share: kept as CSR.
SPARSE_BELOW = 0.1
FEATURES, TRUTH = "data", "target"
CANDIDATES = ("partial_labels", "candidate_labels", "partial_target")
NAMES = "label_names"
ANSWERS = ("no", "yes", "maybe", "chosen")
POSITIVES = "positives"
WANTED = (FEATURES, TRUTH, *CANDIDATES, *ANSWERS, POSITIVES, NAMES)


def read_pml_mat(path: Path, _: Reading) -> Dataset:
    """Read features, candidates and the truth of a PML .mat file."""
    variables = _load_variables(path)
    found = [name for name in (*CANDIDATES, ANSWERS[0], POSITIVES) if name in variables]
    if FEATURES not in variables or not (found or TRUTH in variables):
        raise ComesError(
            f"{path.name} should have the variables {FEATURES!r}, {TRUTH!r} (the truth) and "
            f"{CANDIDATES[0]!r} (the candidates; or {' or '.join(map(repr, CANDIDATES[1:]))}); "
            f"it has {listed(_list_variables(path)) or 'none'}."
        )
    if len(found) > 1:
        raise ComesError(f"{path.name} has both {found[0]!r} and {found[1]!r}; keep one of them.")
    if found == [ANSWERS[0]]:
        found = [name for name in ANSWERS if name in variables]
    labels = {name: variables[name] for name in (TRUTH, *found) if name in variables}
    data = variables[FEATURES]
    for name, values in {FEATURES: data, **labels}.items():
        if getattr(values, "ndim", 0) != 2 or values.dtype.kind not in "buif":
            raise ComesError(f"{name} in {path.name} should be a matrix of numbers.")
    shape = next(iter(labels.values())).shape
    if data.shape[0] not in shape and data.shape[1] in shape:
        data = data.T  # a few files have one column per row
    if sparse.issparse(data) or np.count_nonzero(data) < SPARSE_BELOW * data.size:
        data = compact(sparse.csr_array(data))
    n = data.shape[0]
    masks = {name: _read_labels(values, n, path) for name, values in labels.items()}
    q = next(iter(masks.values())).shape[1]
    relevant = masks.pop(TRUTH, None)
    return Dataset(
        data, _read_label_names(variables, q), relevant=relevant, answers=_read_answers(masks)
    )


def _read_answers(masks: Mapping[str, BoolMatrix]) -> Answers | None:
    """Return what the variables say about labels, or None if they are the truth alone."""
    if not masks:
        return None
    if POSITIVES in masks:
        return Answers.from_positives(masks[POSITIVES])
    if ANSWERS[0] in masks:
        no, yes, maybe, chosen = (masks.get(name) for name in ANSWERS)
        return Answers(no, yes, maybe, chosen=chosen)
    return Answers.from_candidates(next(iter(masks.values())))


def write_pml_mat(dataset: Dataset, path: Path) -> None:
    """Write a data set with features as a .mat file of this form, labels (q, n) and 0/1."""
    X = dataset.known_features()
    variables: dict[str, Any] = {
        FEATURES: sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X),
        NAMES: np.asarray(dataset.label_names, dtype=object),
    }
    if dataset.relevant is not None:
        variables[TRUTH] = dataset.relevant.T.astype(np.uint8)
    for name, mask in _masks_of(dataset.answers).items():
        variables[name] = mask.T.astype(np.uint8)
    with replacing_file(path) as temporary:
        savemat(temporary, variables, do_compression=True)


def _masks_of(answers: Answers | None) -> dict[str, BoolMatrix]:
    """Return the matrices that hold answers, by the name of their variable."""
    if answers is None:
        return {}
    if answers.kind == "candidates":
        return {CANDIDATES[0]: answers.candidates}
    if answers.kind == "positives":
        return {POSITIVES: answers.confirmed}
    no, yes, maybe, chosen = ANSWERS
    masks = {no: answers.excluded, yes: answers.confirmed, maybe: answers.doubtful}
    return masks if answers.chosen is None else {**masks, chosen: answers.chosen}


def _load_variables(path: Path) -> dict[str, Any]:
    try:
        if _is_hdf5(path):
            return _load_hdf5(path)
        return dict(loadmat(path, variable_names=WANTED))
    except ComesError:
        raise
    except Exception as error:  # a damaged file makes the readers raise almost anything
        raise ComesError(f"{path.name} cannot be read as a .mat file: {error}.") from None


def _load_hdf5(path: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB 7.3 file as MATLAB shows them."""
    import h5py

    variables: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        for name in WANTED:
            if name not in file:
                continue
            stored = file[name]
            if isinstance(stored, h5py.Group):  # sparse, by columns
                columns = stored["jc"][()].astype(np.int64)
                n_rows = int(stored.attrs["MATLAB_sparse"])
                empty = "data" not in stored
                variables[name] = sparse.csc_array(
                    (
                        np.zeros(0) if empty else stored["data"][()],
                        np.zeros(0, dtype=np.int64) if empty else stored["ir"][()].astype(np.int64),
                        columns,
                    ),
                    shape=(n_rows, len(columns) - 1),
                )
            elif name == NAMES:  # a cell array: references to rows of UTF-16 code units
                cells = [file[reference][()].ravel() for reference in stored[()].ravel()]
                variables[name] = [
                    cell.astype("<u2").tobytes().decode("utf-16-le") for cell in cells
                ]
            else:
                variables[name] = stored[()].T
    return variables


def _is_hdf5(path: Path) -> bool:
    """Return whether the file is HDF5: its mark stands at byte 0, 512, 1024 and so on."""
    with path.open("rb") as file:
        for start in itertools.chain([0], (512 << k for k in range(4))):
            file.seek(start)
            if file.read(8) == b"\x89HDF\r\n\x1a\n":
                return True
    return False


def _list_variables(path: Path) -> list[str]:
    if _is_hdf5(path):
        import h5py

        with h5py.File(path, "r") as file:
            return [str(name) for name in file]
    return [str(name) for name, _, _ in whosmat(path)]


def _read_label_names(variables: Mapping[str, Any], q: int) -> list[str]:
    cells = variables.get(NAMES)
    if cells is None:
        return [str(j) for j in range(q)]
    if np.asarray(cells).dtype.kind == "U":  # a matrix of letters, rows padded with blanks
        names = [str(row).rstrip() for row in np.asarray(cells).ravel()]
    else:
        rows = (np.asarray(cell).ravel() for cell in np.asarray(cells, dtype=object).ravel())
        names = [str(row[0]) if len(row) else "" for row in rows]
    if len(names) != q:
        raise ComesError(f"{q} labels need as many {NAMES}; got {len(names)}.")
    return names


def _read_labels(values: Any, n: int, path: Path) -> BoolMatrix:
    """Return labels as (n, q); a square matrix is taken as (q, n), as is usual in the field."""
    dense = np.asarray(values.toarray() if sparse.issparse(values) else values)
    if n not in dense.shape:
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
