"""Everything before the training of a `CandidateClassifier`, from its settings."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import _safe_indexing
from torch import nn

from comes.answers import Answers, keep_one_excluded
from comes.errors import ComesError
from comes.estimator.first_stage import FirstStage
from comes.estimator.inputs import check_same_rows
from comes.estimator.preparation import HeldOut, Training, split_rows
from comes.estimator.reading_answers import (
    check_can_learn,
    choose_method,
    warn_of_idle_labels,
)
from comes.estimator.scaling import fit_scaling, is_scaled_for_priors
from comes.estimator.seen_rows import remember_rows
from comes.estimator.settings import (
    LEARNED_THRESHOLDS,
    check_row_settings,
    draw_seed,
    find_settings,
)
from comes.estimator.training_length import choose_epochs, count_sure
from comes.methods import Knowledge, Method, RiskOptions, find_method
from comes.models import Ensemble, InputLayer, OfEachNetwork, linear, mlp
from comes.priors import ClassPriorEstimate, CleanSample
from comes.training import (
    MakeOptimizer,
    Risk,
    TrainOptions,
    choose_device,
    make_optimizer,
    seeded,
    to_device,
)

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

SMALLEST_SHARE = 1e-3  # of pairs that say something
SMALLEST_PRIOR = 1e-3


def prepare_rows(
    classifier: "CandidateClassifier",
    X: Any,
    answers: Answers,
    clean: CleanSample | None = None,
    known: Knowledge | None = None,
) -> Training:
    """Run everything before the training on checked features, up to the initial weights.

    With ``known`` nothing is estimated.
    """
    classifier.method_ = choose_method(classifier.method)
    method = find_method(classifier.method_, classifier.variant)
    check_row_settings(classifier)
    device = choose_device(classifier.device)
    check_same_rows(X, answers)
    check_can_learn(answers, method, str(classifier.method_))
    d, q = X.shape[1], answers.shape[1]
    classifier.label_names_, classifier.classes_ = list(answers.label_names or ()), np.arange(q)
    seed = draw_seed(classifier.random_state)
    warn_of_idle_labels(answers, method)
    options = make_options(classifier, method, answers, seed)
    with seeded(seed, device):
        classifier.module_ = make_module(classifier, d, q).to(device)
    classifier.scaling_ = fit_scaling(X, classifier.scale)
    scaled = classifier.scaling_(X)
    if known is None:
        known = find_knowledge(classifier, method, X, scaled, answers, seed, clean)
    classifier.knowledge_ = known
    is_ours = isinstance(classifier.model, str)
    if is_ours and find_settings(classifier, classifier.method_)["starts_at_prior"]:
        start_at_prior(classifier.module_, guess_prior(method, classifier.knowledge_, answers))
    training = prepare_training(classifier, method, X, scaled, answers, device, options)
    return replace(training, clean=clean)


def make_module(
    classifier: "CandidateClassifier", d: int, q: int, network: dict[str, Any] | None = None
) -> nn.Module:
    """Return the network that the settings name, or a stored one, for d features and q labels."""
    model = classifier.model
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    if callable(model):
        return model(d, q)
    if model == "mlp":
        settings = find_settings(classifier, classifier.method_) | (network or {})
        dropout, n_networks = settings["dropout"], settings["n_networks"]
        if n_networks == 1:
            return mlp(d, q, classifier.hidden, dropout=dropout)
        return Ensemble(d, q, classifier.hidden, dropout=dropout, n_networks=n_networks)
    if model == "linear":
        return linear(d, q)
    raise ComesError(
        f"model must be 'mlp', 'linear', a module or a function (d, q) -> module; got {model!r}."
    )


def make_options(
    classifier: "CandidateClassifier", method: Method, answers: Answers, seed: int
) -> TrainOptions:
    """Return the options of the training; a wrong one is refused before anything takes long."""
    name = classifier.method_
    settings = find_settings(classifier, name)
    (n, q), batch_size = answers.shape, settings["batch_size"]
    n_networks = settings["n_networks"] if classifier.model == "mlp" else 1  # their mean is trained
    epochs = settings["epochs"]
    if epochs is None:
        epochs = choose_epochs(n, q, count_sure(answers), batch_size)
    return TrainOptions(
        optimizer=_choose_optimizer(classifier, settings),
        epochs=epochs,
        batch_size=batch_size,
        risk_scale=method.risk_scale(classifier.reduction, q) * n_networks,
        cosine=classifier.cosine,
        seed=seed,
        progress=classifier.progress,
        description=name if isinstance(name, str) else "your risk",
    )


def _choose_optimizer(classifier: "CandidateClassifier", settings: dict[str, Any]) -> MakeOptimizer:
    """Return a callable that makes the optimiser named in the settings."""
    if callable(classifier.optimizer):
        return classifier.optimizer
    return make_optimizer(
        settings["optimizer"],
        learning_rate=settings["learning_rate"],
        momentum=classifier.momentum,
        weight_decay=classifier.weight_decay,
    )


def make_risk(
    classifier: "CandidateClassifier",
    method: Method,
    answers: Answers,
    device: torch.device,
    *,
    corrected: bool = True,
) -> Risk:
    """Return the risk, with what is known and the counts of these answers."""
    drawn, by_dataset = answers.drawn(), classifier.normaliser == "dataset"
    options = RiskOptions(
        exclude_share=1 - drawn.candidates.mean(axis=0) if by_dataset else None,
        asked_share=None if drawn.asked is None or not by_dataset else drawn.asked.mean(axis=0),
        label_weight=_weigh_labels(answers, classifier.knowledge_),
        prior_weight=weigh_prior(classifier, answers),
        flood_level=classifier.flood_level,
        corrected=corrected,
    )
    risk: Risk = method.make_risk(classifier.knowledge_, options)
    return risk.to(device) if isinstance(risk, nn.Module) else risk


def compute_risk(
    classifier: "CandidateClassifier", scores: torch.Tensor, answers: Answers, *, corrected: bool
) -> float:
    """Return the risk of a fitted classifier's scores, with the counts of these answers."""
    method = find_method(classifier.method_, classifier.variant)
    seen = show_answers(classifier, method, answers)
    if method.keeps_one_excluded:
        seen = keep_one_excluded(seen, 0)
    risk = make_risk(classifier, method, answers, scores.device, corrected=corrected)
    return float(risk(scores, torch.as_tensor(seen)))


def _weigh_labels(answers: Answers, knowledge: Knowledge) -> Any:
    """Return 1 / (share of pairs that say something), one number for all labels, (q,).

    The gradient shrinks with that share, and the penalties do not. A number for each label would
    let the few answers about some labels drown the others.
    """
    if answers.asked is not None:
        share = float(answers.asked.mean())
    elif knowledge.no_rate is not None:
        share = float(np.maximum(knowledge.no_rate, knowledge.yes_rate).mean())
    else:
        return None
    return np.full(answers.shape[1], 1 / max(share, SMALLEST_SHARE))


def weigh_prior(classifier: "CandidateClassifier", answers: Answers) -> float:
    """Return how strongly mean probabilities are kept near the class prior.

    Even an estimated prior helps, but for answers without a yes, where only a prior that is known
    does: few of them say how common rare labels are.
    """
    if classifier.prior_weight is not None:
        return classifier.prior_weight
    if answers.kind != "answers" or answers.confirmed.any():
        return 1.0
    given = classifier.class_prior
    return 0.0 if given is None or isinstance(given, ClassPriorEstimate) else 0.3


def guess_prior(method: Method, knowledge: Knowledge, answers: Answers) -> npt.NDArray[np.float64]:
    """Return the class prior, or for methods that do without it what the answers say, (q,).

    A prior that only the threshold needs does not change where training starts.
    """
    if knowledge.class_prior is not None and (method.needs_class_prior or method.needs_rates):
        return np.asarray(knowledge.class_prior)
    if answers.kind == "candidates":
        return np.asarray(answers.candidates.mean(axis=0))
    if answers.kind == "positives":
        return np.asarray(answers.confirmed.mean(axis=0))
    n_yes, n_no = answers.confirmed.sum(axis=0), answers.excluded.sum(axis=0)
    if not n_yes.any():  # then maybe counts as yes
        n_yes = answers.doubtful.sum(axis=0)
    return np.asarray((n_yes + 0.5) / (n_yes + n_no + 1))


def start_at_prior(module: nn.Module, class_prior: npt.NDArray[np.float64]) -> None:
    """Set the bias of the last layer of a network of ours to the log odds of the class prior.

    From 0, rare labels do not get off the ground.
    """
    kinds = (nn.Linear, InputLayer, Ensemble)
    layers = [layer for layer in module.modules() if isinstance(layer, kinds)]
    last = layers[0] if isinstance(module, Ensemble) else layers[-1]
    odds = torch.logit(torch.as_tensor(class_prior, dtype=torch.float32), eps=SMALLEST_PRIOR)
    with torch.no_grad():
        last.bias.copy_(odds)


def find_knowledge(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    answers: Answers,
    seed: int,
    clean: CleanSample | None = None,
) -> Knowledge:
    """Return what the method must know: given, or estimated on the scaled features if possible."""
    is_scaled = is_scaled_for_priors(X, classifier.scale)
    names = ("class_prior", "flip_rate", "exclude_rate", "no_rate", "yes_rate", "mistake_rate")
    given = Knowledge(**{name: getattr(classifier, name) for name in names})
    stage = FirstStage(scaled if is_scaled else X, is_scaled, answers, given, seed, clean)
    return stage.run(method, needs_prior=classifier.threshold in LEARNED_THRESHOLDS)


def prepare_training(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    answers: Answers,
    device: torch.device,
    options: TrainOptions,
) -> Training:
    """Return the training of the classifier's network; early stopping holds rows out of it."""
    classifier.seen_rows_ = remember_rows(X)
    own, held_out = answers, None
    if classifier.early_stopping:
        trained, held = split_rows(len(answers), classifier.validation_share, options.seed)
        held_out = HeldOut(
            to_device(_safe_indexing(scaled, held), device),
            answers[held],
            torch.tensor(show_answers(classifier, method, answers[held]), device=device),
            make_risk(classifier, method, answers[held], device, corrected=False),
            classifier.patience,
        )
        scaled, own = _safe_indexing(scaled, trained), answers[trained]
    seen = show_answers(classifier, method, own)
    if method.keeps_one_excluded:
        seen = keep_one_excluded(seen, options.seed)
    risk = make_risk(classifier, method, own, device)
    optimizer = find_settings(classifier, classifier.method_)["optimizer"]
    parts = (classifier.method_, classifier.model, optimizer)
    return Training(
        method=method,
        module=classifier.module_,
        X=to_device(scaled, device),
        seen=torch.tensor(seen, device=device),
        risk=OfEachNetwork(risk) if isinstance(classifier.module_, Ensemble) else risk,
        held_out=held_out,
        raw=(X, answers),
        is_ours=all(isinstance(part, str) for part in parts),
        options=options,
    )


def show_answers(classifier: "CandidateClassifier", method: Method, answers: Answers) -> Any:
    """Return what the risk sees of the answers, (n, q)."""
    if not classifier.uses_maybe:
        answers = answers.without_maybe()
    return method.see(answers, classifier.knowledge_)
