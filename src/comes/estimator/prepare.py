"""From rows and answers to a training that is ready to run.

`prepare` is the one way: `fit`, `partial_fit`, `fit_stream` and `fit_together` call it. It reads
the settings of a classifier and changes nothing of it; what it learns on the way (scaling, rates,
first weights) is in the `Training` that it returns. To add a setting of one method: methods.py. To
add one of all methods: `CandidateClassifier.__init__`, checked by its tables ``COUNTS`` and
``CHOICES``; a default that differs by method needs a key in both training tables of methods.py,
which `choose_settings` goes through; `make_network` or `_make_options` uses it.
"""

import copy
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from sklearn.utils import _safe_indexing, check_random_state
from torch import Tensor, nn

from comes.answers import AnswerRates, Answers, State
from comes.answers.convert import keep_one_excluded
from comes.errors import ComesError, listed
from comes.estimator.checks import STEPS, check_labels
from comes.estimator.inputs import has_many_labels
from comes.estimator.rates import determine_rates
from comes.estimator.scaling import Scaling, fit_scaling
from comes.methods import (
    METHODS,
    PAPER_TRAINING,
    Counts,
    Likelihood,
    Method,
    Rates,
    find_method,
    sum_rows,
)
from comes.models import Ensemble, InputLayer, linear, low_rank, mlp
from comes.models.tabular import EnsembleRisk, find_label_head
from comes.priors import CleanSample, RatesEstimate
from comes.risks.checks import value_or_nan
from comes.risks.pair_sums import choose_pair_sums
from comes.training import History, TrainOptions, Validation, make_optimizer, predict_scores, train
from comes.training.checkpoint import Checkpoint, weights_hash
from comes.training.gradients import Risk
from comes.training.label_chunks import LabelChunks, SparseTargetRows
from comes.training.linear import fit_linear_part
from comes.training.loop import Rows
from comes.training.pixels import PixelRows
from comes.training.processes import broadcast_from_first, gather_objects, join_processes
from comes.training.rows import StreamedRows, choose_device, to_device
from comes.training.seeding import seeded
from comes.training.speed import threads_for

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier
    from comes.estimator.stream import ShardStream

Array = npt.NDArray[np.float64]
LEARNED_THRESHOLDS = ("prior", "risk", "f1")  # from rows that training did not see
OPTIMIZER_SETTINGS = ("momentum", "cosine", "starts_at_prior")
OWN = "your own"  # stands for a parameter that is code
ROWS_IN_MEMORY = 20_000  # of a stream, that rates and linear models of few labels are learned from
USUAL_SHARE = 0.2  # of the rows, that early stopping holds out
SMALLEST_PRIOR = 1e-3  # a bias starts no lower than at its log odds
SCORES_HELD_OUT = 2**24  # that are computed at a time
MOST_WEIGHTS = 2**33  # of a network: 32 GiB
# Epochs: as many passes over the rows as the answers can bear (docs/guide/training.md).
PASSES = 25  # where there are many confident answers
ENOUGH = 5000  # confident answers that make a set bear all passes
LEAST_STEPS, MOST_STEPS = 100, 1000  # where almost no pair has a confident answer, and where all do
# Settings that a checkpoint may differ in: they change nothing, act later, or are hashed otherwise.
NOT_HASHED = {"device", "verbose", "callbacks", "random_state", "threshold", "encoder"}
NOT_HASHED |= {"warm_start", "require_candidates"}


@dataclass(frozen=True)
class HeldOut:
    """Rows that are held out of the training to judge it."""

    rows: npt.NDArray[np.intp]  # their numbers among all rows
    X: Rows
    answers: Answers
    targets: Any  # a tensor (n, q), or SparseTargetRows
    risk: Risk  # with the counts of these rows
    patience: int | None  # epochs to wait for a better one

    @torch.no_grad()
    def compute_risk(self, network: nn.Module, precision: torch.dtype | None) -> float:
        """Return the risk of a network on these rows."""
        if isinstance(self.risk, LabelChunks):
            assert not isinstance(self.X, PixelRows)
            network.eval()
            rows = torch.arange(len(self.X))
            x, targets = self.X[rows], self.targets.index_select(0, rows)
            return value_or_nan(partial(self.risk.compute_risk, network), x, targets)
        scores = predict_scores(network, self.X, precision=precision)
        return value_or_nan(self.risk, scores, self.targets)


@dataclass(frozen=True)
class Training:
    """A network with its first weights, and everything that it is trained with."""

    method: Method
    rates: Rates
    scaling: Scaling
    network: nn.Module
    X: Any  # scaled, on the device: Rows, or StreamedRows
    targets: Any  # what the risk takes of the answers: a tensor (n, q), SparseTargetRows, or None
    risk: Risk
    counts: Counts  # what the risk is divided by
    options: TrainOptions
    may_be_graph: bool  # network, risk and optimiser are from comes, and a graph pays
    features: Any  # of all rows, as they were given
    answers: Any  # about all rows
    held_out: HeldOut | None = None
    checkpoint: Checkpoint | None = None
    is_shared: bool = False  # by the processes that have joined
    clean: CleanSample | None = None  # rows whose true labels are known; they are not trained on
    weight: Tensor | None = None  # of every row, (n,)
    cross_score: Callable[[], Array] | None = None  # scores of rows by trainings without them

    def run(self, *, return_on_interrupt: bool = True) -> History:
        """Train the network, in place; keep the weights that the held-out rows judge best."""
        validation = None
        if self.held_out is not None:
            score = partial(self.held_out.compute_risk, self.network, self.options.precision)
            validation = Validation(score, self.held_out.patience)
        options = replace(
            self.options, graph=self.can_be_a_graph, return_on_interrupt=return_on_interrupt
        )
        return train(
            self.network,
            self.X,
            self.targets,
            self.risk,
            options,
            sample_weight=self.weight,
            validation=validation,
            checkpoint=self.checkpoint,
            distributed=self.is_shared,
        )

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The numbers among all rows of those that are trained on."""
        every = np.arange(len(self.answers))
        return every if self.held_out is None else np.delete(every, self.held_out.rows)

    @property
    def can_be_a_graph(self) -> bool:
        """Whether no step reads a number from a GPU, as sums over pairs of many labels do."""
        if not self.may_be_graph or not self.method.is_over_pairs:
            return self.may_be_graph
        way = choose_pair_sums(1, self.targets.shape[1], torch.device("cuda"))
        return way != "in linear time"

    @property
    def has_large_risk(self) -> bool:
        """Whether the risk of one batch is large enough to be computed on its own."""
        n, q = self.targets.shape
        way = choose_pair_sums(min(n, self.options.batch_size), q, self.targets.device)
        return self.method.is_over_pairs and way != "whole"

    def with_checkpoint(
        self, classifier: "CandidateClassifier", path: Any, every: float, begun: Any = None
    ) -> "Training":
        """Return the training with a checkpoint, named by a hash of settings, data, first weights.

        What is estimated is not hashed, as its last digits depend on the number of threads. The
        state is kept when so many seconds have passed, and not after every epoch, which may be
        short. ``begun`` is the network of an earlier fit, if training goes on from there.
        """
        begun = classifier.model if begun is None else begun
        network = weights_hash(begun) if isinstance(begun, nn.Module) else repr(self.network)
        settings = classifier.get_params(deep=False).items()
        kept = {name: as_plain(value) for name, value in settings if name not in NOT_HASHED}
        text = json.dumps([kept, network, self.options.seed], sort_keys=True)
        digest = hashlib.sha256(text.encode())
        arrays: list[Any] = [] if self.weight is None else [self.weight.cpu().numpy()]
        if isinstance(self.X, StreamedRows):
            digest.update(repr((self.X.sizes, getattr(classifier, "encoder_", None))).encode())
            counts, scaling = self.answers.counts, self.scaling
            arrays += [counts.no, counts.yes, counts.maybe, scaling.shift, scaling.scale]
        else:
            for matrix in (self.features, self.answers.states):
                is_sparse = sparse.issparse(matrix)
                arrays += [matrix.data, matrix.indices, matrix.indptr] if is_sparse else [matrix]
        for array in arrays:
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        kept_state = Checkpoint(Path(path), digest.hexdigest(), every, at_ends=False)
        return replace(self, checkpoint=kept_state)


def prepare(
    classifier: "CandidateClassifier",
    X: Any,  # a finite matrix, dense or CSR; None for a stream
    answers: Any,  # with label names; the counts of a stream
    *,
    shards: "ShardStream | None" = None,  # rows on disk, in place of X
    weight: Array | None = None,  # of every row, (n,), above 0
    clean: CleanSample | None = None,
    rates: Rates | None = None,  # then nothing is estimated
    network: nn.Module | None = None,  # an earlier one to go on with, and
    scaling: Scaling | None = None,  # the scaling that it was trained with
    earlier_counts: Counts | None = None,  # of earlier calls of partial_fit
    is_part: bool = False,  # of more rows that are to come
    is_shared: bool = False,  # by the processes that torchrun started
) -> Training:
    """Do everything before the first step: checks, scaling, rates, first weights, risk."""
    method = find_method(classifier.method)
    classifier._check_settings()
    is_many = has_many_labels(answers)
    if is_many:
        _check_many_labels(classifier, method, weight, clean)
    if earlier_counts is None:  # a later part may lack a label
        check_labels(answers, method)
    settings = choose_settings(classifier, method)
    if settings["model"] == "blend":
        if not isinstance(method, Likelihood) or is_many:
            raise ComesError(
                "model='blend' corrects trees by the rates of method 'likelihood', on a matrix of "
                f"all pairs; got method {method.name!r} and {answers.shape[1]} labels. Take "
                "model='auto'."
            )
        settings["model"] = "wide_and_deep"  # the trees are grown when the networks are trained
    if settings["model"] == "wide_and_deep":
        if method.is_custom or not method.has_sparse_targets:
            able = [name for name, other in METHODS.items() if other.has_sparse_targets]
            raise ComesError(
                f"model 'wide_and_deep' needs a risk that is a mean over labels, as those of "
                f"{listed(able)}; got method {method.name!r}. Take model='mlp'."
            )
        if is_many or is_part:  # the linear model is fitted to all rows, and has d q weights
            settings["model"] = "mlp"
    device = choose_device(classifier.device)
    device = join_processes(device) if is_shared else device
    if shards is None:
        seed = draw_seed(classifier.random_state, is_shared=is_shared)
        scaling = scaling or fit_scaling(X, settings["scale"], weight)
        scaled = scaling(X)
        d = X.shape[1]
    else:
        seed, scaling, scaled, d = shards.seed, shards.scaling, None, shards.n_features
    is_new = network is None
    with seeded(seed, device):
        if network is None:
            q = answers.shape[1]
            network = make_network(d, q, classifier.hidden, settings)
        else:
            network = copy.deepcopy(network)
        network = network.to(device)
    if isinstance(network, Ensemble):  # of a warm start, as many as it began with
        settings["n_networks"] = len(network.weight)
    options = _make_options(classifier, method, settings, answers, seed)
    if is_many:
        find_label_head(network)  # or say so, before anything takes long

    @cache
    def sample_rows() -> tuple[Any, Answers]:
        assert shards is not None
        return shards.sample(ROWS_IN_MEMORY)

    def estimate() -> Rates:
        features, sample = (X, answers) if shards is None or is_many else sample_rows()
        n, d = (0, 0) if features is None else features.shape
        with threads_for(n * d * min(n, d)):  # products of the columns with one another
            return determine_rates(
                method,
                features,
                sample,
                class_prior=classifier.class_prior,
                rates=classifier.rates,
                seed=seed,
                needs_prior=classifier.threshold in LEARNED_THRESHOLDS,
                clean=clean,
                weight=weight,
            )

    if rates is None:
        rates = broadcast_from_first(estimate) if is_shared else estimate()
    if is_new and settings["starts_at_prior"]:
        start_at_prior(network, guess_prior(method, rates, answers, weight))

    train_X, train_answers, train_weight, held_out = scaled, answers, weight, None
    if classifier.early_stopping:
        rows, held = split_rows(len(answers), classifier.early_stopping, seed)
        held_weight = None if weight is None else weight[held]
        held_out = HeldOut(
            held,
            to_device(_safe_indexing(scaled, held), device),
            answers[held],
            make_targets(method, rates, answers[held], device, is_sparse=is_many),
            _make_held_out_risk(method, rates, answers[held], held_weight, device, is_many),
            classifier.patience,
        )
        train_X, train_answers = _safe_indexing(scaled, rows), answers[rows]
        train_weight = None if weight is None else weight[rows]
    counts = Counts.of(train_answers, train_weight)
    counts = counts if earlier_counts is None else earlier_counts + counts
    risk: Any = _on_device(method.make_risk(rates, counts), device)
    targets: Any = None
    if shards is None:
        targets = make_targets(method, rates, train_answers, device, seed, is_sparse=is_many)
    row_weight = None if train_weight is None else torch.tensor(train_weight).float()
    if isinstance(network, Ensemble):
        layer = network.linear
        if layer is not None and not is_part and not is_many:

            def fit() -> dict[str, Tensor]:
                some_X, some_targets = train_X, targets
                if shards is not None:
                    some_X, sample = sample_rows()
                    some_targets = shards.make_targets(method, rates, sample, device, seed)
                fit_linear_part(layer, some_X, some_targets, risk, row_weight, seed=seed)
                return {name: weights.cpu() for name, weights in layer.state_dict().items()}

            layer.load_state_dict(broadcast_from_first(fit) if is_shared else fit())
        risk = EnsembleRisk(risk)
    if is_many:
        n_scored = options.batch_size * settings["n_networks"]
        risk = LabelChunks.fitting(risk, answers.shape[1], n_scored, device)
    return Training(
        method=method,
        rates=rates,
        scaling=scaling,
        network=network,
        X=to_device(train_X, device) if shards is None else shards.rows(method, rates, device),
        targets=targets,
        risk=risk,
        counts=counts,
        options=options,
        # Chunks of labels read from the device, and blocks on disk come from elsewhere.
        may_be_graph=not is_many
        and shards is None
        and not method.is_custom
        and all(isinstance(settings[part], str) for part in ("model", "optimizer")),
        features=X,
        answers=answers,
        held_out=held_out,
        is_shared=is_shared,
        clean=clean,
        weight=None if row_weight is None else row_weight.to(device),
    )


def choose_settings(classifier: "CandidateClassifier", method: Method) -> dict[str, Any]:
    """Return how to train: what is given, else the method's own; epochs may be None.

    SGD brings the steps and the scaling of the paper, and so does the linear model: what was
    measured is too slow for it. Everything else does not depend on the network.
    """
    settings = dict(method.training)
    given = {name: getattr(classifier, name) for name in settings if name != "starts_at_prior"}
    scale = given.pop("scale")
    if isinstance(classifier.model, str) and classifier.model == "auto":
        given["model"] = None
    if isinstance(classifier.optimizer, dict):
        given |= {"optimizer": classifier.optimizer.get("name")}
        given |= {name: classifier.optimizer.get(name) for name in OPTIMIZER_SETTINGS}
    is_small = given["optimizer"] is None and classifier.model == "linear"
    if is_small or given["optimizer"] == PAPER_TRAINING["optimizer"]:
        settings |= {name: PAPER_TRAINING[name] for name in (*STEPS, "scale")}
    settings |= {"momentum": 0.9, "cosine": True}
    settings |= {name: value for name, value in given.items() if value is not None}
    if scale != "auto":  # None is a scaling
        settings["scale"] = scale
    if settings["model"] not in ("mlp", "wide_and_deep", "blend"):
        settings["n_networks"] = 1
    return settings


def count_epochs(settings: dict[str, Any], answers: Any) -> int:
    """Return the number of passes over the rows: what is set, or as many as the answers can bear.

    Small sets need more of them to take enough steps. Few confident answers are soon learned by
    heart, so that networks bear fewer passes where there is no linear model beside them.
    """
    if settings["epochs"] is not None:
        return int(settings["epochs"])
    (n, q), batch_size = answers.shape, settings["batch_size"]
    confident = int(sum(answers.count_state(state).sum() for state in (State.NO, State.YES)))
    passes: float = PASSES
    if settings["model"] not in ("wide_and_deep", "blend"):
        passes *= min(1, math.sqrt(confident / ENOUGH))
    steps = LEAST_STEPS + (MOST_STEPS - LEAST_STEPS) * confident / (n * q)
    return int(max(1, math.ceil(max(passes, steps / math.ceil(n / batch_size)))))


def _make_options(
    classifier: "CandidateClassifier",
    method: Method,
    settings: dict[str, Any],
    answers: Any,
    seed: int,
) -> TrainOptions:
    """Return the options of the training; a wrong one is refused before anything takes long."""
    optimizer = settings["optimizer"]
    if not callable(optimizer):
        optimizer = make_optimizer(
            optimizer,
            learning_rate=settings["learning_rate"],
            momentum=settings["momentum"],
            weight_decay=classifier.weight_decay,
        )
    return TrainOptions(
        optimizer=optimizer,
        epochs=count_epochs(settings, answers),
        batch_size=settings["batch_size"],
        # The mean over networks is trained.
        risk_scale=method.risk_scale(answers.shape[1]) * settings["n_networks"],
        cosine=settings["cosine"],
        seed=seed,
        progress=None if classifier.verbose == 0 else False,
        callbacks=classifier._list_callbacks(),
        description="your risk" if method.is_custom else method.name,
    )


def make_network(d: int, q: int, hidden: int, settings: dict[str, Any]) -> nn.Module:
    """Return the network that the settings name, for d features and q labels."""
    model = settings["model"]
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    if callable(model):
        network: nn.Module = model(d, q)
        return network
    n_networks, dropout = settings["n_networks"], settings["dropout"]
    n_weights = n_networks * hidden * (d + q)
    if model in ("mlp", "wide_and_deep", "low_rank") and n_weights > MOST_WEIGHTS:
        raise ComesError(
            f"a network of {n_networks} x {hidden} hidden units would take "
            f"{4 * n_weights / 2**30:.0f} GiB. Lower hidden."
        )
    if model == "wide_and_deep" or (model == "mlp" and n_networks > 1):
        how: Any = {"dropout": dropout, "n_networks": n_networks}
        return Ensemble(d, q, hidden, **how, has_linear=model == "wide_and_deep")
    if model in ("mlp", "low_rank"):
        return (mlp if model == "mlp" else low_rank)(d, q, hidden, dropout=dropout)
    if model == "linear":
        return linear(d, q)
    raise ComesError(
        "model must be 'auto', 'wide_and_deep', 'blend', 'mlp', 'low_rank', 'linear', a "
        f"module or a function (d, q) -> module; got {model!r}."
    )


def guess_prior(method: Method, rates: Rates, answers: Any, weight: Array | None = None) -> Array:
    """Return the class prior, or for methods that do without it what the answers suggest, (q,).

    A prior that only the threshold needs does not change where training starts.
    """
    if rates.class_prior is not None and (method.needs_class_prior or method.needs_rates):
        return np.asarray(rates.class_prior)
    states = (State.NO, State.YES, State.MAYBE)
    if weight is None:
        n: float = len(answers)
        n_no, n_yes, n_maybe = (answers.count_state(state).astype(float) for state in states)
    else:
        n = weight.sum()
        n_no, n_yes, n_maybe = (sum_rows(answers.codes == state, weight) for state in states)
    if answers.kind == "candidates":
        return np.asarray(1 - n_no / n)
    if answers.kind == "positives":
        return np.asarray(n_yes / n)
    if not n_yes.any():  # then maybe counts as yes
        n_yes = n_maybe
    return np.asarray((n_yes + 0.5) / (n_yes + n_no + 1))


def start_at_prior(network: nn.Module, class_prior: Array) -> None:
    """Set the bias of the last layer to the log odds of the class prior, where there is one.

    From 0, rare labels do not get off the ground.
    """
    odds = torch.logit(torch.as_tensor(class_prior, dtype=torch.float32), eps=SMALLEST_PRIOR)
    if isinstance(network, Ensemble):
        layers: list[Any] = [network]
    else:
        layers = [m for m in network.modules() if isinstance(m, nn.Linear | InputLayer)]
    if layers and layers[-1].bias is not None and layers[-1].bias.shape[-1] == len(odds):
        with torch.no_grad():
            layers[-1].bias.copy_(odds)


def make_targets(
    method: Method,
    rates: Rates,
    answers: Answers,
    device: torch.device,
    seed: int | None = None,
    *,
    is_sparse: bool = False,
) -> Any:
    """Return what the risk takes of answers; a seed draws one excluded label of a row."""
    if is_sparse:
        return SparseTargetRows(*method.sparse_targets(answers), device)
    targets = method.targets(answers, rates)
    if method.keeps_one_excluded and seed is not None:
        targets = keep_one_excluded(targets, seed)
    return torch.tensor(targets, device=device)


def _make_held_out_risk(
    method: Method,
    rates: Rates,
    answers: Answers,
    weight: Array | None,
    device: torch.device,
    is_many: bool,
) -> Any:
    """Return the plain estimate of the risk of held-out rows, with their counts."""
    risk = _on_device(method.make_risk(rates, Counts.of(answers, weight), corrected=False), device)
    n, q = answers.shape
    if is_many:  # judged at once, by the mean of all networks
        return LabelChunks(risk, q, max(1, SCORES_HELD_OUT // n))
    if weight is None:
        return risk
    own = torch.tensor(weight, device=device).float()

    def weighted(scores: Tensor, targets: Tensor) -> Tensor:
        value: Tensor = risk(scores, targets, own)
        return value

    return weighted


def _on_device(risk: Any, device: torch.device) -> Any:
    return risk.to(device) if hasattr(risk, "to") else risk


def _check_many_labels(
    classifier: "CandidateClassifier", method: Method, weight: Any, clean: Any
) -> None:
    """Raise an error if a setting needs a matrix of all pairs."""
    if method.is_custom:
        raise ComesError(
            "a risk of your own is computed on the scores of all labels, and there are too many. "
            "Take a method by name, or fewer labels."
        )
    if not method.has_sparse_targets:
        able = [name for name, method in METHODS.items() if method.has_sparse_targets]
        raise ComesError(
            f"method {method.name!r} needs the scores of all labels at once, and there are too "
            f"many. Take method={', '.join(map(repr, able[:-1]))} or {able[-1]!r}, or fewer labels."
        )
    if classifier.threshold in LEARNED_THRESHOLDS:
        raise ComesError(
            f"threshold={classifier.threshold!r} is learned from the scores of all pairs, and "
            "there are too many. Take 'auto', and predict_top(X, k) for the best labels of a row."
        )
    if weight is not None or clean is not None:
        raise ComesError(
            "sample_weight and clean need a matrix of all pairs, and there are too many. Leave "
            "them out: repeat rows instead, and give class_prior or rates that are known."
        )


def split_rows(
    n: int, share: bool | float, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows to train on and those to hold out."""
    share = USUAL_SHARE if share is True else share
    n_held = round(share * n)
    if not 1 <= n_held < n:
        raise ComesError(
            f"early stopping holds out a share of {share:g} of the rows, which is {n_held} of {n}; "
            "set early_stopping to a share of which some rows are held out and some are not."
        )
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def draw_seed(random_state: Any, *, is_shared: bool = False) -> int:
    """Return a seed drawn from the parameter ``random_state``; processes share the first one's."""
    try:
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise ComesError(
            f"random_state must be a whole number, a RandomState or None; got {random_state!r}."
        ) from error
    return int(gather_objects(seed)[0]) if is_shared else seed


def as_plain(value: Any) -> Any:
    """Return a parameter in a form that json can hold; code becomes "your own"."""
    if isinstance(value, Method):
        plain = {name: as_plain(own) for name, own in value.get_params(deep=False).items()}
        return {"name": value.name} | plain
    if isinstance(value, RatesEstimate):
        value = value.rates
    if isinstance(value, AnswerRates):
        people = {name: tuple(pair) for name, pair in value.people.items()}
        rates = {"no": value.no_rate, "yes": value.yes_rate, "mistake": value.mistake_rate}
        return as_plain({**rates, "people": people})
    if isinstance(value, Mapping):
        return {str(name): as_plain(own) for name, own in value.items()}
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, nn.Module) or callable(value):
        return OWN
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return np.asarray(value).tolist()
