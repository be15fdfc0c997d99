"""Scores and what is known about their rows, checked, and ready to be counted."""

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from comes.answers import Answers
from comes.answers.convert import BoolMatrix, as_candidates, check_paired
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.resampling import Rows

FloatArray = npt.NDArray[np.float64]


def check_rows(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None,
    *,
    probabilities: bool = False,
) -> tuple[Rows, FloatArray]:
    """Return the rows and the class prior, or raise an error if they do not fit together.

    Scores are cut at 0, probabilities at 1/2, where no predictions are given.
    """
    check_paired(same_labels=True, scores=scores, candidates=candidates, predictions=predictions)
    values = np.asarray(scores, dtype=np.float64)
    S, confirmed = read_answers(candidates)
    prior = check_scores(values, S, class_prior)
    if probabilities and not ((values >= 0) & (values <= 1)).all():
        raise ComesError(
            f"probabilities must lie in [0, 1]; got {values.min():.3g} to {values.max():.3g}. If "
            "these are scores, leave out probabilities=True."
        )
    if predictions is None and not probabilities:
        refuse_probabilities(values, "Pass probabilities=True, or predictions=.")
    cut = 0.5 if probabilities else 0.0
    predicted = values > cut if predictions is None else np.asarray(predictions).astype(bool)
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
        drawn = candidates.without_chosen()
        return drawn.candidates, drawn.confirmed
    possible = as_candidates(candidates)
    return possible, np.zeros_like(possible)


def refuse_probabilities(scores: FloatArray, advice: str) -> None:
    """Raise if scores, which are above 0 where a label is predicted, have 0 as least value."""
    if scores.size > 1 and scores.min() >= 0 and 0 < scores.max() <= 1:
        raise ComesError(
            "scores must be above 0 where a label is predicted; got only numbers in [0, 1], which "
            f"look like probabilities. {advice}"
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
