"""The scikit-learn estimator."""

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import cross_fit
from comes.estimator.together import fit_together

__all__ = ["CandidateClassifier", "cross_fit", "fit_together"]
