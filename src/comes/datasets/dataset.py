"""`Dataset`: features or images with candidate labels, true labels, or both."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import BoolMatrix, check_names, check_relevant_inside, match_names
from comes.datasets.images import Images
from comes.errors import ComesError

LabelsAre = Literal["candidates", "complementary"]
MATRICES = ("candidates", "relevant", "asked")


@dataclass(frozen=True)
class Dataset:
    """Rows of features and what is known about their labels, checked when made.

    Parameters
    ----------
    X : array, DataFrame, CSR matrix of shape (n_samples, n_features), Images, or None
        None where a file holds labels alone; `join_features` brings the two together.
    label_names : list of str
    candidates : bool array of shape (n_samples, n_labels), optional
    relevant : bool array of shape (n_samples, n_labels), optional
        The truth, where it is known.
    asked : bool array of shape (n_samples, n_labels), optional
        Where somebody answered, "no" or "maybe". A label that nobody was asked about stays a
        candidate, so this changes nothing in training.
    items : list of str, optional
        The names of the rows, each once.
    from_complementary : bool
        Whether the candidates were read from complementary labels.

    Examples
    --------
    >>> print(Dataset(np.eye(2), ["sky", "sea"], candidates=np.array([[1, 1], [0, 1]], dtype=bool)))
    2 rows, 2 features, 2 labels, 1.50 candidates per row
    """

    X: Any
    label_names: list[str]
    candidates: BoolMatrix | None = None
    relevant: BoolMatrix | None = None
    asked: BoolMatrix | None = None
    items: list[str] | None = None
    from_complementary: bool = False

    def __post_init__(self) -> None:
        if self.X is not None and not isinstance(self.X, Images):
            check_features(self.X)
        self._check_rows()

    def _check_rows(self) -> None:
        """Raise unless names and matrices fit together; features are not looked at."""
        check_names(self.label_names)
        check_item_names(self.items)
        self._check_shapes()
        if self.candidates is None and self.relevant is None:
            raise ComesError("a data set needs candidates, complementary or true labels; got none.")
        if self.candidates is not None and self.relevant is not None:
            check_relevant_inside(self.relevant, self.candidates, self.label_names)
        self._check_asked()

    def _check_shapes(self) -> None:
        """Raise unless all parts have the same rows and labels."""
        shape = (len(self), len(self.label_names))
        if 0 in shape:
            raise ComesError(
                f"a data set needs at least one row and one label; got {shape[0]} rows and "
                f"{shape[1]} labels."
            )
        for name in MATRICES:
            labels = getattr(self, name)
            if labels is not None and labels.shape != shape:
                raise ComesError(
                    f"there are {shape[0]} rows and {shape[1]} labels, so {name} must have "
                    f"shape {shape}; got {labels.shape}."
                )
        if self.items is not None and len(self.items) != len(self):
            raise ComesError(
                f"{len(self)} rows need as many names of items; got {len(self.items)}."
            )

    def _check_asked(self) -> None:
        """Raise if a label is excluded where nobody was asked."""
        if self.asked is None:
            return
        if self.candidates is None:
            raise ComesError("asked needs candidates, which hold the answers; got none.")
        if not (self.asked | self.candidates).all():
            raise ComesError(
                "a label is excluded where nobody was asked; candidates or asked must be wrong."
            )

    def _replace(self, **changes: Any) -> "Dataset":
        """Return a copy whose features are those of this data set, and need no second check."""
        changed = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        changed._check_rows()
        return changed

    def __len__(self) -> int:
        known = (self.X, self.candidates, self.relevant)
        first = next((part for part in known if part is not None), None)
        if first is None:
            raise ComesError("a data set needs features, candidates or true labels; got none.")
        return int(first.shape[0])

    def take(self, rows: npt.ArrayLike) -> "Dataset":
        """Return the data set of some rows, given by number or as a bool mask."""
        index = np.arange(len(self))[np.asarray(rows)]
        items = None if self.items is None else [self.items[row] for row in index]
        return self._replace(X=take_rows(self.X, index), items=items, **self._index_labels(index))

    def with_labels(self, label_names: Sequence[str]) -> "Dataset":
        """Return the data set with its labels matched to these names, and in their order."""
        order = match_names(self.label_names, label_names)
        every = slice(None), order
        return self._replace(label_names=list(label_names), **self._index_labels(every))

    def with_labels_as(self, labels_are: LabelsAre | None, source: str) -> "Dataset":
        """Return the data set with its truth taken for candidates or complementary labels.

        Candidates stay what they are. It is an error if the source says that its labels are of the
        other kind; the error names the source.
        """
        if labels_are is None:
            return self
        complementary = labels_are == "complementary"
        if self.candidates is not None:
            if complementary == self.from_complementary:
                return self
            raise ComesError(
                f"{source} says that its labels are "
                f"{'complementary' if self.from_complementary else 'candidates'}. Complementary "
                "labels are an array 'complementary' in an .npz file, or columns of a .csv or "
                ".parquet file."
            )
        marked = self.known_relevant()
        return self._replace(
            candidates=~marked if complementary else marked,
            relevant=None,
            from_complementary=complementary,
        )

    def _index_labels(self, index: Any) -> dict[str, BoolMatrix | None]:
        """Return the matrices of labels at some rows and columns."""
        matrices = {name: getattr(self, name) for name in MATRICES}
        return {name: None if m is None else m[index] for name, m in matrices.items()}

    def known_features(self) -> Any:
        """Return X as a matrix; raise if there is none."""
        if self.X is None:
            raise ComesError(
                "the data has labels alone, and features are needed too. Name the file that holds "
                "them (--features on the command line), with the same items."
            )
        if isinstance(self.X, Images):
            raise ComesError(
                "the data has images, and a matrix of features is needed. Use ImageClassifier, or "
                "'comes fit', for images; or name a file of features (--features)."
            )
        return self.X

    def known_images(self) -> Images:
        """Return the images; raise if there are none."""
        if not isinstance(self.X, Images):
            raise ComesError(
                "images are needed, and the data has none. Name their folder (--images)."
            )
        return self.X

    def known_candidates(self) -> BoolMatrix:
        """Return the candidates; raise if there are none."""
        if self.candidates is None:
            raise ComesError(
                "candidates or complementary labels are needed, and the data has only true "
                "labels. Name the columns of the candidates, make some with 'comes generate', or "
                "say with --candidates that the labels of the file are candidates."
            )
        return self.candidates

    def known_relevant(self) -> BoolMatrix:
        """Return the true labels; raise if they are not known."""
        if self.relevant is None:
            raise ComesError(
                "true labels are needed, and the data has none. Name their columns "
                "(--relevant on the command line), or add an array 'relevant' to the npz file."
            )
        return self.relevant

    def __str__(self) -> str:
        if self.X is None:
            rows = f"{len(self)} rows without features"
        elif isinstance(self.X, Images):
            rows = f"{len(self)} images"
        else:
            rows = f"{len(self)} rows, {self.X.shape[1]} features"
        parts = [rows, f"{len(self.label_names)} labels"]
        if self.candidates is not None:
            parts.append(f"{self.candidates.sum(axis=1).mean():.2f} candidates per row")
        if self.relevant is not None:
            parts.append(f"{self.relevant.sum(axis=1).mean():.2f} relevant per row")
            parts.append(f"{int((~self.relevant.any(axis=1)).sum())} rows without a relevant label")
        return ", ".join(parts)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of features or images, by number; None of None."""
    if X is None:
        return None
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def compact(X: Any) -> Any:
    """Return a sparse matrix in float32 if that loses nothing, as with counts."""
    with np.errstate(over="ignore"):
        small = X.astype(np.float32)
    return small if (small.data == X.data).all() else X.astype(np.float64)


def check_item_names(items: Sequence[str] | None) -> None:
    """Raise if the name of an item occurs more than once."""
    if items is None:
        return
    seen: set[str] = set()
    for row, name in enumerate(items):
        if name in seen:
            raise ComesError(
                f"the names of items must differ; {name!r} occurs again at row {row}. Keep one "
                "row per item."
            )
        seen.add(name)


def check_features(X: Any) -> None:
    """Raise unless X is a matrix of finite numbers with at least one row and column."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ComesError(
            f"features must be a matrix with at least one row and one column; got shape {X.shape}."
        )
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
