"""Data sets as matrices: .npz, .mat, LIBSVM and ARFF files.

**.npz** holds all of a data set, as arrays by name: ``X`` (n, d), or ``X_data``, ``X_indices``,
``X_indptr``, ``X_shape`` of a CSR matrix; ``feature_names`` (d,); ``label_names`` (q,); ``items``
(n,). Of labels, (n, q): the truth, ``relevant``, and one of ``candidates``, ``complementary``,
``positives``, or answers: ``no``, ``yes`` and ``maybe``, ``chosen`` where a model chose the
question, and who said what, one element per answer: ``said_row``, ``said_label``, ``said_person``,
``said_code`` (a `State`), and the names ``said_people``. Beside candidates, ``asked`` says where
somebody answered. Labels of some kind are needed, the rest is optional. Since format 2, which an
array ``format`` says, labels may be sparse: ``states`` is a CSR matrix of `State` numbers beside
``kind``, what a pair without an answer means, and ``relevant`` one of ones; either is stored in
four parts, as X is. A file without sparse labels says no format.

**.mat** is the form of partial multi-label learning: ``data`` (n, d); ``target``, the truth;
``partial_labels``, ``candidate_labels`` or ``partial_target``, the candidates. Labels are usually
(q, n), sometimes (n, q), and 0/1 or -1/+1; anything may be dense or sparse. Instead of candidates
we write ``no``, ``yes``, ``maybe`` and ``chosen``, or ``positives``. Files of MATLAB 7.3 are HDF5,
with every matrix transposed.

**LIBSVM** has lines ``1,3 5:0.2 9:1``: the true labels of a row, named by their numbers, then its
non-zeros, features counted from 1. Files of the extreme classification repository are the same
after a first line ``n d q``, with features counted from 0.

**ARFF** is Mulan's, with the labels named in an XML file beside it, or MEKA's, with the number of
labels in the relation, ``@relation 'name: -C 6'``: the first six attributes, or with ``-C -6`` the
last six. Rows may be dense or sparse. A nominal attribute of numbers is a number; one of two words
is 0 for the first and 1 for the second; one of more words becomes a 0/1 column per word.
"""

import io
import math
import re
from array import array
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat

from comes.answers import Answers, LongAnswers, State, from_complementary
from comes.answers.convert import as_indicators, as_relevant, check_names
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.indicators import (
    Marks,
    answers_of_marks,
    mark_places,
    marks_of_sets,
    marks_of_state,
)
from comes.datasets.labels import TRUTHS
from comes.datasets.options import ReadOptions
from comes.datasets.table import as_text, find_columns
from comes.errors import ComesError, listed
from comes.files import expanded, replacing_file

Floats = npt.NDArray[np.float64]

NPZ_FORMAT = 2  # the newest that is read
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
CSR_PARTS = tuple(f"X_{part}" for part in SPARSE_PARTS)
SAID_PARTS = ("said_row", "said_label", "said_person", "said_code", "said_people")

ANSWERS = ("no", "yes", "maybe", "chosen")
CANDIDATES = ("candidates", "partial_labels", "candidate_labels", "partial_target")
MAT_VARIABLES = ("data", "target", "positives", *ANSWERS, *CANDIDATES[1:], "label_names")
SPARSE_BELOW = 0.1  # the share of non-zeros below which features that are stored dense become CSR
HDF5_START = b"\x89HDF\r\n\x1a\n"


def compact(X: Any) -> Any:
    """Return a sparse matrix in float32 if that loses nothing, as with counts."""
    with np.errstate(over="ignore"):
        small = X.astype(np.float32)
    return small if (small.data == X.data).all() else X.astype(np.float64)


def read_npz(path: Path, _: ReadOptions) -> Dataset:
    """Read a data set from an .npz file; the names of its arrays say what they are."""
    arrays = _load_arrays(path)
    if int(np.asarray(arrays.get("format", 1)).ravel()[0]) > NPZ_FORMAT:
        raise ComesError(
            f"{path.name} has format {arrays['format']}; this version of comes reads up to "
            f"{NPZ_FORMAT}. Update comes."
        )
    answers: Answers | None
    relevant: Any = as_relevant(arrays["relevant"]) if "relevant" in arrays else None
    if "relevant_shape" in arrays:
        relevant = _npz_sparse(arrays, "relevant", path).astype(bool)
    if "states_shape" in arrays:
        kind = str(arrays.get("kind", ""))
        if kind not in get_args(Kind):
            raise ComesError(f"{path.name} must say the kind of its answers; got {kind!r}.")
        answers = Answers.from_codes(_npz_sparse(arrays, "states", path), cast(Kind, kind))
    else:
        answers = _answers_of(arrays, path)
        if answers is not None and any(name in arrays for name in SAID_PARTS):
            answers = _add_annotations(answers, arrays, path)
    if answers is None and relevant is None:
        raise ComesError(
            f"{path.name} needs an array 'candidates', 'complementary', 'no', 'positives' or "
            f"'relevant'; it has {', '.join(arrays) or 'none'}."
        )
    labels = relevant if answers is None else answers
    names = _npz_names(arrays, "label_names", path) or [str(j) for j in range(labels.shape[1])]
    parts: dict[str, Any] = {"answers": answers}
    if "asked" in arrays:
        parts["asked"] = as_indicators(arrays["asked"], "asked")
        if answers is not None and answers.kind == "candidates":
            parts["candidates"] = parts.pop("answers").candidates
    has_features = any(part in arrays for part in ("X", *CSR_PARTS))
    return Dataset(
        _npz_features(arrays, path) if has_features else None,
        names,
        relevant=relevant,
        items=_npz_names(arrays, "items", path),
        from_complementary="complementary" in arrays or "are_complementary" in arrays,
        **parts,
    )


def read_npz_features(path: Path, _: ReadOptions) -> tuple[Any, list[str] | None]:
    """Read the features of an .npz file and the names of its items; labels are not needed."""
    arrays = _load_arrays(path)
    return _npz_features(arrays, path), _npz_names(arrays, "items", path)


def _load_arrays(path: Path) -> dict[str, Any]:
    wanted = "arrays of numbers and text are wanted, as numpy.savez writes them"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
    except Exception as error:  # a damaged file makes numpy raise almost anything
        is_pickled = "allow_pickle" in str(error)
        reason = "it is no zip archive, or has pickled objects" if is_pickled else str(error)
        raise ComesError(f"{path.name} cannot be read as npz ({reason}); {wanted}.") from None
    for name, values in arrays.items():
        if not isinstance(values, np.ndarray):
            raise ComesError(f"{name!r} in {path.name} is not an array; {wanted}.")
    return arrays


def _answers_of(masks: Mapping[str, Any], path: Path) -> Answers | None:
    """Return the answers that matrices (n, q) hold, by their names; None if they hold none."""
    kinds = [name for name in (*CANDIDATES, "complementary", "positives", "no") if name in masks]
    if len(kinds) > 1:
        raise ComesError(f"{path.name} has both {kinds[0]!r} and {kinds[1]!r}; keep one of them.")
    if "no" not in masks and any(name in masks for name in ("yes", "maybe")):
        raise ComesError(
            f"{path.name} has answers without an array 'no'; where only yes can be said, call "
            "it 'positives'."
        )
    if not kinds:
        return None
    if "no" in masks:
        return Answers(**{name: masks[name] for name in ANSWERS if name in masks})
    values = masks[kinds[0]]
    if "positives" in masks:
        return Answers.from_positives(values)
    return Answers.from_candidates(
        from_complementary(values) if "complementary" in masks else values
    )


def _add_annotations(answers: Answers, arrays: Mapping[str, Any], path: Path) -> Answers:
    """Return the answers with who gave which."""
    people = _npz_names(arrays, "said_people", path) or []
    parts = [np.asarray(arrays.get(name)) for name in SAID_PARTS[:-1]]
    are_places = (
        part.ndim == 1 and part.dtype.kind in "iu" and ((part >= 0) & (part < size)).all()
        for part, size in zip(parts, (*answers.shape, len(people), len(State)), strict=True)
    )
    if not all(are_places) or len({len(part) for part in parts}) > 1:
        raise ComesError(
            f"{path.name} should say who said what in rows of numbers of one length, "
            f"{', '.join(SAID_PARTS[:-1])}, and their names, {SAID_PARTS[-1]}."
        )
    row, label, person = (part.astype(np.int64) for part in parts[:3])
    said = LongAnswers(row, label, person, parts[3].astype(np.int8), tuple(people))
    if not np.array_equal(said.combine(answers.shape), answers.codes):
        raise ComesError(f"{path.name} has answers of people that are not its answers; keep one.")
    return Answers.from_long(said, answers.shape, chosen=answers.chosen)


def _npz_features(arrays: Mapping[str, Any], path: Path) -> Any:
    if "X" in arrays:
        X, names = arrays["X"], _npz_names(arrays, "feature_names", path)
        if names is None or X.ndim != 2:
            return X
        if len(names) != X.shape[1]:
            raise ComesError(
                f"{path.name} has {X.shape[1]} features and {len(names)} feature_names."
            )
        return pd.DataFrame(X, columns=names)
    if not all(part in arrays for part in CSR_PARTS):
        raise ComesError(
            f"{path.name} needs an array 'X', or {', '.join(CSR_PARTS)}; it has "
            f"{', '.join(arrays) or 'none'}."
        )
    return _npz_sparse(arrays, "X", path)


def _npz_sparse(arrays: Mapping[str, Any], name: str, path: Path) -> Any:
    """Return a checked sparse matrix from its four parts."""
    try:
        *parts, shape = (arrays[f"{name}_{part}"] for part in SPARSE_PARTS)
        matrix = sparse.csr_array(tuple(parts), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, KeyError) as error:
        raise ComesError(f"the sparse matrix in {path.name} is damaged: {error}.") from None
    return matrix


def _npz_names(arrays: Mapping[str, Any], name: str, path: Path) -> list[str] | None:
    """Return a row of names, or None where there is none."""
    if name not in arrays:
        return None
    names = arrays[name]
    if names.ndim != 1 or names.dtype.kind not in "Uiu":
        raise ComesError(
            f"{name} in {path.name} must be one row of text; got {names.dtype} of shape "
            f"{names.shape}."
        )
    return [str(text) for text in names]


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a data set as .npz, replacing the file if the whole of it could be written.

    Parameters
    ----------
    dataset : Dataset
        Of images, their names are written, as items.
    path : str or Path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two.npz"
    >>> write_npz(Dataset(np.eye(2), ["a"], relevant=np.array([[True], [False]])), path)
    >>> print(read_npz(path, ReadOptions()))
    2 rows, 2 features, 1 label, 0.50 relevant per row, 1 row without a relevant label
    """
    X, answers, relevant = dataset.X, dataset.answers, dataset.relevant
    arrays = {"label_names": np.asarray(dataset.label_names, dtype=np.str_)}
    if sparse.issparse(X):
        arrays |= _sparse_arrays("X", X)
    elif X is not None and not isinstance(X, Images):
        arrays["X"] = np.asarray(X)
    if isinstance(X, pd.DataFrame):
        arrays["feature_names"] = np.asarray(X.columns, dtype=np.str_)
    if dataset.items is not None:
        arrays["items"] = np.asarray(dataset.items, dtype=np.str_)
    texts = [*dataset.label_names, *(dataset.items or ())]
    if any(text.endswith("\0") for text in [*texts, *map(str, getattr(X, "columns", ()))]):
        raise ComesError(
            "a name ends in a null character, which an npz file would lose. Rename it."
        )
    if answers is not None:
        arrays |= _answer_arrays(answers, dataset.from_complementary)
    if sparse.issparse(relevant):
        arrays |= {**_sparse_arrays("relevant", relevant), "format": np.array(NPZ_FORMAT)}
    elif relevant is not None:
        arrays["relevant"] = relevant
    with replacing_file(path) as temporary:
        np.savez_compressed(temporary, **cast(Any, arrays))


def _sparse_arrays(name: str, matrix: Any) -> dict[str, Any]:
    """Return the four arrays that hold a sparse matrix."""
    matrix = sparse.csr_array(matrix)
    parts = (matrix.data, matrix.indices, matrix.indptr, np.asarray(matrix.shape))
    return {f"{name}_{part}": array for part, array in zip(SPARSE_PARTS, parts, strict=True)}


def _answer_arrays(answers: Answers, are_complementary: bool) -> dict[str, Any]:
    """Return the arrays of an .npz file that hold answers."""
    if answers.is_sparse:
        arrays = _sparse_arrays("states", answers.states)
        arrays |= {"kind": np.array(answers.kind), "format": np.array(NPZ_FORMAT)}
        return arrays | ({"are_complementary": np.array(True)} if are_complementary else {})
    is_plain = answers.annotations is None and answers.chosen is None
    if are_complementary and is_plain and not answers.has(State.YES):
        asked = {} if answers.asked is None else {"asked": answers.asked}
        return {"complementary": answers.excluded, **asked}
    arrays = _answer_masks(answers)
    if answers.annotations is not None:
        said = answers.annotations
        people = np.asarray(said.people, dtype=np.str_)
        parts = (said.row, said.label, said.person, said.code, people)
        arrays.update(zip(SAID_PARTS, parts, strict=True))
    return arrays


def _answer_masks(answers: Answers) -> dict[str, Any]:
    """Return answers as matrices of 0 and 1 (n, q), sparse if the answers are."""
    if answers.kind == "positives":
        return {"positives": marks_of_state(answers, State.YES)}
    if answers.kind == "candidates" and answers.is_sparse:
        return {"no": marks_of_state(answers, State.NO)}  # alone, it says who was excluded
    if answers.kind == "candidates":
        return {"candidates": answers.candidates}
    states = (State.NO, State.YES, State.MAYBE)
    masks = {state.word: marks_of_state(answers, state) for state in states}
    return masks if answers.chosen is None else {**masks, "chosen": answers.chosen}


def read_pml_mat(path: Path, _: ReadOptions) -> Dataset:
    """Read features, candidates and the truth of a .mat file of partial multi-label learning."""
    variables, names = _load_mat(path)
    matrices = {name: variables[name] for name in MAT_VARIABLES[:-1] if name in variables}
    if "data" not in matrices or not {"target", "no", "positives", *CANDIDATES} & set(matrices):
        raise ComesError(
            f"{path.name} should have the variables 'data', 'target' (the truth) and "
            "'partial_labels' (the candidates; or 'candidate_labels' or 'partial_target'); it has "
            f"{listed(names) or 'none'}."
        )
    for name, values in matrices.items():
        if getattr(values, "ndim", 0) != 2 or values.dtype.kind not in "buif":
            raise ComesError(f"{name} in {path.name} should be a matrix of numbers.")
    X = matrices.pop("data")
    shape = next(iter(matrices.values())).shape
    if X.shape[0] not in shape and X.shape[1] in shape:
        X = X.T  # a few files have one column per row
    if sparse.issparse(X) or np.count_nonzero(X) < SPARSE_BELOW * X.size:
        X = compact(sparse.csr_array(X))
    masks = {name: _mat_labels(values, X.shape[0], path) for name, values in matrices.items()}
    q = next(iter(masks.values())).shape[1]
    cells = np.asarray(variables.get("label_names", [str(j) for j in range(q)]))
    label_names = ["".join(map(str, np.ravel(cell))) for cell in cells.ravel()]
    if cells.dtype.kind == "U":  # a matrix of letters, its rows padded with blanks
        label_names = [name.rstrip() for name in label_names]
    if len(label_names) != q:
        raise ComesError(f"{q} labels need as many label_names; got {len(label_names)}.")
    relevant = masks.pop("target", None)
    return Dataset(X, label_names, relevant=relevant, answers=_answers_of(masks, path))


def _load_mat(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the variables that are read, by name, and the names of all."""
    try:
        with path.open("rb") as file:
            for start in (0, 512, 1024, 2048, 4096):
                file.seek(start)
                if file.read(len(HDF5_START)) == HDF5_START:
                    return _load_hdf5(file)
            file.seek(0)
            names = [name for name, _, _ in whosmat(file)]
            file.seek(0)
            return dict(loadmat(file, variable_names=MAT_VARIABLES)), names
    except Exception as error:  # a damaged file makes the readers raise almost anything
        raise ComesError(f"{path.name} cannot be read as a .mat file: {error}.") from None


def _load_hdf5(file: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the variables of MATLAB 7.3 that are read, as MATLAB shows them, and all names."""
    import h5py

    variables: dict[str, Any] = {}
    with h5py.File(file, "r") as stored:
        for name in MAT_VARIABLES:
            values = stored.get(name)
            if isinstance(values, h5py.Group):  # sparse, by columns; empty ones lack data and ir
                ends = values["jc"][()].astype(np.int64)
                data = values["data"][()] if "data" in values else np.zeros(0)
                rows = values["ir"][()].astype(np.int64) if "ir" in values else np.zeros(0, int)
                shape = (int(values.attrs["MATLAB_sparse"]), len(ends) - 1)
                variables[name] = sparse.csc_array((data, rows, ends), shape=shape)
            elif values is not None and name == "label_names":  # cells refer to rows of UTF-16
                cells = (stored[cell][()].ravel() for cell in values[()].ravel())
                variables[name] = [str(cell.astype("<u2").tobytes(), "utf-16-le") for cell in cells]
            elif values is not None:
                variables[name] = values[()].T
        return variables, list(stored)


def _mat_labels(values: Any, n: int, path: Path) -> Marks:
    """Return labels as (n, q); a square matrix is taken as (q, n), as is usual in the field."""
    if n not in values.shape:
        raise ComesError(
            f"{path.name} has {n} rows of data, and labels of shape {values.shape}, which fit "
            "neither as they are nor transposed."
        )
    stored = values.data if sparse.issparse(values) else values
    has_zeros = stored.size < math.prod(values.shape)
    numbers = {*np.unique(stored).tolist(), *([0] if has_zeros else [])}
    if not (numbers <= {0, 1} or numbers <= {-1, 1}):
        raise ComesError(
            f"labels in {path.name} must be 0 and 1, or -1 and 1; got "
            f"{sorted(numbers, key=str)[:5]}."
        )
    turned = values.T if values.shape[1] == n else values
    row, label = (turned == 1).nonzero()
    return mark_places(row, label, turned.shape)


def write_pml_mat(dataset: Dataset, path: Path) -> None:
    """Write a data set with features as a .mat file, labels (q, n) and 0/1."""
    X = dataset.known_features()
    variables: dict[str, Any] = {
        "data": sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X),
        "label_names": np.asarray(dataset.label_names, dtype=object),
    }
    if dataset.relevant is not None:
        variables["target"] = dataset.relevant.T.astype(np.uint8)
    masks = {} if dataset.answers is None else _answer_masks(dataset.answers)
    for name, mask in masks.items():
        variables["partial_labels" if name == "candidates" else name] = mask.T.astype(np.uint8)
    with replacing_file(path) as temporary:
        savemat(temporary, variables, do_compression=True)


def read_svmlight(path: Path, reading: ReadOptions) -> Dataset:
    """Read a LIBSVM multi-label file, with fixed labels and features where they are given."""
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    with path.open("rb") as file:
        start = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        file.seek(start)
        header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)[ \t]+(\d+)\s*", file.readline())
        n, d, q = map(int, header.groups()) if header else (None, reading.n_features, None)
        if header is None:
            file.seek(start)
        try:
            X, labels = load_svmlight_file(
                file, multilabel=True, n_features=d or None, zero_based=header is not None
            )
        except (ValueError, OverflowError) as error:
            raise ComesError(
                f"{path.name} cannot be read as LIBSVM ({error}); lines such as '1,3 5:0.2' were "
                "wanted, features counted from 1 (from 0 after a first line 'n d q')."
            ) from None
    if n is not None and X.shape[0] != n:
        raise ComesError(f"the first line of {path.name} says {n} rows; got {X.shape[0]}.")
    numbers = sorted(set(chain.from_iterable(labels)))
    names = {x: str(int(x)) if x.is_integer() else as_text(x) for x in numbers}
    label_names = reading.label_names or (names.values() if q is None else map(str, range(q)))
    sets = [[names[number] for number in row] for row in labels]
    relevant, found = marks_of_sets(sets, list(label_names))
    return Dataset(sparse.csr_array(X), found, relevant=relevant)


class _Arff(NamedTuple):
    """An ARFF file: nominal values as their place in the attribute's declaration."""

    relation: str
    names: list[str]
    kinds: list[Any]  # a type in capitals, or the list of nominal values
    cells: Any  # (n, attributes), dense or CSC

    def column(self, j: int) -> Floats:
        """Return the cells of one attribute, (n,)."""
        cells = self.cells[:, [j]]
        return np.asarray(cells.toarray() if sparse.issparse(cells) else cells).ravel()


def read_arff(path: Path, reading: ReadOptions) -> Dataset:
    """Read features and labels of an ARFF file."""
    table = _parse_arff(path)
    ignored = find_columns(table.names, reading.ignore or ())
    marked, true = (
        [name for name in find_columns(table.names, wanted or ()) if name not in ignored]
        for wanted in (reading.labels, reading.relevant)
    )
    declared = _declared_labels(path, table, reading.xml, bool(marked or true))
    if not (marked or true):
        true = [name for name in declared if name not in ignored]
    used = {*marked, *true, *ignored, *declared}
    features = [j for j, name in enumerate(table.names) if name not in used]
    if not features:
        raise ComesError(f"{path.name} has no attribute beside its labels; features are wanted.")
    X = _arff_features(table, features, path)
    relevant = _arff_labels(table, true, path) if true else None
    if not marked:
        return Dataset(X, true, relevant=relevant).with_labels_as(reading.labels_are, path.name)
    answers = answers_of_marks(
        _arff_labels(table, marked, path), reading.labels_are or "candidates"
    )
    return Dataset(
        X,
        marked,
        relevant=relevant,
        from_complementary=reading.labels_are == "complementary",
        answers=answers,
    )


def _parse_arff(path: Path) -> _Arff:
    import arff

    n_rows = 0
    try:
        content = path.read_bytes()
        try:
            content.decode()
            encoding = "utf-8-sig"
        except UnicodeDecodeError:
            encoding = "latin-1"  # which reads everything
        lines = io.TextIOWrapper(io.BytesIO(content), encoding)
        stripped = (line.strip() for line in lines)
        if not any(line.lower().startswith("@data") for line in stripped):
            raise ComesError(f"{path.name} cannot be read as ARFF: it has no line '@data'.")
        first = next((line for line in stripped if line and not line.startswith("%")), "")
        is_sparse = first.startswith("{")
        lines.seek(0)
        kind_of_rows = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
        parsed = arff.load(lines, encode_nominal=True, return_type=kind_of_rows)
        kinds = [kind for _, kind in parsed["attributes"]]
        texts = {j for j, kind in enumerate(kinds) if kind == "STRING"}
        values, columns, ends = array("d"), array("i"), array("q", [0])
        for n_rows, row in enumerate(parsed["data"], start=1):  # noqa: B007
            pairs = row.items() if is_sparse else enumerate(row)
            values.extend(math.nan if j in texts or v is None else v for j, v in pairs)
            if is_sparse:
                columns.extend(row)
                ends.append(len(columns))
    except ComesError:
        raise
    except (arff.ArffException, ValueError, TypeError, OSError) as error:
        reason = str(error).replace("line -1", f"row {n_rows}")
        raise ComesError(f"{path.name} cannot be read as ARFF: {reason}") from None
    if not n_rows:
        raise ComesError(f"{path.name} has no rows of data; expected at least one.")
    names, shape = [str(name) for name, _ in parsed["attributes"]], (n_rows, len(kinds))
    cells = np.asarray(values)
    if is_sparse:
        rows = (cells, np.asarray(columns), np.asarray(ends))
        return _Arff(parsed["relation"], names, kinds, sparse.csr_array(rows, shape).tocsc())
    return _Arff(parsed["relation"], names, kinds, cells.reshape(shape))


def _declared_labels(
    path: Path, table: _Arff, xml: str | Path | None, may_be_none: bool
) -> list[str]:
    """Return the labels that the XML file names, or that the relation counts."""
    if xml is not None:
        beside: Path | None = expanded(xml)
    else:  # name.xml for name.arff and for name-train.arff
        parts = path.stem.split("-")
        stems = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
        files = (path.with_name(f"{stem}.xml") for stem in stems)
        beside = next((file for file in files if file.is_file()), None)
    if beside is not None:
        if not beside.is_file():
            raise ComesError(f"{beside} does not exist; expected the XML file of the labels.")
        names = read_label_xml(beside)
        missing = sorted(set(names) - set(table.names), key=names.index)
        if missing:
            raise ComesError(
                f"{beside.name} names {len(missing)} labels that {path.name} lacks: "
                f"{listed(missing, 3)}. They should belong together."
            )
        return names
    count = re.search(r"-C\s+(-?\d+)", table.relation)
    if count is None and may_be_none:
        return []
    if count is None:
        raise ComesError(
            f"which attributes of {path.name} are the labels? Put {path.stem}.xml beside it, write "
            "'-C 6' into its relation, or name them (--relevant on the command line)."
        )
    q = int(count[1])
    if not 0 < abs(q) < len(table.names):
        raise ComesError(
            f"the relation of {path.name} counts {abs(q)} labels (-C) of {len(table.names)} "
            "attributes; expected some labels and some features."
        )
    return table.names[:q] if q > 0 else table.names[q:]


def read_label_xml(path: Path) -> list[str]:
    """Return the label names of a Mulan XML file, in order; nothing outside the file is read."""
    parser = expat.ParserCreate(namespace_separator=" ")
    names: list[str] = []

    def add_label(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(" ")[2] == "label":
            names.append(attributes.get("name", ""))

    def refuse_document_type(*_: object) -> None:  # so that no entity is expanded
        raise ComesError(
            f"{path.name} declares a document type, which a list of labels does not need."
        )

    parser.StartElementHandler = add_label
    parser.StartDoctypeDeclHandler = refuse_document_type
    try:
        parser.Parse(path.read_bytes(), True)
    except ComesError:
        raise
    except (expat.ExpatError, OSError, LookupError, ValueError) as error:
        raise ComesError(f"{path.name} cannot be read as XML: {error}.") from None
    if not all(names or [""]):
        raise ComesError(f"{path.name} should name each label, as <label name=...> does.")
    return check_names(names)


def _arff_labels(table: _Arff, names: Sequence[str], path: Path) -> Marks:
    """Return the labels as a matrix, whatever two values they have."""
    position = {name: j for j, name in enumerate(table.names)}
    rows = []
    for name in names:
        cells, kind = table.column(position[name]), table.kinds[position[name]]
        values = cells
        if isinstance(kind, list):
            values = _decode(cells, [TRUTHS.get(str(word).lower(), math.nan) for word in kind])
        wrong = ~np.isin(values, (0.0, 1.0))
        if wrong.any():
            row = int(wrong.argmax())
            shown = "nothing (?)" if np.isnan(cells[row]) else f"{cells[row]:g}"
            if isinstance(kind, list) and shown != "nothing (?)":
                shown = repr(kind[int(cells[row])])
            raise ComesError(
                f"label {name!r} of {path.name} should be 0 or 1; got {shown} at row {row}."
            )
        rows.append(np.flatnonzero(values))
    columns = np.repeat(np.arange(len(names)), [len(marked) for marked in rows])
    return mark_places(np.concatenate(rows), columns, (table.cells.shape[0], len(names)))


def _arff_features(table: _Arff, chosen: Sequence[int], path: Path) -> Any:
    """Return attributes as numbers: a DataFrame, or a CSR matrix if the rows are sparse."""
    texts = [table.names[j] for j in chosen if table.kinds[j] == "STRING"]
    if texts:
        raise ComesError(
            f"attribute {texts[0]!r} of {path.name} is of type string, and features must be "
            "numbers. Ignore it (--ignore on the command line), or turn it into numbers."
        )
    X, names = table.cells[:, chosen], [table.names[j] for j in chosen]
    is_sparse = sparse.issparse(X)
    if not all(_codes_are_numbers(table.kinds[j]) for j in chosen):
        blocks = [_arff_columns(table, j) for j in chosen]
        names = [name for _, block_names in blocks for name in block_names]
        X = (sparse.hstack if is_sparse else np.hstack)([block for block, _ in blocks])
    return compact(sparse.csr_array(X)) if is_sparse else pd.DataFrame(X, columns=names)


def _arff_columns(table: _Arff, j: int) -> tuple[Any, list[str]]:
    """Return the columns of one attribute, (n, 1) or one for each of its words, and their names."""
    name, kind, block = table.names[j], table.kinds[j], table.cells[:, [j]]
    if _codes_are_numbers(kind):
        return block, [name]
    try:
        columns = _decode(table.column(j), [float(word) for word in kind])[:, None]
        return sparse.csc_array(columns) if sparse.issparse(block) else columns, [name]
    except ValueError:
        if len(kind) <= 2:
            return block, [name]
    places = np.nan_to_num(table.column(j), nan=len(kind)).astype(int)  # the last row is empty
    words = sparse.eye_array(len(kind) + 1, len(kind), format="csr")[places]
    names = [f"{name}={word}" for word in kind]
    return words if sparse.issparse(block) else words.toarray(), names


def _codes_are_numbers(kind: Any) -> bool:
    """Return whether an attribute is numeric, or nominal with the values 0, 1, 2, ..."""
    return not isinstance(kind, list) or kind == [str(place) for place in range(len(kind))]


def _decode(codes: Floats, numbers: Sequence[float]) -> Floats:
    """Return the number that each code stands for; a missing one stays missing."""
    places = np.nan_to_num(codes, nan=len(numbers)).astype(int)
    return np.asarray(np.array([*numbers, math.nan])[places])
