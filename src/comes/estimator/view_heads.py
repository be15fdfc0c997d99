"""The head of pictures by likelihood: a sparse teacher on two views, a student on the third.

The teacher reads which classes and which clusters a picture belongs to. Its weights are at least 0,
and each pays a penalty: what its gradient reaches by chance. So a weight leaves zero only on
evidence. The student reproduces, from the features themselves, what the teacher and the answers
together say about the training pictures. The head is the mean of both, one linear layer.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import Tensor, nn
from torch.nn.utils import skip_init

from comes.answers import Answers, answer_evidence, posterior_probability
from comes.errors import ComesWarning
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.cross_fitting import split_into_folds
from comes.estimator.finishing import finish_fit
from comes.estimator.heads import GIVEN, SHARED, ShownPictures
from comes.estimator.inputs import check_training_features
from comes.estimator.picture_views import AT_ONCE, Evidence, make_views, show_views
from comes.estimator.preparation import Training, split_rows
from comes.estimator.reading_answers import read_answers
from comes.estimator.row_risks import weigh_prior
from comes.estimator.row_training import (
    SMALLEST_PRIOR,
    Start,
    guess_prior,
    prepare_rows,
    start_at_prior,
)
from comes.estimator.scaling import fit_scaling
from comes.methods import Rates
from comes.models.backbones import place_network
from comes.models.views import ImageNetwork, zero_linear
from comes.training.convex import ProximalGradient, fit_soft_targets, largest_curvature
from comes.training.rows import to_device

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

Array = npt.NDArray[np.float32]
BIAS_STEP = 4.0  # a logistic loss bends by 1/4 at most in the bias
N_STEPS = 60
N_FOLDS = 3


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
        return _scale(X, self.shift, self.scale)

    @torch.no_grad()
    def score(self, X: Any) -> Array:
        """Return scores, (n, q)."""
        device = next(self.layer.parameters()).device
        parts = [
            self.layer(torch.from_numpy(self.scaled(X[start : start + AT_ONCE])).to(device)).cpu()
            for start in range(0, len(X), AT_ONCE)
        ]
        return np.asarray(torch.cat(parts).numpy())


def _scale(X: Any, shift: Any, scale: Any) -> Array:
    """Return (X - shift) / scale in float32, with one copy of X."""
    result = np.asarray(X, np.float32) - np.asarray(shift, np.float32)
    result /= np.asarray(scale, np.float32)
    return np.asarray(result)


def view_probe(method: str | None = None, **settings: Any) -> CandidateClassifier:
    """Return the classifier, to be trained by `fit_view_head`, that holds the settings of a head.

    Parameters
    ----------
    method : str, optional
        By default the likelihood.
    **settings
        Other parameters of `CandidateClassifier`: what is known of class priors and rates, how the
        teacher stops, ``random_state``, ``device``; ``epochs`` are its steps on all rows.

    Returns
    -------
    probe : CandidateClassifier

    Examples
    --------
    >>> view_probe(class_prior=[0.3, 0.2]).scale
    'centre'
    """
    return CandidateClassifier(
        method,
        **{"epochs": N_STEPS, **settings},
        model=zero_linear,
        scale="centre",
        reduction="sum",
        cosine=False,
    )


def fit_view_head(
    probe: CandidateClassifier,
    evidence: Evidence,
    standard_errors: float = 2.0,
    known: Rates | None = None,
) -> tuple[ViewHead, Training]:
    """Train the teacher and, if there is something for it to read, the student.

    Parameters
    ----------
    probe : CandidateClassifier
        From `view_probe`. It becomes the teacher: ``probe.module_`` and ``probe.rates_``.
    evidence : Evidence
        Rows that early stopping holds out are trained on by neither.
    standard_errors : float
        How far above chance the evidence for a weight of the teacher must be to leave zero.
    known : Rates, optional
        Class priors and rates; by default they are those of the probe, or estimated.

    Returns
    -------
    head : ViewHead
        Scores ``evidence.X``: the mean of teacher and student.
    training : Training
        Of the teacher, with the rows and the layer of the head.

    Examples
    --------
    >>> from comes.generation import case_b
    >>> features = np.random.default_rng(0).random((100, 6), dtype=np.float32)
    >>> candidates = case_b(features[:, :2] > 0.5, exclude_rate=0.5)
    >>> views = make_views(features)
    >>> X = show_views(views, features)
    >>> evidence = Evidence(X, Answers.from_candidates(candidates), views.n_sparse)
    >>> head, _ = fit_view_head(view_probe(class_prior=[0.5, 0.5]), evidence)
    >>> head.score(X).shape
    (100, 2)
    """
    X, answers = check_training_features(probe, evidence.sparse), read_answers(evidence.answers)
    training = prepare_rows(probe, X, answers, Start(known=known))
    prior = guess_prior(training.method, probe.rates_, answers)
    start_at_prior(probe.module_, prior)
    training = _penalise(training, prior, standard_errors)
    probe.history_ = training.run()
    head = ViewHead(probe.module_, probe.scaling_.shift, np.ones(X.shape[1]))
    own, held = evidence, None
    if training.held_out is not None:
        share, seed = probe.validation_share, training.options.seed
        own, held = (evidence[rows] for rows in split_rows(len(answers), share, seed))
    if own.pooled is not None:
        head = _add_student(head, own, probe)
    shown = to_device(head.scaled(own.X), training.seen.device)
    training = replace(training, module=head.layer, X=shown)
    if training.held_out is not None and held is not None:
        shown = to_device(head.scaled(held.X), training.seen.device)
        training = replace(training, held_out=replace(training.held_out, X=shown))
    return head, training


def _penalise(
    training: Training, prior: npt.NDArray[np.float64], standard_errors: float
) -> Training:
    """Return a training on all rows at once of weights that need evidence to leave zero."""
    X = training.X
    assert isinstance(X, Tensor)
    odds = torch.logit(torch.as_tensor(prior, dtype=torch.float32), eps=SMALLEST_PRIOR)
    odds = odds.to(training.seen.device)
    noise = _find_residuals(training, odds).square().mean(dim=0).sqrt()
    penalty = standard_errors * noise[:, None] * X.std(dim=0, correction=0) / len(X) ** 0.5
    bends = _find_bends(training, odds)
    steps = partial(_make_steps, penalty=penalty, curvature=largest_curvature(X), bends=bends)
    options = replace(training.options, optimizer=steps, batch_size=len(X))
    return replace(training, options=options)


def _find_residuals(training: Training, odds: Tensor) -> Tensor:
    """Return n times the gradient of the risk in every score, at weights of zero, (n, q)."""
    scores = odds.repeat(len(training.seen), 1).requires_grad_()
    risk = training.risk(scores, training.seen) * training.options.risk_scale
    (gradient,) = torch.autograd.grad(risk, scores)
    return gradient * len(scores)


def _find_bends(training: Training, odds: Tensor) -> Tensor:
    """Return how much more than a logistic loss the risk of each label bends, at least 1, (q,).

    Where labels differ in how much is said of them, those with the most have far longer gradients.
    """
    moves = torch.linspace(-1, 1, 5, device=odds.device)
    slopes = torch.stack([_find_residuals(training, odds + move).mean(dim=0) for move in moves])
    return (4 * slopes.diff(dim=0) / moves.diff()[:, None]).amax(dim=0).clamp(min=1)


def _make_steps(
    parameters: Iterable[nn.Parameter], penalty: Tensor, curvature: float, bends: Tensor
) -> torch.optim.Optimizer:
    """Return the optimiser of a linear layer whose weights are penalised."""
    weight, bias = parameters
    groups = [
        {"params": [weight], "lr": 1 / max(curvature, 1e-12)},
        {"params": [bias], "lr": BIAS_STEP},
    ]
    return ProximalGradient(groups, penalty, accelerated=True, bends=bends)


def _add_student(teacher: ViewHead, evidence: Evidence, probe: CandidateClassifier) -> ViewHead:
    """Return the mean of the teacher and of a student of its posteriors, as one linear layer."""
    answers = evidence.answers if probe.uses_maybe else evidence.answers.without_maybe()
    of_answers = answer_evidence(answers, probe.rates_.answer_rates)
    targets = posterior_probability(teacher.score(evidence.sparse), of_answers)
    scaling, own = fit_scaling(evidence.pooled, "standard"), teacher.layer
    assert isinstance(own, nn.Linear) and scaling.shift is not None and scaling.scale is not None
    X = torch.from_numpy(_scale(evidence.pooled, scaling.shift, scaling.scale)).to(own.weight)
    student = fit_soft_targets(X, torch.as_tensor(targets).to(own.weight))
    n_features = own.in_features + student.in_features
    both = skip_init(nn.Linear, n_features, own.out_features, device=own.weight.device)
    assert isinstance(both, nn.Linear)
    with torch.no_grad():
        both.weight.copy_(torch.cat([own.weight, student.weight], dim=1) / 2)
        both.bias.copy_((own.bias + student.bias) / 2)
    shift, scale = np.append(teacher.shift, scaling.shift), np.append(teacher.scale, scaling.scale)
    return ViewHead(both, shift, scale)


def cross_score(
    probe: CandidateClassifier, evidence: Evidence, standard_errors: float = 2.0, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return scores of all rows, each by a head that was trained without it.

    Parameters
    ----------
    probe : CandidateClassifier
        That `fit_view_head` has trained on all rows: what it knows of class priors and rates is
        used, not estimated again.
    evidence : Evidence
    standard_errors : float
    seed : int
        Of the split into three parts.

    Returns
    -------
    scores : array of shape (n_samples, n_labels)

    Examples
    --------
    >>> from comes.generation import case_b
    >>> features = np.random.default_rng(0).random((100, 6), dtype=np.float32)
    >>> candidates = case_b(features[:, :2] > 0.5, exclude_rate=0.5)
    >>> views = make_views(features)
    >>> said = Answers.from_candidates(candidates)
    >>> evidence = Evidence(show_views(views, features), said, views.n_sparse)
    >>> probe = view_probe(class_prior=[0.5, 0.5])
    >>> _ = fit_view_head(probe, evidence)
    >>> cross_score(probe, evidence).shape
    (100, 2)
    """
    # A class prior that was estimated has no more weight than in the training on all rows.
    weight = weigh_prior(probe, evidence.answers)
    scores = np.zeros(evidence.answers.shape)
    with warnings.catch_warnings():  # of labels about which little is said: there was one before
        warnings.simplefilter("ignore", ComesWarning)
        for seen, unseen in split_into_folds(len(scores), N_FOLDS, seed):
            fold = clone(probe).set_params(prior_weight=weight, progress=False)
            head, _ = fit_view_head(fold, evidence[seen], standard_errors, probe.rates_)
            scores[unseen] = head.score(evidence.X[unseen])
    return scores


def train_view_head(
    classifier: "ImageClassifier",
    shown: ShownPictures,
    answers: Answers,
    seed: int,
    device: torch.device,
) -> tuple[ImageNetwork, CandidateClassifier, Training]:
    """Train a head on views; return the network with it, and how it was trained."""
    views = make_views(shown.X, shown.kind, shown.classifier, classifier.temperature, seed)
    views.requires_grad_(False)  # fine-tuning leaves them as they are
    evidence = Evidence(show_views(views, shown.X, device), answers, views.n_sparse)
    probe = view_probe(
        classifier.method_,
        **{name: getattr(classifier, name) for name in (*SHARED, *GIVEN)},
        epochs=classifier.probe_epochs or N_STEPS,
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
