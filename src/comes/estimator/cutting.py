"""Where `predict` cuts the scores of a classifier."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from torch import Tensor

from comes.errors import ComesWarning
from comes.estimator.preparation import Training
from comes.estimator.row_risks import weigh_prior
from comes.estimator.settings import LEARNED_THRESHOLDS
from comes.selection import choose_thresholds
from comes.selection.thresholds import (
    offset_matching_prior,
)
from comes.training import predict_scores

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.image_classifier import ImageClassifier

FEWEST_CLEAN = 5  # relevant, and irrelevant, clean rows that the threshold of a label needs
FloatArray = npt.NDArray[np.floating]


def find_offset(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> FloatArray:
    """Return the level of the scores: their natural zero, or the level that fits the prior."""
    if training.method.has_zero:
        return np.zeros(len(classifier.classes_))
    precision = training.options.precision
    scores = predict_scores(training.module, training.X, precision=precision).cpu().numpy()
    assert classifier.class_prior_ is not None
    return offset_matching_prior(scores, classifier.class_prior_, weight=_as_array(training.weight))


def _as_array(weight: Tensor | None) -> FloatArray | None:
    """Return the weights of rows as an array."""
    return None if weight is None else np.asarray(weight.double().cpu().numpy())


def find_thresholds(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> FloatArray:
    """Return where to cut the scores of each label."""
    if classifier.threshold == "zero":
        return np.zeros(len(classifier.classes_))
    if classifier.threshold not in LEARNED_THRESHOLDS:
        return classifier.score_offset_.copy()
    if training.clean is not None and training.clean.X is not None:
        return _learn_on_clean_rows(classifier, training)
    return _learn_from_answers(classifier, training)


def _learn_on_clean_rows(classifier: Any, training: Training) -> FloatArray:
    """Return thresholds learned from true labels, and from answers where these are too few."""
    assert training.clean is not None
    relevant = training.clean.relevant
    scores = np.asarray(classifier.decision_function(training.clean.X))
    # With true labels as candidates, and their shares as prior, the estimates are exact.
    cut = choose_thresholds(scores, relevant, relevant.mean(axis=0), classifier.threshold)
    few = np.minimum(relevant.sum(axis=0), (~relevant).sum(axis=0)) < FEWEST_CLEAN
    return np.where(few, _learn_from_answers(classifier, training), cut) if few.any() else cut


def _learn_from_answers(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> FloatArray:
    """Return thresholds learned from the answers about rows that training did not see."""
    if training.held_out is not None:
        return _learn_on_held_out_rows(classifier, training)
    if classifier.history_.interrupted:
        warnings.warn(
            "The threshold was not learned, since training was interrupted; predictions are cut as "
            "by threshold='auto'.",
            ComesWarning,
            stacklevel=5,
        )
        return classifier.score_offset_.copy()
    return _learn_by_cross_fitting(classifier, training)


def _learn_on_held_out_rows(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> FloatArray:
    """Return thresholds learned on the rows that early stopping held out."""
    assert training.held_out is not None and classifier.class_prior_ is not None
    precision = training.options.precision
    found = predict_scores(training.module, training.held_out.X, precision=precision)
    by: Any = classifier.threshold
    answers, scores = training.held_out.answers, found.cpu().numpy()
    return choose_thresholds(scores, answers, classifier.class_prior_, by)


def _learn_by_cross_fitting(classifier: Any, training: Training) -> FloatArray:
    """Return thresholds learned on scores of all rows, each by a training without that row."""
    from comes.estimator.cross_fitting import cross_fit

    X, answers = training.raw
    prior, rates = classifier.class_prior_, classifier.flip_rate
    if training.cross_score is not None:
        return choose_thresholds(training.cross_score(), answers, prior, classifier.threshold)
    if rates is not None and not isinstance(rates, str):
        rates = classifier.flip_rate_  # in the order of the labels, whose names are not handed on
    # A class prior that was estimated is handed on, but has no more weight than in this training.
    weight = weigh_prior(classifier, answers)
    known = {"class_prior": prior, "flip_rate": rates, "prior_weight": weight}
    plain = clone(classifier).set_params(threshold="auto", progress=False, **known)
    (crossed,) = cross_fit([plain], X, answers, seed=training.options.seed, n_jobs=1)
    cut = choose_thresholds(crossed.scores - crossed.level, answers, prior, classifier.threshold)
    return np.asarray(cut + classifier.score_offset_)
