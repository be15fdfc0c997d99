"""Fits that go on from an earlier one: warm starts, and streams of rows."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch
from sklearn.utils import _safe_indexing
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError, listed
from comes.estimator.finishing import finish_fit
from comes.estimator.inputs import (
    as_feature_matrix,
    check_entries,
    check_same_order,
    check_same_rows,
    check_training_features,
    warn_of_constant,
)
from comes.estimator.predictions import keeping_earlier_fit
from comes.estimator.preparation import Training
from comes.estimator.reading_answers import read_answers
from comes.estimator.row_risks import Counts
from comes.estimator.row_training import Start, prepare_rows
from comes.estimator.row_weights import check_takes_weight, read_weight
from comes.estimator.scaling import Scaling
from comes.estimator.seen_rows import add_rows
from comes.estimator.settings import LEARNED_THRESHOLDS
from comes.estimator.stream_fits import fit_shards
from comes.estimator.table_inputs import count_inputs, find_encoder
from comes.training import History
from comes.training.options import MakeOptimizer

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier


@dataclass(frozen=True, eq=False)
class EarlierFit:
    """What a warm start keeps of the fit before; nothing if there is none."""

    module: nn.Module | None = None
    scaling: Scaling | None = None
    label_names: list[str] | None = None
    n_features: int = 0

    def check(self, X: Any, answers: Answers) -> Start:
        """Return where to start, if the new rows have the features and labels of the earlier."""
        if self.module is None:
            return Start()
        if X.shape[1] != self.n_features or answers.label_names != self.label_names:
            raise ComesError(
                "warm_start=True goes on with the network of the fit before, which has "
                f"{self.n_features} features and the labels {listed(self.label_names or [])}; got "
                f"{X.shape[1]} and {listed(answers.label_names or [])}. Set warm_start=False to "
                "start anew."
            )
        return Start(module=self.module, scaling=self.scaling)


def find_earlier_fit(classifier: "CandidateClassifier") -> EarlierFit:
    """Return the fit to go on from, if there is one and the classifier is to do so."""
    classifier.__dict__.pop("stream_", None)
    if not classifier.warm_start or not hasattr(classifier, "module_"):
        return EarlierFit()
    given = (classifier.module_, classifier.scaling_, classifier.label_names_)
    return EarlierFit(*given, count_inputs(classifier))


def read_training_rows(classifier: "CandidateClassifier", X: Any, earlier: EarlierFit) -> Any:
    """Return the features to be trained on; a warm start encodes a table as the fit before did."""
    if earlier.module is None or find_encoder(classifier) is None:
        X = check_training_features(classifier, X)
        warn_of_constant(X)
        return X
    X = as_feature_matrix(classifier, X)
    check_entries(X)
    return X


def prepare_weighted(
    classifier: "CandidateClassifier",
    X: Any,
    answers: Answers,
    sample_weight: Any,
    start: Start,
) -> Training:
    """Return `prepare_rows` with the weights of the rows; rows of weight 0 are left out."""
    check_same_rows(X, answers)
    weight = read_weight(sample_weight, len(answers))
    if weight is None:
        return prepare_rows(classifier, X, answers, start)
    if classifier.threshold in LEARNED_THRESHOLDS:
        raise ComesError(
            f"threshold={classifier.threshold!r} is learned from rows that all count the same; "
            "with sample_weight take 'auto', 'zero' or 'minmax'."
        )
    if callable(classifier.method):
        check_takes_weight(classifier.method)
    if not weight.all():
        rows = np.flatnonzero(weight)
        X, answers, weight = _safe_indexing(X, rows), answers[rows], weight[rows]
    return prepare_rows(classifier, X, answers, replace(start, weight=weight))


@dataclass(frozen=True, eq=False)
class Stream:
    """What goes from one part of a stream to the next, beside the model."""

    counts: Counts
    optimizer: dict[str, Any]  # its state
    n_parts: int


class LearnsFromStreams:
    """Rows that come in parts, each of which is seen once."""

    stream_: Stream

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
        >>> from comes import CandidateClassifier
        >>> rng = np.random.default_rng(0)
        >>> clf = CandidateClassifier("bce", random_state=0)
        >>> for part in range(30):
        ...     X = rng.normal(size=(200, 2))
        ...     clf = clf.partial_fit(X, X > 0)
        >>> clf.predict([[2.0, -2.0]])
        array([[1, 0]])
        """
        classifier = cast("CandidateClassifier", self)
        _check_may_stream(classifier)
        with keeping_earlier_fit(classifier):
            for labels in (y, candidates, complementary, answers):
                check_same_order(X, labels)
            given = read_answers(
                y,
                candidates,
                complementary,
                answers,
                label_names,
                require_candidates=classifier.require_candidates,
            )
            if hasattr(classifier, "module_"):
                _go_on(classifier, X, given, sample_weight)
            else:
                X = check_training_features(classifier, X)
                _train_part(classifier, X, given, sample_weight, Start(), None)
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
        >>> from comes import CandidateClassifier
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
        classifier = cast("CandidateClassifier", self)
        with keeping_earlier_fit(classifier):
            fit_shards(
                classifier,
                shards,
                buffer_rows=buffer_rows,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                is_shared=is_shared,
            )
        return self


def _check_may_stream(classifier: "CandidateClassifier") -> None:
    """Raise an error if a setting needs all rows at once."""
    if classifier.early_stopping or classifier.threshold in LEARNED_THRESHOLDS:
        raise ComesError(
            "partial_fit sees every row once, so it can neither hold rows out nor learn "
            f"thresholds; got early_stopping={classifier.early_stopping} and threshold="
            f"{classifier.threshold!r}. Set them to False and 'auto'."
        )


def _go_on(classifier: "CandidateClassifier", X: Any, given: Answers, weight: Any) -> None:
    """Train a fitted classifier on another part."""
    X = as_feature_matrix(classifier, X)
    check_entries(X)
    given = given.align_labels(classifier.label_names_)
    kind = (classifier.trained_on_ or {"kind": given.kind})["kind"]
    if given.kind != kind:
        raise ComesError(
            f"partial_fit must go on with {kind}, as before, since rates of {given.kind} mean "
            "something else. Give the same kind, or start anew with fit."
        )
    stream = getattr(classifier, "stream_", None)
    start = Start(
        known=classifier.rates_,
        module=classifier.module_,
        scaling=classifier.scaling_,
        counts=_no_counts(given) if stream is None else stream.counts,
    )
    _train_part(classifier, X, given, weight, start, stream)


def _no_counts(answers: Answers) -> Counts:
    """Return the counts of no rows."""
    return Counts.of(answers).of_no_rows()


def _train_part(
    classifier: "CandidateClassifier",
    X: Any,
    answers: Answers,
    sample_weight: Any,
    start: Start,
    stream: Stream | None,
) -> None:
    """Train for one pass, and keep what the next part needs."""
    before = vars(classifier).get("history_", History()) if start.module else History()
    seen = vars(classifier).get("seen_rows_") if start.module else None
    n_parts = stream.n_parts if stream else 0
    n_before = (classifier.trained_on_ or {"rows": 0})["rows"] if start.module else 0
    training = prepare_weighted(classifier, X, answers, sample_weight, start)
    optimizer = _Resumed(training.options.optimizer, stream.optimizer if stream else None)
    options = replace(
        training.options,
        epochs=1,
        cosine=False,
        optimizer=optimizer,
        seed=training.options.seed + n_parts,
        progress=False,
    )
    training = replace(training, options=options, is_ours=False)  # no graph for one pass
    history = training.run()
    classifier.seen_rows_ = add_rows(seen, classifier.seen_rows_)
    risks, seconds = before.risk + history.risk, before.seconds + history.seconds
    finish_fit(classifier, training, replace(history, risk=risks, seconds=seconds))
    assert classifier.trained_on_ is not None
    classifier.trained_on_["rows"] += n_before
    classifier.stream_ = Stream(training.counts, optimizer.read_state(), n_parts + 1)


class _Resumed:
    """Makes an optimiser that goes on from the state of an earlier one."""

    def __init__(self, make: MakeOptimizer, state: dict[str, Any] | None) -> None:
        self.make, self.state = make, state
        self.made: torch.optim.Optimizer | None = None

    def __call__(self, parameters: Any) -> torch.optim.Optimizer:
        self.made = self.make(parameters)
        if self.state is not None:
            self.made.load_state_dict(copy.deepcopy(self.state))
        return self.made

    def read_state(self) -> dict[str, Any]:
        """Return the state of the optimiser that was made."""
        assert self.made is not None
        return self.made.state_dict()
