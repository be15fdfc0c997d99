"""The clean sample given to an estimator, matched to the features and labels it is fitted on."""

from dataclasses import replace
from typing import Any

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.inputs import as_feature_matrix, check_entries, match_columns
from comes.priors import CleanSample


def read_clean_sample(classifier: Any, clean: Any, answers: Answers) -> CleanSample | None:
    """Return the clean sample of ``fit``, with the labels of the answers in their order."""
    if clean is None:
        return None
    sample = CleanSample.read(clean)
    q, names = answers.shape[1], answers.label_names
    assert names is not None
    if sample.relevant.shape[1] != q:
        raise ComesError(
            f"clean must have the {q} labels of the answers; got {sample.relevant.shape[1]}."
        )
    if isinstance(clean, tuple):
        sample = replace(sample, relevant=match_columns(sample.relevant, clean[1], names))
    _check_features(classifier, sample.X)
    if sample.answers is None:
        return sample
    if sample.answers.kind != answers.kind:
        raise ComesError(
            f"the answers of clean must be {answers.kind}, as those of the other rows; got "
            f"{sample.answers.kind}. Give answers of one kind, or clean=(X, relevant)."
        )
    return replace(sample, answers=sample.answers.with_labels(names))


def _check_features(classifier: Any, X: Any) -> None:
    """Raise an error unless clean rows have the features that the classifier is fitted on."""
    if X is None:
        return
    try:
        check_entries(as_feature_matrix(classifier, X, reset=False))
    except ComesError as error:
        raise ComesError(f"clean must have the features of X: {error}") from error
