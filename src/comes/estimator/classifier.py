"""`CandidateClassifier`: a scikit-learn estimator of rows with answers or candidate labels."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit, logit
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from comes.answers import AnswerRates, Answers
from comes.answers.convert import check_paired
from comes.errors import ComesError, listed
from comes.estimator import storage
from comes.estimator.base import FloatArray
from comes.estimator.checks import warn_of
from comes.estimator.corrected import CorrectedClassifier
from comes.estimator.features import RowClassifier
from comes.estimator.inputs import (
    add_rows,
    check_entries,
    check_same_rows,
    read_answers,
    read_weight,
    remember_rows,
    warn_of_constant,
)
from comes.estimator.prepare import LEARNED_THRESHOLDS, Training, make_targets, prepare
from comes.estimator.rates import weigh_prior
from comes.estimator.scaling import Scaling
from comes.estimator.stream import ShardStream
from comes.methods import (
    BEST_PUBLISHED,
    DEFAULT,
    PAPER_TRAINING,
    Counts,
    CustomRisk,
    Likelihood,
    Method,
    Rates,
    find_method,
    publish,
)
from comes.priors import CleanSample
from comes.risks.checks import value_or_nan
from comes.selection.thresholds import recalibrate_to_prior
from comes.tables import ColumnEncoder
from comes.training import History, predict_scores
from comes.training.gradients import Risk
from comes.training.options import Callback, MakeOptimizer
from comes.training.rows import choose_device, to_device
from comes.training.speed import few_threads

CERTAIN = 1e-7  # probabilities of a blend are kept this far from 0 and 1

Model = str | nn.Module | Callable[[int, int], nn.Module]


class CandidateClassifier(RowClassifier):
    """Multi-label classifier trained on answers, candidate labels or complementary labels.

    Parameters
    ----------
    method : str, method object, or function (scores, candidates, ...) -> scalar tensor
        "likelihood", the default, uses all answers. "comes-hl" estimates the Hamming loss,
        "comes-rl" the ranking loss; "bce" takes every candidate for relevant. Also "ccmn", "gdf",
        "ctl", "mlcl", "comes-hl-unbiased", "comrank": docs/explain/methods.md. An object has
        settings of its own: ``comes.methods.COMESRL(flood_level=0.0)``. A function of your own gets
        what it asks for by name, such as ``class_prior``: docs/guide/own-loop.md.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate, optional
        How often each label is relevant; by default estimated, by `comes.estimate_class_prior` or
        `comes.priors.estimate_answer_rates`.
    rates : dict or AnswerRates, optional
        What is known of how often answers are given, a number or one per label. For candidates
        ``exclude``: how often an irrelevant label is excluded. For answers and "likelihood" ``no``
        and ``yes``: how often an irrelevant pair that is asked about is called "no", a relevant one
        "yes"; ``mistake``, one number: how often a relevant pair is called "no", or an irrelevant
        one "yes". The rest is estimated, but for mistakes, of which there are none by default.
    model : {"auto", "wide_and_deep", "blend", "mlp", "low_rank", "linear"}, module, or function
        ``wide_and_deep`` is ``mlp`` networks and, for a third of the score, a linear model.
        ``blend`` is the mean of its probabilities and those of the trees of `CorrectedClassifier`,
        for "likelihood". ``auto`` is the method's own. A function makes a module from (n_features,
        n_labels). A module is copied and trained on from its weights, but for the bias of its last
        layer: see ``optimizer``. The settings below do not depend on whose network it is.
    hidden : int, hidden units of an ``mlp``, or the rank of ``low_rank``
    dropout : float, optional
        Share of the hidden units of an ``mlp`` that are left out of every step.
    n_networks : int, optional; of ``mlp`` networks that train at once, to average their scores
    encoder : comes.tables.ColumnEncoder, optional; of tables that are more than numbers
    scale : {"auto", "rows", "columns", "dense", "standard", "centre", "maxabs"} or None
        Scaling of the features, part of the model. ``dense`` is ``standard`` for dense X and none
        for sparse X; ``columns`` is the same, but leaves columns of 0 and 1 as they are; ``rows``
        is ``columns``, and then multiplies the whole matrix so that its rows have a length of at
        least 10 (root mean square), less if they are many. ``auto`` is the method's own.
    epochs, batch_size : int, optional
    optimizer : {"sgd", "adam", "adamw"}, function of parameters -> torch optimiser, or dict
        A function sets its own learning rate and weight decay. A dict has the ``name`` and what is
        rarely changed: ``momentum`` of sgd, 0.9; ``cosine``, True: the learning rate falls to zero
        along a half cosine; ``starts_at_prior``: whether the bias of the last layer starts at the
        log odds of the class prior.
    learning_rate : float, optional
        These, model, scale, dropout, n_networks and starts_at_prior are the method's own by
        default. "likelihood" and "bce": a linear model, trained to its end, and four networks,
        dropout 0.5, Adam at 5e-4 in batches of 64, started at the class prior, for 25 epochs
        (more on small sets: docs/guide/training.md). Others: as the paper trains, see
        `as_published`. "sgd" and the model ``linear`` have the paper's steps with every method.
    weight_decay : float
    threshold : {"auto", "half", "zero", "prior", "risk", "f1", "minmax"}
        Where `predict` cuts the scores. ``auto`` predicts each label for as many of the training
        rows (2048 of them, where there are more) as its probabilities add up to, but cuts no lower
        than is best for their expected F1, and no higher than ``half``, a probability of one half.
        ``zero`` cuts scores at 0. ``risk`` (least Hamming loss), ``f1`` and ``prior`` (as often as
        it says) are learned per label, from rows held out or scored by three more trainings, or
        from a clean sample. ``minmax`` is the upper half of the probabilities of each row.
    early_stopping : bool or float
        Hold rows out, a fifth or the share given, and keep the weights of the epoch with the least
        risk on their answers, without the corrections that training needs.
    patience : int, optional
        With early stopping, give up after this many epochs without a better one; by default never.
    device : str; ``auto`` is the GPU if torch sees one, else the CPU
    random_state : int, RandomState or None; of weights, order of rows, dropout and estimates
    require_candidates : bool
        Refuse ``fit(X, y)`` without ``candidates=``, ``complementary=`` or ``answers=``: in
        cross-validation y is the truth, and a forgotten ``params=`` would train on it.
    verbose : int
        0 shows a progress bar if standard error is a terminal, 1 prints a line after every epoch,
        -1 shows nothing.
    callbacks : function of a `comes.training.TrainedEpoch`, or list of such, optional
        Called after every epoch; one that returns True ends the training, whose weights are kept.
        An error that one raises ends `fit`, and leaves the classifier as it was before.
    warm_start : bool
        Go on from the weights of the `fit` before, with its scaling and the same labels.

    Attributes
    ----------
    classes_ : array of shape (n_labels,), the names of the labels
    label_names_ : list of str, "0", "1", ... if the answers had no names
    method_ : method object
    class_prior_, class_prior_error_, no_rate_, yes_rate_, flip_rate_ : (n_labels,) each, or None
        What was given or estimated, None where neither the risk nor the cut needs it. The error is
        the standard error of an estimated class prior, NaN where it is not known.
    people_rates_ : dict of str to pair of arrays of shape (n_labels,)
        The rates of "no" and "yes" of every annotator, where several answered.
    transition_ : array of shape (n_labels, n_labels), or None; for "mlcl"
    module_ : the network, on scaled features
    encoder_ : ColumnEncoder, if X was a table with categories, dates, texts or missing values
    history_ : History
        Risk of every epoch, seconds, whether training was interrupted, and with early stopping
        the risk on held-out rows and the epoch that was kept; what is wrong (``warnings``).
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

    COUNTS: ClassVar[dict[str, int]] = {
        **{"epochs": 1, "batch_size": 1, "n_networks": 1, "hidden": 1, "patience": 1},
        "verbose": -1,
    }

    module_: nn.Module
    scaling_: Scaling
    item_column_: str | None = None  # the column of a file that named the rows
    trees_: CorrectedClassifier | None = None  # of model="blend"
    partial_fit_state_: "PartialFitState"

    def __init__(
        self,
        method: str | Method | Risk = DEFAULT,
        *,
        class_prior: npt.ArrayLike | None = None,
        rates: dict[str, Any] | AnswerRates | None = None,
        model: Model = "auto",
        hidden: int = 500,
        dropout: float | None = None,
        n_networks: int | None = None,
        encoder: ColumnEncoder | None = None,
        scale: str | None = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        optimizer: str | MakeOptimizer | dict[str, Any] | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        threshold: str = "auto",
        early_stopping: bool | float = False,
        patience: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        require_candidates: bool = False,
        verbose: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        warm_start: bool = False,
    ) -> None:
        self.method = method
        self.class_prior = class_prior
        self.rates = rates
        self.model = model
        self.hidden = hidden
        self.dropout = dropout
        self.n_networks = n_networks
        self.encoder = encoder
        self.scale = scale
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.threshold = threshold
        self.early_stopping = early_stopping
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.require_candidates = require_candidates
        self.verbose = verbose
        self.callbacks = callbacks
        self.warm_start = warm_start

    @classmethod
    def as_published(cls, method: str = BEST_PUBLISHED, **changes: Any) -> Self:
        """Return a classifier that trains as the paper does, but for ``changes``.

        The paper says: an MLP, 200 epochs of SGD at a learning rate of 5e-3 with cosine decay and a
        weight decay of 1e-4. It leaves open, and this takes: one hidden layer of 500 units, no
        dropout, momentum 0.9, batches of 256, dense features standardised, the sum over labels (for
        COMES-RL over pairs of labels, as Equation 13 has it), the last epoch, cuts at a probability
        of one half, and no flood: the paper has a level beta for COMES-RL (Equation 14) and does
        not say which, so beta is 0 here.
        These are the settings of the rows of docs/explain/paper.md. The paper also gives the class
        priors of all training rows: pass ``class_prior``, or they are estimated.

        Parameters
        ----------
        method : str
            A name of comes.methods.METHODS.
        **changes
            Other parameters.

        Returns
        -------
        classifier : CandidateClassifier

        Examples
        --------
        >>> clf = CandidateClassifier.as_published("comes-rl", epochs=100)
        >>> clf.method, clf.optimizer
        (COMESRL(flood_level=0.0, reduction='sum'), 'sgd')
        """
        published = publish(method, reduction="sum")
        steps = {k: v for k, v in PAPER_TRAINING.items() if k != "starts_at_prior"}
        if published.training["starts_at_prior"]:
            steps["optimizer"] = {"name": steps["optimizer"], "starts_at_prior": False}
        usual = {"hidden": 500, "scale": "dense", "threshold": "half"}
        return cls(published, **{**steps, **usual, **changes})

    def _check_settings(self) -> None:
        """Raise an error unless numbers and names among the parameters are valid."""
        super()._check_settings()
        dropout = self.dropout
        if dropout is not None and not (
            isinstance(dropout, int | float | np.floating) and 0 <= dropout < 1
        ):
            raise ComesError(f"dropout must be at least 0 and below 1; got {dropout!r}.")
        rate: Any = self.learning_rate
        if rate is not None and (not isinstance(rate, Real) or rate == 0):
            raise ComesError(
                "learning_rate must be a finite number above 0, else nothing is learned; got "
                f"{rate!r}."
            )

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
            Answers, a DataFrame of the words yes, no and maybe, or candidates: 1 where a label is
            still possible. If one of those below is given, y is the truth, as in scikit-learn's
            cross-validation; it is then only checked to lie inside the candidates, never trained
            on.
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
        with self._keeping_earlier_fit():
            self.__dict__.pop("partial_fit_state_", None)
            begun: dict[str, Any] = {}  # a warm start goes on from the fit before
            if self.warm_start and hasattr(self, "module_"):
                begun = {"network": self.module_, "scaling": self.scaling_}
                n_features, names = self.n_inputs_, self.label_names_
            sources = (y, candidates, complementary, answers)
            for labels in sources:
                check_paired(X=X, labels=labels)
            X = self._learn_features(X)
            warn_of_constant(X)
            is_strict = self.require_candidates
            read = read_answers(
                *sources, label_names, require_candidates=is_strict, may_be_encoded=True
            )
            if begun and (X.shape[1] != n_features or read.label_names != names):
                raise ComesError(
                    "warm_start=True goes on with the network of the fit before, which has "
                    f"{n_features} features and the labels {listed(names)}; got {X.shape[1]} and "
                    f"{listed(read.label_names or [])}. Set warm_start=False to start anew."
                )
            sample = None if clean is None else CleanSample.read(clean, read.label_names)
            if sample is not None and sample.X is not None:
                self._read_features(sample.X)  # before anything takes long
            X, read, weight = self._weigh_rows(X, read, sample_weight)
            training = prepare(
                self, X, read, weight=weight, clean=sample, is_shared=is_shared, **begun
            )
            if checkpoint is not None:
                network = begun.get("network")
                training = training.with_checkpoint(self, checkpoint, checkpoint_every, network)
            self._keep(training, training.run())
            warn_of(self.history_)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        candidates: Any = None,
        complementary: Any = None,
        answers: Answers | None = None,
        label_names: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train on the next part of a stream of rows: one pass over it, at a constant rate.

        The first call fixes the labels, the scaling, and the class priors and rates: those that
        are given, else estimates from its rows, so that it should bring some hundred. After `fit`,
        those of `fit` stay. The shares of excluding rows, which COMES divides by, are counted over
        all parts. The state of the optimiser goes on, too; it is not saved with the model.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        y, candidates, complementary, answers, label_names, sample_weight
            As in `fit`. Names of labels are matched to those of the first call.
        classes
            Not used: labels are columns. scikit-learn's own `partial_fit` has it.

        Returns
        -------
        self : CandidateClassifier

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> clf = CandidateClassifier("bce", random_state=0)
        >>> for part in range(30):
        ...     X = rng.normal(size=(200, 2))
        ...     clf = clf.partial_fit(X, X > 0)
        >>> clf.predict([[2.0, -2.0]])
        array([[1, 0]])
        """
        self._refuse_held_out_rows("partial_fit sees every row once, so it")
        with self._keeping_earlier_fit():
            sources = (y, candidates, complementary, answers)
            for labels in sources:
                check_paired(X=X, labels=labels)
            is_strict = self.require_candidates
            read = read_answers(*sources, label_names, require_candidates=is_strict)
            begun: dict[str, Any] = {}
            state, before, n_before, seen = None, History(), 0, None
            if not hasattr(self, "module_"):
                X = self._learn_features(X)
            else:
                X = self._read_features(X)
                check_entries(X)
                read = read.align_labels(self.label_names_)
                trained_on = self.trained_on_ or {"kind": read.kind, "rows": 0}
                if read.kind != trained_on["kind"]:
                    raise ComesError(
                        f"partial_fit must go on with {trained_on['kind']}, as before, since rates "
                        f"of {read.kind} mean something else. Give the same kind, or start anew "
                        "with fit."
                    )
                if find_method(self.method).name != self.method_.name:
                    raise ComesError(
                        f"partial_fit must go on with method {self.method_.name!r}, as before, "
                        "whose rates it keeps. Set it back, or start anew with fit."
                    )
                state = getattr(self, "partial_fit_state_", None)
                before, n_before, seen = self.history_, trained_on["rows"], self.seen_rows_
                begun = {
                    "rates": self._rates_for(read),
                    "network": self.module_,
                    "scaling": self.scaling_,
                    "earlier_counts": Counts.of(read).of_no_rows()
                    if state is None
                    else state.counts,
                }
            X, read, weight = self._weigh_rows(X, read, sample_weight)
            training = prepare(self, X, read, weight=weight, is_part=True, **begun)
            optimizer = _ResumedOptimizer(training.options.optimizer, state and state.optimizer)
            n_parts = state.n_parts if state else 0
            options = replace(
                training.options,
                epochs=1,
                cosine=False,
                optimizer=optimizer,
                seed=training.options.seed + n_parts,
                progress=False,
            )
            # A graph does not pay for one pass.
            training = replace(training, options=options, may_be_graph=False)
            history = training.run()
            risks, seconds = before.risk + history.risk, before.seconds + history.seconds
            self._keep(training, replace(history, risk=risks, seconds=seconds))
            self.seen_rows_ = add_rows(seen, remember_rows(X))
            self.trained_on_ = {"rows": len(read) + n_before, "kind": read.kind}
            assert optimizer.made is not None
            made = optimizer.made.state_dict()
            self.partial_fit_state_ = PartialFitState(training.counts, made, n_parts + 1)
        return self

    def fit_stream(
        self,
        shards: Any,
        *,
        buffer_rows: int = 2**17,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 300.0,
        is_shared: bool = False,
    ) -> Self:
        r"""Train on more rows than memory holds, read from disk block by block in every epoch.

        A first pass learns the scaling of numbers, the encoder of a table and how often each answer
        was given. Class priors and rates of many labels come from these counts, of others from
        20000 rows. An epoch takes blocks in random order and mixes the rows of a few.

        Parameters
        ----------
        shards : comes.datasets.ShardedDataset, or path
            A folder, file or pattern as `comes.datasets.open_shards` takes it.
        buffer_rows : int
            About how many rows are mixed; twice as many are in memory.
        checkpoint, checkpoint_every, is_shared
            As in `fit`; training goes on in the middle of an epoch.

        Returns
        -------
        self : CandidateClassifier

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from comes.datasets import open_shards
        >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
        >>> for part in range(3):
        ...     table = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
        ...     table["is_right"], table["is_up"] = table["a"] > 0, table["b"] > 0
        ...     table.to_parquet(folder / f"part-{part}.parquet")
        >>> shards = open_shards(folder, labels=["is_*"])
        >>> clf = CandidateClassifier("bce", epochs=20, random_state=0).fit_stream(shards)
        >>> clf.predict(pd.DataFrame({"a": [2.0], "b": [-2.0]}))
        array([[1, 0]])
        """
        self._check_settings()
        self._refuse_held_out_rows("fit_stream")
        if self.warm_start:
            raise ComesError("fit_stream starts anew; got warm_start=True. Leave it out.")
        with self._keeping_earlier_fit():
            for name in ("encoder_", "feature_names_in_", "partial_fit_state_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            stream = ShardStream(self, shards, buffer_rows, is_shared)
            self.n_features_in_ = stream.n_features
            if stream.encoder is not None:
                self._keep_encoder(stream.encoder)
            elif stream.shards.feature_names is not None:
                self.feature_names_in_ = np.array(stream.shards.feature_names, dtype=object)
            training = prepare(self, None, stream.answers, shards=stream, is_shared=is_shared)
            if checkpoint is not None:
                training = training.with_checkpoint(self, checkpoint, checkpoint_every)
            self._keep(stream.sampled(training), training.run())
            self.trained_on_ = {"rows": len(stream.answers), "kind": stream.answers.kind}
            self.seen_rows_ = stream.remember_rows()
            warn_of(self.history_)
        return self

    def _rates_for(self, answers: Answers) -> Rates:
        """Return the rates, with the weight of the class prior, which no saved model holds."""
        if not isinstance(self.method_, Likelihood):
            return self.rates_
        weight = weigh_prior(self.method_, answers, self.class_prior)
        return replace(self.rates_, prior_weight=weight)

    def _keep(self, training: Training, history: History) -> Self:
        """Set what a training learned: first the network, by which the base learns thresholds."""
        self.module_, self.scaling_ = training.network, training.scaling
        self.seen_rows_, self.trees_ = remember_rows(training.features), None
        if self.model == "blend":
            weight, rows = training.weight, training.rows
            self.trees_ = CorrectedClassifier().fit_given_rates(
                training.features[rows],
                training.answers[rows],
                training.rates,
                None if weight is None else weight.double().cpu().numpy(),
                training.options.seed,
            )
        with few_threads(training.network, training.X, training.options.batch_size):
            return super()._keep(training, history)

    def _finish_scores(
        self, training: Training, rows: npt.NDArray[np.intp], scores: FloatArray
    ) -> FloatArray:
        return scores if self.trees_ is None else self._blend(scores, training.features[rows])

    def _blend(self, scores: FloatArray, X: Any) -> FloatArray:
        """Return the log odds of the mean of the probabilities of networks and of trees."""
        if self.trees_ is None:
            return scores
        mean = (expit(scores) + expit(self.trees_.score_rows(X))) / 2
        return np.asarray(logit(np.clip(mean, CERTAIN, 1 - CERTAIN)), np.float32)

    def _refuse_held_out_rows(self, what: str) -> None:
        """Raise an error if a setting needs all rows at once."""
        if self.model == "blend":
            raise ComesError(
                f"{what} trains networks alone, and model='blend' has trees. Take model='auto'."
            )
        if self.early_stopping or self.threshold in LEARNED_THRESHOLDS:
            raise ComesError(
                f"{what} can neither hold rows out nor learn thresholds; got early_stopping="
                f"{self.early_stopping} and threshold={self.threshold!r}. Set them to False and "
                "'auto'."
            )

    def _weigh_rows(self, X: Any, answers: Answers, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Return rows, answers and their weights; rows of weight 0 are left out."""
        check_same_rows(X, answers)
        weight = read_weight(sample_weight, len(answers))
        if weight is None:
            return X, answers, None
        if self.threshold in LEARNED_THRESHOLDS:
            raise ComesError(
                f"threshold={self.threshold!r} is learned from rows that all count the same; "
                "with sample_weight take 'auto', 'half', 'zero' or 'minmax'."
            )
        method = find_method(self.method)
        if isinstance(method, CustomRisk) and not method.takes_weight:
            raise ComesError(
                "sample_weight needs a risk of your own that takes the weights of the rows by that "
                "name, risk(scores, candidates, sample_weight=None). Add it, or leave "
                "sample_weight out."
            )
        if not weight.all():
            rows = np.flatnonzero(weight)
            X, answers, weight = _safe_indexing(X, rows), answers[rows], weight[rows]
        return X, answers, weight

    # Scores

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return raw scores, always as an array."""
        scores = self._trained_scores(X)
        if self.score_power_ is None:
            return scores
        return recalibrate_to_prior(scores, self.score_power_)  # a model of 1.0.0

    def _trained_scores(self, X: Any) -> FloatArray:
        """Return the scores whose risk training minimised."""
        check_is_fitted(self)
        return self._score_matrix(self._read_features(X))

    def _score_matrix(self, X: Any) -> FloatArray:
        """Return the scores of a matrix of features."""
        return self._blend(self._score_scaled(self.scaling_(X)).cpu().numpy(), X)

    def _score_scaled(self, X: Any) -> Tensor:
        """Return the scores of scaled features, on the device of the network."""
        device = choose_device(self.device)
        return predict_scores(self.module_.to(device), to_device(X, device))

    def _stream_scores(self, X: Any, at_once: int) -> Iterator[Tensor]:
        """Give scores of `decision_function` for so many rows at a time, where they are made."""
        features = self._read_features(X)
        for start in range(0, features.shape[0], at_once):
            part = features[start : start + at_once]
            scores = self._score_scaled(self.scaling_(part))
            if self.trees_ is not None:
                scores = torch.from_numpy(self._blend(scores.cpu().numpy(), part))
            if self.score_power_ is not None:
                power = self.score_power_
                scores = torch.as_tensor(recalibrate_to_prior(scores.cpu().numpy(), power))
            yield scores

    def risk(self, X: Any, candidates: Any, *, corrected: bool = False) -> float:
        """Return the estimate of the method's risk on other rows with candidates or answers.

        Without a true label: lower is better, among classifiers of one method. What training needs
        beside it (absolute values, clamps, the flood, the pull to the class prior) is left out,
        unless ``corrected``: a clamp at 0 would make classifiers look alike.
        """
        check_paired(X=X, labels=candidates)
        scores = torch.as_tensor(self._trained_scores(X))
        answers = read_answers(candidates).align_labels(self.label_names_)
        rates = self._rates_for(answers)
        risk = self.method_.make_risk(rates, Counts.of(answers), corrected=corrected)
        targets = make_targets(self.method_, rates, answers, scores.device, 0)
        return value_or_nan(risk, scores, targets)

    # Files

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


@dataclass(frozen=True, eq=False)
class PartialFitState:
    """What goes from one part of `partial_fit` to the next, beside the model."""

    counts: Counts
    optimizer: dict[str, Any]  # its state
    n_parts: int


class _ResumedOptimizer:
    """Makes an optimiser that goes on from the state of an earlier one."""

    def __init__(self, make: MakeOptimizer, state: dict[str, Any] | None) -> None:
        self.make, self.state = make, state
        self.made: torch.optim.Optimizer | None = None

    def __call__(self, parameters: Any) -> torch.optim.Optimizer:
        self.made = self.make(parameters)
        if self.state is not None:
            self.made.load_state_dict(copy.deepcopy(self.state))
        return self.made
