"""Scores and what is known about their rows, checked, and ready to be counted."""

import warnings

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from comes.answers import Answers, BoolMatrix, as_candidates
from comes.errors import ComesError, ComesWarning
from comes.priors import ClassPriorEstimate
from comes.selection.resampling import Rows

FloatArray = npt.NDArray[np.float64]


def check_rows(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None,
) -> tuple[Rows, FloatArray]:
    """Return the rows and the class prior, or raise an error if they do not fit together."""
    values = np.asarray(scores, dtype=np.float64)
    S, confirmed = read_answers(candidates)
    prior = check_scores(values, S, class_prior)
    if predictions is None:
        _warn_of_probabilities(values)
    predicted = values > 0 if predictions is None else np.asarray(predictions).astype(bool)
    if predicted.shape != S.shape:
        raise ComesError(
            f"predictions must have the shape of scores, {S.shape}; got {predicted.shape}."
        )
    below = rankdata(values, axis=1) - 1  # tied labels share their mean rank, so each counts half
    predicted, excluded, yes = (mask.astype(float) for mask in (predicted, ~S, confirmed))
    return Rows(values, predicted, excluded, yes, below), prior


def read_answers(candidates: npt.ArrayLike | Answers) -> tuple[BoolMatrix, BoolMatrix]:
    """Return which labels are still possible, and which have a "yes", (n, q) each.

    Of answers, only those to questions that were drawn at random count.
    """
    if isinstance(candidates, Answers):
        drawn = candidates.drawn()
        return drawn.candidates, drawn.confirmed
    possible = as_candidates(candidates)
    return possible, np.zeros_like(possible)


def _warn_of_probabilities(scores: FloatArray) -> None:
    """Warn of scores that are cut at 0, but look as if that were the least value."""
    if scores.size > 1 and scores.min() >= 0 and 0 < scores.max() <= 1:
        warnings.warn(
            "scores must be above 0 where a label is predicted; got only numbers in [0, 1], which "
            "look like probabilities. Pass predictions=, for example scores > 0.5.",
            ComesWarning,
            stacklevel=4,
        )


def check_scores(
    scores: FloatArray, candidates: BoolMatrix, class_prior: npt.ArrayLike | ClassPriorEstimate
) -> FloatArray:
    """Return the class prior as an array; raise an error unless it fits scores and candidates."""
    prior = np.asarray(class_prior, dtype=np.float64)
    if scores.shape != candidates.shape:
        raise ComesError(
            f"scores and candidates must have one shape; got {scores.shape} and {candidates.shape}."
        )
    if prior.shape != scores.shape[1:]:
        raise ComesError(
            f"class_prior must have a number for each of {scores.shape[1]} labels; got shape "
            f"{prior.shape}."
        )
    if not np.isfinite(scores).all():
        raise ComesError("scores must be finite; some are NaN or infinite. Leave out those rows.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(f"class_prior must lie in [0, 1] for every label; got {prior.tolist()}.")
    return prior
