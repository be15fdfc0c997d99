"""`CandidateClassifier`: scikit-learn's contract around models, risks and training."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from comes.answers import Answers
from comes.columns import ColumnEncoder
from comes.estimator import storage
from comes.estimator.finishing import finish_fit
from comes.estimator.fit_checks import warn_of
from comes.estimator.inputs import as_feature_matrix, check_same_order
from comes.estimator.predictions import PredictsFromScores, keeping_earlier_fit
from comes.estimator.preparation import Training
from comes.estimator.reading_answers import read_answers
from comes.estimator.resumed_fits import (
    LearnsFromStreams,
    find_earlier_fit,
    prepare_weighted,
    read_training_rows,
)
from comes.estimator.row_checkpoints import keep_state
from comes.estimator.row_scores import ScoresRows
from comes.methods import BEST_PUBLISHED, PAPER_SETTINGS
from comes.priors import CleanSample
from comes.training import History
from comes.training.gradients import Risk
from comes.training.options import Callback

Model = str | nn.Module | Callable[[int, int], nn.Module]


class CandidateClassifier(
    LearnsFromStreams,
    ScoresRows,
    PredictsFromScores,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Multi-label classifier trained on answers, candidate labels or complementary labels.

    Parameters
    ----------
    method : str, or function (scores, candidates) -> scalar tensor, optional
        "likelihood", the default, uses all that was said. "comes-hl" estimates the Hamming loss,
        "comes-rl" the ranking loss; "bce" takes every candidate for relevant. Also "ccmn", "gdf",
        "ctl", "mlcl", "comes-hl-unbiased", "comrank": docs/explain/methods.md. Or your own risk.
    variant : str, optional
        For methods with variants, such as "ranking" of "ccmn"; docs/explain/methods.md names them.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate, optional
        How often each label is relevant; by default estimated, by `comes.estimate_class_prior` or
        `comes.priors.estimate_answer_rates`.
    exclude_rate : float or array of shape (n_labels,), optional
        For candidates: how often an irrelevant label is excluded, if that is known.
    no_rate, yes_rate : float or array of shape (n_labels,), optional
        For answers and "likelihood": how often an irrelevant pair that is asked about is called
        "no", a relevant one "yes". By default estimated.
    mistake_rate : float
        For "likelihood": how often a relevant pair is called "no", or an irrelevant one "yes".
    uses_maybe : bool
        For "likelihood": whether "maybe" counts, with the probability that the rates give it. False
        is right where doubt depends on the item: docs/guide/answers.md.
    prior_weight : float, optional
        For "likelihood": how strongly mean probabilities are kept near the class prior. By default
        1; for answers without a yes 0.3 if a class prior is given that is no estimate, else 0.
    flip_rate : float, array of shape (n_labels,), or "class_prior", optional
        For "ccmn": how often an irrelevant label is a candidate, at most 0.95. By default estimated
        by `comes.priors.estimate_flip_rate`; "class_prior" takes what the class prior implies.
    model : {"mlp", "low_rank", "linear"}, module, or function (n_features, n_labels) -> module
        A module is copied and trained on from its weights.
    hidden : int, hidden units of the ``mlp``, or the rank of ``low_rank``
    dropout : float, optional
        Share of the hidden units of the ``mlp`` that are left out of every step.
    n_networks : int, optional; of ``mlp`` networks that train at once, to average their scores
    starts_at_prior : bool, optional
        Start the bias of the last layer at the log odds of the class prior.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient. ``sum`` over labels, or over pairs of labels
        for COMES-RL; ``mean`` over these; ``per_label`` divides the sum by the number of labels.
        ``auto`` is ``per_label`` for risks over pairs (COMES-RL, CCMN ranking, ComRank), ``mean``
        for MLCL, else ``sum``.
    normaliser : {"dataset", "batch"}
        Which n_j divides the sums over rows that exclude label j: the data set's share, as the
        paper writes it, or the batch's own count (a label that nothing excludes in a batch is then
        left out of that batch).
    flood_level : float or "auto"
        The beta of COMES-RL (Equation 14), in units of the pair sum; 0 is the paper's Equation 13.
        "auto" is 0.75 sum_{j<k} (1 - pi_j)(1 - pi_k), a rule whose factor was read off test rows:
        docs/guide/training.md.
    scale : {"auto", "dense", "standard", "centre", "maxabs"} or None
        Scaling of the features, part of the model. ``dense`` is ``standard`` for dense X and none
        for sparse X; ``auto`` is the same, but leaves columns of 0 and 1 as they are.
    encoder : comes.columns.ColumnEncoder, optional; of tables that are more than numbers
    epochs, batch_size : int, optional
    optimizer : {"sgd", "adam", "adamw"} or function of parameters -> torch optimiser, optional
        A function of your own sets its own learning rate and weight decay.
    learning_rate : float, optional
        These, dropout, n_networks and starts_at_prior are the method's own by default. "likelihood"
        and "bce": four networks, dropout 0.5, Adam at 5e-4 in batches of 64, started at the class
        prior, for up to 25 epochs (fewer where little is sure, more on small sets:
        docs/guide/training.md). Others: as the paper trains, see `as_published`.
    momentum, weight_decay : float; the momentum is for ``sgd``
    cosine : bool
        Let the learning rate fall to zero along a half cosine.
    threshold : {"auto", "zero", "prior", "risk", "f1", "minmax"}
        Where `predict` cuts the scores. ``auto`` is zero, or for risks over pairs, whose scores
        have no natural zero, the level that fits the class prior. ``risk`` (least Hamming loss),
        ``f1`` and ``prior`` (as often as it says) are learned per label, from rows held out or
        scored by three more trainings, or from a clean sample. ``minmax`` is the upper half of the
        probabilities of each row.
    early_stopping : bool
        Hold rows out and keep the weights of the epoch with the least risk on what was said about
        them, without the corrections that training needs.
    validation_share : float, of the rows, that early stopping holds out
    patience : int, optional
        With early stopping, give up after this many epochs without a better one; by default never.
    device : str; ``auto`` is the GPU if torch sees one, else the CPU
    random_state : int, RandomState or None; of weights, order of rows, dropout and estimates
    require_candidates : bool
        Refuse ``fit(X, y)`` without ``candidates=``, ``complementary=`` or ``answers=``: in
        cross-validation y is the truth, and a forgotten ``params=`` would train on it.
    progress : bool, optional; by default if standard error is a terminal
    verbose : int; 1 prints a line after every epoch, in place of the progress bar
    callbacks : function of a `comes.training.TrainedEpoch`, or list of such, optional
        Called after every epoch; one that returns True ends the training, whose weights are kept.
        An error that one raises ends `fit`, and leaves the classifier as it was before.
    warm_start : bool
        Go on from the weights of the `fit` before, with its scaling and the same labels.
    output : {"default", "pandas"}
        Arrays; or DataFrames with the names of the labels, and the index of X if it has one.

    Attributes
    ----------
    classes_ : array of shape (n_labels,), the column numbers of the labels
    label_names_ : list of str, "0", "1", ... if the answers had no names
    method_ : str or function
    class_prior_, class_prior_error_, no_rate_, yes_rate_, flip_rate_ : (n_labels,) each, or None
        What was given or estimated, None where neither the risk nor the cut needs it. The error is
        the standard error of an estimated class prior, NaN where it is not known.
    transition_ : array of shape (n_labels, n_labels), or None; for "mlcl"
    module_ : the network, on scaled features
    encoder_ : ColumnEncoder, if X was a table with categories, dates, texts or missing values
    history_ : History
        Risk of every epoch, seconds, whether training was interrupted, and with early stopping
        the risk on held-out rows and the epoch that was kept; what was found wrong (``warnings``).
    score_offset_ : array of shape (n_labels,)
        0, or for risks over pairs the level at which mean probabilities fit the class prior.
    threshold_ : array of shape (n_labels,), where `predict` cuts the scores

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.3)
    >>> clf = CandidateClassifier(epochs=20, random_state=0).fit(X, candidates)
    >>> clf.predict([[2.0, -2.0]])
    array([[1, 0]])
    """

    def __init__(
        self,
        method: str | Risk | None = None,
        *,
        variant: str | None = None,
        class_prior: npt.ArrayLike | None = None,
        exclude_rate: npt.ArrayLike | None = None,
        no_rate: npt.ArrayLike | None = None,
        yes_rate: npt.ArrayLike | None = None,
        mistake_rate: float = 0.0,
        uses_maybe: bool = True,
        prior_weight: float | None = None,
        flip_rate: npt.ArrayLike | str | None = None,
        model: Model = "mlp",
        hidden: int = 500,
        dropout: float | None = None,
        n_networks: int | None = None,
        starts_at_prior: bool | None = None,
        reduction: str = "auto",
        normaliser: str = "dataset",
        flood_level: float | Literal["auto"] = "auto",
        scale: str | None = "auto",
        encoder: ColumnEncoder | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        optimizer: str | Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        cosine: bool = True,
        threshold: str = "auto",
        early_stopping: bool = False,
        validation_share: float = 0.2,
        patience: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        require_candidates: bool = False,
        progress: bool | None = None,
        verbose: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        warm_start: bool = False,
        output: str = "default",
    ) -> None:
        self.method = method
        self.variant = variant
        self.class_prior = class_prior
        self.exclude_rate = exclude_rate
        self.no_rate = no_rate
        self.yes_rate = yes_rate
        self.mistake_rate = mistake_rate
        self.uses_maybe = uses_maybe
        self.prior_weight = prior_weight
        self.flip_rate = flip_rate
        self.model = model
        self.hidden = hidden
        self.dropout = dropout
        self.n_networks = n_networks
        self.starts_at_prior = starts_at_prior
        self.reduction = reduction
        self.normaliser = normaliser
        self.flood_level = flood_level
        self.scale = scale
        self.encoder = encoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.cosine = cosine
        self.threshold = threshold
        self.early_stopping = early_stopping
        self.validation_share = validation_share
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.require_candidates = require_candidates
        self.progress = progress
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.output = output

    @classmethod
    def as_published(cls, method: str = BEST_PUBLISHED, **changes: Any) -> Self:
        """Return a classifier with the settings of the paper, and the field's where it is silent.

        One network of 500 hidden units, SGD with momentum 0.9, learning rate 5e-3 and weight decay
        1e-4, 200 epochs in batches of 256, no dropout, no flood level; but for ``changes``.

        Examples
        --------
        >>> CandidateClassifier.as_published("comes-rl", epochs=100).optimizer
        'sgd'
        """
        return cls(method, **{**PAPER_SETTINGS, **changes})

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        candidates: Any = None,
        complementary: Any = None,
        answers: Answers | None = None,
        clean: Any = None,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 300.0,
        is_shared: bool = False,
    ) -> Self:
        """Train on answers or candidate labels.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        y : Answers, array, DataFrame or sparse matrix of shape (n_samples, n_labels), optional
            Answers, or candidates: 1 where a label is still possible. If one of those below is
            given, y is the truth, as in scikit-learn's cross-validation; it is then only checked
            to lie inside the candidates, never trained on.
        candidates, complementary : as y, optional
            Complementary labels are the other view: 1 where a label is surely irrelevant.
        answers : comes.Answers, optional
        clean : tuple (X, relevant) or (X, relevant, answers), optional
            A small sample whose true labels are known: it sharpens class priors, learned
            thresholds and, with answers about the same rows, rates. It is not trained on.
        label_names : sequence of n_labels str, optional; for candidates without column names
        sample_weight : array of shape (n_samples,), optional
            A row of weight 2 counts as two rows: docs/guide/training.md says where.
        checkpoint : path, optional
            A file for the state of a long training, kept every ``checkpoint_every`` seconds; if it
            exists, training goes on from there. Delete it when the model is saved.
        is_shared : bool; train with the other processes that torchrun started: all call this

        Returns
        -------
        self : CandidateClassifier
        """
        with keeping_earlier_fit(self):
            earlier = find_earlier_fit(self)
            for labels in (y, candidates, complementary, answers):
                check_same_order(X, labels)
            X = read_training_rows(self, X, earlier)
            is_strict = self.require_candidates
            given = read_answers(
                y, candidates, complementary, answers, label_names, require_candidates=is_strict
            )
            sample = None if clean is None else CleanSample.read(clean, given.label_names)
            if sample is not None and sample.X is not None:
                as_feature_matrix(self, sample.X)  # before anything takes long
            start = replace(earlier.check(X, given), clean=sample, is_shared=is_shared)
            training = prepare_weighted(self, X, given, sample_weight, start)
            training = keep_state(self, training, start.module, checkpoint, checkpoint_every)
            self._finish(training, training.run())
            warn_of(self.history_)
        return self

    def _finish(self, training: Training, history: History) -> Self:
        """Keep the results of the training."""
        finish_fit(self, training, history)
        return self

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder, as safetensors and json, replacing one there.

        A model, optimiser or risk of your own is not written, only the weights: pass the model to
        `load`. A loaded model predicts, but cannot be fitted again with a risk of your own.
        """
        check_is_fitted(self)
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Self:
        """Read a fitted model from a folder; ``model`` is needed if it was one of your own."""
        return storage.load(cls, path, model)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
