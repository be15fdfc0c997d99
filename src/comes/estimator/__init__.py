"""The scikit-learn estimators: of rows of features, and of images."""

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import cross_fit
from comes.estimator.features import features_of
from comes.estimator.heads import sparse_head
from comes.estimator.images import ImageClassifier
from comes.estimator.together import fit_together

__all__ = [
    "CandidateClassifier",
    "ImageClassifier",
    "cross_fit",
    "features_of",
    "fit_together",
    "sparse_head",
]
