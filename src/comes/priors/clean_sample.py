"""A small sample with true labels, combined with what was estimated without any.

A few hundred rows with all their labels say how often each is relevant, with a known error. Where
somebody was asked about the same rows, they also say how often an answer is the true one. Both are
averaged with the estimates, each weighted by its precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import AnswerRates, Answers
from comes.answers.convert import BoolMatrix, as_relevant, check_paired, match_names
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]

POOLED_PAIRS = 10.0  # pairs of the mean over labels that are added to the count of every label


@dataclass(frozen=True, eq=False)
class CleanSample:
    """Rows whose true labels are known.

    Attributes
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features), or None
    relevant : bool array of shape (n_samples, n_labels)
    answers : Answers about the same rows, or None

    Examples
    --------
    >>> CleanSample.read((np.eye(2), [[1, 0], [0, 0]])).relevant.sum()
    np.int64(1)
    """

    X: Any
    relevant: BoolMatrix
    answers: Answers | None = None

    @classmethod
    def read(cls, clean: Any, label_names: Sequence[str] | None = None) -> "CleanSample":
        """Return the sample of ``clean=(X, relevant)`` or ``(X, relevant, answers)``.

        With names of labels, columns of a DataFrame and labels of answers that have names are
        matched to them. A `CleanSample` is taken as it is.
        """
        if isinstance(clean, CleanSample):
            return clean
        if not isinstance(clean, tuple) or len(clean) not in (2, 3):
            raise ComesError(
                "clean must be a tuple (X, relevant), or (X, relevant, answers) where somebody was "
                f"asked about the same rows; got {type(clean).__name__}."
            )
        check_paired(**dict(zip(("X", "relevant", "answers"), clean, strict=False)))
        X, relevant = clean[0], as_relevant(clean[1])
        answers = clean[2] if len(clean) == 3 else None
        if not isinstance(answers, Answers | None):
            raise ComesError(
                f"the answers of clean must be a comes.Answers; got {type(answers).__name__}. Make "
                "one: Answers(no=..., yes=..., maybe=...)."
            )
        rows = [np.shape(part)[0] for part in (X, relevant, answers) if part is not None]
        if len(set(rows)) > 1:
            raise ComesError(
                "clean must have the same rows in X, relevant and answers; got "
                f"{', '.join(map(str, rows))}."
            )
        if answers is not None and answers.shape != relevant.shape:
            raise ComesError(
                "the answers of clean must be about the labels of relevant; got "
                f"{answers.shape[1]} and {relevant.shape[1]} labels."
            )
        columns = getattr(clean[1], "columns", None)
        names = columns if label_names is None else label_names
        if names is None:
            return cls(X, relevant, answers)
        if relevant.shape[1] != len(names):
            raise ComesError(
                f"clean must have the {len(names)} labels of the answers; got {relevant.shape[1]}."
            )
        names = [str(name) for name in names]
        if columns is not None:
            relevant = relevant[:, match_names([str(name) for name in columns], names)]
        return cls(X, relevant, None if answers is None else answers.align_labels(names))


def update_prior(
    class_prior: npt.ArrayLike, error: npt.ArrayLike | None, relevant: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the class prior averaged with the shares of a clean sample, and its standard error.

    An error that is None or NaN leaves the prior to the sample.
    """
    truth = as_relevant(relevant)
    n = len(truth)
    share = (truth.sum(axis=0) + 0.5) / (n + 1)
    error = np.full(truth.shape[1], np.nan) if error is None else np.asarray(error, dtype=float)
    if (error < 0).any():
        raise ComesError(f"error, a standard error, must be 0 or more; got {error.tolist()}.")
    share_error = np.sqrt(share * (1 - share) / n)
    return _average(np.asarray(class_prior, float), error, share, share_error)


def update_rates(rates: AnswerRates, counted: AnswerRates) -> AnswerRates:
    """Return estimated rates averaged with counted ones."""
    updated: dict[str, Any] = {}
    for name in ("no", "yes"):
        value, error = getattr(rates, f"{name}_rate"), getattr(rates, f"{name}_error")
        count, count_error = getattr(counted, f"{name}_rate"), getattr(counted, f"{name}_error")
        if count_error is None or not (value > 0).any():  # an answer that nobody may give
            continue
        error = np.full(len(value), np.nan) if error is None else error
        value, error = _average(value, error, count, count_error)
        updated |= {f"{name}_rate": np.clip(value, 0, 1), f"{name}_error": error}
    return replace(rates, **updated)


def _average(
    first: FloatArray, first_error: FloatArray, second: FloatArray, second_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of two estimates, weighted by precision; NaN errors have no weight."""
    weights = [
        np.where(np.isfinite(error), 1 / np.maximum(error, 1e-6) ** 2, 0.0)
        for error in (first_error, second_error)
    ]
    total = np.maximum(weights[0] + weights[1], 1e-12)
    mean = (weights[0] * first + weights[1] * np.where(weights[1] > 0, second, 0)) / total
    return np.where(total > 1e-12, mean, first), 1 / np.sqrt(total)


def count_answer_rates(answers: Answers, relevant: npt.ArrayLike) -> AnswerRates:
    """Return the rates of answers about rows whose true labels are known, with standard errors.

    For candidates ``no_rate`` is the exclude rate. Ten pairs of the mean over labels are added to
    the count of a label; NaN where there is nothing to count at all.
    """
    truth, drawn = as_relevant(relevant), answers.without_chosen()
    if truth.shape != drawn.shape:
        raise ComesError(
            f"relevant must have the shape of the answers, {drawn.shape}; got {truth.shape}."
        )
    asked = np.ones(truth.shape, dtype=bool) if drawn.asked is None else drawn.asked
    a, a_error = _count_share(drawn.excluded, asked & ~truth)
    b, b_error = _count_share(drawn.confirmed, asked & truth)
    return AnswerRates(a, b, no_error=a_error, yes_error=b_error)


def _count_share(called_so: BoolMatrix, among: BoolMatrix) -> tuple[FloatArray, FloatArray]:
    """Return the share of pairs that were called so, by label, and its standard error."""
    n, k = among.sum(axis=0), (called_so & among).sum(axis=0)
    if n.sum() == 0:
        return np.full(len(n), np.nan), np.full(len(n), np.nan)
    pooled = k.sum() / n.sum()
    share = (k + POOLED_PAIRS * pooled) / (n + POOLED_PAIRS)
    middle = (k.sum() + 0.5) / (n.sum() + 1)
    return share, np.sqrt(middle * (1 - middle) / (n + POOLED_PAIRS))
