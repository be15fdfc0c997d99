"""Heads: linear classifiers on features of a frozen network.

On views of the features (`fit_view_head`), a sparse teacher reads which classes and which clusters
a picture belongs to. Its weights are at least 0, and each pays a penalty: what its gradient reaches
by chance. So a weight leaves zero only on evidence. A student reproduces, from the features
themselves, what the teacher and the answers together say about the training pictures. The head is
the mean of both, one linear layer. COMES-HL has a sparse head on class probabilities alone
(`class_head`); other methods have a plain one on pooled features.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import Tensor, nn
from torch.nn.utils import skip_init

from comes.answers import Answers, answer_evidence, posterior_probability
from comes.answers.convert import BoolMatrix
from comes.errors import ComesWarning
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.prepare import SMALLEST_PRIOR, Training, guess_prior, prepare
from comes.estimator.scaling import Scaling, fit_scaling
from comes.estimator.together import split_into_folds
from comes.images.network import AT_ONCE, Views, show_views, zero_linear
from comes.methods import Likelihood, Method, Rates, find_method
from comes.training import History
from comes.training.convex import ProximalGradient, fit_soft_targets, largest_curvature
from comes.training.rows import to_device

Array = npt.NDArray[np.float32]
STANDARD_ERRORS = 2.0  # above chance, of evidence for a weight
N_STEPS, N_FOLDS = 60, 3
CLASS_EPOCHS, POOLED_EPOCHS = 30, 60
BIAS_STEP = 4.0  # a logistic loss bends by 1/4 at most in the bias


@dataclass(frozen=True, eq=False)
class Head:
    """A linear layer on scaled features: scores are ``layer((X - shift) / scale)``."""

    layer: nn.Module
    shift: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    def scaled(self, X: Any) -> Array:
        """Return features as the layer reads them, with one copy of X."""
        result = np.asarray(X, np.float32) - np.asarray(self.shift, np.float32)
        result /= np.asarray(self.scale, np.float32)
        return np.asarray(result)

    @torch.no_grad()
    def score(self, X: Any) -> Array:
        """Return scores, (n, q)."""
        device = next(self.layer.parameters()).device
        parts = [
            self.layer(torch.from_numpy(self.scaled(X[start : start + AT_ONCE])).to(device)).cpu()
            for start in range(0, len(X), AT_ONCE)
        ]
        return np.asarray(torch.cat(parts).numpy())


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a head on views is trained on."""

    X: Array  # from `show_views`, (n, n_sparse + n_pooled)
    answers: Answers
    n_sparse: int  # columns, the first ones, of classes and clusters; the others are the features

    @classmethod
    def of(cls, views: Views, features: Any, answers: Answers, device: Any = "cpu") -> "Evidence":
        """Return features of pictures as views show them."""
        return cls(show_views(views, features, device), answers, views.n_sparse)

    def __getitem__(self, rows: Any) -> "Evidence":
        return Evidence(self.X[rows], self.answers[rows], self.n_sparse)

    @property
    def sparse(self) -> Array:
        """What the teacher reads: classes and clusters."""
        return self.X[:, : self.n_sparse]

    @property
    def pooled(self) -> Array | None:
        """What the student reads: normalised features; None if there is none."""
        return None if self.n_sparse == self.X.shape[1] else self.X[:, self.n_sparse :]


def view_probe(method: str | Method = "likelihood", **settings: Any) -> CandidateClassifier:
    """Return the classifier, to be trained by `fit_view_head`, that holds the settings of a head.

    They are those of `CandidateClassifier`: what is known of class priors and rates, how the
    teacher stops, ``random_state``, ``device``; ``epochs`` are its steps on all rows.
    """
    return CandidateClassifier(
        clone(find_method(method)).set_params(reduction="sum"),
        **{"epochs": N_STEPS, **settings},
        model=zero_linear,
        optimizer={"cosine": False, "starts_at_prior": True},
        scale="centre",
    )


def fit_view_head(
    probe: CandidateClassifier, evidence: Evidence, rates: Rates | None = None
) -> tuple[Head, Training, History]:
    """Train the teacher and, if there is something for it to read, the student.

    Rows that early stopping holds out are trained on by neither. The head scores ``evidence.X``;
    the training is that of the teacher, with rows, scaling and layer of the head.
    """
    X, answers = probe._learn_features(evidence.sparse), evidence.answers
    if answers.label_names is None:
        answers = answers.rename_labels([str(j) for j in range(answers.shape[1])])
    training = prepare(probe, X, answers, rates=rates)
    training = _penalise(training, guess_prior(training.method, training.rates, answers))
    history = training.run()
    head = Head(training.network, training.scaling.shift, np.ones(X.shape[1]))  # type: ignore[arg-type]
    own, held = evidence, None
    if training.held_out is not None:
        own, held = evidence[training.rows], evidence[training.held_out.rows]
    if own.pooled is not None:
        head = _add_student(head, own, training)
    device = training.targets.device
    training = replace(
        training,
        network=head.layer,
        scaling=Scaling(head.shift, head.scale),
        X=to_device(head.scaled(own.X), device),
    )
    if training.held_out is not None and held is not None:
        shown = to_device(head.scaled(held.X), device)
        training = replace(training, held_out=replace(training.held_out, X=shown))
    return head, training, history


def _penalise(training: Training, prior: npt.NDArray[np.float64]) -> Training:
    """Return a training on all rows at once of weights that need evidence to leave zero."""
    X = training.X
    assert isinstance(X, Tensor)
    odds = torch.logit(torch.as_tensor(prior, dtype=torch.float32), eps=SMALLEST_PRIOR)
    odds = odds.to(training.targets.device)
    noise = _find_residuals(training, odds).square().mean(dim=0).sqrt()
    penalty = STANDARD_ERRORS * noise[:, None] * X.std(dim=0, correction=0) / len(X) ** 0.5
    # How much more than a logistic loss the risk of each label bends, at least 1, (q,): where
    # labels differ in how many answers they have, those with the most have far longer gradients.
    moves = torch.linspace(-1, 1, 5, device=odds.device)
    slopes = torch.stack([_find_residuals(training, odds + move).mean(dim=0) for move in moves])
    bends = (4 * slopes.diff(dim=0) / moves.diff()[:, None]).amax(dim=0).clamp(min=1)
    steps = partial(
        _make_steps,
        penalty=penalty,
        curvature=largest_curvature(X),
        bias_step=BIAS_STEP,
        accelerated=True,
        bends=bends,
    )
    options = replace(training.options, optimizer=steps, batch_size=len(X))
    return replace(training, options=options, may_be_graph=False)


def _find_residuals(training: Training, odds: Tensor) -> Tensor:
    """Return n times the gradient of the risk in every score, at weights of zero, (n, q)."""
    scores = odds.repeat(len(training.targets), 1).requires_grad_()
    risk = training.risk(scores, training.targets) * training.options.risk_scale
    (gradient,) = torch.autograd.grad(risk, scores)
    return gradient * len(scores)


def _make_steps(
    parameters: Iterable[nn.Parameter],
    penalty: Tensor,
    curvature: float,
    bias_step: float,
    **settings: Any,
) -> torch.optim.Optimizer:
    """Return the optimiser of a linear layer whose weights are penalised."""
    weight, bias = parameters
    groups = [
        {"params": [weight], "lr": 1 / max(curvature, 1e-12)},
        {"params": [bias], "lr": bias_step},
    ]
    return ProximalGradient(groups, penalty.to(weight.device), **settings)


def _add_student(teacher: Head, evidence: Evidence, training: Training) -> Head:
    """Return the mean of the teacher and of a student of its posteriors, as one linear layer."""
    method, answers = training.method, evidence.answers
    assert isinstance(method, Likelihood)
    of_answers = answer_evidence(method.used(answers), training.rates.answer_rates)
    targets = posterior_probability(teacher.score(evidence.sparse), of_answers)
    scaling, own = fit_scaling(evidence.pooled, "standard"), teacher.layer
    assert isinstance(own, nn.Linear) and scaling.shift is not None and scaling.scale is not None
    pooled = Head(own, scaling.shift, scaling.scale).scaled(evidence.pooled)
    X = torch.from_numpy(pooled).to(own.weight)
    student = fit_soft_targets(X, torch.as_tensor(targets).to(own.weight))
    n_features = own.in_features + student.in_features
    both = skip_init(nn.Linear, n_features, own.out_features, device=own.weight.device)
    assert isinstance(both, nn.Linear)
    with torch.no_grad():
        both.weight.copy_(torch.cat([own.weight, student.weight], dim=1) / 2)
        both.bias.copy_((own.bias + student.bias) / 2)
    shift, scale = np.append(teacher.shift, scaling.shift), np.append(teacher.scale, scaling.scale)
    return Head(both, shift, scale)


def cross_score(
    probe: CandidateClassifier, evidence: Evidence, rates: Rates, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return scores of all rows, each by a head that was trained without it, with known rates."""
    scores = np.zeros(evidence.answers.shape)
    with warnings.catch_warnings():  # of labels about which little is said: there was one before
        warnings.simplefilter("ignore", ComesWarning)
        for trained, held in split_into_folds(len(scores), N_FOLDS, seed):
            fold = clone(probe).set_params(verbose=-1)
            head, _, _ = fit_view_head(fold, evidence[trained], rates)
            scores[held] = head.score(evidence.X[held])
    return scores


def _linear_at_prior(d: int, q: int, class_prior: npt.NDArray[np.float64]) -> nn.Module:
    """Return a linear layer with weights of zero that predicts the class prior."""
    layer = zero_linear(d, q)
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.bias.copy_(torch.logit(torch.as_tensor(class_prior), eps=SMALLEST_PRIOR))
    return layer


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


def class_head(
    X: npt.NDArray[np.floating],
    candidates: BoolMatrix,
    class_prior: npt.NDArray[np.float64],
    method: str | Method = "comes-hl",
    **settings: Any,
) -> CandidateClassifier:
    """Return a linear classifier, to be prepared, whose weights need evidence to leave zero.

    COMES-HL is minimised together with a penalty on the weights, which are at least 0, by steps on
    all rows at once. The penalty of a weight is what its gradient reaches by chance, twice
    `gradient_error`. For features that are rarely far from zero and speak for a label rather than
    against it, such as probabilities of many other classes.
    """
    penalty = STANDARD_ERRORS * gradient_error(X, candidates, class_prior)
    centred = X - X.mean(axis=0)
    steps = partial(
        _make_steps,
        penalty=torch.as_tensor(penalty, dtype=torch.float32),
        curvature=float(np.linalg.eigvalsh(centred.T @ centred)[-1]) / (4 * len(X)),
        bias_step=1.0,
    )
    return CandidateClassifier(
        clone(find_method(method)).set_params(reduction="sum"),
        **{"epochs": CLASS_EPOCHS, **settings},
        class_prior=class_prior,
        model=partial(_linear_at_prior, class_prior=class_prior),
        optimizer={"name": steps, "cosine": False},
        scale="centre",
        batch_size=len(X),
    )


def pooled_head(method: str | Method, **settings: Any) -> CandidateClassifier:
    """Return a linear classifier of pooled features, to be prepared."""
    how = {"name": "adam", "cosine": False, "starts_at_prior": find_method(method).needs_rates}
    return CandidateClassifier(
        method,
        **{"epochs": POOLED_EPOCHS, "scale": "standard", **settings},
        model=zero_linear,
        optimizer=how,
        learning_rate=3e-4,
        batch_size=256,
        weight_decay=0.0,
    )
