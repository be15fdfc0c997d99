"""The data given to an estimator: features, candidates with their names, numbers per label."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import assert_all_finite, validate_data

from comes.answers import (
    BoolMatrix,
    as_candidates,
    as_relevant,
    check_names,
    check_relevant_inside,
    from_complementary,
    match_names,
)
from comes.errors import ComesError, ComesWarning, listed
from comes.methods import DEFAULT, Method

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class NamedCandidates:
    """A candidate matrix and the names of its columns, read once and handed down."""

    matrix: BoolMatrix  # (n, q)
    label_names: list[str]  # (q,)

    @classmethod
    def read(
        cls,
        y: Any,
        candidates: Any = None,
        complementary: Any = None,
        label_names: Sequence[str] | None = None,
        *,
        require_candidates: bool = False,
    ) -> "NamedCandidates":
        """Return the candidates among the arguments of ``fit``, checked."""
        if candidates is not None and complementary is not None:
            raise ComesError("fit takes candidates= or complementary=, not both; got both.")
        given = candidates if candidates is not None else complementary
        if given is None:
            _check_y_may_be_candidates(y, require_candidates)
            given = y
        S = as_candidates(given) if complementary is None else from_complementary(given)
        names = _name_labels(given, S.shape[1], label_names)
        if given is not y and y is not None:
            check_relevant_inside(match_columns(as_relevant(y), y, names), S, names)
        return cls(S, names)


def _check_y_may_be_candidates(y: Any, require_candidates: bool) -> None:
    """Raise an error unless y, given alone, may be used as candidates."""
    if y is None:
        raise ComesError(
            "CandidateClassifier requires y to be passed, but the target y is None. "
            "Call fit(X, candidates), or fit(X, complementary=...)."
        )
    if require_candidates:
        raise ComesError(
            "require_candidates=True: fit wants candidates= or complementary=, and got only y, "
            "which may be the truth. In cross_validate pass params={'candidates': ...}."
        )


def _name_labels(values: Any, q: int, label_names: Sequence[str] | None) -> list[str]:
    """Return the given names, else those of the columns, else numbers."""
    columns = getattr(values, "columns", None)
    if label_names is None:
        label_names = range(q) if columns is None else columns  # type: ignore[assignment]
    elif columns is not None:
        raise ComesError(
            "label_names are for an array of candidates; got a DataFrame, which names its columns. "
            "Leave label_names out, or rename the columns."
        )
    names = [str(name) for name in label_names]  # type: ignore[union-attr]
    if len(names) != q:
        raise ComesError(f"label_names must name each of {q} labels; got {len(names)} names.")
    check_names(names)
    return names


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
        A Series is matched by name. One number stands for all labels if it is a flip rate.
    name : {"class_prior", "flip_rate"}
        What an error message calls them.
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
    q = len(label_names)
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.full(q, np.nan)
    if name == "flip_rate" and numbers.shape == ():
        numbers = np.full(q, float(numbers))
    if numbers.shape != (q,) or not ((numbers >= 0) & (numbers <= 1)).all():
        raise ComesError(
            f"{name} must hold one number in [0, 1] for each of the {q} labels; got {values!r}."
        )
    names = getattr(values, "index", None)
    if names is not None and not callable(names):  # a Series; lists have a method index
        numbers = numbers[match_names([str(name) for name in names], label_names)]
    return numbers


def check_training_features(classifier: Any, X: Any) -> Any:
    """Return X as a finite float matrix, dense or CSR; keep the names of its features."""
    X = as_feature_matrix(classifier, X, reset=True)
    check_entries(X)
    return X


def as_feature_matrix(classifier: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float matrix, dense or CSR, without checking its entries."""
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


def check_same_rows(X: Any, candidates: BoolMatrix) -> None:
    """Raise an error unless features and candidates have the same number of rows."""
    if len(candidates) != X.shape[0]:
        raise ComesError(
            f"X and candidates must have the same number of rows; got {X.shape[0]} and "
            f"{len(candidates)}. Found input variables with inconsistent numbers of samples."
        )


def warn_of_idle_labels(S: BoolMatrix, label_names: list[str], method: Method) -> None:
    """Warn of labels from which nothing, or only one thing, can be learned."""
    n_candidate = S.sum(axis=0)
    never = [label_names[j] for j in np.flatnonzero(n_candidate == len(S))]
    always = [label_names[j] for j in np.flatnonzero(n_candidate == 0)]
    if never:
        _warn(f"No row excludes label {listed(never)}: {_effect_of_no_exclusion(method)}")
    if always:
        _warn(f"Every row excludes label {listed(always)}: {_effect_of_no_candidate(method)}")
    if S.shape[1] == 1 and (method.is_over_pairs or method.needs_transition):
        _warn(f"This risk needs two labels; with one nothing is learned. Take method={DEFAULT!r}.")


def _effect_of_no_exclusion(method: Method) -> str:
    """Return what becomes of a label that no row excludes."""
    if method.is_over_pairs:
        return "nothing pushes its scores down, and they mean nothing."
    if method.needs_class_prior:
        return (
            "it is left out of the risk, since nothing shows where it is irrelevant, and its "
            "scores mean nothing."
        )
    if method.is_users_own or method.needs_transition:
        return "nothing shows where it is irrelevant."
    return "it is taken for relevant everywhere."


def _effect_of_no_candidate(method: Method) -> str:
    """Return what becomes of a label that every row excludes."""
    if method.needs_class_prior:
        return "it is learned as irrelevant; its class prior is taken as 0."
    if method.is_users_own or method.needs_transition or method.keeps_one_excluded:
        return "nothing shows where it is relevant."
    return "it is learned as irrelevant."


def warn_of_impossible_prior(
    prior: npt.NDArray[np.float64], S: BoolMatrix, label_names: list[str]
) -> None:
    """Warn of priors above the share of rows in which the label is a candidate at all."""
    rate = S.mean(axis=0)
    sampling_error = np.sqrt(prior * (1 - prior) / len(S))
    too_high = [label_names[j] for j in np.flatnonzero(prior > rate + 4 * sampling_error + 1e-9)]
    if too_high:
        _warn(
            f"The class prior of label {listed(too_high)} is above the share of rows in which it "
            "is a candidate, so it cannot be right; or are these complementary labels? Then pass "
            "them as complementary=."
        )


def _warn(message: str) -> None:
    warnings.warn(message, ComesWarning, stacklevel=5)
