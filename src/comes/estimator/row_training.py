"""Everything before the training of a `CandidateClassifier`, from its settings."""

import copy
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils import _safe_indexing
from torch import nn

from comes.answers import BoolMatrix, keep_one_excluded
from comes.errors import ComesError
from comes.estimator.first_stage import FirstStage
from comes.estimator.inputs import NamedCandidates
from comes.estimator.preparation import HeldOut, Training, split_rows
from comes.estimator.scaling import is_scaled_for_priors
from comes.estimator.settings import LEARNED_THRESHOLDS
from comes.methods import Knowledge, Method, RiskOptions
from comes.models import linear, mlp
from comes.training import MakeOptimizer, Risk, TrainOptions, make_optimizer, to_device

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier


def make_module(classifier: "CandidateClassifier", d: int, q: int) -> nn.Module:
    """Return the network that the settings name, for d features and q labels."""
    model = classifier.model
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    if callable(model):
        return model(d, q)
    if model == "mlp":
        return mlp(d, q, classifier.hidden)
    if model == "linear":
        return linear(d, q)
    raise ComesError(
        f"model must be 'mlp', 'linear', a module or a function (d, q) -> module; got {model!r}."
    )


def make_options(
    classifier: "CandidateClassifier", method: Method, q: int, seed: int
) -> TrainOptions:
    """Return the options of the training; a wrong one is refused before anything takes long."""
    name = classifier.method
    return TrainOptions(
        optimizer=_choose_optimizer(classifier),
        epochs=classifier.epochs,
        batch_size=classifier.batch_size,
        risk_scale=method.risk_scale(classifier.reduction, q),
        cosine=classifier.cosine,
        seed=seed,
        progress=classifier.progress,
        description=name if isinstance(name, str) else "your risk",
    )


def _choose_optimizer(classifier: "CandidateClassifier") -> MakeOptimizer:
    """Return a callable that makes the optimiser named in the settings."""
    if callable(classifier.optimizer):
        return classifier.optimizer
    return make_optimizer(
        classifier.optimizer,
        learning_rate=classifier.learning_rate,
        momentum=classifier.momentum,
        weight_decay=classifier.weight_decay,
    )


def make_risk(
    classifier: "CandidateClassifier",
    method: Method,
    candidates: BoolMatrix,
    device: torch.device,
    *,
    corrected: bool = True,
) -> Risk:
    """Return the risk, with what is known and the counts of these candidates."""
    by_dataset = classifier.normaliser == "dataset"
    options = RiskOptions(
        exclude_share=1 - candidates.mean(axis=0) if by_dataset else None,
        flood_level=classifier.flood_level,
        corrected=corrected,
    )
    risk: Risk = method.make_risk(classifier.knowledge_, options)
    return risk.to(device) if isinstance(risk, nn.Module) else risk


def find_knowledge(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    candidates: NamedCandidates,
    seed: int,
) -> Knowledge:
    """Return what the method must know: given, or estimated on the scaled features if possible."""
    is_scaled = is_scaled_for_priors(X, classifier.scale)
    given = Knowledge(classifier.class_prior, classifier.flip_rate)
    stage = FirstStage(scaled if is_scaled else X, is_scaled, candidates, given, seed)
    return stage.run(method, needs_prior=classifier.threshold in LEARNED_THRESHOLDS)


def prepare_training(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    candidates: BoolMatrix,
    device: torch.device,
    options: TrainOptions,
) -> Training:
    """Return the training of the classifier's network; early stopping holds rows out of it."""
    S, held_out = candidates, None
    if classifier.early_stopping:
        trained, held = split_rows(len(S), classifier.validation_share, options.seed)
        held_out = HeldOut(
            to_device(_safe_indexing(scaled, held), device),
            torch.tensor(S[held], device=device),
            make_risk(classifier, method, S[held], device, corrected=False),
            classifier.patience,
        )
        scaled, S = _safe_indexing(scaled, trained), S[trained]
    if method.keeps_one_excluded:
        S = keep_one_excluded(S, options.seed)
    parts = (classifier.method, classifier.model, classifier.optimizer)
    return Training(
        method=method,
        module=classifier.module_,
        X=to_device(scaled, device),
        candidates=torch.tensor(S, device=device),
        risk=make_risk(classifier, method, S, device),
        held_out=held_out,
        raw=(X, candidates),
        is_ours=all(isinstance(part, str) for part in parts),
        options=options,
    )
