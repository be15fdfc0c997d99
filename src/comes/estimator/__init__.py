"""The scikit-learn estimator."""

from comes.estimator.classifier import CandidateClassifier

__all__ = ["CandidateClassifier"]
