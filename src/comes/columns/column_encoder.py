"""`ColumnEncoder`: a table of numbers, categories, flags, dates and texts as one matrix."""

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from comes.columns.column_kinds import Column, describe_columns, needs_encoding
from comes.columns.embedding_columns import EmbeddingPart
from comes.columns.encoded_columns import (
    Arrays,
    CategoryPart,
    DatePart,
    FlagPart,
    NumberPart,
    Part,
    read_missing,
)
from comes.columns.raw_cells import Cells
from comes.columns.text_columns import TfidfPart
from comes.errors import ComesError, ComesWarning, listed

PARTS: dict[str, type[Part]] = {
    part.kind: part
    for part in (NumberPart, FlagPart, CategoryPart, DatePart, TfidfPart, EmbeddingPart)
}
MOST_DENSE = 512  # features, beyond which those of categories are stored sparse
MANY_ROWS = 5  # in fewer rows, a column without a value is nothing special


class ColumnEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into a matrix: numbers, categories, true and false, dates and texts.

    Each column is looked at by itself, and never at a label. Columns that name the rows, hold one
    value or none, or are to be ignored, are left out. What was learned can be stored without
    pickle: `state`.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        What columns are taken for, by name, where `describe_columns` would guess wrongly:
        "number", "category", "boolean", "date", "text" or "ignored".
    text : str
        What becomes of texts: "tfidf", or the name of an embedding, as `open_embedding` takes it.

    Attributes
    ----------
    columns_ : tuple of Column
        What every column was taken for, and why.
    parts_ : tuple
        What was learned of each column that is used.

    Examples
    --------
    >>> colours = ["red", "blue", "red", "red"]
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 3.0], "colour": colours})
    >>> encoder = ColumnEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size is missing', 'colour = blue', 'colour = red']
    >>> encoder.transform(frame[["colour", "size"]])[1]
    array([0., 0., 1., 0.], dtype=float32)
    """

    def __init__(self, kinds: Mapping[str, str] | None = None, text: str = "tfidf") -> None:
        self.kinds = kinds
        self.text = text

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Find what every column is, and learn what its features need.

        Parameters
        ----------
        X : DataFrame of shape (n_rows, n_columns)
        y : None
            Not used.
        """
        self._learn(X)
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any = None) -> Any:
        """Fit to a table, and return its matrix."""
        self._learn(X)
        return self._encode(X)[0]

    def transform(self, X: pd.DataFrame) -> Any:
        """Return the features of a table, whose columns are found by name.

        Parameters
        ----------
        X : DataFrame of shape (n_rows, n_columns)
            A column that is not there is an error, an unknown one is ignored with a warning.

        Returns
        -------
        matrix : float32 array or CSR array of shape (n_rows, n_features)
            Sparse if there are texts or many categories.
        """
        check_is_fitted(self)
        matched = match_by_name(X, self.used_columns, [column.name for column in self.columns_])
        matrix, notes = self._encode(matched)
        if notes:
            warnings.warn("; ".join(notes) + ".", ComesWarning, stacklevel=2)
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features, (n_features,)."""
        check_is_fitted(self)
        return np.array([name for part in self.parts_ for name in part.names], dtype=object)

    @property
    def used_columns(self) -> list[str]:
        """The columns that features are made of."""
        return [column.name for column in self.columns_ if column.is_used]

    @property
    def word_columns(self) -> list[str]:
        """The columns whose cells are read as they are written: all but numbers and flags."""
        return [c.name for c in self.columns_ if c.kind in ("category", "text", "date")]

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(len(part.names) for part in self.parts_)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what was learned, as a value that json can hold, and as arrays by name."""
        check_is_fitted(self)
        described: list[dict[str, Any]] = []
        arrays: Arrays = {}
        for number, part in enumerate(self.parts_):
            spec, own = part.spec()
            described.append(spec)
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
        columns = [vars(column) for column in self.columns_]
        kinds = None if self.kinds is None else dict(self.kinds)
        return {"kinds": kinds, "text": self.text, "columns": columns, "parts": described}, arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the encoder that `state` described.

        Examples
        --------
        >>> frame = pd.DataFrame({"colour": ["red", "blue", "red", None]})
        >>> encoder = ColumnEncoder().fit(frame)
        >>> again = ColumnEncoder.from_state(*encoder.state())
        >>> bool((again.transform(frame) == encoder.transform(frame)).all())
        True
        """
        encoder = cls(state["kinds"], state["text"])
        encoder.columns_ = tuple(Column(**column) for column in state["columns"])
        parts = []
        for number, spec in enumerate(state["parts"]):
            start = f"{number}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            parts.append(PARTS[spec["kind"]].restore(spec, own))
        encoder.parts_ = tuple(parts)
        return encoder

    def _learn(self, X: pd.DataFrame) -> None:
        """Set what is learned of a table."""
        if not isinstance(X, pd.DataFrame):
            raise ComesError(
                f"a table must be a pandas DataFrame, whose columns have names; got {type(X)}."
            )
        columns = describe_columns(X, self.kinds)
        if not any(column.is_used for column in columns):
            shown = "; ".join(f"{c.name!r} is taken for {c.kind} ({c.why})" for c in columns[:5])
            raise ComesError(
                f"no column is left to learn from: {shown}. Add columns, or say what one is "
                "(kinds; --category or --text on the command line)."
            )
        cells = dict(zip((str(name) for name in X.columns), range(X.shape[1]), strict=True))
        parts = [self._fit_part(c, X.iloc[:, cells[c.name]]) for c in columns if c.is_used]
        n_features = {part.column: len(part.names) for part in parts}
        self.columns_ = tuple(replace(c, n_features=n_features.get(c.name, 0)) for c in columns)
        self.parts_ = tuple(parts)
        _warn_of_learned(parts, {c.name: c for c in columns}, X.set_axis(list(cells), axis=1))

    def _fit_part(self, column: Column, cells: Any) -> Part:
        """Return what makes features of a column."""
        if column.kind == "text" and self.text != TfidfPart.kind:
            return EmbeddingPart.look_up(column, self.text)
        part = TfidfPart if column.kind == "text" else PARTS[column.kind]
        return part.fit(column, cells)

    def _encode(self, X: pd.DataFrame) -> tuple[Any, list[str]]:
        """Return the matrix of a table whose columns are there, and what is to be said."""
        places = {str(name): place for place, name in enumerate(X.columns)}
        encoded = [part.encode(X.iloc[:, places[part.column]]) for part in self.parts_]
        matrices = [one.matrix for one in encoded]
        notes = [one.note for one in encoded if one.note is not None]
        notes += [
            f"column {part.column!r} holds nothing that training saw in any of {len(X)} rows"
            for part, matrix in zip(self.parts_, matrices, strict=True)
            if part.names and _says_nothing(part, X.iloc[:, places[part.column]], matrix)
        ]
        kinds = {part.kind for part in self.parts_}
        is_wide = self.n_features > MOST_DENSE and EmbeddingPart.kind not in kinds
        if is_wide or TfidfPart.kind in kinds:
            whole = sparse.hstack(matrices, format="csr", dtype=np.float32)
            return sparse.csr_array(whole), notes
        dense = [m.toarray() if sparse.issparse(m) else m for m in matrices]
        return np.hstack(dense), notes


def _warn_of_learned(parts: Sequence[Part], columns: Mapping[str, Column], X: pd.DataFrame) -> None:
    """Warn of cells that count as missing, and of texts without a word to learn from."""
    said = []
    for part in parts:
        column = columns[part.column]
        n_empty = read_missing(X[column.name]).sum()
        if column.kind in ("number", "date") and column.n_missing > n_empty:
            said.append(f"column {column.name!r} is taken for {column.kind}s: {column.why}")
        if not part.names:
            said.append(
                f"column {column.name!r} is taken for {column.kind}, and has no word to use"
            )
    if said:
        warnings.warn("; ".join(said) + ".", ComesWarning, stacklevel=4)


def _says_nothing(part: Part, cells: Cells, matrix: Any) -> bool:
    """Return whether no row of a column tells anything: all empty, or texts of unknown words."""
    if len(cells) < MANY_ROWS:
        return False
    if part.kind == "tfidf":
        return bool(matrix.count_nonzero() == 0)
    return bool(read_missing(cells).all())


def encode_table(X: Any) -> Any:
    """Return X as it is, or as a matrix if it is a table that is more than complete numbers.

    Examples
    --------
    >>> encode_table(pd.DataFrame({"colour": ["red", "blue"]}))
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    if isinstance(X, pd.DataFrame) and 0 not in X.shape and needs_encoding(X):
        return ColumnEncoder().fit_transform(X)
    return X


def match_by_name(
    frame: pd.DataFrame, wanted: Sequence[str], known: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the wanted columns of a frame, in their order.

    A missing one is an error: it is more often misspelt than unknown for every row, and filling
    it in would make predictions worse without a sign. Columns that are not known are ignored with
    a warning.

    Parameters
    ----------
    frame : DataFrame
    wanted : sequence of str
    known : sequence of str
        Columns that may be there without a word.

    Examples
    --------
    >>> frame = pd.DataFrame({"red": [0.1], "blue": [0.2]})
    >>> list(match_by_name(frame, ["blue", "red"]).columns)
    ['blue', 'red']
    >>> match_by_name(frame, ["blue", "Red"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: column 'Red' is missing; there are 'red', 'blue'. Did you mean ...
    """
    names = [str(name) for name in frame.columns]
    places = {name: place for place, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    if missing:
        near = difflib.get_close_matches(missing[0].casefold(), map(str.casefold, names), n=1)
        close = [name for name in names if near and name.casefold() == near[0]]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ComesError(
            f"{_name_columns(missing)} missing; there are {listed(names)}.{hint} If nothing is "
            "known of it, add it with empty cells."
        )
    if len(places) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ComesError(f"columns must have different names; {repeated!r} occurs twice.")
    may_be_there = {*wanted, *known}
    extra = [name for name in names if name not in may_be_there]
    if extra:
        said = f"{_name_columns(extra)} not known to the model and ignored."
        warnings.warn(said, ComesWarning, stacklevel=3)
    return frame.iloc[:, [places[name] for name in wanted]]


def _name_columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r} is" if len(names) == 1 else f"columns {listed(names)} are"
