"""The end of every fit: where scores are cut, and whether the result is sound."""

from dataclasses import replace
from typing import TYPE_CHECKING

from comes.estimator.cutting import find_offset, find_thresholds
from comes.estimator.fit_checks import check_fit, refuse_runaway
from comes.estimator.held_out_check import find_impossible_risk
from comes.estimator.preparation import Training
from comes.training import History

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.image_classifier import ImageClassifier


def finish_fit(
    classifier: "CandidateClassifier | ImageClassifier", training: Training, history: History
) -> None:
    """Keep what the training did, where its scores are cut, and what is wrong with it."""
    refuse_runaway(training)
    classifier.history_, classifier.calibration_ = history, None
    said = training.raw[1]
    classifier.trained_on_ = {"rows": len(said), "kind": said.kind}
    classifier.score_power_ = None  # of a loaded model that is fitted again
    classifier.score_offset_ = find_offset(classifier, training)
    classifier.threshold_ = find_thresholds(classifier, training)
    found = check_fit(classifier, training, history)
    found += find_impossible_risk(classifier, training)
    classifier.history_ = replace(history, warnings=found)
