"""What held-out rows say against the assumption that a fit rests on."""

from typing import TYPE_CHECKING

from comes.estimator.preparation import Training
from comes.selection import check_ranking_risk
from comes.training import predict_scores
from comes.training.label_chunks import LabelChunks

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.image_classifier import ImageClassifier


def find_impossible_risk(
    classifier: "CandidateClassifier | ImageClassifier", training: Training
) -> list[str]:
    """Say if the ranking risk of rows that early stopping held out is below what is possible.

    Any scores show it, not only those of a ranking risk; ticked labels have no exclusions.
    """
    held_out, prior = training.held_out, classifier.class_prior_
    if held_out is None or prior is None or held_out.answers.kind == "positives":
        return []
    if isinstance(training.risk, LabelChunks):  # too many labels for their pairs
        return []
    scores = predict_scores(training.module, held_out.X, precision=training.options.precision)
    found = check_ranking_risk(
        scores.cpu().numpy(),
        held_out.answers,
        prior,
        class_prior_error=classifier.class_prior_error_,
    )
    return [] if found.is_possible else [found.conclusion]
