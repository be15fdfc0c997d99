"""Tables given to a classifier: columns found by name, and encoded where they are not numbers."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from comes.columns import ColumnEncoder, match_by_name, needs_encoding
from comes.errors import ComesError, listed


def learn_table(classifier: Any, X: Any) -> Any:
    """Return the matrix of a table to be trained on, and keep the encoder; others as they are.

    A table of complete numbers is no more than a matrix, unless the classifier was given an
    encoder.
    """
    if getattr(classifier, "warm_start", False) and hasattr(classifier, "encoder_"):
        return match_table(classifier, X)  # whose features the network knows
    vars(classifier).pop("encoder_", None)  # of an earlier fit
    given = getattr(classifier, "encoder", None)
    if not isinstance(X, pd.DataFrame) or 0 in X.shape or (given is None and not is_table(X)):
        return X
    classifier.encoder_ = ColumnEncoder() if given is None else clone(given)
    return classifier.encoder_.fit_transform(X)


def is_table(X: Any) -> bool:
    """Return whether X is a table that is more than complete numbers."""
    return isinstance(X, pd.DataFrame) and needs_encoding(X)


def name_inputs(classifier: Any) -> None:
    """Let the features of a classifier be the columns that its encoder uses."""
    encoder = find_encoder(classifier)
    if encoder is not None:
        classifier.feature_names_in_ = np.array(encoder.used_columns, dtype=object)
        classifier.n_features_in_ = len(encoder.used_columns)


def find_encoder(classifier: Any) -> ColumnEncoder | None:
    """Return the encoder of a fitted classifier, None if it takes numbers."""
    return getattr(classifier, "encoder_", None)


def count_inputs(classifier: Any) -> int:
    """Return how many numbers the network of a fitted classifier takes for a row."""
    encoder = find_encoder(classifier)
    return int(classifier.n_features_in_) if encoder is None else encoder.n_features


def match_table(classifier: Any, X: Any) -> Any:
    """Return rows to be predicted with their columns in the order of training, encoded if need be.

    Columns of a table are found by name; a matrix is returned as it is.
    """
    encoder = find_encoder(classifier)
    if encoder is not None:
        if not isinstance(X, pd.DataFrame):
            raise ComesError(
                "this model was trained on a table with the columns "
                f"{listed(encoder.used_columns)}; got {_describe(X)}. Pass a DataFrame."
            )
        return encoder.transform(X)
    names = getattr(classifier, "feature_names_in_", None)
    if names is None or not isinstance(X, pd.DataFrame):
        return X
    if list(X.columns) != list(names):
        X = match_by_name(X, [str(name) for name in names])
    _refuse_others(X)
    return X


def _refuse_others(X: pd.DataFrame) -> None:
    """Raise at the first cell that is no number, for a model that was trained on numbers alone."""
    for name in X.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes]]:
        numbers = pd.to_numeric(X[name], errors="coerce")
        wrong = (numbers.isna() & X[name].notna()).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise ComesError(
                f"column {name!r} must hold numbers, as in training; got {X[name].iloc[row]!r} at "
                f"row {row}. Correct it."
            )


def _describe(X: Any) -> str:
    shape = getattr(X, "shape", None)
    return f"a {type(X).__name__}" + ("" if shape is None else f" of shape {shape}")
