"""Probabilities of a fitted classifier, calibrated on rows that training did not see."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comes.answers import answer_evidence
from comes.answers.convert import as_relevant
from comes.errors import ComesError, ComesWarning
from comes.estimator.inputs import match_columns
from comes.estimator.reading_answers import read_answers
from comes.estimator.seen_rows import count_seen_rows
from comes.selection import fit_calibration
from comes.selection.calibration import Calibration, rates_given_prior

if TYPE_CHECKING:
    from comes.estimator.predictions import PredictsFromScores


def find_calibration(
    classifier: "PredictsFromScores", X: Any, answers: Any, relevant: Any
) -> Calibration:
    """Return how to make the scores of rows log odds, by answers about them or true labels."""
    if (answers is None) == (relevant is None):
        raise ComesError(
            "calibrate takes either answers (or candidates) about the rows or relevant=, their "
            f"true labels; got {'neither' if answers is None else 'both'}."
        )
    if answers is None:
        evidence = _truth_evidence(classifier, relevant)
    else:
        evidence = _answer_evidence(classifier, answers)
    scores = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if len(scores) != len(evidence):
        raise ComesError(
            f"calibrate needs X and labels of the same rows; got {len(scores)} and {len(evidence)}."
        )
    _warn_of_seen_rows(classifier, X)
    return fit_calibration(scores - classifier.score_offset_, evidence)


def _truth_evidence(classifier: "PredictsFromScores", relevant: Any) -> npt.NDArray[Any]:
    """Return true labels as evidence."""
    truth = match_columns(as_relevant(relevant), relevant, classifier.label_names_)
    if truth.shape[1] != len(classifier.label_names_):
        raise ComesError(
            f"relevant must have the {len(classifier.label_names_)} labels of the model; got "
            f"{truth.shape[1]}."
        )
    return np.where(truth, 1.0, -1.0)


def _answer_evidence(classifier: "PredictsFromScores", answers: Any) -> npt.NDArray[Any]:
    """Return the evidence of answers, by the rates of the model."""
    read = read_answers(answers).align_labels(classifier.label_names_)
    rates = classifier.rates_
    if rates.no_rate is not None:
        return answer_evidence(read, rates.answer_rates)
    if rates.class_prior is None:
        raise ComesError(
            f"calibrate needs rates of answers or a class prior, and a model of "
            f"{classifier.method_!r} has neither. Give true labels (relevant=), or fit with "
            "another method."
        )
    return answer_evidence(read, rates_given_prior(read.without_chosen(), rates.class_prior))


def _warn_of_seen_rows(classifier: Any, X: Any) -> None:
    """Warn if the rows were trained on, where a network is surer than it should be."""
    if not hasattr(classifier, "scaling_"):
        return
    n_seen = count_seen_rows(classifier, X)
    if n_seen:
        warnings.warn(
            f"{n_seen} of the rows were trained on, where the model is too sure of itself. "
            "Calibrate on other rows.",
            ComesWarning,
            stacklevel=4,
        )
