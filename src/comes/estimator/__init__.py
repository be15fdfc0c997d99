"""The scikit-learn estimator."""

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.together import fit_together

__all__ = ["CandidateClassifier", "fit_together"]
