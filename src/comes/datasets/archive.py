"""The npz form of a data set, which holds all of it.

Arrays by name: ``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` of a CSR
matrix; ``feature_names`` (d,); ``label_names`` (q,); ``items`` (n,). Of labels, (n, q): the truth,
``relevant``, and one of ``candidates``, ``complementary``, ``positives``, or answers: ``no``,
``yes`` and ``maybe``, ``chosen`` where a model chose the question, and who said what, one element
per answer: ``said_row``, ``said_label``, ``said_person``, ``said_code`` (a `State`), and the names
``said_people``. Beside candidates, ``asked`` says where somebody answered. Labels of some kind are
needed, the rest is optional.

Since format 2, which an array ``format`` says, labels may be sparse: ``states`` is a CSR matrix of
`State` numbers beside ``kind``, what a pair without an answer means, and ``relevant`` one of ones.
Either is stored in four parts, as X is. A file without sparse labels says no format.
"""

import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers, State, from_complementary
from comes.answers.convert import BoolMatrix, as_candidates, as_indicators, as_relevant
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.reading import Reading
from comes.errors import ComesError
from comes.files import replacing_file

FORMAT = 2  # the newest that is read
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
CSR_PARTS = tuple(f"X_{part}" for part in SPARSE_PARTS)
SAID_PARTS = ("said_row", "said_label", "said_person", "said_code", "said_people")


def read_npz(path: Path, _: Reading) -> Dataset:
    """Read a data set from an npz file; the names of its arrays say what they are."""
    arrays = load_arrays(path)
    return npz_dataset(arrays, path)


def npz_dataset(arrays: Mapping[str, Any], path: Path) -> Dataset:
    """Return the data set that arrays hold; errors name the path."""
    if int(np.asarray(arrays.get("format", 1)).ravel()[0]) > FORMAT:
        raise ComesError(
            f"{path.name} has format {arrays['format']}; this version of comes reads up to "
            f"{FORMAT}. Update comes."
        )
    candidates, answers = _read_labels(arrays, path)
    relevant: Any = as_relevant(arrays["relevant"]) if "relevant" in arrays else None
    if "relevant_shape" in arrays:
        relevant = _read_sparse(arrays, "relevant", path).astype(bool)
    known = next((part for part in (candidates, answers, relevant) if part is not None), None)
    if known is None:
        raise ComesError(
            f"{path.name} needs an array 'candidates', 'complementary', 'no', 'positives' or "
            f"'relevant'; it has {', '.join(arrays) or 'none'}."
        )
    has_features = "X" in arrays or any(part in arrays for part in CSR_PARTS)
    return Dataset(
        _make_features(arrays, path) if has_features else None,
        _read_names(arrays, "label_names", path) or [str(j) for j in range(known.shape[1])],
        candidates,
        relevant,
        as_indicators(arrays["asked"], "asked") if "asked" in arrays else None,
        _read_names(arrays, "items", path),
        from_complementary="complementary" in arrays or "are_complementary" in arrays,
        answers=answers,
    )


def _read_labels(arrays: Mapping[str, Any], path: Path) -> tuple[BoolMatrix | None, Answers | None]:
    """Return the candidates, or the answers, or neither."""
    if "states_shape" in arrays:
        kind = str(arrays.get("kind", ""))
        if kind not in get_args(Kind):
            raise ComesError(f"{path.name} must say the kind of its answers; got {kind!r}.")
        return None, Answers.from_codes(_read_sparse(arrays, "states", path), cast(Kind, kind))
    found = [name for name in ("candidates", "complementary", "positives", "no") if name in arrays]
    if len(found) > 1:
        raise ComesError(f"{path.name} has {found[0]!r} and {found[1]!r} labels; keep one of them.")
    if "no" not in arrays and any(name in arrays for name in ("yes", "maybe")):
        raise ComesError(
            f"{path.name} has answers without an array 'no'; where only yes can be said, call it "
            "'positives'."
        )
    if "candidates" in arrays:
        return as_candidates(arrays["candidates"]), None
    if "complementary" in arrays:
        return from_complementary(arrays["complementary"]), None
    if "positives" in arrays:
        return None, Answers.from_positives(as_indicators(arrays["positives"], "positives"))
    if "no" not in arrays:
        return None, None
    masks = {name: arrays[name] for name in ("no", "yes", "maybe", "chosen") if name in arrays}
    answers = Answers(**masks)
    said = _read_said(arrays, answers.shape, path)
    if said is None:
        return None, answers
    if not np.array_equal(said.combine(answers.shape), answers.codes):
        raise ComesError(f"{path.name} has answers of people that are not its answers; keep one.")
    return None, Answers.from_long(said, answers.shape, chosen=answers.chosen)


def _read_said(arrays: Mapping[str, Any], shape: tuple[int, int], path: Path) -> LongAnswers | None:
    """Return who said what, checked, or None where the file does not say so."""
    if not any(name in arrays for name in SAID_PARTS):
        return None
    people = _read_names(arrays, "said_people", path) or []
    numbers = [np.asarray(arrays.get(name)) for name in SAID_PARTS[:-1]]
    sizes = (*shape, len(people), len(State))
    if len({part.shape for part in numbers}) > 1 or not all(map(_is_place, numbers, sizes)):
        raise ComesError(
            f"{path.name} should say who said what in rows of numbers of one length, "
            f"{', '.join(SAID_PARTS[:-1])}, and their names, {SAID_PARTS[-1]}."
        )
    row, label, person = (part.astype(np.int64) for part in numbers[:3])
    return LongAnswers(row, label, person, numbers[3].astype(np.int8), tuple(people))


def _is_place(numbers: npt.NDArray[Any], size: int) -> bool:
    """Return whether numbers are a row of places among that many."""
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        return False
    return bool(((numbers >= 0) & (numbers < size)).all())


def read_npz_features(path: Path, _: Reading) -> tuple[Any, list[str] | None]:
    """Read the features of an npz file and the names of its items, and nothing else."""
    arrays = load_arrays(path)
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
    2 rows, 2 features, 1 label, 0.50 relevant per row, 1 row without a relevant label
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
        return _sparse_arrays("X", X)
    arrays = {"X": np.asarray(X)}
    if isinstance(X, pd.DataFrame):
        arrays["feature_names"] = np.asarray(X.columns, dtype=np.str_)
    return arrays


def _sparse_arrays(name: str, matrix: Any) -> dict[str, Any]:
    """Return the four arrays that hold a sparse matrix."""
    matrix = sparse.csr_array(matrix)
    parts = (matrix.data, matrix.indices, matrix.indptr, np.asarray(matrix.shape))
    return {f"{name}_{part}": array for part, array in zip(SPARSE_PARTS, parts, strict=True)}


def _label_arrays(dataset: Dataset) -> dict[str, Any]:
    """Return the arrays that hold labels, their names and those of the items."""
    arrays: dict[str, Any] = {"label_names": np.asarray(dataset.label_names, dtype=np.str_)}
    if dataset.answers is not None:
        arrays.update(_answer_arrays(dataset.answers, dataset.from_complementary))
    if sparse.issparse(dataset.relevant):
        arrays |= {**_sparse_arrays("relevant", dataset.relevant), "format": np.array(FORMAT)}
    elif dataset.relevant is not None:
        arrays["relevant"] = dataset.relevant
    if dataset.items is not None:
        arrays["items"] = np.asarray(dataset.items, dtype=np.str_)
    return arrays


def _answer_arrays(answers: Answers, are_complementary: bool) -> dict[str, Any]:
    """Return the arrays that hold answers."""
    if answers.is_sparse:
        beside = {"kind": np.array(answers.kind), "format": np.array(FORMAT)}
        if are_complementary:
            beside["are_complementary"] = np.array(True)
        return _sparse_arrays("states", answers.states) | beside
    if answers.kind == "positives":
        return {"positives": answers.confirmed}
    if answers.kind == "candidates" and not are_complementary:
        return {"candidates": answers.candidates}
    if answers.kind == "candidates":
        return {"complementary": answers.excluded}
    is_plain = (
        answers.annotations is None and answers.chosen is None and not answers.confirmed.any()
    )
    if are_complementary and is_plain:
        return {"complementary": answers.excluded, "asked": answers.asked}
    arrays: dict[str, Any] = {
        "no": answers.excluded,
        "yes": answers.confirmed,
        "maybe": answers.doubtful,
    }
    if answers.chosen is not None:
        arrays["chosen"] = answers.chosen
    if answers.annotations is not None:
        said = answers.annotations
        people = np.asarray(said.people, dtype=np.str_)
        parts = (said.row, said.label, said.person, said.code, people)
        arrays.update(zip(SAID_PARTS, parts, strict=True))
    return arrays


def load_arrays(path: Path, stream: Any = None) -> dict[str, Any]:
    """Return the arrays of an npz file, or of a stream of one."""
    wanted = "arrays of numbers and text are wanted, as numpy.savez writes them"
    try:
        if not zipfile.is_zipfile(path if stream is None else stream):
            raise ComesError(f"{path.name} is not an npz file, which is a zip archive; {wanted}.")
        with nullcontext(stream) if stream is not None else path.open("rb") as file:
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
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
    return _read_sparse(arrays, "X", path)


def _read_sparse(arrays: Mapping[str, Any], name: str, path: Path) -> Any:
    """Return a checked sparse matrix from its four parts."""
    try:
        data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in SPARSE_PARTS)
        X = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        X.check_format(full_check=True)
    except (ValueError, TypeError, KeyError) as error:
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
