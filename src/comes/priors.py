"""How often each label is relevant, estimated before training from X and candidates.

Label j is excluded where it is irrelevant, with probability p_j (the *exclude rate*):
P(j excluded) = (1 - pi_j) p_j. The left side is counted, so an estimate of p_j gives one of the
*class prior* pi_j. Among rows that are surely irrelevant to j, the share that excludes j is p_j;
`estimate_class_prior` takes as such the rows that a classifier finds most like the excluding ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from comes.errors import ComesError
from comes.labels import BoolMatrix, as_candidates
from comes.models import linear
from comes.risks import BceRisk
from comes.training import make_optimizer, predict_scores, seeded, to_device, train

# Rows counted as surely irrelevant to a label, of all rows; and how few rows are too few to ask.
SURELY_IRRELEVANT_SHARE = 0.25
MIN_ROWS = 20
N_FOLDS = 3


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Estimates per label; ``np.asarray`` gives the class prior."""

    class_prior: npt.NDArray[np.float64]  # pi_j, (q,)
    exclude_rate: npt.NDArray[np.float64]  # p_j, (q,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.class_prior, dtype=dtype)


def count_class_prior(relevant: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the class prior counted on true labels, as the paper's experiments assume it known.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)

    Returns
    -------
    class_prior : array of shape (n_labels,)

    Examples
    --------
    >>> count_class_prior([[1, 0], [1, 1]])
    array([1. , 0.5])
    """
    return np.asarray(as_candidates(relevant, "relevant labels").mean(axis=0))


def estimate_class_prior(
    X: Any, candidates: npt.ArrayLike, random_state: int = 0
) -> ClassPriorEstimate:
    """Estimate how often each label is relevant, from candidate labels alone.

    A linear classifier of the excluded labels, one for all labels, scores every row out of fold.
    Of the quarter of the rows that looks most like label j's excluding rows, the share that
    excludes j is taken as the exclude rate p_j; the class prior is 1 - P(j excluded) / p_j. It is
    too low where label j is relevant to some of that quarter. A label that no row excludes gets
    prior 1 (nothing can be known), one that every row excludes prior 0. With fewer than 20 rows
    the estimate is the upper bound, the share of rows in which the label is a candidate.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
        True where the label is still possible.
    random_state : int

    Returns
    -------
    estimate : ClassPriorEstimate
        With `class_prior` and `exclude_rate`, each of shape (n_labels,).

    References
    ----------
    Appendix "Class Prior Estimation" of the COMES paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> relevant = X > 1
    >>> candidates = relevant | (rng.random(X.shape) < 0.5)
    >>> bool(abs(estimate_class_prior(X, candidates).class_prior - relevant.mean(0)).max() < 0.1)
    True
    """
    candidates = as_candidates(candidates)
    if X.shape[0] != len(candidates):
        raise ComesError(
            f"X and candidates must have the same rows; got {X.shape[0]} and {len(candidates)}."
        )
    excluded = ~candidates
    n = len(excluded)
    excluded_share = excluded.mean(axis=0)
    if n < MIN_ROWS:
        exclude_rate = np.ones_like(excluded_share)
    else:
        likely_excluded = -_scores_out_of_fold(X, candidates, random_state)
        n_sure = int(np.ceil(SURELY_IRRELEVANT_SHARE * n))
        sure = np.argpartition(-likely_excluded, n_sure - 1, axis=0)[:n_sure]
        exclude_rate = np.take_along_axis(excluded, sure, axis=0).mean(axis=0)
    # At least the share over all rows, or the prior would be negative.
    exclude_rate = np.maximum(exclude_rate, excluded_share)
    return ClassPriorEstimate(
        class_prior=1
        - np.divide(
            excluded_share,
            exclude_rate,
            out=np.zeros_like(excluded_share),
            where=excluded_share > 0,
        ),
        exclude_rate=exclude_rate,
    )


def _scores_out_of_fold(X: Any, candidates: BoolMatrix, seed: int) -> npt.NDArray[np.float32]:
    """Return scores of candidates by linear models that have not seen the row, (n, q)."""
    if sparse.issparse(X):
        X = MaxAbsScaler().fit_transform(X)
    else:
        X = StandardScaler().fit_transform(np.asarray(X, dtype=np.float32))
    device = torch.device("cpu")
    targets = torch.as_tensor(candidates)
    scores = np.empty(candidates.shape, dtype=np.float32)
    for seen, unseen in KFold(N_FOLDS, shuffle=True, random_state=seed).split(candidates):
        with seeded(seed, device):
            model = linear(X.shape[1], candidates.shape[1])
        train(
            model,
            to_device(X[seen], device),
            targets[torch.as_tensor(seen)],
            BceRisk(),
            optimizer=make_optimizer("adam", learning_rate=0.01),
            epochs=20,
            risk_scale=candidates.shape[1],
            seed=seed,
            progress=False,
            return_on_interrupt=False,
        )
        scores[unseen] = predict_scores(model, to_device(X[unseen], device)).numpy()
    return scores
