"""The head of pictures by likelihood: a sparse teacher on two views, a student on the third.

The teacher reads which classes and which clusters a picture belongs to. Its weights are at least 0,
and each pays a penalty: what its gradient reaches by chance. So a weight leaves zero only on
evidence. The student reproduces, from the features themselves, what the teacher and the answers
together say about the training pictures. The head is the mean of both, one linear layer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import KFold
from torch import Tensor, nn

from comes.answers import AnswerRates, Answers, lean_answers, relevance_given
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.clustering import find_clusters
from comes.estimator.finishing import finish_fit
from comes.estimator.heads import ShownPictures
from comes.estimator.inputs import check_training_features
from comes.estimator.preparation import Training, split_rows
from comes.estimator.row_training import guess_prior, prepare_rows, start_at_prior
from comes.methods import Knowledge
from comes.models import ImageNetwork, Views, place_network, zero_linear
from comes.training import ProximalGradient, fit_soft_targets, to_device

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

Array = npt.NDArray[np.float32]
BIAS_STEP = 4.0  # a logistic loss bends by 1/4 at most in the bias
N_STEPS = 60
N_FOLDS = 3
AT_ONCE = 4096  # rows
SHARED = (  # settings that the probe has from the image classifier
    "variant",
    "class_prior",
    "exclude_rate",
    "no_rate",
    "yes_rate",
    "mistake_rate",
    "uses_maybe",
    "prior_weight",
    "threshold",
    "early_stopping",
    "validation_share",
    "patience",
    "progress",
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a head of views is trained on.

    Attributes
    ----------
    sparse : array of shape (n_samples, n_sparse)
        Classes and clusters that pictures belong to.
    pooled : array of shape (n_samples, n_pooled), optional
        Normalised features, for the student.
    answers : Answers

    Examples
    --------
    >>> said = Answers.from_candidates([[True], [False]])
    >>> len(Evidence(np.ones((2, 3), np.float32), None, said)[[0]].answers)
    1
    """

    sparse: Array
    pooled: Array | None
    answers: Answers

    def __getitem__(self, rows: Any) -> "Evidence":
        pooled = None if self.pooled is None else self.pooled[rows]
        return Evidence(self.sparse[rows], pooled, self.answers[rows])

    @property
    def joined(self) -> Array:
        """All features side by side, as the head reads them."""
        return self.sparse if self.pooled is None else np.hstack([self.sparse, self.pooled])


@dataclass(frozen=True, eq=False)
class ViewHead:
    """A head of views with its scaling: scores are ``layer((X - shift) / scale)``.

    Examples
    --------
    >>> ViewHead(zero_linear(3, 2), np.zeros(3), np.ones(3)).score(np.ones((5, 3))).shape
    (5, 2)
    """

    layer: nn.Module
    shift: npt.NDArray[np.floating]
    scale: npt.NDArray[np.floating]

    def scaled(self, X: Any) -> Array:
        """Return features as the layer reads them."""
        return np.asarray((X - self.shift) / self.scale, dtype=np.float32)

    @torch.no_grad()
    def score(self, X: Any) -> Array:
        """Return scores, (n, q)."""
        device = next(self.layer.parameters()).device
        parts = [
            self.layer(torch.from_numpy(self.scaled(X[start : start + AT_ONCE])).to(device)).cpu()
            for start in range(0, len(X), AT_ONCE)
        ]
        return np.asarray(torch.cat(parts).numpy())


def make_views(shown: ShownPictures, temperature: float, seed: int) -> Views:
    """Return the views that a head is to read."""
    clusters = None if shown.kind == "classes" else find_clusters(shown.X, seed)
    classifier = None if shown.kind == "clusters" else shown.classifier
    return Views(clusters, classifier, temperature, pooled=shown.kind == "all")


@torch.no_grad()
def show_views(views: Views, features: Any, answers: Answers, device: torch.device) -> Evidence:
    """Return what a head is trained on, from features that are known, (n, d)."""
    views = views.to(device).float()
    parts = [
        views(torch.as_tensor(np.asarray(features[start : start + AT_ONCE]), device=device)).cpu()
        for start in range(0, len(features), AT_ONCE)
    ]
    X = torch.cat(parts).numpy()
    n_sparse = X.shape[1] - (features.shape[1] if views.pooled else 0)
    return Evidence(X[:, :n_sparse], X[:, n_sparse:] if views.pooled else None, answers)


def fit_view_head(
    probe: CandidateClassifier, evidence: Evidence, standard_errors: float
) -> tuple[ViewHead, Training]:
    """Train teacher and student; return the head and the training of all that it reads.

    ``probe`` has the settings of the teacher; what it must know is estimated if it is not given.
    """
    X, answers = check_training_features(probe, evidence.sparse), evidence.answers
    training = prepare_rows(probe, X, answers)
    prior = guess_prior(training.method, probe.knowledge_, answers)
    start_at_prior(probe.module_, prior)
    training = _penalise(training, prior, standard_errors)
    probe.history_ = training.run()
    trained = np.arange(len(answers))
    if training.held_out is not None:
        share, seed = probe.validation_share, training.options.seed
        trained, held = split_rows(len(answers), share, seed)
    head = ViewHead(probe.module_, probe.scaling_.shift, np.ones(X.shape[1]))
    if evidence.pooled is not None:
        head = _add_student(head, evidence[trained], probe)
    training = replace(
        training, module=head.layer, X=_place(head, evidence[trained], training.seen.device)
    )
    if training.held_out is not None:
        shown = _place(head, evidence[held], training.seen.device)
        training = replace(training, held_out=replace(training.held_out, X=shown))
    return head, training


def _place(head: ViewHead, evidence: Evidence, device: torch.device) -> Any:
    """Return features on a device, as the layer of the head reads them."""
    return to_device(head.scaled(evidence.joined), device)


def _penalise(
    training: Training, prior: npt.NDArray[np.float64], standard_errors: float
) -> Training:
    """Return a training of a linear layer whose weights need evidence to leave zero."""
    X = training.X
    assert isinstance(X, Tensor)
    residual = _find_residuals(training, prior)
    noise = residual.square().mean(dim=0).sqrt()[:, None] * X.std(dim=0, correction=0)
    penalty = standard_errors * noise / len(X) ** 0.5
    steps = partial(_make_steps, penalty=penalty, curvature=_find_curvature(X))
    return replace(training, options=replace(training.options, optimizer=steps))


def _find_residuals(training: Training, prior: npt.NDArray[np.float64]) -> Tensor:
    """Return n times the gradient of the risk in every score, at weights of zero, (n, q)."""
    odds = torch.logit(torch.as_tensor(prior, dtype=torch.float32), eps=1e-3)
    scores = odds.to(training.seen.device).repeat(len(training.seen), 1).requires_grad_()
    risk = training.risk(scores, training.seen) * training.options.risk_scale
    (gradient,) = torch.autograd.grad(risk, scores)
    return gradient * len(scores)


def _find_curvature(X: Tensor) -> float:
    """Return the largest curvature of a mean logistic loss in the weights."""
    return float(torch.linalg.eigvalsh(X.T @ X)[-1]) / (4 * len(X))


def _make_steps(
    parameters: Iterable[nn.Parameter], penalty: Tensor, curvature: float
) -> torch.optim.Optimizer:
    """Return the optimiser of a linear layer whose weights are penalised."""
    weight, bias = parameters
    groups = [
        {"params": [weight], "lr": 1 / max(curvature, 1e-12)},
        {"params": [bias], "lr": BIAS_STEP},
    ]
    return ProximalGradient(groups, penalty.to(weight.device), accelerated=True)


def _add_student(teacher: ViewHead, evidence: Evidence, probe: CandidateClassifier) -> ViewHead:
    """Return the mean of the teacher and of a student of its posteriors, as one linear layer."""
    assert evidence.pooled is not None
    answers = evidence.answers if probe.uses_maybe else evidence.answers.without_maybe()
    leaning = lean_answers(answers, rates_of(probe.knowledge_))
    targets = relevance_given(teacher.score(evidence.sparse), leaning)
    shift, scale = evidence.pooled.mean(axis=0), evidence.pooled.std(axis=0) + 1e-6
    own: Any = teacher.layer
    X = torch.from_numpy((evidence.pooled - shift) / scale).to(own.weight)
    student = fit_soft_targets(X, torch.as_tensor(targets).to(own.weight))
    both = nn.Linear(own.in_features + student.in_features, own.out_features).to(own.weight)
    with torch.no_grad():
        both.weight.copy_(torch.cat([own.weight, student.weight], dim=1) / 2)
        both.bias.copy_((own.bias + student.bias) / 2)
    return ViewHead(both, np.append(teacher.shift, shift), np.append(teacher.scale, scale))


def rates_of(knowledge: Knowledge) -> AnswerRates:
    """Return the rates of answers that a teacher was trained with."""
    return AnswerRates(
        knowledge.no_rate,
        knowledge.yes_rate,
        knowledge.mistake_rate,
        people=knowledge.people or {},
    )


def cross_score(
    probe: CandidateClassifier, evidence: Evidence, standard_errors: float, seed: int
) -> npt.NDArray[np.float64]:
    """Return scores of all rows, each by a head that was trained without it, (n, q).

    ``probe`` is fitted: what it knows is used, not estimated again.
    """
    known = probe.knowledge_
    given: dict[str, Any] = {"class_prior": known.class_prior}
    if evidence.answers.kind == "candidates":
        given["exclude_rate"] = known.no_rate
    else:
        given |= {"no_rate": known.no_rate, "yes_rate": known.yes_rate}
    scores = np.zeros(evidence.answers.shape)
    folds = KFold(N_FOLDS, shuffle=True, random_state=seed)
    for seen, unseen in folds.split(evidence.sparse):
        settings = probe.get_params() | given | {"batch_size": len(seen), "progress": False}
        head, _ = fit_view_head(CandidateClassifier(**settings), evidence[seen], standard_errors)
        scores[unseen] = head.score(evidence[unseen].joined)
    return scores


def train_view_head(
    classifier: "ImageClassifier",
    shown: ShownPictures,
    answers: Answers,
    seed: int,
    device: torch.device,
) -> tuple[ImageNetwork, CandidateClassifier, Training]:
    """Train a head on views; return the network with it, and how it was trained."""
    views = make_views(shown, classifier.temperature, seed)
    evidence = show_views(views, shown.X, answers, device)
    probe = CandidateClassifier(
        classifier.method_,
        **{name: getattr(classifier, name) for name in SHARED},
        model=zero_linear,
        scale="centre",
        reduction="sum",
        batch_size=len(answers),
        epochs=classifier.probe_epochs or N_STEPS,
        cosine=False,
        random_state=seed,
        device=str(device),
    )
    head, training = fit_view_head(probe, evidence, classifier.standard_errors)
    crossed = partial(cross_score, probe, evidence, classifier.standard_errors, seed)
    training = replace(training, cross_score=crossed)
    finish_fit(probe, training, probe.history_)
    network = ImageNetwork(
        shown.backbone,
        head.layer,
        torch.as_tensor(head.shift, dtype=torch.float32),
        torch.as_tensor(head.scale, dtype=torch.float32),
        freezes_statistics=classifier.freezes_statistics,
        views=views,
    )
    return place_network(network, device), probe, training
