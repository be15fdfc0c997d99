"""Multi-label ARFF files: Mulan's, with the labels named in an XML beside, and MEKA's, with ``-C``.

MEKA writes the number of labels into the relation, ``@relation 'name: -C 6'``: the first six
attributes, or with ``-C -6`` the last six. Rows may be dense or sparse. A nominal attribute of
numbers is a number; one of two words is 0 for the first and 1 for the second; one of more words
becomes a 0/1 column per word.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers
from comes.answers.convert import BoolMatrix, check_names
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import compact
from comes.datasets.label_columns import TRUTHS
from comes.datasets.reading import Reading
from comes.datasets.tables import find_columns
from comes.errors import ComesError, listed
from comes.files import expanded


class _Table(NamedTuple):
    """An ARFF file: nominal values as their place in the attribute's declaration."""

    relation: str
    names: list[str]
    kinds: list[Any]  # a type in capitals, or the list of nominal values
    cells: Any  # (n, attributes), dense or CSC


def read_arff(path: Path, reading: Reading) -> Dataset:
    """Read features and labels of an ARFF file."""
    table = _parse_arff(path)
    ignored = find_columns(table.names, reading.ignore or ())
    candidate_names, truth_names = (
        [c for c in find_columns(table.names, wanted or ()) if c not in ignored]
        for wanted in (reading.labels, reading.relevant)
    )
    named = bool(candidate_names or truth_names)
    declared = _find_declared_labels(path, table, reading.xml, named)
    if not named:
        truth_names = [c for c in declared if c not in ignored]
    used = {*candidate_names, *truth_names, *ignored, *declared}
    features = [j for j, name in enumerate(table.names) if name not in used]
    if not features:
        raise ComesError(f"{path.name} has no attribute beside its labels; features are wanted.")
    X = _make_features(table, features, path)
    truth = _read_indicators(table, truth_names, path) if truth_names else None
    if not candidate_names:
        dataset = Dataset(X, truth_names, relevant=truth)
        return dataset.with_labels_as(reading.labels_are, path.name)
    marked = _read_indicators(table, candidate_names, path)
    if reading.is_positive:
        answers = Answers.from_positives(marked)
    else:
        answers = Answers.from_candidates(~marked if reading.is_complementary else marked)
    return Dataset(
        X,
        candidate_names,
        relevant=truth,
        from_complementary=reading.is_complementary,
        answers=answers,
    )


@dataclass(frozen=True)
class _LabelNames:
    """The labels that a parser of XML meets."""

    path: Path
    parser: Any
    names: list[str] = field(default_factory=list)

    def add_label(self, tag: str, attributes: dict[str, str]) -> None:
        """Note the name of a label; other elements are passed over."""
        if tag.rpartition(" ")[2] != "label":
            return
        if "name" not in attributes:
            line = self.parser.CurrentLineNumber
            raise ComesError(f"{self.path.name} has a label without a name at line {line}.")
        self.names.append(attributes["name"])

    def refuse_document_type(self, *_: object) -> None:
        """Raise, so that no entity is expanded, neither from inside nor from elsewhere."""
        raise ComesError(
            f"{self.path.name} declares a document type, which a list of labels does not need."
        )


def read_label_xml(path: Path) -> list[str]:
    """Return the label names of a Mulan XML file, in order; nothing outside the file is read."""
    parser = expat.ParserCreate(namespace_separator=" ")
    found = _LabelNames(path, parser)
    parser.StartElementHandler = found.add_label
    parser.StartDoctypeDeclHandler = found.refuse_document_type
    try:
        parser.Parse(path.read_bytes(), True)
    except ComesError:
        raise
    except (expat.ExpatError, OSError, LookupError, ValueError) as error:
        raise ComesError(f"{path.name} cannot be read as XML: {error}.") from None
    if not found.names:
        raise ComesError(f"{path.name} names no label; expected <label name=...>.")
    check_names(found.names)
    return found.names


def _parse_arff(path: Path) -> _Table:
    try:
        return _parse_as(path, "utf-8-sig")
    except UnicodeDecodeError:
        return _parse_as(path, "latin-1")  # which reads everything


def _parse_as(path: Path, encoding: str) -> _Table:
    import arff

    rows: list[Any] = []
    try:
        is_sparse = _is_sparse(path, encoding)
        kind_of_rows = arff.LOD_GEN if is_sparse else arff.DENSE_GEN
        with path.open(encoding=encoding) as lines:
            content = arff.load(lines, encode_nominal=True, return_type=kind_of_rows)
            rows.extend(content["data"])
    except (UnicodeDecodeError, ComesError):
        raise
    except (arff.ArffException, ValueError, OSError) as error:
        reason = str(error).replace("line -1", f"row {len(rows)}")
        raise ComesError(f"{path.name} cannot be read as ARFF: {reason}") from None
    if not rows:
        raise ComesError(f"{path.name} has no rows of data; expected at least one.")
    names = [str(name) for name, _ in content["attributes"]]
    kinds = [kind for _, kind in content["attributes"]]
    cells = _make_sparse_cells(rows, kinds) if is_sparse else _make_dense_cells(rows, kinds)
    return _Table(content["relation"], names, kinds, cells)


def _is_sparse(path: Path, encoding: str) -> bool:
    with path.open(encoding=encoding) as lines:
        in_data = False
        for line in lines:
            text = line.strip()
            if in_data and text and not text.startswith("%"):
                return text.startswith("{")
            in_data = in_data or text.lower().startswith("@data")
    if not in_data:
        raise ComesError(f"{path.name} cannot be read as ARFF: it has no line '@data'.")
    return False


def _is_text(kind: Any) -> bool:
    return isinstance(kind, str) and kind not in ("NUMERIC", "REAL", "INTEGER")


def _make_dense_cells(rows: list[list[Any]], kinds: Sequence[Any]) -> npt.NDArray[np.float64]:
    text = {j for j, kind in enumerate(kinds) if _is_text(kind)}
    if text:
        rows = [[np.nan if j in text else v for j, v in enumerate(row)] for row in rows]
    return np.array(rows, dtype=float)  # a missing value, None, is NaN


def _make_sparse_cells(rows: list[dict[int, Any]], kinds: Sequence[Any]) -> Any:
    text = {j for j, kind in enumerate(kinds) if _is_text(kind)}
    values: list[Any] = []
    columns: list[int] = []
    ends = [0]
    for row in rows:
        columns.extend(row)
        values.extend(np.nan if j in text else value for j, value in row.items())
        ends.append(len(columns))
    cells = np.array(values, dtype=float), np.array(columns, dtype=np.int32), np.array(ends)
    return sparse.csr_array(cells, shape=(len(ends) - 1, len(kinds))).tocsc()


def _find_declared_labels(
    path: Path, table: _Table, xml: str | Path | None, may_be_none: bool
) -> list[str]:
    """Return the labels that the XML file names, or that the relation counts."""
    beside = expanded(xml) if xml is not None else _find_xml_beside(path)
    if beside is not None:
        if not beside.is_file():
            raise ComesError(f"{beside} does not exist; expected the XML file of the labels.")
        names = read_label_xml(beside)
        missing = [name for name in names if name not in set(table.names)]
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


def _find_xml_beside(path: Path) -> Path | None:
    """Return name.xml for name.arff and for name-train.arff."""
    stems = ["-".join(path.stem.split("-")[:k]) for k in range(path.stem.count("-") + 1, 0, -1)]
    found = [path.with_name(f"{stem}.xml") for stem in stems]
    return next((xml for xml in found if xml.is_file()), None)


def _read_indicators(table: _Table, names: Sequence[str], path: Path) -> BoolMatrix:
    """Return the labels as a matrix, whatever two values they have."""
    columns = []
    for name in names:
        j = table.names.index(name)
        kind, codes = table.kinds[j], _read_column(table.cells, j)
        if isinstance(kind, list):
            numbers = np.array([TRUTHS.get(str(value).lower(), np.nan) for value in kind])
            codes = _replace_codes(codes, numbers)
        wrong = ~np.isin(codes, (0.0, 1.0))
        if wrong.any():
            row = int(wrong.argmax())
            shown = "nothing (?)" if np.isnan(_read_column(table.cells, j)[row]) else kind
            raise ComesError(
                f"label {name!r} of {path.name} should be 0 or 1; got {shown} at row {row}."
            )
        columns.append(codes == 1)
    return np.stack(columns, axis=1)


def _make_features(table: _Table, chosen: Sequence[int], path: Path) -> Any:
    """Return numeric and nominal attributes as numbers: a CSR matrix if the rows are sparse."""
    texts = [j for j in chosen if _is_text(table.kinds[j])]
    if texts:
        raise ComesError(
            f"attribute {table.names[texts[0]]!r} of {path.name} is of type "
            f"{table.kinds[texts[0]].lower()}, and features must be numbers. Ignore it (--ignore "
            "on the command line), or turn it into numbers."
        )
    X, names = table.cells[:, chosen], [table.names[j] for j in chosen]
    if not all(_codes_are_numbers(table.kinds[j]) for j in chosen):
        blocks = [_make_columns(table, j) for j in chosen]
        names = [name for _, block_names in blocks for name in block_names]
        stack = sparse.hstack if sparse.issparse(X) else np.hstack
        X = stack([block for block, _ in blocks])
    if sparse.issparse(X):
        return compact(sparse.csr_array(X))
    return pd.DataFrame(X, columns=names)


def _make_columns(table: _Table, j: int) -> tuple[Any, list[str]]:
    """Return the columns of one attribute, and their names."""
    kind, name = table.kinds[j], table.names[j]
    if _codes_are_numbers(kind):
        return table.cells[:, [j]], [name]
    codes, names = _read_column(table.cells, j), [name]
    try:
        columns = _replace_codes(codes, np.array([float(value) for value in kind]))[:, None]
    except ValueError:
        if len(kind) <= 2:
            return table.cells[:, [j]], names
        columns, names = codes[:, None] == np.arange(len(kind)), [f"{name}={v}" for v in kind]
    columns = columns.astype(float)
    return sparse.csc_array(columns) if sparse.issparse(table.cells) else columns, names


def _codes_are_numbers(kind: Any) -> bool:
    """Return whether an attribute is numeric, or nominal with the values 0, 1, 2, ..."""
    return not isinstance(kind, list) or kind == [str(place) for place in range(len(kind))]


def _replace_codes(
    codes: npt.NDArray[np.float64], numbers: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return what the codes stand for; a missing one stays missing."""
    missing = np.isnan(codes)
    return np.where(missing, np.nan, numbers[np.where(missing, 0, codes).astype(int)])


def _read_column(cells: Any, j: int) -> npt.NDArray[np.float64]:
    return np.asarray(cells[:, [j]].toarray().ravel() if sparse.issparse(cells) else cells[:, j])
