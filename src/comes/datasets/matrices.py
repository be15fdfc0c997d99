"""Data sets as matrices: .npz, .mat, LIBSVM and ARFF files; docs/reference/formats.md has more."""

import io
import math
import re
from array import array
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree
from zipfile import is_zipfile

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import loadmat, savemat, whosmat

from comes.answers import Answers, LongAnswers, State, from_complementary
from comes.answers.convert import as_indicators, as_relevant, check_names
from comes.answers.matrix import Kind
from comes.datasets.dataset import (
    Dataset,
    Marks,
    answers_of_marks,
    mark_places,
    marks_of_sets,
    marks_of_state,
)
from comes.datasets.images import Images
from comes.datasets.labels import TRUTHS
from comes.datasets.options import ReadOptions
from comes.datasets.table import find_columns
from comes.errors import ComesError, listed, reading_as
from comes.files import expanded, replacing_file

# What matrices of labels, (n, q), are called in .npz and .mat files; "target" is "relevant".
CANDIDATES = ("candidates", "partial_labels", "candidate_labels", "partial_target")
KINDS = (*CANDIDATES, "complementary", "positives", "no", "states")  # a file has one of them
ANSWERS = ("no", "yes", "maybe", "chosen")

NPZ_FORMAT = 2  # the newest that is read
CSR_PARTS = ("data", "indices", "indptr", "shape")
NPZ_NAMES = {"label_names", "feature_names", "items", "said_people"}
PEOPLE_PARTS = ("said_row", "said_label", "said_person", "said_code")  # an element per answer

MAT_LABELS = ("target", *CANDIDATES[1:], "positives", *ANSWERS)
MAT_VARIABLES = ("data", *MAT_LABELS, "label_names")
MAT_FORM = (
    "a .mat file with the matrices 'data', 'target' (the truth) and 'partial_labels' (the "
    "candidates; or 'candidate_labels' or 'partial_target')"
)
SPARSE_BELOW = 0.1  # the share of non-zeros below which features that are stored dense become CSR
HDF5_START = b"\x89HDF\r\n\x1a\n"

LIBSVM_FORM = (
    "LIBSVM, lines such as '1,3 5:0.2' with features counted from 1 (from 0 after a first line "
    "'n d q')"
)
ARFF_SPARSE = re.compile(r"^[ \t]*@data.*(\n[ \t]*(%.*)?)*\n[ \t]*\{", re.IGNORECASE | re.MULTILINE)


def read_npz(path: Path, _: ReadOptions) -> Dataset:
    """Read a data set from an .npz file; the names of its arrays say what they are."""
    arrays = _load_npz(path)
    if np.max(arrays.get("format", 1)) > NPZ_FORMAT:
        raise ComesError(
            f"{path.name} has format {arrays['format']}; this version of comes reads up to "
            f"{NPZ_FORMAT}. Update comes."
        )
    return _make_dataset(arrays.get("X"), arrays, path)


def read_npz_features(path: Path, _: ReadOptions) -> tuple[Any, list[str] | None]:
    """Read the features of an .npz file and the names of its items; labels are not needed."""
    arrays = _load_npz(path)
    if "X" not in arrays:
        raise ComesError(f"{path.name} needs an array 'X'; it has {', '.join(arrays) or 'none'}.")
    return arrays["X"], arrays.get("items")


def _load_npz(path: Path) -> dict[str, Any]:
    """Return the arrays by name: names as lists of text, the parts of a CSR matrix as a matrix."""
    with reading_as("npz, arrays of numbers and text", path.name):
        if not is_zipfile(path):
            raise ValueError("it is no zip archive, or is cut off")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: dict[str, Any] = dict(archive)
        for name in NPZ_NAMES & arrays.keys():
            if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "Uiu":
                raise ValueError(f"{name!r} should be one row of text")
            arrays[name] = [str(text) for text in arrays[name]]
        for name in ("X", "states", "relevant"):
            keys = [f"{name}_{part}" for part in CSR_PARTS]
            if arrays.keys() & keys:
                *parts, shape = (arrays.pop(key) for key in keys)
                arrays[name] = sparse.csr_array(tuple(parts), shape=tuple(map(int, shape)))
                arrays[name].check_format(full_check=True)
        if isinstance(arrays.get("X"), np.ndarray) and "feature_names" in arrays:
            arrays["X"] = pd.DataFrame(arrays["X"], columns=arrays["feature_names"])
        not_arrays = [name for name, values in arrays.items() if isinstance(values, bytes)]
        if not_arrays:
            raise ValueError(f"{not_arrays[0]!r} should be an array")
    return arrays


def _make_dataset(X: Any, matrices: Mapping[str, Any], path: Path) -> Dataset:
    """Return the data set of features and matrices (n, q) that are called after what they hold."""
    kinds = [name for name in KINDS if name in matrices]
    if len(kinds) > 1:
        raise ComesError(f"{path.name} has both {kinds[0]!r} and {kinds[1]!r}; keep one of them.")
    if not kinds and ("relevant" not in matrices or {"yes", "maybe", "asked"} & matrices.keys()):
        raise ComesError(
            f"{path.name} needs an array 'candidates', 'complementary', 'no', 'positives' or, "
            f"without answers, 'relevant'; it has {', '.join(matrices) or 'none'}. Where only yes "
            "can be said, call it 'positives'."
        )
    relevant = matrices.get("relevant")
    if relevant is not None:
        relevant = relevant.astype(bool) if sparse.issparse(relevant) else as_relevant(relevant)
    q = (relevant if relevant is not None else matrices[kinds[0]]).shape[-1]
    return Dataset(
        X,
        matrices.get("label_names") or [str(j) for j in range(q)],
        relevant=relevant,
        items=matrices.get("items"),
        from_complementary="complementary" in matrices or "are_complementary" in matrices,
        answers=_read_answers(kinds[0], matrices, path) if kinds else None,
    )


def _read_answers(kind: str, matrices: Mapping[str, Any], path: Path) -> Answers:
    """Return the answers that a file holds in the form of one of KINDS."""
    values = matrices[kind]
    if kind == "states":
        meaning = str(matrices.get("kind", ""))
        if meaning not in get_args(Kind):
            raise ComesError(f"{path.name} must say the kind of its answers; got {meaning!r}.")
        answers = Answers.from_codes(values, meaning)  # type: ignore[arg-type]
    elif kind == "no":
        answers = Answers(**{name: matrices[name] for name in ANSWERS if name in matrices})
    elif kind == "positives":
        answers = Answers.from_positives(values)
    else:
        possible = from_complementary(values) if kind == "complementary" else values
        answers = Answers.from_candidates(possible)
    if "asked" in matrices:
        asked = as_indicators(matrices["asked"], "asked")
        is_beside = answers.kind == "candidates" and asked.shape == answers.shape
        if not is_beside or (answers.excluded & ~asked).any():
            raise ComesError(
                f"'asked' in {path.name} must be 1 wherever a label is excluded, and belongs to "
                "'candidates' or 'complementary' of its shape."
            )
        answers = Answers(no=answers.excluded, maybe=answers.candidates & asked)
    if not matrices.keys() & {*PEOPLE_PARTS, "said_people"}:
        return answers
    people = matrices.get("said_people", [])
    parts = [np.asarray(matrices.get(name)) for name in PEOPLE_PARTS]
    sizes = (*answers.shape, len(people), len(State))
    are_places = (
        part.ndim == 1 and part.dtype.kind in "iu" and np.isin(part, np.arange(size)).all()
        for part, size in zip(parts, sizes, strict=True)
    )
    if all(are_places) and len({len(part) for part in parts}) == 1:
        row, label, person = (part.astype(np.int64) for part in parts[:3])
        annotations = LongAnswers(row, label, person, parts[3].astype(np.int8), tuple(people))
        by_people = Answers.from_long(annotations, answers.shape, chosen=answers.chosen)
        if np.array_equal(by_people.codes, answers.codes):
            return by_people
    raise ComesError(
        f"{path.name} should say who said what in rows of numbers of one length, "
        f"{', '.join(PEOPLE_PARTS)}, which make its answers, and their names, said_people."
    )


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write all of a data set as .npz; of images their names, as items."""
    X, answers, relevant = dataset.X, dataset.answers, dataset.relevant
    columns = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else []
    texts = {"label_names": dataset.label_names, "feature_names": columns, "items": dataset.items}
    arrays = {name: np.asarray(names, np.str_) for name, names in texts.items() if names}
    if any(name.endswith("\0") for names in texts.values() for name in names or ()):
        raise ComesError(
            "a name ends in a null character, which an npz file would lose. Rename it."
        )
    if sparse.issparse(X):
        arrays |= _csr_parts("X", X)
    elif X is not None and not isinstance(X, Images):
        arrays["X"] = np.asarray(X)
    if answers is not None:
        arrays |= _answer_arrays(answers, dataset.from_complementary)
    if sparse.issparse(relevant):
        arrays |= {**_csr_parts("relevant", relevant), "format": np.array(NPZ_FORMAT)}
    elif relevant is not None:
        arrays["relevant"] = relevant
    with replacing_file(path) as temporary:
        np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]


def _csr_parts(name: str, matrix: Any) -> dict[str, Any]:
    """Return the four arrays that hold a sparse matrix."""
    matrix = sparse.csr_array(matrix)
    return {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in CSR_PARTS}


def _answer_arrays(answers: Answers, are_complementary: bool) -> dict[str, Any]:
    """Return the arrays of an .npz file that hold answers."""
    if answers.is_sparse:
        arrays = _csr_parts("states", answers.states)
        arrays |= {"kind": np.array(answers.kind), "format": np.array(NPZ_FORMAT)}
        return arrays | ({"are_complementary": np.array(True)} if are_complementary else {})
    given = answers.annotations
    is_plain = given is None and answers.chosen is None
    if are_complementary and is_plain and not answers.has(State.YES):
        asked = {} if answers.asked is None else {"asked": answers.asked}
        return {"complementary": answers.excluded, **asked}
    arrays = _answer_masks(answers)
    if given is not None:
        parts = (given.row, given.label, given.person, given.code)
        arrays |= dict(zip(PEOPLE_PARTS, parts, strict=True))
        arrays["said_people"] = np.asarray(given.people, dtype=np.str_)
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


def read_mat(path: Path, _: ReadOptions) -> Dataset:
    """Read features, candidates and the truth of a .mat file of partial multi-label learning."""
    with reading_as(MAT_FORM, path.name):
        variables, names = _load_mat(path)
        labels = {name: variables[name] for name in MAT_LABELS if name in variables}
        if "data" not in variables or not {"target", *KINDS} & labels.keys():
            raise ValueError(f"it has {listed(names) or 'none'}")
        X = variables["data"]
        for name, values in {"data": X, **labels}.items():
            if getattr(values, "ndim", 0) != 2 or values.dtype.kind not in "buif":
                raise ValueError(f"{name!r} is no matrix of numbers")
        shape = next(iter(labels.values())).shape
        if X.shape[0] not in shape and X.shape[1] in shape:
            X = X.T  # a few files have one column per row
        if sparse.issparse(X) or np.count_nonzero(X) < SPARSE_BELOW * X.size:
            X = _compact(sparse.csr_array(X))
        matrices = {
            "relevant" if name == "target" else name: _mat_labels(values, X.shape[0])
            for name, values in labels.items()
        }
    cells = np.asarray(variables.get("label_names", []))
    label_names = ["".join(map(str, np.ravel(cell))) for cell in cells.ravel()]
    if cells.dtype.kind == "U":  # a matrix of letters, its rows padded with blanks
        label_names = [name.rstrip() for name in label_names]
    return _make_dataset(X, {**matrices, "label_names": label_names}, path)


def _load_mat(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the variables that are read, by name, and the names of all."""
    with path.open("rb") as file:
        if HDF5_START in file.read(8192):  # MATLAB 7.3 puts a header before it
            return _load_hdf5(file)
        file.seek(0)
        names = [name for name, _, _ in whosmat(file)]
        file.seek(0)
        return dict(loadmat(file, variable_names=MAT_VARIABLES)), names


def _load_hdf5(file: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the variables of MATLAB 7.3 as MATLAB shows them; they are stored transposed."""
    import h5py

    variables: dict[str, Any] = {}
    with h5py.File(file, "r") as stored:
        for name in MAT_VARIABLES:
            values = stored.get(name)
            if isinstance(values, h5py.Group):  # sparse, by columns; empty ones lack data and ir
                ends = values["jc"][()].astype(np.int64)
                parts = (values[k][()] if k in values else np.zeros(0, int) for k in ("data", "ir"))
                shape = (int(values.attrs["MATLAB_sparse"]), len(ends) - 1)
                variables[name] = sparse.csc_array((*parts, ends), shape=shape)
            elif values is not None and name == "label_names":  # cells refer to rows of UTF-16
                cells = (stored[cell][()].ravel() for cell in values[()].ravel())
                variables[name] = [str(cell.astype("<u2").tobytes(), "utf-16-le") for cell in cells]
            elif values is not None:
                variables[name] = values[()].T
        return variables, list(stored)


def _mat_labels(values: Any, n: int) -> Marks:
    """Return labels as (n, q); a square matrix is taken as (q, n), as is usual in the field."""
    stored = values.data if sparse.issparse(values) else values
    has_zeros = stored.size < math.prod(values.shape)
    numbers = {*np.unique(stored).tolist(), *([0] if has_zeros else [])}
    if n not in values.shape or not (numbers <= {0, 1} or numbers <= {-1, 1}):
        raise ValueError(
            f"labels must be 0 and 1, or -1 and 1, for each of {n} rows of data; got "
            f"{sorted(numbers, key=str)[:5]} and shape {values.shape}"
        )
    turned = values.T if values.shape[1] == n else values
    row, label = (turned == 1).nonzero()
    return mark_places(row, label, turned.shape)


def write_mat(dataset: Dataset, path: Path) -> None:
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


def _compact(X: Any) -> Any:
    """Return a sparse matrix in float32 if that loses nothing, as with counts."""
    with np.errstate(over="ignore"):
        small = X.astype(np.float32)
    return small if (small.data == X.data).all() else X.astype(np.float64)


def read_libsvm(path: Path, options: ReadOptions) -> Dataset:
    """Read lines ``1,3 5:0.2 9:1``: true labels, then features, counted from 1.

    After a first line ``n d q``, as in the extreme classification repository, they count from 0.
    """
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    with path.open("rb") as file:
        start = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        file.seek(start)
        header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)[ \t]+(\d+)\s*", file.readline())
        n, d, q = map(int, header.groups()) if header else (None, options.n_features, None)
        if header is None:
            file.seek(start)
        with reading_as(LIBSVM_FORM, path.name):
            X, labels = load_svmlight_file(
                file, multilabel=True, n_features=d or None, zero_based=header is not None
            )
    if n is not None and X.shape[0] != n:
        raise ComesError(f"the first line of {path.name} says {n} rows; got {X.shape[0]}.")
    numbers = sorted(set(chain.from_iterable(labels)))
    names = {number: np.format_float_positional(number, trim="-") for number in numbers}
    label_names = options.label_names or (names.values() if q is None else map(str, range(q)))
    sets = [[names[number] for number in row] for row in labels]
    relevant, all_names = marks_of_sets(sets, list(label_names))
    return Dataset(sparse.csr_array(X), all_names, relevant=relevant)


def read_arff(path: Path, options: ReadOptions) -> Dataset:
    """Read features and labels of an ARFF file of Mulan or MEKA."""
    relation, kinds, cells = _parse_arff(path)
    names = list(kinds)
    ignored = find_columns(names, options.ignore or ())
    marked, true = (
        [name for name in find_columns(names, wanted or ()) if name not in ignored]
        for wanted in (options.labels, options.relevant)
    )
    declared = _declared_labels(path, relation, names, options.xml, bool(marked or true))
    if not (marked or true):
        true = [name for name in declared if name not in ignored]
    used = {*marked, *true, *ignored, *declared}
    features = [name for name in names if name not in used]
    place = {name: j for j, name in enumerate(names)}

    def select(chosen: Sequence[str]) -> tuple[Mapping[str, Any], Any]:
        return {name: kinds[name] for name in chosen}, cells[:, [place[name] for name in chosen]]

    X = _arff_features(*select(features), path)
    relevant = _arff_labels(*select(true), path) if true else None
    if not marked:
        return Dataset(X, true, relevant=relevant).with_labels_as(options.labels_are, path.name)
    labels_are = options.labels_are or "candidates"
    return Dataset(
        X,
        marked,
        relevant=relevant,
        from_complementary=labels_are == "complementary",
        answers=answers_of_marks(_arff_labels(*select(marked), path), labels_are),
    )


def _parse_arff(path: Path) -> tuple[str, Mapping[str, Any], Any]:
    """Return the relation, the attributes, and their cells (n, attributes), CSC if rows are sparse.

    A nominal value is its place among the values of its attribute.
    """
    import arff

    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_text("latin-1")  # which reads everything
    is_sparse = ARFF_SPARSE.search(text) is not None
    values, columns, ends = array("d"), array("i"), array("q", [0])
    try:
        rows = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
        parsed = arff.load(io.StringIO(text), encode_nominal=True, return_type=rows)
        kinds = dict(parsed["attributes"])
        texts = {j for j, kind in enumerate(kinds.values()) if kind == "STRING"}
        for row in parsed["data"]:
            cells = row.values() if is_sparse else row
            if texts or None in cells:
                pairs = row.items() if is_sparse else enumerate(row)
                cells = [math.nan if j in texts or v is None else v for j, v in pairs]
            values.extend(cells)
            columns.extend(row if is_sparse else ())
            ends.append(len(values))
    except (arff.ArffException, ValueError, TypeError) as error:
        reason = str(error).replace("line -1", f"row {len(ends) - 1}")
        raise ComesError(f"{path.name} cannot be read as ARFF: {reason}") from None
    shape = (len(ends) - 1, len(kinds))
    if not is_sparse:
        return parsed["relation"], kinds, np.asarray(values).reshape(shape)
    matrix = sparse.csr_array((values, columns, ends), shape=shape).tocsc()
    return parsed["relation"], kinds, matrix


def _declared_labels(
    path: Path, relation: str, names: list[str], xml: str | Path | None, may_be_none: bool
) -> list[str]:
    """Return the labels that Mulan's XML file names, or that MEKA's relation counts."""
    parts = path.stem.split("-")  # name.xml for name.arff and for name-train.arff
    stems = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
    files = (path.with_name(f"{stem}.xml") for stem in stems)
    beside = expanded(xml) if xml else next((file for file in files if file.is_file()), None)
    if beside is not None:
        labels = read_label_xml(beside)
        missing = sorted(set(labels) - set(names), key=labels.index)
        if missing:
            raise ComesError(
                f"{beside.name} names {len(missing)} labels that {path.name} lacks: "
                f"{listed(missing, 3)}. They should belong together."
            )
        return labels
    count = re.search(r"-C\s+(-?\d+)", relation)  # the first attributes, or if negative the last
    q = int(count[1]) if count else 0
    if 0 < abs(q) < len(names):
        return names[:q] if q > 0 else names[q:]
    if may_be_none:
        return []
    raise ComesError(
        f"which of the {len(names)} attributes of {path.name} are the labels? Put {path.stem}.xml "
        f"beside it, write '-C 6' into its relation (which is {relation!r}), or name them "
        "(--relevant on the command line)."
    )


def read_label_xml(path: Path) -> list[str]:
    """Return the label names of a Mulan XML file, in order; nothing outside the file is read."""
    with reading_as("XML with a <label name=...> for each label", path.name):
        content = path.read_bytes()
        if b"<!DOCTYPE" in content:
            raise ValueError("it declares a document type, which labels do not need")
        labels = ElementTree.fromstring(content).findall(".//{*}label")
        return check_names([label.attrib["name"] for label in labels])


def _arff_labels(kinds: Mapping[str, Any], cells: Any, path: Path) -> Marks:
    """Return where labels are relevant, whatever two values they have."""
    rows = []
    for j, (name, kind) in enumerate(kinds.items()):
        values = _decode(kind, cells[:, [j]], is_label=True)
        wrong = ~np.isin(values, (0.0, 1.0))
        if wrong.any():
            row = int(wrong.argmax())
            got = f"{cells[row, j]:g}"  # nan where it is missing
            if isinstance(kind, list) and got != "nan":
                got = repr(kind[int(got)])
            raise ComesError(
                f"label {name!r} of {path.name} should be 0 or 1; got {got} at row {row}."
            )
        rows.append(np.flatnonzero(values))
    column = np.repeat(np.arange(len(rows)), [len(places) for places in rows])
    return mark_places(np.concatenate(rows), column, cells.shape)


def _arff_features(kinds: Mapping[str, Any], cells: Any, path: Path) -> Any:
    """Return attributes as numbers: a DataFrame, or a CSR matrix if the rows are sparse."""
    for name, kind in kinds.items():
        if kind == "STRING":
            raise ComesError(
                f"attribute {name!r} of {path.name} is of type string, and features must be "
                "numbers. Ignore it (--ignore on the command line), or turn it into numbers."
            )
    nominal = [kind for kind in kinds.values() if isinstance(kind, list)]
    columns, blocks = list(kinds), [cells]
    if any(kind != [str(place) for place in range(len(kind))] for kind in nominal):
        columns, blocks = [], []
        for j, (name, kind) in enumerate(kinds.items()):
            block = _decode(kind, cells[:, [j]])
            blocks.append(sparse.csc_array(block) if sparse.issparse(cells) else block)
            columns += [name] if block.shape[1] == 1 else [f"{name}={word}" for word in kind]
    if sparse.issparse(cells):
        return _compact(sparse.hstack(blocks, format="csr"))
    return pd.DataFrame(np.hstack(blocks), columns=columns)


def _decode(kind: Any, codes: Any, is_label: bool = False) -> Any:
    """Return an attribute as numbers (n, 1), or (n, words) if it is one of three words or more.

    Words that are numbers are read as such, the first of two words is 0 and the second 1; those of
    a label say what they mean. A missing value stays missing, or is in no column of a word.
    """
    codes = codes.toarray() if sparse.issparse(codes) else codes
    if not isinstance(kind, list):
        return codes
    words = [str(word) for word in kind]
    places = np.nan_to_num(codes[:, 0], nan=len(words)).astype(int)  # a missing value comes last
    if is_label:
        numbers = [TRUTHS.get(word.lower(), math.nan) for word in words]
    else:
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            if len(words) > 2:
                return np.eye(len(words) + 1, len(words))[places]
            numbers = list(range(len(words)))
    return np.array([*numbers, math.nan])[places][:, None]
