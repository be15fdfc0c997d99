"""Fits with very many labels: sparse answers, a risk in chunks of labels, rates from counts."""

from typing import TYPE_CHECKING, Any

import torch

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.preparation import HeldOut, Training, split_rows
from comes.estimator.row_risks import Counts, make_risk, weigh_prior
from comes.estimator.seen_rows import remember_rows
from comes.estimator.settings import LEARNED_THRESHOLDS
from comes.methods import METHODS, Method
from comes.models import Ensemble
from comes.models.tabular import EnsembleRisk
from comes.training import TrainOptions
from comes.training.label_chunks import LabelChunks, SparseTargetRows
from comes.training.rows import to_device

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.row_training import Start

SCORES_HELD_OUT = 2**24  # that are computed at a time


def check_many_labels(classifier: "CandidateClassifier", method: Method, start: "Start") -> None:
    """Raise an error if a setting needs a matrix of all pairs."""
    if method.is_custom:
        raise ComesError(
            "a risk of your own is computed on the scores of all labels, and there are too many. "
            "Take a method by name, or fewer labels."
        )
    if not method.has_sparse_targets:
        able = [name for name, method in METHODS.items() if method.has_sparse_targets]
        raise ComesError(
            f"method {classifier.method_!r} needs the scores of all labels at once, and there are "
            f"too many. Take method={', '.join(map(repr, able[:-1]))} or {able[-1]!r}, or fewer "
            "labels."
        )
    if classifier.threshold in LEARNED_THRESHOLDS:
        raise ComesError(
            f"threshold={classifier.threshold!r} is learned from the scores of all pairs, and "
            "there are too many. Take 'auto', and predict_top(X, k) for the best labels of a row."
        )
    if start.weight is not None or start.clean is not None:
        raise ComesError(
            "sample_weight and clean need a matrix of all pairs, and there are too many. Leave "
            "them out: repeat rows instead, and give class_prior or rates that are known."
        )


def prepare_many_labels(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,  # as it was given, and
    scaled: Any,
    answers: Answers,
    device: torch.device,
    options: TrainOptions,
    start: "Start",
) -> Training:
    """Return the training of the classifier's network in chunks of labels."""
    classifier.seen_rows_ = remember_rows(X)
    own, held_out, trained = answers, None, scaled
    weight = weigh_prior(classifier, answers)  # of all rows, which decide it
    if classifier.early_stopping:
        rows, held = split_rows(len(answers), classifier.validation_share, options.seed)
        held_out = HeldOut(
            to_device(scaled[held], device),
            answers[held],
            sparse_targets(classifier, method, answers[held], device),
            _chunk_held_out(classifier, method, answers[held], device),
            classifier.patience,
        )
        trained, own = scaled[rows], answers[rows]
    counts = Counts.of(own)
    counts = counts if start.counts is None else start.counts + counts
    risk = make_risk(classifier, method, own, device, counts=counts, prior_weight=weight)
    return Training(
        method=method,
        module=classifier.module_,
        X=to_device(trained, device),
        seen=sparse_targets(classifier, method, own, device),
        risk=chunk_labels(classifier, risk, options.batch_size, device),
        held_out=held_out,
        raw=(X, answers),
        is_ours=False,  # chunks read places of labels from the device
        options=options,
        counts=counts,
    )


def sparse_targets(
    classifier: "CandidateClassifier", method: Method, answers: Answers, device: torch.device
) -> SparseTargetRows:
    """Return what the risk sees of the answers."""
    shown = answers if classifier.uses_maybe else answers.without_maybe()
    states, others = method.sparse_targets(shown)
    return SparseTargetRows(states, others, device)


def chunk_labels(
    classifier: "CandidateClassifier", risk: Any, batch_size: int, device: torch.device
) -> LabelChunks:
    """Return a risk in chunks of labels whose scores fit the caches of a device."""
    n_rows, q = batch_size, len(classifier.classes_)
    if isinstance(classifier.module_, Ensemble):
        risk, n_rows = EnsembleRisk(risk), n_rows * len(classifier.module_.weight)
    return LabelChunks.fitting(risk, q, n_rows, device)


def _chunk_held_out(
    classifier: "CandidateClassifier", method: Method, held: Answers, device: torch.device
) -> LabelChunks:
    """Return the risk of held-out rows, which are judged at once, by the mean of all networks."""
    n, q = held.shape
    risk = make_risk(classifier, method, held, device, corrected=False)
    return LabelChunks(risk, q, max(1, SCORES_HELD_OUT // n))
