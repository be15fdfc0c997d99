"""The probe: a linear classifier on features of a frozen network."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.estimator.checks import per_label
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.preparation import Training
from comes.labels import BoolMatrix
from comes.models import power_normalised, zero_linear
from comes.priors import estimate_class_prior, gradient_error
from comes.training import ProximalGradient

if TYPE_CHECKING:
    from comes.estimator.images import ImageClassifier

BIAS_STEP = 1.0
PROBE_EPOCHS = {"classes": 30, "pooled": 60}
SHARED = (  # settings that the probe has from us
    "threshold",
    "early_stopping",
    "validation_share",
    "patience",
    "normaliser",
    "progress",
)


def sparse_head(
    X: npt.NDArray[np.floating],
    candidates: BoolMatrix,
    class_prior: npt.NDArray[np.float64],
    standard_errors: float = 2.0,
    **settings: Any,
) -> CandidateClassifier:
    """Return a linear classifier, to be fitted, whose weights need evidence to leave zero.

    COMES-HL is minimised together with a penalty on the weights, which are at least 0, by steps on
    all rows at once. The penalty of a weight is what its gradient reaches by chance: so many times
    `comes.priors.gradient_error`. For features that are rarely far from zero and speak for a label
    rather than against it, as the probabilities of many other classes.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        What it is going to be fitted on.
    candidates : bool array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)
    standard_errors : float
    **settings
        Other parameters of `CandidateClassifier`.

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

    def at_prior(d: int, q: int) -> nn.Module:
        layer = zero_linear(d, q)
        assert isinstance(layer, nn.Linear)
        with torch.no_grad():
            layer.bias.copy_(torch.logit(torch.as_tensor(class_prior), eps=1e-3))
        return layer

    def proximal(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        on_device = torch.as_tensor(penalty, dtype=torch.float32, device=parameters[0].device)
        # Steps at which a logistic loss does not overshoot; its curvature in the bias is 1/4.
        weights = {"params": parameters[:1], "lr": 1 / max(curvature, 1e-12)}
        biases = {"params": parameters[1:], "lr": BIAS_STEP}
        return ProximalGradient([weights, biases], on_device)

    return CandidateClassifier(
        "comes-hl",
        **settings,
        class_prior=class_prior,
        model=at_prior,
        optimizer=proximal,
        scale="centre",
        reduction="sum",
        batch_size=len(X),
        cosine=False,
    )


def prepare_probe(
    classifier: "ImageClassifier",
    X: npt.NDArray[np.floating],
    labels: Any,
    reads_classes: bool,
    seed: int,
    device: torch.device,
) -> tuple[CandidateClassifier, Training]:
    """Return a classifier of features that is ready to be trained."""
    settings = {name: getattr(classifier, name) for name in SHARED}
    settings |= {"random_state": seed, "device": str(device)}
    if classifier.probe_epochs != 0:
        kind = "classes" if reads_classes else "pooled"
        settings["epochs"] = classifier.probe_epochs or PROBE_EPOCHS[kind]
    if reads_classes:
        S, names = labels.to_numpy(), list(labels.columns)
        prior = classifier.class_prior
        if prior is None:
            prior = estimate_class_prior(X, S, random_state=seed, label_names=names).class_prior
        known = per_label(prior, "class_prior", names)
        probe = sparse_head(X, S, known, classifier.standard_errors, **settings)
        return probe, probe._prepare(X, labels, None, None)
    probe = CandidateClassifier(
        classifier.method,
        variant=classifier.variant,
        class_prior=classifier.class_prior,
        flip_rate=classifier.flip_rate,
        reduction=classifier.reduction,
        flood_level=classifier.flood_level,
        model=zero_linear,
        optimizer="adam",
        learning_rate=3e-4,
        weight_decay=0.0,
        cosine=False,
        scale="standard" if classifier.probe_epochs != 0 else None,
        **settings,
    )
    if classifier.probe_epochs != 0:
        X = power_normalised(torch.from_numpy(X)).numpy()
    return probe, probe._prepare(X, labels, None, None)
