"""The scikit-learn estimator of rows of features, and what fits or compares many of them."""

from comes.estimator.base import TopPredictions
from comes.estimator.choose import Choice, choose_classifier
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.corrected import CorrectedClassifier
from comes.estimator.export import export_onnx
from comes.estimator.together import CrossFitted, cross_fit, fit_together

__all__ = [
    "CandidateClassifier",
    "Choice",
    "CorrectedClassifier",
    "CrossFitted",
    "TopPredictions",
    "choose_classifier",
    "cross_fit",
    "export_onnx",
    "fit_together",
]
