"""The scikit-learn estimators: of rows of features, and of images."""

from pathlib import Path

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import cross_fit
from comes.estimator.features import features_of
from comes.estimator.heads import sparse_head
from comes.estimator.images import ImageClassifier
from comes.estimator.storage import read_model
from comes.estimator.together import fit_together


def load_model(path: str | Path) -> CandidateClassifier | ImageClassifier:
    """Read a fitted model of either kind from the folder that `save` wrote."""
    description, _ = read_model(path)
    return (ImageClassifier if "images" in description else CandidateClassifier).load(path)


__all__ = [
    "CandidateClassifier",
    "ImageClassifier",
    "cross_fit",
    "features_of",
    "fit_together",
    "load_model",
    "sparse_head",
]
