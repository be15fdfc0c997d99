"""What the classifiers of rows and of pictures share: from scores to labels and probabilities."""

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from comes.answers import AnswerRates, Answers, answer_evidence
from comes.answers.convert import BoolMatrix, as_relevant, check_paired
from comes.answers.evidence import mean_log_likelihood
from comes.errors import ComesError, warn_user
from comes.estimator.checks import FitCheck
from comes.estimator.inputs import match_columns, read_answers
from comes.estimator.prepare import LEARNED_THRESHOLDS, OPTIMIZER_SETTINGS, Training
from comes.methods import Likelihood, Method, Rates
from comes.selection import choose_thresholds, fit_calibration
from comes.selection.calibration import Calibration, rates_given_prior
from comes.selection.thresholds import cut_as_expected, cut_by_row, offset_matching_prior
from comes.training import History, predict_scores
from comes.training.options import OPTIMIZERS, Callback

if TYPE_CHECKING:
    from comes.training import TrainedEpoch

FloatArray = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.float64] | None
FEWEST_CLEAN = 5  # relevant, and irrelevant, clean rows that the threshold of a label needs
SCORES_AT_ONCE, ROWS_AT_ONCE = 2**24, 4096  # of `predict_top`
THRESHOLDS = ("auto", "half", "zero", *LEARNED_THRESHOLDS, "minmax")


@dataclass(frozen=True, eq=False)
class TopPredictions:
    """The k labels of highest score of every row, the best first.

    Attributes
    ----------
    labels : int array of shape (n_samples, k)
        Numbers of labels, from 0: places in ``label_names_`` of the classifier.
    scores : float32 array of shape (n_samples, k)
        As in ``decision_function``; they do not rise along a row.
    probabilities : float array of shape (n_samples, k)
        As in ``predict_proba``. Where labels have levels of their own (``score_offset_``,
        `calibrate`), these may rise along a row: labels are ordered by their scores.
    n_labels : int
        Of all labels.

    Examples
    --------
    >>> labels, scores = np.array([[2, 0]]), np.array([[1.5, -1.0]], np.float32)
    >>> top = TopPredictions(labels, scores, np.array([[0.8, 0.3]]), n_labels=3)
    >>> top.to_csr().toarray()
    array([[0.3, 0. , 0.8]])
    """

    labels: npt.NDArray[np.int64]
    scores: FloatArray
    probabilities: FloatArray
    n_labels: int

    def __len__(self) -> int:
        return len(self.labels)

    def to_csr(self) -> sparse.csr_array:
        """Return the probabilities as a sparse matrix of shape (n_samples, n_labels)."""
        n, k = self.labels.shape
        starts = np.arange(0, n * k + 1, k)
        parts = self.probabilities.ravel(), self.labels.ravel(), starts
        found = sparse.csr_array(parts, shape=(n, self.n_labels), copy=True)
        found.sort_indices()
        return found

    @classmethod
    def join(cls, parts: Iterable["TopPredictions"]) -> "TopPredictions":
        """Return the rows of all parts, one after the other."""
        found = list(parts)
        return cls(
            np.concatenate([part.labels for part in found]),
            np.concatenate([part.scores for part in found]),
            np.concatenate([part.probabilities for part in found]),
            found[0].n_labels,
        )


def _read_rate(name: str, meaning: str) -> Any:
    """Return a property that reads what was given or estimated."""

    def read(classifier: "BaseCandidateClassifier") -> Numbers:
        rate: Numbers = getattr(classifier.rates_, name)
        return rate

    return property(read, doc=meaning)


class BaseCandidateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labels and probabilities of a classifier that has scores, a level and thresholds."""

    threshold: Any
    class_prior: Any
    early_stopping: Any
    patience: int | None
    optimizer: Any
    verbose: int
    callbacks: Any = None
    COUNTS: ClassVar[dict[str, int]] = {}  # parameters that are whole numbers, with the least
    CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {"threshold": THRESHOLDS}
    OPTIMIZER_SETTINGS: ClassVar[tuple[str, ...]] = ("name", *OPTIMIZER_SETTINGS)

    method_: Method
    label_names_: list[str]
    classes_: npt.NDArray[Any]
    rates_: Rates
    history_: History
    trained_on_: dict[str, Any] | None = None  # how many rows, and the kind of answers
    threshold_: FloatArray
    score_offset_: FloatArray
    calibration_: Calibration | None = None  # of scores above the offset
    score_power_: FloatArray | None = None  # only of models of 1.0.0 with rates by instance
    seen_rows_: Numbers = None  # a number for every row that was trained on

    class_prior_ = _read_rate("class_prior", "The class prior; None if nothing needed it.")
    no_rate_ = _read_rate("no_rate", "How often an irrelevant pair is called so; or None.")
    yes_rate_ = _read_rate("yes_rate", "How often a relevant pair is called so; or None.")
    flip_rate_ = _read_rate("flip_rate", "The flip rates; None if the method needs none.")
    transition_ = _read_rate("transition", "The transition matrix; None if nothing needs it.")

    @property
    def class_prior_error_(self) -> Numbers:
        """Standard error of an estimated class prior, NaN where it is not known; None if given."""
        error: Numbers = self.rates_.class_prior_error
        if error is None and self.class_prior_ is not None and self.class_prior is None:
            return np.full(len(self.class_prior_), np.nan)
        return error

    @property
    def people_rates_(self) -> dict[str, tuple[Any, Any]]:
        """The rates of "no" and of "yes" of every annotator who has different ones, by name."""
        return dict(self.rates_.people or {})

    # Settings

    def _check_settings(self) -> None:
        """Raise an error unless numbers and names among the parameters are valid.

        The method and the model are checked where they are made.
        """
        parameters = self.get_params(deep=False)
        for name, least in self.COUNTS.items():
            value = parameters[name]
            is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
            may_be_none = signature(type(self)).parameters[name].default is None
            if not (is_count and value >= least) and not (value is None and may_be_none):
                raise ComesError(
                    f"{name} must be a whole number of at least {least}; got {value!r}."
                )
        for name, allowed in self.CHOICES.items():
            if parameters[name] not in allowed:
                names = ", ".join(map(str, allowed))
                raise ComesError(f"{name} must be one of {names}; got {parameters[name]!r}.")
        stopping = self.early_stopping
        is_share = isinstance(stopping, int | float | np.number) and 0 <= float(stopping) < 1
        if stopping is not True and not is_share:
            raise ComesError(
                "early_stopping must be True, False, or the share of the rows to hold out, between "
                f"0 and 1; got {stopping!r}."
            )
        if self.patience is not None and not stopping:
            raise ComesError("patience needs early_stopping=True; leave it out, or stop early.")
        if isinstance(self.optimizer, dict):
            allowed = self.OPTIMIZER_SETTINGS
            unknown = [name for name in self.optimizer if name not in allowed]
            if unknown:
                raise ComesError(
                    f"optimizer as a dict has {', '.join(allowed)}; got {unknown[0]!r}."
                )
            for name in ("cosine", "starts_at_prior"):
                if self.optimizer.get(name) not in (None, True, False):
                    value = self.optimizer[name]
                    raise ComesError(
                        f"{name} of an optimizer must be True or False; got {value!r}."
                    )
        elif not callable(self.optimizer) and self.optimizer not in (None, *OPTIMIZERS):
            raise ComesError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}, a function of the parameters, "
                f"or a dict such as {{'name': 'sgd', 'momentum': 0.5}}; got {self.optimizer!r}."
            )
        self._list_callbacks()

    def _list_callbacks(self) -> tuple[Callback, ...]:
        """Return what is called after every epoch: the callbacks, and what prints a line."""
        given = self.callbacks
        callbacks = () if given is None else (given,) if callable(given) else given
        if not isinstance(callbacks, tuple | list) or not all(map(callable, callbacks)):
            raise ComesError(
                "callbacks must be a function of a comes.training.TrainedEpoch, or a list of such; "
                f"got {given!r}."
            )
        return (*callbacks, *((_print_epoch,) if self.verbose > 0 else ()))

    # The end of every fit

    def _keep(self, training: Training, history: History) -> Self:
        """Set what a training learned, where its scores are cut, and what is wrong with it.

        A learned threshold may train three more times.
        """
        check = FitCheck(training)
        check.refuse_runaway()
        answers = training.answers
        self.method_, self.rates_ = clone(training.method), training.rates
        self.label_names_ = list(answers.label_names)
        self.classes_ = np.array(self.label_names_, dtype=object)
        self.history_, self.calibration_, self.score_power_ = history, None, None
        self.trained_on_ = {"rows": len(answers), "kind": answers.kind}
        self.score_offset_ = np.zeros(len(self.classes_))
        if training.method.is_over_pairs:  # no natural zero: the level that fits the class prior
            weight = training.weight
            weights = None if weight is None else weight.double().cpu().numpy()
            scores, prior = self._score_training(training, training.X), self.class_prior_
            assert prior is not None
            self.score_offset_ = offset_matching_prior(scores, prior, weight=weights)
        self.threshold_ = self._find_thresholds(training, check.scores.cpu().numpy())
        self.history_ = replace(history, warnings=check.find_problems(self, history))
        return self

    def _finish_scores(
        self, training: Training, rows: npt.NDArray[np.intp], scores: FloatArray
    ) -> FloatArray:
        """Return scores of held-out rows as `decision_function` has them, given their numbers."""
        return scores

    def _score_training(self, training: Training, X: Any) -> FloatArray:
        """Return the scores of rows of a training."""
        scores = predict_scores(training.network, X, precision=training.options.precision)
        return np.asarray(scores.cpu().numpy())

    def _find_thresholds(self, training: Training, scores: FloatArray) -> FloatArray:
        """Return where to cut the scores of each label.

        By the network's scores of some training rows, which trees beside it know by heart; at
        zero; at a probability of one half; or learned on clean rows, on held-out rows, or by
        cross-fitting.
        """
        if self.threshold == "auto":
            cut = cut_as_expected(scores - self.score_offset_, self.class_prior_)
            return np.asarray(self.score_offset_ + cut)
        if self.threshold == "zero":
            return np.zeros(len(self.classes_))
        if self.threshold not in LEARNED_THRESHOLDS:
            return self.score_offset_.copy()
        clean = training.clean
        if clean is None or clean.X is None:
            return self._learn_thresholds(training)
        # With true labels as candidates, and their shares as prior, the estimates are exact.
        relevant, scores = clean.relevant, np.asarray(self._raw_scores(clean.X))
        cut = choose_thresholds(scores, relevant, relevant.mean(axis=0), self.threshold)
        few = np.minimum(relevant.sum(axis=0), (~relevant).sum(axis=0)) < FEWEST_CLEAN
        return np.where(few, self._learn_thresholds(training), cut) if few.any() else cut

    def _learn_thresholds(self, training: Training) -> FloatArray:
        """Return thresholds learned from the answers about rows that training did not see."""
        prior, by = self.class_prior_, self.threshold
        assert prior is not None
        held_out = training.held_out
        if held_out is not None:
            scores = self._score_training(training, held_out.X)
            scores = self._finish_scores(training, held_out.rows, scores)
            return choose_thresholds(scores, held_out.answers, prior, by)
        if self.history_.interrupted:
            warn_user(
                "The threshold was not learned, since training was interrupted; predictions are "
                "cut as by threshold='half'."
            )
            return self.score_offset_.copy()
        if training.cross_score is not None:
            return choose_thresholds(training.cross_score(), training.answers, prior, by)
        from comes.estimator.together import cross_fit

        # A class prior that was estimated is handed on, but has no more weight than in this
        # training.
        method = clone(self.method_) if isinstance(self.method, Method) else self.method
        if isinstance(self.method_, Likelihood):
            method = clone(self.method_).set_params(prior_weight=self.rates_.prior_weight)
        plain = clone(self).set_params(threshold="half", method=method, class_prior=prior)
        plain.set_params(verbose=-1)
        seed, answers = training.options.seed, training.answers
        (crossed,) = cross_fit([plain], training.features, answers, seed=seed, n_jobs=1)
        cut = choose_thresholds(crossed.scores - crossed.level, answers, prior, by)
        return np.asarray(cut + self.score_offset_)

    # Predictions

    def decision_function(self, X: Any) -> Any:
        """Return raw scores, higher for more relevant: one array of shape (n_samples, n_labels)."""
        return self._as_output(X, self._raw_scores(X))

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return the scores of `decision_function`, always as an array."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Return 1 for relevant, 0 for irrelevant: one array of shape (n_samples, n_labels)."""
        return self._as_output(X, self.cut_scores(self._raw_scores(X)))

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of relevance: one array of shape (n_samples, n_labels).

        The sigmoid of the score above `score_offset_`. For COMES-HL this is what the risk
        estimates. For risks over pairs only the mean over training rows is fitted, to the class
        prior: the risk itself says nothing about the level of the scores. For BCE it is the
        probability that the label is a candidate.
        """
        return self._as_output(X, self.squash_scores(self._raw_scores(X)))

    def cut_scores(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the predictions that belong to scores of `decision_function`."""
        check_is_fitted(self)
        if self.threshold == "minmax":
            return cut_by_row(scores).astype(np.int64)
        return (np.asarray(scores) > self.threshold_).astype(np.int64)

    def squash_scores(self, scores: npt.ArrayLike, labels: Any = ...) -> FloatArray:
        """Return the probabilities that belong to scores of `decision_function`.

        ``labels`` are their columns, where they are not all.
        """
        check_is_fitted(self)
        above = np.asarray(scores) - self.score_offset_[labels]
        if self.calibration_ is not None:
            slope, level = self.calibration_.slope[labels], self.calibration_.level[labels]
            above = Calibration(slope, level).calibrate(above)
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
        if not 1 <= k <= q:
            raise ComesError(f"k must be 1 to {q}, the number of labels; got {k}.")
        for part in self._stream_scores(X, min(ROWS_AT_ONCE, max(1, SCORES_AT_ONCE // q))):
            labels, scores = find_top(part, k)
            yield TopPredictions(labels, scores, self.squash_scores(scores, labels), q)

    def _stream_scores(self, X: Any, at_once: int) -> Iterator[Tensor]:
        """Give scores of `decision_function` for so many rows at a time."""
        for start in range(0, len(X), at_once):
            yield torch.as_tensor(self._raw_scores(X[start : start + at_once]))

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what predictions are: arrays, or DataFrames with the names of the labels.

        Parameters
        ----------
        transform : {"default", "pandas"}, optional
            A DataFrame has the index of X, if it has one. None changes nothing.

        Returns
        -------
        self

        Examples
        --------
        >>> from comes import CandidateClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> clf = CandidateClassifier("bce", epochs=1).fit(X, X > 0, label_names=["sea", "sky"])
        >>> list(clf.set_output(transform="pandas").predict(X).columns)
        ['sea', 'sky']
        """
        if transform not in (None, "default", "pandas"):
            raise ComesError(f"transform must be 'default' or 'pandas'; got {transform!r}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # which clone copies
        return self

    def _as_output(self, X: Any, values: npt.NDArray[Any]) -> Any:
        """Return an array, or a DataFrame with the index of X where `set_output` asks for one."""
        config = getattr(self, "_sklearn_output_config", {})
        if config.get("transform") != "pandas":
            return values
        index = X.index if hasattr(X, "columns") else None
        return pd.DataFrame(values, index=index, columns=self.label_names_)

    # Judging and calibrating

    def _score_labels(self, X: Any, y: Any, sample_weight: None, metric: Any) -> float:
        """Return a metric of true labels, or the log-likelihood of answers."""
        check_is_fitted(self)
        if sample_weight is not None:
            raise ComesError("score takes no sample_weight; select rows of X and y instead.")
        check_paired(X=X, y=y)
        scores = self._raw_scores(X)
        if not isinstance(y, Answers):
            return float(metric(scores, self._align_truth(y)))
        answers, rates = y.align_labels(self.label_names_), self.rates_.answer_rates_or_none
        if rates is None and self.class_prior_ is not None:
            rates = rates_given_prior(answers.without_chosen(), self.class_prior_)
        elif rates is None:  # every answer is taken at its word
            answers, sure = answers.without_maybe(), np.ones(len(self.label_names_))
            rates = AnswerRates(sure, 0 * sure if answers.kind == "candidates" else sure)
        return mean_log_likelihood(self.squash_scores(scores), answers, rates)

    def _align_truth(self, y: Any) -> BoolMatrix:
        """Return true labels in the order of the label names."""
        relevant = match_columns(as_relevant(y), y, self.label_names_)
        if relevant.shape[1] != len(self.label_names_):
            raise ComesError(
                f"relevant must have the {len(self.label_names_)} labels of the model; got "
                f"{relevant.shape[1]}."
            )
        return relevant

    def calibrate(self, X: Any, answers: Any = None, *, relevant: Any = None) -> Self:
        """Make probabilities fit what is known about rows that training did not see.

        A slope and a level for every label, those of all labels together where few rows are
        known, and close to none with very few: docs/guide/thresholds.md says what it gains, and
        where it does not. The order of rows and `decision_function` stay. With ``threshold="auto"``
        or "half" `predict` then cuts the probabilities that it gives to these rows. Another `fit`
        forgets it.

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
        if (answers is None) == (relevant is None):
            raise ComesError(
                "calibrate takes either answers (or candidates) about the rows or relevant=, their "
                f"true labels; got {'neither' if answers is None else 'both'}."
            )
        check_paired(X=X, labels=relevant if answers is None else answers)
        if answers is None:
            evidence = np.where(self._align_truth(relevant), 1.0, -1.0)
        else:
            read = read_answers(answers).align_labels(self.label_names_)
            rates = self.rates_.answer_rates_or_none
            if rates is None and self.class_prior_ is None:
                raise ComesError(
                    "calibrate needs rates of answers or a class prior, and a model of "
                    f"{self.method_.name!r} has neither. Give true labels (relevant=), or fit with "
                    "another method."
                )
            if rates is None:
                assert self.class_prior_ is not None
                rates = rates_given_prior(read.without_chosen(), self.class_prior_)
            evidence = answer_evidence(read, rates)
        scores = self._raw_scores(X).astype(np.float64)
        if len(scores) != len(evidence):
            raise ComesError(
                "calibrate needs X and labels of the same rows; got "
                f"{len(scores)} and {len(evidence)}."
            )
        n_seen = self.count_seen_rows(X)
        if n_seen:
            warn_user(
                f"{n_seen} of the rows were trained on, where the model is too sure of itself. "
                "Calibrate on other rows."
            )
        above = scores - self.score_offset_
        self.calibration_ = fitted = fit_calibration(above, evidence)
        if self.threshold in ("auto", "half"):
            cut = np.zeros(len(self.classes_))
            if self.threshold == "auto":
                cut = cut_as_expected(fitted.calibrate(above), self.class_prior_)
            self.threshold_ = self.score_offset_ + (cut - fitted.level) / fitted.slope
        return self

    def count_seen_rows(self, X: Any) -> int:
        """Return how many rows were trained on, as far as the model remembers them."""
        return 0

    # scikit-learn's and Python's habits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name, value in state.items():
            if isinstance(value, nn.Module):  # so that a model from a GPU can be unpickled without
                state[name] = copy.deepcopy(value).cpu()
        return state

    @contextmanager
    def _keeping_earlier_fit(self) -> Iterator[None]:
        """Leave the classifier as it was if the new fit fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise


def _print_epoch(done: "TrainedEpoch") -> None:
    """Print what an epoch did."""
    print(done, flush=True)


def find_top(scores: Tensor, k: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the labels of the k highest scores of each row, ties by column, and these scores."""
    values, labels = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    tied = values[:, k - 1] == values[:, -1]  # so that topk took any of several labels
    labels = labels[:, :k]
    if k < scores.shape[1] and tied.any():
        # Those above the border and, of those at it, the first columns.
        border = values[tied, k - 1, None]
        above, at_border = scores[tied] > border, scores[tied] == border
        places_left = k - above.sum(dim=1, keepdim=True)
        first = at_border.cumsum(dim=1, dtype=torch.int32) <= places_left
        labels[tied] = (above | (at_border & first)).nonzero()[:, 1].view(-1, k)
    labels = labels.sort(dim=1).values
    values = scores.gather(1, labels)
    order = values.argsort(dim=1, descending=True, stable=True)
    return labels.gather(1, order).cpu().numpy(), values.gather(1, order).cpu().numpy()
