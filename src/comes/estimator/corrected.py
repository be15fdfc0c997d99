"""`CorrectedClassifier`: any classifier of scikit-learn, trained on what was said and corrected.

The classifier learns how often each answer s is given to a pair that is asked about, P(s | x). If
the pair is relevant with probability eta, by `comes.answers.evidence` an answer with evidence r has
the likelihood 1 - r (1 - eta) where r > 0, and 1 + r eta where r < 0, up to a factor. So

    sum_s P(s | x) log likelihood_s(eta) + w (pi log eta + (1 - pi) log(1 - eta))

is greatest at the eta that fits what was learned. Where there are candidates alone, and w = 0, that
is 1 - P(excluded) / p; where a = b, P(yes) / (P(yes) + P(no)); else the two estimates 1 - P(no) / a
and P(yes) / b weighted by their variances, but inside [0, 1]. w sure answers of the class prior pi
keep log odds finite.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from comes.answers import AnswerRates, Answers, State
from comes.answers.convert import check_paired
from comes.answers.evidence import state_evidence
from comes.errors import ComesError, first_line
from comes.estimator import skops_files
from comes.estimator.checks import check_labels
from comes.estimator.features import RowClassifier
from comes.estimator.inputs import (
    check_same_rows,
    read_answers,
    read_weight,
    remember_rows,
    warn_of_constant,
)
from comes.estimator.prepare import LEARNED_THRESHOLDS, draw_seed
from comes.estimator.rates import determine_rates
from comes.methods import Likelihood, Rates
from comes.priors import CleanSample
from comes.selection import choose_thresholds

Array = npt.NDArray[np.float64]
PRIOR_WEIGHT = 0.003  # w; a third of it and three times as much change little
N_TREES = 200  # of the default base
N_STEPS = 45  # of the bisection: to 3e-14
LEAST_LEAF = 3  # rows
N_FOLDS = 3  # by which thresholds are learned


class CorrectedClassifier(RowClassifier):
    """Multi-label classifier that learns from answers with any classifier of scikit-learn.

    Parameters
    ----------
    base : classifier with `predict_proba`, optional
        By default 200 extremely randomised trees, whose leaves have at least 3 rows, and as many as
        it takes for one sure answer where fewer than a third of the pairs get one. It is cloned.
        One that takes several labels at once, as trees, forests and nearest neighbours do, is
        fitted once where all labels have the same rows: candidates, ticked labels, and answers
        about every pair without "maybe". Else, and any other, once per label.
    class_prior, rates : optional
        As in `CandidateClassifier`, and by default estimated in the same way.
    encode : bool
        Whether a table of more than numbers is encoded by `comes.tables.ColumnEncoder`. False hands
        X to the base as it is, which then is a pipeline that begins with encoding it.
    threshold : {"auto", "zero", "prior", "risk", "f1", "minmax"}
        As in `CandidateClassifier`; "auto" and "zero" cut at a probability of one half.
    n_jobs : int, optional; labels, or trees of the default base, that are learned at once
    random_state : int, RandomState or None; of estimates, and of a base that has none
    require_candidates : bool
        As in `CandidateClassifier`.

    Attributes
    ----------
    classes_, label_names_, class_prior_, class_prior_error_, no_rate_, yes_rate_, people_rates_,
    threshold_, encoder_
        As in `CandidateClassifier`.
    base_ : the base that is cloned
    estimators_ : list
        The fitted bases: one of all labels, or one per label; the `State` of a label whose answers
        were all the same.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from comes import Answers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> asked = rng.random(X.shape) < 0.3
    >>> answers = Answers(no=asked & (X < 0), yes=asked & (X > 0))
    >>> clf = CorrectedClassifier(LogisticRegression(), random_state=0).fit(X, answers)
    >>> clf.predict([[2.0, -2.0]])
    array([[1, 0]])
    """

    encoder = None
    early_stopping, patience, optimizer, verbose = False, None, None, 0  # which it has not
    base_: Any
    estimators_: list[Any]
    states_: list[int]  # where one estimator has learned all labels: what 0 and 1 mean

    def __init__(
        self,
        base: Any = None,
        *,
        class_prior: npt.ArrayLike | None = None,
        rates: dict[str, Any] | AnswerRates | None = None,
        encode: bool = True,
        threshold: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        require_candidates: bool = False,
    ) -> None:
        self.base = base
        self.class_prior = class_prior
        self.rates = rates
        self.encode = encode
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.require_candidates = require_candidates

    def _check_settings(self) -> None:
        """Raise an error unless the base is a classifier with probabilities."""
        super()._check_settings()
        base, name = self.base, type(self.base).__name__
        if base is not None and (isinstance(base, type) or not hasattr(base, "fit")):
            raise ComesError(
                "base must be a classifier of scikit-learn, such as RandomForestClassifier(); got "
                f"{base!r}."
            )
        if base is not None and not hasattr(base, "predict_proba"):
            raise ComesError(
                f"base must have predict_proba, and {name} has none. Calibrate it: "
                f"sklearn.calibration.CalibratedClassifierCV({name}())."
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
    ) -> Self:
        """Learn from answers or candidate labels.

        Parameters
        ----------
        X, y, candidates, complementary, answers, clean, label_names
            As in `CandidateClassifier.fit`.
        sample_weight : array of shape (n_samples,), optional
            Handed to the base, if it takes weights.

        Returns
        -------
        self : CorrectedClassifier
        """
        with self._keeping_earlier_fit():
            self._check_settings()
            sources = (y, candidates, complementary, answers)
            for labels in sources:
                check_paired(X=X, labels=labels)
            matrix = self._learn_features(X)
            warn_of_constant(matrix)
            is_strict = self.require_candidates
            read = read_answers(
                *sources, label_names, require_candidates=is_strict, may_be_encoded=True
            )
            check_same_rows(matrix, read)
            weight = read_weight(sample_weight, len(read))
            if weight is not None and self.threshold in LEARNED_THRESHOLDS:
                raise ComesError(
                    f"threshold={self.threshold!r} is learned from rows that all count the same; "
                    "with sample_weight take 'auto', 'zero' or 'minmax'."
                )
            self.method_ = Likelihood()
            check_labels(read, self.method_)
            seed = draw_seed(self.random_state)
            rates = determine_rates(
                self.method_,
                matrix,
                read,
                class_prior=self.class_prior,
                rates=self.rates,
                seed=seed,
                needs_prior=True,
                clean=None if clean is None else CleanSample.read(clean, read.label_names),
                weight=weight,
            )
            self.fit_given_rates(matrix if self.encode else X, read, rates, weight, seed)
            self.label_names_ = list(read.label_names or [])
            self.classes_ = np.array(self.label_names_, dtype=object)
            self.trained_on_ = {"rows": len(read), "kind": read.kind}
            self.seen_rows_, self.calibration_ = remember_rows(matrix), None
            self.score_offset_ = np.zeros(len(self.classes_))
            self.threshold_ = self.score_offset_
            if self.threshold in LEARNED_THRESHOLDS:
                rows, base, scores = self._read_rows(X), self.base_, np.empty(read.shape)
                folds = KFold(N_FOLDS, shuffle=True, random_state=seed)
                for kept, held in folds.split(np.arange(len(read))):
                    part = self._learn(base, _safe_indexing(rows, kept), read[kept], None)
                    scores[held] = self._score(part, _safe_indexing(rows, held))
                self.threshold_ = choose_thresholds(
                    scores, read, self.rates_.class_prior, self.threshold
                )
        return self

    def fit_given_rates(
        self, X: Any, answers: Answers, rates: Rates, weight: Array | None, seed: int
    ) -> Self:
        """Learn from rows as they are, where all rates are known: all that `score_rows` needs."""
        self.rates_, self.base_ = rates, self._make_base_for(rates, seed)
        self.estimators_ = self._learn(self.base_, _suit(X, self.base_), answers, weight)
        return self

    def score_rows(self, X: Any) -> Array:
        """Return the corrected log odds of rows as they are."""
        return self._score(self.estimators_, _suit(X, self.base_))

    def _make_base_for(self, rates: Rates, seed: int) -> Any:
        """Return the base to clone, with a random state."""
        base = self.base
        if base is None:
            assert rates.no_rate is not None and rates.yes_rate is not None
            rate = float(np.median(np.maximum(rates.no_rate, rates.yes_rate)))
            leaf = max(LEAST_LEAF, round(1 / max(rate, 0.01)))
            from sklearn.ensemble import ExtraTreesClassifier  # which takes long to import

            base = ExtraTreesClassifier(N_TREES, min_samples_leaf=leaf, n_jobs=self.n_jobs)
        elif self.random_state is None:
            return clone(base)
        states = base.get_params()
        names = [name for name in states if name.split("__")[-1] == "random_state"]
        return clone(base).set_params(**{k: seed for k in names if states[k] is None})

    def _learn(self, base: Any, X: Any, answers: Answers, weight: Array | None) -> list[Any]:
        """Return bases fitted to the answers: one for all labels, or one or a `State` for each."""
        codes, long = answers.filled_codes, answers.annotations
        if long is None and codes.shape[1] > 1 and get_tags(base).classifier_tags.multi_label:
            states = np.unique(codes)
            if len(states) == 2 and states[0] != State.NOT_ASKED:
                self.states_ = states.tolist()
                return [_fit(base, X, (codes == states[1]).astype(np.int64), weight)]

        def learn(label: int) -> Any:
            rows, said = np.flatnonzero(codes[:, label]), codes[:, label]
            if long is not None:  # every answer is a row of its own
                rows, said = long.row[long.label == label], long.code[long.label == label]
            else:
                said = said[rows]
            if len(np.unique(said)) < 2:
                return State(said[0] if len(said) else State.NOT_ASKED)
            part, own = _safe_indexing(X, rows), None if weight is None else weight[rows]
            try:
                return _fit(base, part, said, own)
            except ComesError:
                raise
            except (ValueError, TypeError) as error:
                name = (answers.label_names or [])[label]
                raise ComesError(
                    f"{type(base).__name__} could not learn label {name!r} from its {len(said)} "
                    f"answers: {first_line(error)} Take another base, or leave the label out."
                ) from error

        return list(Parallel(self.n_jobs)(delayed(learn)(j) for j in range(codes.shape[1])))

    def _score(self, estimators: list[Any], X: Any) -> Array:
        """Return the corrected log odds of rows by fitted bases."""
        prior, rates = self.rates_.class_prior, self.rates_.answer_rates
        shares = np.zeros((len(State), X.shape[0], len(prior)))
        if len(estimators) < len(prior):
            shares[self.states_[1]] = _probability_of_one(estimators[0], X)
            shares[self.states_[0]] = 1 - shares[self.states_[1]]
        else:
            for label, estimator in enumerate(estimators):
                if isinstance(estimator, State):
                    shares[estimator, :, label] = 1
                else:
                    shares[estimator.classes_, :, label] = estimator.predict_proba(X).T
        return np.asarray(logit(correct(shares, rates, prior)))

    def _raw_scores(self, X: Any) -> Array:
        """Return the corrected log odds."""
        return self._score(self.estimators_, self._read_rows(X))

    def _stream_scores(self, X: Any, at_once: int) -> Iterator[torch.Tensor]:
        """Give the corrected log odds of so many rows at a time."""
        rows = self._read_rows(X)
        for start in range(0, rows.shape[0], at_once):
            part = _safe_indexing(rows, slice(start, start + at_once))
            yield torch.as_tensor(self._score(self.estimators_, part))

    def _read_rows(self, X: Any) -> Any:
        """Return rows as the base takes them."""
        check_is_fitted(self, "estimators_")
        is_raw = not self.encode and isinstance(X, pd.DataFrame)
        return _suit(X if is_raw else self._read_features(X), self.base_)

    # Files

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file of skops, without pickle, replacing one there.

        skops is installed by ``pip install 'comes[trees]'``.
        """
        check_is_fitted(self, "estimators_")
        skops_files.save(self, path)

    @classmethod
    def load(cls, path: str | Path, trusted: Sequence[str] = ()) -> Self:
        """Read a fitted model from a file that `save` wrote.

        Types that are neither harmless ones of numpy and scikit-learn nor of `comes` are refused,
        unless they are ``trusted``, by name: give those of a file that you know.
        """
        model: Self = skops_files.load(cls, path, trusted)
        return model


def correct(shares: Array, rates: AnswerRates, class_prior: Array) -> Array:
    """Return the probabilities of relevance, (n, q), that fit how often each answer is given.

    ``shares`` are of every `State`, (4, n, q). The derivative by eta falls from infinity to minus
    infinity, so that bisection finds its zero.
    """
    r = state_evidence(rates)[:, None]
    low, high = np.zeros(shares.shape[1:]), np.ones(shares.shape[1:])
    for _ in range(N_STEPS):
        eta = (low + high) / 2
        slope = (shares * r / (1 - np.abs(r) * np.abs((r > 0) - eta))).sum(axis=0)
        slope += PRIOR_WEIGHT * (class_prior / eta - (1 - class_prior) / (1 - eta))
        low, high = np.where(slope > 0, eta, low), np.where(slope > 0, high, eta)
    return (low + high) / 2


def _fit(base: Any, X: Any, y: npt.NDArray[Any], weight: Array | None) -> Any:
    """Return a clone of the base, fitted."""
    model, weights = clone(base), {}
    if weight is not None:
        prefix, last = getattr(model, "steps", [("", model)])[-1]  # of a pipeline
        if not has_fit_parameter(last, "sample_weight"):
            raise ComesError(
                f"{type(last).__name__} takes no sample_weight. Leave it out, or take another base."
            )
        weights[f"{prefix}__sample_weight".removeprefix("__")] = weight
    return model.fit(X, y, **weights)


def _suit(X: Any, base: Any) -> Any:
    """Return X dense if the base takes no sparse X; if sparse, with the indices that trees take."""
    if not sparse.issparse(X):
        return X
    if not get_tags(base).input_tags.sparse:
        return X.toarray()
    X = X.copy()
    if X.nnz <= np.iinfo(np.int32).max:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _probability_of_one(model: Any, X: Any) -> Array:
    """Return the probabilities, (n, q), of a classifier of several labels of 0 and 1."""
    by_label = model.predict_proba(X)
    if not isinstance(by_label, list):
        return np.asarray(by_label)
    return np.stack(
        [p @ (classes == 1) for p, classes in zip(by_label, model.classes_, strict=True)], axis=1
    )
