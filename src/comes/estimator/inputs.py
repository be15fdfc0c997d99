"""The numbers given to an estimator: features, and one per label."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import assert_all_finite, validate_data

from comes.answers import Answers
from comes.answers.convert import BoolMatrix, check_paired, match_names
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator.table_inputs import find_encoder, learn_table, match_table, name_inputs

FEW = 100  # rows that are looked at first
LARGEST = float(np.finfo(np.float32).max)


def match_columns(matrix: BoolMatrix, values: Any, label_names: list[str]) -> BoolMatrix:
    """Return the columns in the order of the label names, if the values name their columns."""
    if not hasattr(values, "columns"):
        return matrix
    return matrix[:, match_names([str(name) for name in values.columns], label_names)]


def per_label(values: Any, name: str, label_names: list[str]) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1] per label.

    Parameters
    ----------
    values : array or Series of shape (n_labels,)
        A Series is matched by name. One number stands for all labels if it is a rate.
    name : str
        What an error message calls them: "class_prior", "flip_rate", "exclude_rate" ...
    label_names : list of str

    Returns
    -------
    numbers : array of shape (n_labels,)

    Examples
    --------
    >>> import pandas as pd
    >>> prior = pd.Series({"sea": 0.1, "sky": 0.4})
    >>> per_label(prior, "class_prior", ["sky", "sea"])
    array([0.4, 0.1])
    """
    q, names, given = len(label_names), label_names, values
    index = getattr(values, "index", None)
    if index is not None and not callable(index):  # a Series; lists have a method index
        names = [str(label) for label in index]
        given = values.tolist()
    try:
        numbers = np.array(given, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array([_read_number(value) for value in given] if _is_list(given) else np.nan)
    if name != "class_prior" and numbers.shape == () and np.isfinite(numbers):
        numbers = np.full(q, float(numbers))
    _refuse_numbers(numbers, given, name, names, label_names)
    return numbers if names is label_names else numbers[match_names(names, label_names)]


def _refuse_numbers(
    numbers: npt.NDArray[np.float64],
    given: Any,
    name: str,
    names: list[str],
    label_names: list[str],
) -> None:
    """Raise unless there is a number in [0, 1] for every label, and not 0 for all priors."""
    wanted = f"{name} must hold one number in [0, 1] for each of the {len(label_names)} labels"
    named = set(names)
    missing = [label for label in label_names if label not in named]
    if numbers.ndim == 1 and missing and len(missing) < len(label_names):
        raise ComesError(f"{wanted}; got none for {listed(missing)}. Add it.")
    if numbers.shape != (len(label_names),):
        got = f"{len(numbers)} numbers" if numbers.ndim == 1 else repr(given)
        raise ComesError(f"{wanted}; got {got}.")
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))
    if len(wrong):
        value = given[wrong[0]] if _is_list(given) else numbers[wrong[0]]
        shown = repr(value) if isinstance(value, str) else value
        raise ComesError(f"{wanted}; got {shown} for label {names[wrong[0]]!r}. Correct it.")
    if name == "class_prior" and not numbers.any():
        raise ComesError(
            "class_prior must be above 0 for some label; got 0 for every one, as if nothing were "
            "ever relevant. Correct it, or leave it out: then it is estimated."
        )


def _is_list(given: Any) -> bool:
    return isinstance(given, list | tuple)


def _read_number(value: Any) -> float:
    """Return a number, NaN for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def check_training_features(classifier: Any, X: Any) -> Any:
    """Return X as a finite float matrix, dense or CSR; keep its encoder and names of features."""
    X = _validate(classifier, learn_table(classifier, X), reset=True)
    name_inputs(classifier)
    check_entries(X)
    return X


def warn_of_constant(X: Any) -> None:
    """Warn if all rows are the same: nothing can tell them apart."""
    if sparse.issparse(X) or len(X) < 2 or not (X[:FEW] == X[0]).all():  # most end here
        return
    if (X[0] == X).all():
        warnings.warn(
            "every feature is constant, so nothing tells the rows apart: every prediction will be "
            "the same. Add features.",
            ComesWarning,
            stacklevel=3,
        )


def as_feature_matrix(classifier: Any, X: Any) -> Any:
    """Return X for a fitted classifier as a float matrix, dense or CSR, without checking entries.

    Columns of a table are found by name, and encoded as in training.
    """
    X = match_table(classifier, X)
    return X if find_encoder(classifier) is not None else _validate(classifier, X, reset=False)


def _validate(classifier: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float matrix; ``reset`` sets the number and the names of features."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise ComesError(
            "X holds dates; expected numbers. Pass a DataFrame with a column of dates, or turn "
            "them into numbers."
        )
    try:
        return validate_data(
            classifier,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )
    except ValueError as error:
        message = " ".join(line.strip() for line in str(error).splitlines())
        if "Complex" in message:
            message = _ask_for_finite(error)
        raise ComesError(message) from error


def check_entries(X: Any) -> None:
    """Raise unless every entry is finite and fits into float32."""
    if has_finite_entries(X, LARGEST):
        return
    try:
        assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X")
    except ValueError as error:
        raise ComesError(_ask_for_finite(error)) from error
    raise ComesError(
        "X contains values too large for float32 (over 3.4e38): divide that feature, take its "
        "logarithm, or drop it."
    )


def has_finite_entries(X: Any, largest: float = np.inf) -> bool:
    """Return whether all entries are finite and none is larger, in one pass over X."""
    values = X.data if sparse.issparse(X) else X
    if values.size == 0:
        return True
    with np.errstate(invalid="ignore"):
        extreme = max(float(values.max()), -float(values.min()))  # NaN if there is one
    return extreme < np.inf and extreme <= largest


def _ask_for_finite(error: ValueError) -> str:
    """Return the first line of scikit-learn's message, and what to do."""
    return f"{str(error).splitlines()[0]} X must be finite and real: fill or drop those entries."


def check_same_order(X: Any, labels: Any) -> None:
    """Raise an error if two DataFrames do not name the same rows in the same order."""
    check_paired(X=X, labels=labels)


def check_same_rows(X: Any, answers: Answers) -> None:
    """Raise an error unless features and answers have the same number of rows."""
    if len(answers) != X.shape[0]:
        raise ComesError(
            f"X and candidates must have the same number of rows; got {X.shape[0]} and "
            f"{len(answers)}. Found input variables with inconsistent numbers of samples."
        )
