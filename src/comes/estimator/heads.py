"""The probe: a linear classifier on features of a frozen network."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.inputs import check_training_features, per_label
from comes.estimator.preparation import Training
from comes.estimator.row_training import guess_prior, prepare_rows, start_at_prior
from comes.methods import BEST_PUBLISHED, find_method, method_of_label
from comes.models import Backbone
from comes.models.backbones import place_network
from comes.models.views import ImageNetwork, power_normalised, zero_linear
from comes.priors import estimate_class_prior
from comes.training.convex import ProximalGradient

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

BIAS_STEP = 1.0
PROBE_EPOCHS = {"classes": 30, "pooled": 60}
SHARED = (  # settings that the probe has from the image classifier
    "variant",
    "threshold",
    "early_stopping",
    "validation_share",
    "patience",
    "normaliser",
    "progress",
    "mistake_rate",
    "uses_maybe",
    "prior_weight",
)
GIVEN = ("class_prior", "flip_rate", "exclude_rate", "no_rate", "yes_rate")


@dataclass(frozen=True, eq=False)
class _LinearAtPrior:
    """Makes a linear layer with weights of zero that predicts the class prior."""

    class_prior: npt.NDArray[np.float64]

    def __call__(self, d: int, q: int) -> nn.Module:
        layer = zero_linear(d, q)
        assert isinstance(layer, nn.Linear)
        with torch.no_grad():
            layer.bias.copy_(torch.logit(torch.as_tensor(self.class_prior), eps=1e-3))
        return layer


@dataclass(frozen=True, eq=False)
class _ProximalSteps:
    """Makes the optimiser of a linear layer whose weights are penalised."""

    penalty: npt.NDArray[np.float64]  # (q, d)
    curvature: float  # of the logistic loss in the weights

    def __call__(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weight, bias = parameters
        penalty = torch.as_tensor(self.penalty, dtype=torch.float32, device=weight.device)
        # Steps at which a logistic loss does not overshoot; its curvature in the bias is 1/4.
        weights = {"params": [weight], "lr": 1 / max(self.curvature, 1e-12)}
        return ProximalGradient([weights, {"params": [bias], "lr": BIAS_STEP}], penalty)


def gradient_error(
    X: Any, candidates: BoolMatrix, class_prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""Return the standard error of the gradient of COMES-HL with respect to each weight, (q, d).

    A linear head with zero weights, and biases that match the class prior, has the gradient
    :math:`(1 - \pi_j) (\bar x_k^{(j)} - \bar x_k)`: the mean of feature k over the :math:`n_j` rows
    that exclude label j, minus the mean over all n rows. If the feature is not informative about
    the label, the former rows are a random sample of the latter, and the standard error is
    :math:`(1 - \pi_j) \sigma_k \sqrt{1 / n_j - 1 / n}`.
    """
    n_excluded = np.maximum((~candidates).sum(axis=0), 1)
    per_row = (1 - class_prior) * np.sqrt(1 / n_excluded - 1 / len(candidates))
    return np.outer(per_row, np.asarray(X).std(axis=0))


def sparse_head(
    X: npt.NDArray[np.floating],
    candidates: BoolMatrix,
    class_prior: npt.NDArray[np.float64],
    standard_errors: float = 2.0,
    **settings: Any,
) -> CandidateClassifier:
    """Return a linear classifier, to be fitted, whose weights need evidence to leave zero.

    COMES-HL is minimised together with a penalty on the weights, which are at least 0, by steps on
    all rows at once. The penalty of a weight is what its gradient reaches by chance: a multiple of
    `gradient_error`. For features that are rarely far from zero and speak for a label
    rather than against it, such as probabilities of many other classes.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The features that the head will be fitted on.
    candidates : bool array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)
    standard_errors : float
        How many standard errors the gradient of a weight must be above chance.
    **settings
        Other parameters of `CandidateClassifier`.

    Returns
    -------
    head : CandidateClassifier

    Examples
    --------
    >>> from comes.generation import case_b
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((2000, 50)) < 0.1).astype(float)
    >>> relevant = X[:, :2] > 0
    >>> candidates = case_b(relevant, exclude_rate=0.3)
    >>> head = sparse_head(X, candidates, relevant.mean(axis=0), 3.0, epochs=20)
    >>> head.fit(X, candidates).module_.weight.nonzero().tolist()
    [[0, 0], [1, 1]]
    """
    penalty = standard_errors * gradient_error(X, candidates, class_prior)
    centred = X - X.mean(axis=0)
    curvature = float(np.linalg.eigvalsh(centred.T @ centred)[-1]) / (4 * len(X))
    return CandidateClassifier(
        **{"method": BEST_PUBLISHED, **settings},
        class_prior=class_prior,
        model=_LinearAtPrior(class_prior),
        optimizer=_ProximalSteps(penalty, curvature),
        scale="centre",
        reduction="sum",
        batch_size=len(X),
        cosine=False,
    )


@dataclass(frozen=True, eq=False)
class ShownPictures:
    """What a head is trained on: pictures as a frozen network shows them."""

    X: npt.NDArray[np.floating]  # features, (n, d)
    backbone: Backbone
    classifier: nn.Linear | None  # of the classes that the network was trained on
    kind: str  # what the head reads: "classes", "clusters", "both", "all" or "pooled"


def train_head_alone(
    classifier: "ImageClassifier",
    shown: ShownPictures,
    answers: Answers,
    seed: int,
    device: torch.device,
) -> tuple[ImageNetwork, CandidateClassifier, Training]:
    """Train a head on one kind of features; return the network with it, and how it was trained."""
    X, reads_classes = shown.X, shown.kind == "classes"
    probe, training = _prepare_probe(classifier, X, answers, reads_classes, seed, device)
    if training.method.needs_rates:
        start_at_prior(probe.module_, guess_prior(training.method, probe.rates_, answers))
    if classifier.probe_epochs != 0:
        probe._finish(training, training.run())
    return _build_network(classifier, shown.backbone, probe, device), probe, training


def _prepare_probe(
    classifier: "ImageClassifier",
    X: npt.NDArray[np.floating],
    answers: Answers,
    reads_classes: bool,
    seed: int,
    device: torch.device,
) -> tuple[CandidateClassifier, Training]:
    """Return a classifier of features that is ready to be trained."""
    settings = {name: getattr(classifier, name) for name in SHARED}
    settings |= {"method": classifier.method_, "random_state": seed, "device": str(device)}
    if classifier.probe_epochs != 0:
        kind = "classes" if reads_classes else "pooled"
        settings["epochs"] = classifier.probe_epochs or PROBE_EPOCHS[kind]
    if reads_classes:
        S, known = answers.without_chosen().candidates, _find_prior(classifier, X, answers, seed)
        probe = sparse_head(X, S, known, classifier.standard_errors, **settings)
        return probe, prepare_rows(probe, check_training_features(probe, X), answers)
    probe = CandidateClassifier(
        **{name: getattr(classifier, name) for name in GIVEN},
        reduction=classifier.reduction,
        flood_level=classifier.flood_level,
        model=zero_linear,
        optimizer="adam",
        learning_rate=3e-4,
        batch_size=256,
        weight_decay=0.0,
        cosine=False,
        scale="standard" if classifier.probe_epochs != 0 else None,
        **settings,
    )
    if classifier.probe_epochs != 0:
        X = power_normalised(torch.from_numpy(X)).numpy()
    return probe, prepare_rows(probe, check_training_features(probe, X), answers)


def _find_prior(
    classifier: "ImageClassifier", X: npt.NDArray[np.floating], answers: Answers, seed: int
) -> npt.NDArray[np.float64]:
    """Return the class prior that the sparse head starts from: given, or estimated."""
    names = list(answers.label_names or ())
    if classifier.class_prior is not None:
        return per_label(classifier.class_prior, "class_prior", names)
    rate = classifier.exclude_rate
    estimate = estimate_class_prior(
        X,
        answers,
        exclude_rate=None if rate is None else per_label(rate, "exclude_rate", names),
        random_state=seed,
        label_names=names,
    )
    return np.asarray(estimate.class_prior)


def _build_network(
    classifier: "ImageClassifier",
    backbone: Backbone,
    probe: CandidateClassifier,
    device: torch.device,
) -> ImageNetwork:
    """Return the network with the head and the scaling of the probe on top."""
    shift, scale = probe.scaling_.shift, probe.scaling_.scale
    network = ImageNetwork(
        backbone,
        probe.module_,
        None if shift is None else torch.as_tensor(shift, dtype=torch.float32),
        None if scale is None else torch.as_tensor(scale, dtype=torch.float32),
        power=backbone.classifier is None and classifier.probe_epochs != 0,
        freezes_statistics=classifier.freezes_statistics,
    )
    return place_network(network, device)


def choose_features(classifier: "ImageClassifier", backbone: Backbone) -> str:
    """Return what the head reads: what was asked for, or the best that is possible."""
    named, wanted = method_of_label(classifier.method_), classifier.features
    possible = ["pooled"]
    can_be_sparse = classifier.reduction in ("auto", "sum") and classifier.probe_epochs != 0
    if named is not None and can_be_sparse:
        has_classes = backbone.classifier is not None
        possible += ["classes"] if named.has_sparse_head and has_classes else []
        possible += ["clusters"] if named.has_view_head else []
        possible += ["both"] if named.has_view_head and has_classes else []
        possible += ["all"] if named.has_view_head else []
    if wanted == "auto":
        return possible[-1]
    if wanted not in possible:
        raise ComesError(
            f"features={wanted!r} is not possible here: {_say_why(classifier, backbone)}. Take one "
            f"of {', '.join(possible)}."
        )
    return wanted


def has_views(method: Any, kind: str) -> bool:
    """Return whether a head of this method reads several views of the features."""
    named = method_of_label(method)
    return named is not None and named.has_view_head and kind != "pooled"


def _say_why(classifier: "ImageClassifier", backbone: Backbone) -> str:
    """Return what stands against the kind of features that was asked for."""
    named, wanted = method_of_label(classifier.method_), classifier.features
    can_train = named is not None and (
        named.has_view_head or (named.has_sparse_head and wanted == "classes")
    )
    if not can_train:
        return f"method {classifier.method_!r} trains no such head"
    if classifier.probe_epochs == 0:
        return "probe_epochs is 0"
    if classifier.reduction not in ("auto", "sum"):
        return f"reduction is {classifier.reduction!r}, not 'sum'"
    return "the network has no classifier"


def needs_features(classifier: "ImageClassifier") -> bool:
    """Return whether a probe is trained, or something is to be estimated before training."""
    method = find_method(classifier.method_, classifier.variant)
    to_estimate = method.needs_transition or (
        method.needs_flip_rate and classifier.flip_rate is None
    )
    to_estimate = to_estimate or method.needs_rates
    return classifier.probe_epochs != 0 or classifier.class_prior is None or to_estimate
