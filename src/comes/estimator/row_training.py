"""Everything before the training of a `CandidateClassifier`, from its settings."""

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import _safe_indexing
from torch import nn

from comes.answers import Answers, State
from comes.answers.convert import keep_one_excluded
from comes.errors import ComesError
from comes.estimator.counted_answers import CountedAnswers
from comes.estimator.first_stage import FirstStage
from comes.estimator.inputs import check_same_rows
from comes.estimator.many_labels import check_many_labels, prepare_many_labels
from comes.estimator.preparation import HeldOut, Training, split_rows
from comes.estimator.reading_answers import (
    check_can_learn,
    choose_method,
    has_many_labels,
    warn_of_idle_labels,
)
from comes.estimator.row_risks import (
    SAID,
    Counts,
    make_risk,
    show_answers,
    sum_rows,
)
from comes.estimator.row_weights import carry_prior, with_weight
from comes.estimator.scaling import Scaling, fit_scaling, is_scaled_for_priors
from comes.estimator.seen_rows import remember_rows
from comes.estimator.settings import (
    LEARNED_THRESHOLDS,
    check_row_settings,
    draw_seed,
    find_callbacks,
    find_settings,
)
from comes.estimator.training_length import choose_epochs, count_sure
from comes.methods import Method, Rates, find_method
from comes.models import Ensemble, InputLayer, linear, low_rank, mlp
from comes.models.tabular import EnsembleRisk, find_label_head
from comes.priors import CleanSample
from comes.training import TrainOptions, make_optimizer
from comes.training.options import MakeOptimizer
from comes.training.processes import broadcast_from_first, gather_objects, join_processes
from comes.training.rows import choose_device, to_device
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

SMALLEST_PRIOR = 1e-3


@dataclass(frozen=True, eq=False)
class Start:
    """What a training starts from that is not in its rows; nothing by default."""

    weight: npt.NDArray[np.float64] | None = None  # of every row, (n,), above 0
    clean: CleanSample | None = None
    known: Rates | None = None  # then nothing is estimated
    module: nn.Module | None = None  # an earlier network to go on with, and
    scaling: Scaling | None = None  # the scaling that it was trained with
    counts: Counts | None = None  # of earlier parts of a stream
    is_shared: bool = False  # by the processes that torchrun started


def prepare_rows(
    classifier: "CandidateClassifier", X: Any, answers: Answers, start: Start | None = None
) -> Training:
    """Run everything before the training on checked features, up to the initial weights."""
    start = start or Start()
    classifier.method_ = choose_method(classifier.method)
    method = find_method(classifier.method_, classifier.variant)
    check_row_settings(classifier)
    device = choose_device(classifier.device)
    device = join_processes(device) if start.is_shared else device
    check_same_rows(X, answers)
    if has_many_labels(answers):
        check_many_labels(classifier, method, start)
    if start.counts is None:
        check_can_learn(answers, method, str(classifier.method_))
        warn_of_idle_labels(answers, method)
    d, q = X.shape[1], answers.shape[1]
    classifier.label_names_, classifier.classes_ = list(answers.label_names or ()), np.arange(q)
    seed = draw_seed(classifier.random_state)
    seed = gather_objects(seed)[0] if start.is_shared else seed
    options = make_options(classifier, method, answers, seed)
    with seeded(seed, device):
        made = start.module or make_module(classifier, d, q)
        classifier.module_ = copy.deepcopy(made).to(device) if start.module else made.to(device)
    if has_many_labels(answers):
        find_label_head(classifier.module_)  # or say so, before anything takes long
    classifier.scaling_ = start.scaling or fit_scaling(X, classifier.scale, start.weight)
    scaled = classifier.scaling_(X)
    find = partial(determine_rates, classifier, method, X, scaled, answers, seed, start)
    classifier.rates_ = start.known or (broadcast_from_first(find) if start.is_shared else find())
    is_new = isinstance(classifier.model, str) and start.module is None
    if is_new and find_settings(classifier, classifier.method_)["starts_at_prior"]:
        prior = guess_prior(method, classifier.rates_, answers, start.weight)
        start_at_prior(classifier.module_, prior)
    prepare = prepare_many_labels if has_many_labels(answers) else prepare_training
    training = prepare(classifier, method, X, scaled, answers, device, options, start)
    return replace(training, is_shared=start.is_shared)


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
    if model == "low_rank":
        settings = find_settings(classifier, classifier.method_) | (network or {})
        return low_rank(d, q, classifier.hidden, dropout=settings["dropout"])
    if model == "linear":
        return linear(d, q)
    raise ComesError(
        "model must be 'mlp', 'low_rank', 'linear', a module or a function (d, q) -> module; got "
        f"{model!r}."
    )


def make_options(
    classifier: "CandidateClassifier",
    method: Method,
    answers: Answers | CountedAnswers,
    seed: int,
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
        progress=False if classifier.verbose else classifier.progress,
        callbacks=find_callbacks(classifier),
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


def guess_prior(
    method: Method,
    rates: Rates,
    answers: Answers | CountedAnswers,
    weight: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the class prior, or for methods that do without it what the answers say, (q,).

    A prior that only the threshold needs does not change where training starts.
    """
    if rates.class_prior is not None and (method.needs_class_prior or method.needs_rates):
        return np.asarray(rates.class_prior)
    n_no, n_yes, n_maybe = (_count_rows(answers, state, weight) for state in SAID)
    n = len(answers) if weight is None else weight.sum()
    if answers.kind == "candidates":
        return np.asarray(1 - n_no / n)
    if answers.kind == "positives":
        return np.asarray(n_yes / n)
    if not n_yes.any():  # then maybe counts as yes
        n_yes = n_maybe
    return np.asarray((n_yes + 0.5) / (n_yes + n_no + 1))


def _count_rows(
    answers: Answers | CountedAnswers, state: State, weight: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64]:
    """Return how many rows have each label in a state, a row of weight 2 counted twice, (q,)."""
    if weight is None or isinstance(answers, CountedAnswers):
        return answers.count_state(state).astype(np.float64)
    return sum_rows(answers.codes == state, weight)


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


def determine_rates(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    answers: Answers,
    seed: int,
    start: Start,
) -> Rates:
    """Return what the method must know: given, or estimated on the scaled features if possible.

    Rates are estimated without the weights of rows, as they are those of who answered; a class
    prior is then carried over to the weighted rows.
    """
    is_scaled = X is not None and is_scaled_for_priors(X, classifier.scale)
    names = ("class_prior", "flip_rate", "exclude_rate", "no_rate", "yes_rate", "mistake_rate")
    given = Rates(**{name: getattr(classifier, name) for name in names})
    features = scaled if is_scaled else X
    stage = FirstStage(features, is_scaled, answers, given, seed, start.clean, start.weight)
    found = stage.run(method, needs_prior=classifier.threshold in LEARNED_THRESHOLDS)
    if start.weight is None or given.class_prior is not None or found.class_prior is None:
        return found
    return replace(found, class_prior=carry_prior(found.class_prior, answers, start.weight))


def prepare_training(
    classifier: "CandidateClassifier",
    method: Method,
    X: Any,
    scaled: Any,
    answers: Answers,
    device: torch.device,
    options: TrainOptions,
    start: Start,
) -> Training:
    """Return the training of the classifier's network; early stopping holds rows out of it."""
    classifier.seen_rows_ = remember_rows(X)
    own, held_out, weight = answers, None, start.weight
    if classifier.early_stopping:
        trained, held = split_rows(len(answers), classifier.validation_share, options.seed)
        counts = Counts.of(answers[held], None if weight is None else weight[held])
        risk = make_risk(classifier, method, answers[held], device, counts=counts, corrected=False)
        held_out = HeldOut(
            to_device(_safe_indexing(scaled, held), device),
            answers[held],
            torch.tensor(show_answers(classifier, method, answers[held]), device=device),
            with_weight(risk, None if weight is None else weight[held], device),
            classifier.patience,
        )
        scaled, own = _safe_indexing(scaled, trained), answers[trained]
        weight = None if weight is None else weight[trained]
    seen = show_answers(classifier, method, own)
    if method.keeps_one_excluded:
        seen = keep_one_excluded(seen, options.seed)
    counts = Counts.of(own, weight)
    counts = counts if start.counts is None else start.counts + counts
    risk = make_risk(classifier, method, own, device, counts=counts)
    optimizer = find_settings(classifier, classifier.method_)["optimizer"]
    parts = (classifier.method_, classifier.model, optimizer)
    return Training(
        method=method,
        module=classifier.module_,
        X=to_device(scaled, device),
        seen=torch.tensor(seen, device=device),
        risk=EnsembleRisk(risk) if isinstance(classifier.module_, Ensemble) else risk,
        held_out=held_out,
        raw=(X, answers),
        is_ours=all(isinstance(part, str) for part in parts),
        options=options,
        clean=start.clean,
        weight=None if weight is None else torch.tensor(weight, device=device).float(),
        counts=counts,
    )
