"""What the jobs on fitted models share: a model by its folder, and data in the model's terms."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from comes.datasets import Dataset, ReadOptions, open_dataset
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.files import expanded
from comes.images import ImageClassifier, load_model
from comes.jobs.project_data import open_if_project

Classifier = CandidateClassifier | ImageClassifier


def as_model(model: Classifier | str | Path) -> Classifier:
    """Return a fitted model as it is, or load it from its folder."""
    return load_model(model) if isinstance(model, str | Path) else model


def find_word_columns(classifier: Classifier) -> list[str] | None:
    """Return the columns of a table that are read as they are written; None if there are none."""
    encoder = getattr(classifier, "encoder_", None)
    return None if encoder is None else encoder.word_columns or None


def open_for_model(
    classifier: Classifier, data: Dataset | str | Path, reading: ReadOptions | None
) -> Dataset:
    """Return labelled data with the model's inputs, and with its labels in its order."""
    data = open_if_project(data)
    if isinstance(data, Dataset):
        return data.align_labels(classifier.label_names_)
    reading = reading or ReadOptions()
    if reading.label_names is not None:
        raise ComesError("the model knows its labels; leave label names (--label-names) out.")
    if reading.text or reading.category or reading.number or reading.date:
        raise ComesError(
            "the model knows its columns; leave --text, --category, --number and --date out."
        )
    if isinstance(classifier, CandidateClassifier):
        reading = replace(
            reading,
            feature_columns=classifier.feature_names,
            n_features=classifier.n_features_in_,
            category=find_word_columns(classifier),
        )
    elif os.path.isfile(expanded(data)) and reading.images is None:
        raise ComesError(
            f"this model was trained on images: name the folder of those in {data} (--images)."
        )
    return open_dataset(data, replace(reading, label_names=classifier.label_names_))


def score_dataset(classifier: Classifier, dataset: Dataset) -> npt.NDArray[np.floating]:
    """Return the scores of every row, (n_samples, n_labels)."""
    if isinstance(classifier, ImageClassifier):  # whose features `fit` may have kept
        return np.asarray(classifier.decision_function(dataset.known_images(), cache=True))
    return np.asarray(classifier.decision_function(dataset.known_features()))
