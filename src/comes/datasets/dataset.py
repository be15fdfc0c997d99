"""`Dataset`: features with candidate labels, true labels, or both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.errors import ComesError
from comes.labels import BoolMatrix, check_names, check_relevant_inside, match_names


@dataclass(frozen=True)
class Dataset:
    """Rows of features and what is known of their labels, checked when made.

    Parameters
    ----------
    X : array, DataFrame or CSR matrix of shape (n_samples, n_features)
    label_names : list of str
    candidates : bool array of shape (n_samples, n_labels), optional
    relevant : bool array of shape (n_samples, n_labels), optional
        The truth, where it is known.
    from_complementary : bool
        Whether the file had complementary labels, of which these candidates are the other view.
    """

    X: Any
    label_names: list[str]
    candidates: BoolMatrix | None = None
    relevant: BoolMatrix | None = None
    from_complementary: bool = False

    def __post_init__(self) -> None:
        check_features(self.X)
        check_names(self.label_names)
        shape = (self.X.shape[0], len(self.label_names))
        for name, labels in (("candidates", self.candidates), ("relevant", self.relevant)):
            if labels is not None and labels.shape != shape:
                raise ComesError(
                    f"X has {shape[0]} rows and there are {shape[1]} labels, so {name} must have "
                    f"shape {shape}; got {labels.shape}."
                )
        if self.candidates is not None and self.relevant is not None:
            check_relevant_inside(self.relevant, self.candidates, self.label_names)

    def with_labels(self, label_names: Sequence[str]) -> "Dataset":
        """Return the data set with its labels matched to these names, and in their order."""
        order = match_names(self.label_names, label_names)
        candidates, relevant = (
            None if labels is None else labels[:, order]
            for labels in (self.candidates, self.relevant)
        )
        return replace(
            self, label_names=list(label_names), candidates=candidates, relevant=relevant
        )

    def candidates_with_names(self) -> pd.DataFrame:
        """Return the candidates with the label names as columns; raise if there are none."""
        if self.candidates is None:
            raise ComesError(
                "candidates or complementary labels are needed to fit, and the data has only true "
                "labels. Name the columns of the candidates, or make some with comes.generation."
            )
        return pd.DataFrame(self.candidates, columns=pd.Index(self.label_names))

    def known_relevant(self) -> BoolMatrix:
        """Return the true labels; raise if they are not known."""
        if self.relevant is None:
            raise ComesError(
                "true labels are needed to evaluate, and the data has none. Name their columns "
                "(--relevant on the command line), or add an array 'relevant' to the npz file."
            )
        return self.relevant

    def __str__(self) -> str:
        n, d = self.X.shape
        parts = [f"{n} rows, {d} features, {len(self.label_names)} labels"]
        if self.candidates is not None:
            parts.append(f"{self.candidates.sum(axis=1).mean():.2f} candidates per row")
        if self.relevant is not None:
            parts.append(f"{self.relevant.sum(axis=1).mean():.2f} relevant per row")
            parts.append(f"{int((~self.relevant.any(axis=1)).sum())} rows without a relevant label")
        return ", ".join(parts)


def check_features(X: Any) -> None:
    """Raise unless X is a matrix of finite numbers with at least one row and column."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ComesError(
            f"features must be a matrix with at least one row and one column; got shape {X.shape}."
        )
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if not np.issubdtype(values.dtype, np.number) and values.dtype != np.bool_:
        raise ComesError(f"features must be numbers; got {values.dtype}.")
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
