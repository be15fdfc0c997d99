"""Where `predict` cuts the scores of a classifier."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from comes.errors import ComesWarning
from comes.estimator.checks import LEARNED
from comes.estimator.preparation import Training
from comes.selection import choose_thresholds, offset_matching_prior
from comes.training import predict_scores

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.images import ImageClassifier

FloatArray = npt.NDArray[np.floating]


def find_offset(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> FloatArray:
    """Return the level of the scores: zero, or if the risk sets none, that which fits the prior."""
    if training.method.unit != "pairs":
        return np.zeros(len(classifier.classes_))
    precision = training.options.precision
    scores = predict_scores(training.module, training.X, precision=precision).cpu().numpy()
    assert classifier.class_prior_ is not None
    return offset_matching_prior(scores, classifier.class_prior_)


def find_thresholds(
    classifier: "CandidateClassifier | ImageClassifier",
    training: Training,
    X: Any,
    S: npt.NDArray[np.bool_],
) -> FloatArray:
    """Return where to cut the scores of each label, learned on held-out or cross-fitted scores."""
    if classifier.threshold == "zero":
        return np.zeros(len(classifier.classes_))
    if classifier.threshold not in LEARNED:
        return classifier.score_offset_.copy()
    assert classifier.class_prior_ is not None
    by: Any = classifier.threshold
    if training.held_out is not None:
        held_out = training.held_out
        precision = training.options.precision
        scores = predict_scores(training.module, held_out.X, precision=precision).cpu().numpy()
        S = held_out.candidates.cpu().numpy()
        return choose_thresholds(scores, S, classifier.class_prior_, by)
    if classifier.history_.interrupted:
        warnings.warn(
            "The threshold was not learned, since training was interrupted; predictions are cut as "
            "by threshold='auto'.",
            ComesWarning,
            stacklevel=4,
        )
        return classifier.score_offset_.copy()
    from comes.estimator.cross_fitting import cross_fit

    prior = classifier.class_prior_
    plain = clone(classifier).set_params(threshold="auto", class_prior=prior, progress=False)
    (crossed,) = cross_fit([plain], X, S, seed=training.options.seed, n_jobs=1)
    cut = choose_thresholds(crossed.scores - crossed.level, S, classifier.class_prior_, by)
    return np.asarray(cut + classifier.score_offset_)
