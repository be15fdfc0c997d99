"""`Dataset`: features or images with candidate labels, true labels, or both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.datasets.images import Images, open_images
from comes.errors import ComesError
from comes.labels import BoolMatrix, check_names, check_relevant_inside, match_names


@dataclass(frozen=True)
class Dataset:
    """Rows of features and what is known of their labels, checked when made.

    Parameters
    ----------
    X : array, DataFrame, CSR matrix of shape (n_samples, n_features), Images, or None
        None where a file holds labels alone; `join_features` brings the two together.
    label_names : list of str
    candidates : bool array of shape (n_samples, n_labels), optional
    relevant : bool array of shape (n_samples, n_labels), optional
        The truth, where it is known.
    asked : bool array of shape (n_samples, n_labels), optional
        Where somebody answered, be it "no" or "maybe". A label that nobody was asked about stays
        a candidate, so this changes nothing in training.
    items : list of str, optional
        The names of the rows, each once.
    from_complementary : bool
        Whether the file had complementary labels, of which these candidates are the other view.

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
        check_names(self.label_names)
        check_item_names(self.items)
        shape = (len(self), len(self.label_names))
        if 0 in shape:
            raise ComesError(
                f"a data set needs at least one row and one label; got {shape[0]} rows and "
                f"{shape[1]} labels."
            )
        matrices = {
            "candidates": self.candidates,
            "relevant": self.relevant,
            "asked": self.asked,
        }
        for name, labels in matrices.items():
            if labels is not None and labels.shape != shape:
                raise ComesError(
                    f"there are {shape[0]} rows and {shape[1]} labels, so {name} must have "
                    f"shape {shape}; got {labels.shape}."
                )
        if self.items is not None and len(self.items) != len(self):
            raise ComesError(
                f"{len(self)} rows need as many names of items; got {len(self.items)}."
            )
        if self.candidates is None and self.relevant is None:
            raise ComesError(
                "a data set needs candidates, complementary or true labels; got none of them."
            )
        if self.candidates is not None and self.relevant is not None:
            check_relevant_inside(self.relevant, self.candidates, self.label_names)
        if self.asked is not None:
            if self.candidates is None:
                raise ComesError("where somebody was asked needs candidates, the answers.")
            if not (self.asked | self.candidates).all():
                raise ComesError(
                    "a label is excluded where nobody was asked; one of the two must be wrong."
                )

    def __len__(self) -> int:
        known = (self.X, self.candidates, self.relevant)
        first = next((part for part in known if part is not None), None)
        if first is None:
            raise ComesError("a data set needs features, candidates or true labels; got none.")
        return int(first.shape[0])

    def take(self, rows: npt.ArrayLike) -> "Dataset":
        """Return the data set of some rows, given by number or as a bool mask."""
        index = np.arange(len(self))[np.asarray(rows)]
        X = self.X
        if X is not None:
            X = X.iloc[index] if isinstance(X, pd.DataFrame) else X[index]
        candidates, relevant, asked = (
            None if labels is None else labels[index]
            for labels in (self.candidates, self.relevant, self.asked)
        )
        items = None if self.items is None else [self.items[row] for row in index]
        return replace(
            self, X=X, candidates=candidates, relevant=relevant, asked=asked, items=items
        )

    def with_labels(self, label_names: Sequence[str]) -> "Dataset":
        """Return the data set with its labels matched to these names, and in their order."""
        order = match_names(self.label_names, label_names)
        candidates, relevant, asked = (
            None if labels is None else labels[:, order]
            for labels in (self.candidates, self.relevant, self.asked)
        )
        return replace(
            self,
            label_names=list(label_names),
            candidates=candidates,
            relevant=relevant,
            asked=asked,
        )

    def known_features(self) -> Any:
        """Return X as a matrix; raise if there is none."""
        if self.X is None:
            raise ComesError(
                "the data has labels alone, and features are needed too. Name the file that holds "
                "them (--features on the command line), with the same items."
            )
        if isinstance(self.X, Images):
            raise ComesError(
                "the data has images, and a matrix of features is needed. Take ImageClassifier, or "
                "'comes fit', for images; or name a file of features (--features)."
            )
        return self.X

    def known_images(self) -> Images:
        """Return the images; raise if there are none."""
        if not isinstance(self.X, Images):
            raise ComesError(
                "the model is one of images, and the data has none: name their folder (--images)."
            )
        return self.X

    def candidates_with_names(self) -> pd.DataFrame:
        """Return the candidates with the label names as columns; raise if there are none."""
        if self.candidates is None:
            raise ComesError(
                "candidates or complementary labels are needed to fit, and the data has only true "
                "labels. Name the columns of the candidates, make some with 'comes generate', or "
                "say with --candidates that the labels of the file are candidates."
            )
        return pd.DataFrame(self.candidates, columns=pd.Index(self.label_names))

    def known_relevant(self) -> BoolMatrix:
        """Return the true labels; raise if they are not known."""
        if self.relevant is None:
            raise ComesError(
                "true labels are needed, and the data has none of them. Name their columns "
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


def join_features(dataset: Dataset, X: Any, items: Sequence[str] | None) -> Dataset:
    """Return the data set with these features, matched by the names of the items.

    Examples
    --------
    >>> answers = Dataset(None, ["sky"], np.array([[True], [False]]), items=["b", "a"])
    >>> join_features(answers, np.array([[1.0], [2.0]]), ["a", "b"]).X
    array([[2.],
           [1.]])
    """
    if dataset.items is None or items is None:
        if dataset.items is None and items is None and X.shape[0] == len(dataset):
            return replace(dataset, X=X)
        raise ComesError(
            f"features are matched by the names of the items: {len(dataset)} rows of labels "
            f"{'have' if dataset.items is not None else 'lack'} them, {X.shape[0]} rows of "
            f"features {'have' if items is not None else 'lack'} them. Add a column 'item' (an "
            "array 'items' in .npz)."
        )
    check_item_names(items)
    place = {name: row for row, name in enumerate(items)}
    missing = [name for name in dataset.items if name not in place]
    if missing:
        raise ComesError(
            f"{len(missing)} items have labels and no features (first: {missing[0]!r}). Add them "
            "to the file of features, or leave them out of the labels."
        )
    rows = [place[name] for name in dataset.items]
    return replace(dataset, X=X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows])


def join_rows(first: Dataset, second: Dataset) -> Dataset:
    """Return a data set with the rows of two, which have the same labels and kind of features.

    Examples
    --------
    >>> one = Dataset(np.eye(2), ["sky"], relevant=np.array([[True], [False]]))
    >>> join_rows(one, one).X.shape
    (4, 2)
    """

    def both(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        if isinstance(a, Images):
            return Images.joined([a, b])
        return sparse.vstack([a, b], "csr") if sparse.issparse(a) else np.concatenate([a, b])

    return Dataset(
        both(first.X, second.X),
        first.label_names,
        both(first.candidates, second.candidates),
        both(first.relevant, second.relevant),
    )


def join_images(dataset: Dataset, source: str | Path, skip_broken: bool = False) -> Dataset:
    """Return the data set with the images of a folder or zip that its items name."""
    if dataset.items is None:
        raise ComesError(
            "images are found by the names of the items, and the data has none. Name them in a "
            "column 'image'."
        )
    images, kept = open_images(source, dataset.items, skip_broken)
    return replace(dataset if len(kept) == len(dataset) else dataset.take(kept), X=images)


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
