"""What both classifiers share: rates, labels and probabilities from scores, tags, pickling."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from comes.answers.convert import BoolMatrix, as_relevant
from comes.errors import ComesError
from comes.estimator.calibrating import find_calibration
from comes.estimator.hub import SharesModels
from comes.estimator.inputs import check_same_order, match_columns
from comes.estimator.top_predictions import TopPredictions, check_k, count_rows_at_once, find_top
from comes.methods import Rates
from comes.selection.calibration import Calibration
from comes.selection.thresholds import cut_by_row

FloatArray = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.float64] | None


class PredictsFromScores(SharesModels):
    """Labels and probabilities of a classifier that has scores, a level and thresholds."""

    threshold: str
    class_prior: Any
    method_: Any  # the method that was used: the one asked for, or the default for the answers
    label_names_: list[str]
    rates_: Rates
    threshold_: FloatArray
    score_offset_: FloatArray
    score_power_: FloatArray | None = None  # only of models of 1.0.0 with rates by instance
    calibration_: Calibration | None = None  # of scores above the offset
    trained_on_: dict[str, Any] | None = None  # how many rows, and what was said about them

    @property
    def class_prior_(self) -> Numbers:
        """The class prior, given or estimated; None if nothing needed it."""
        prior: Numbers = self.rates_.class_prior
        return prior

    @property
    def class_prior_error_(self) -> Numbers:
        """Standard error of an estimated class prior; None if there is none, or it was given.

        NaN where it is not known: a flagged label, or a model of an earlier version.
        """
        error: Numbers = self.rates_.class_prior_error
        if error is None and self.class_prior_ is not None and self.class_prior is None:
            return np.full(len(self.class_prior_), np.nan)
        return error

    @property
    def no_rate_(self) -> Numbers:
        """How often an irrelevant pair is called so; None if the method needs no rates."""
        rate: Numbers = self.rates_.no_rate
        return rate

    @property
    def yes_rate_(self) -> Numbers:
        """How often a relevant pair is called so; None if the method needs no rates."""
        rate: Numbers = self.rates_.yes_rate
        return rate

    @property
    def flip_rate_(self) -> Numbers:
        """The flip rates, given or estimated; None if the method needs none."""
        rate: Numbers = self.rates_.flip_rate
        return rate

    @property
    def transition_(self) -> Numbers:
        """The transition matrix, estimated; None if the method needs none."""
        transition: Numbers = self.rates_.transition
        return transition

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features if `fit` saw a DataFrame, else None."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def decision_function(self, X: Any) -> Any:
        """Return raw scores, higher for more relevant."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Return 1 for relevant, 0 for irrelevant: one array of shape (n_samples, n_labels)."""
        return self._as_output(X, self.cut_scores(self.decision_function(X)))

    def _as_output(self, X: Any, values: npt.NDArray[Any]) -> Any:
        """Return an array, or a DataFrame with the index of X where ``output`` asks for one."""
        if getattr(self, "output", "default") != "pandas":
            return values
        index = X.index if hasattr(X, "columns") else None
        return pd.DataFrame(values, index=index, columns=self.label_names_)

    def cut_scores(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the predictions that belong to scores of `decision_function`."""
        check_is_fitted(self)
        if self.threshold == "minmax":
            return cut_by_row(scores).astype(np.int64)
        return (np.asarray(scores) > self.threshold_).astype(np.int64)

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of relevance: one array of shape (n_samples, n_labels).

        The sigmoid of the score above `score_offset_`. For COMES-HL this is what the risk
        estimates. For risks over pairs only the mean over training rows is fitted, to the class
        prior: the risk itself says nothing about the level of the scores. For BCE it is the
        probability that the label is a candidate.
        """
        return self._as_output(X, self.squash_scores(self.decision_function(X)))

    def squash_scores(self, scores: npt.ArrayLike) -> FloatArray:
        """Return the probabilities that belong to scores of `decision_function`."""
        return self._squash(scores, ...)

    def _squash(self, scores: npt.ArrayLike, labels: Any) -> FloatArray:
        """Return the probabilities of scores whose labels are given by number."""
        check_is_fitted(self)
        above = np.asarray(scores) - self.score_offset_[labels]
        found = self.calibration_
        if found is not None:
            above = Calibration(found.slope[labels], found.level[labels]).calibrate(above)
        return np.asarray(expit(above))

    def predict_top(self, X: Any, k: int) -> TopPredictions:
        """Return the k labels of highest score of every row, with their probabilities.

        Rows are scored in parts, of at most 2**24 scores each, so that memory grows with n k and
        not with n q: for very many labels. Ties are broken by column.

        Parameters
        ----------
        X : as in `predict`
        k : int
            At most the number of labels.

        Returns
        -------
        top : TopPredictions
            Its ``labels``, ``scores`` and ``probabilities`` have the shape (n_samples, k), the best
            label first; ``to_csr()`` is a sparse matrix of all labels.

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> clf = CandidateClassifier("bce", epochs=2, random_state=0).fit(X, X > 0)
        >>> top = clf.predict_top(X, 2)
        >>> top.labels.shape, top.to_csr().shape
        ((200, 2), (200, 3))
        """
        return TopPredictions.join(self.stream_top(X, k))

    def stream_top(self, X: Any, k: int) -> Iterator[TopPredictions]:
        """Give what `predict_top` returns part by part, so that it can be written to a file."""
        check_is_fitted(self)
        q = len(self.label_names_)
        check_k(k, q)
        for part in self._stream_scores(X, count_rows_at_once(q)):
            labels, scores = find_top(part, k)
            yield TopPredictions(labels, scores, self._squash(scores, labels), q)

    def _stream_scores(self, X: Any, at_once: int) -> Iterator[Tensor]:
        """Give scores of `decision_function` for so many rows at a time."""
        for start in range(0, len(X), at_once):
            yield torch.as_tensor(self.decision_function(X[start : start + at_once]))

    def calibrate(self, X: Any, answers: Any = None, *, relevant: Any = None) -> Self:
        """Make probabilities fit what is known about rows that training did not see.

        A slope and a level for every label, those of all labels together where few rows are
        known, and close to none with very few: docs/guide/thresholds.md says what it gains, and
        where it does not. The order of rows and `decision_function` stay. With ``threshold="auto"``
        `predict` then cuts at a probability of one half. Another `fit` forgets it.

        Parameters
        ----------
        X : as in `predict`
        answers : Answers, or candidates of shape (n_samples, n_labels), optional
            What was said about these rows, with the rates of the model.
        relevant : array or DataFrame of shape (n_samples, n_labels), optional
            Their true labels, instead.

        Returns
        -------
        self

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> clf = CandidateClassifier("bce", epochs=2, random_state=0).fit(X[:200], X[:200] > 0)
        >>> clf.calibrate(X[200:], relevant=X[200:] > 0).calibration_.slope.round() > 1
        array([ True,  True])
        """
        check_is_fitted(self)
        for labels in (answers, relevant):
            check_same_order(X, labels)
        self.calibration_ = found = find_calibration(self, X, answers, relevant)
        if self.threshold == "auto":
            self.threshold_ = self.score_offset_ - found.level / found.slope
        return self

    def _read_truth(self, y: Any, sample_weight: None) -> BoolMatrix:
        """Return the true labels that ``score`` was given, in the order of the label names."""
        check_is_fitted(self)
        if sample_weight is not None:
            raise ComesError("score takes no sample_weight; select rows of X and y instead.")
        return match_columns(as_relevant(y), y, self.label_names_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        for name in ("module_", "network_"):
            if name in state:  # so that a model from a GPU can be unpickled without one
                state[name] = copy.deepcopy(state[name]).cpu()
        return state


@contextmanager
def keeping_earlier_fit(classifier: Any) -> Iterator[None]:
    """Leave a classifier as it was if the new fit fails."""
    before = dict(classifier.__dict__)
    try:
        yield
    except BaseException:
        classifier.__dict__.clear()
        classifier.__dict__.update(before)
        raise
