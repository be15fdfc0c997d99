"""Scorers for scikit-learn that judge a classifier by candidates or answers, not by true labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from comes.answers.convert import check_paired, match_names
from comes.errors import ComesError
from comes.selection.calibration import likelihood_losses
from comes.selection.estimates import estimate_metrics

Criterion = Literal["hamming", "ranking", "auc", "log_likelihood"]
LIKELIHOOD = "likelihood_loss"  # the mean of `likelihood_losses`
# The metric of a criterion, and the sign that makes greater better.
CRITERIA: dict[str, tuple[str, int]] = {
    "hamming": ("hamming_loss", -1),
    "ranking": ("ranking_risk", -1),
    "auc": ("macro_auc", 1),
    "log_likelihood": (LIKELIHOOD, -1),
}


def candidate_scorer(
    criterion: Criterion = "ranking", class_prior: npt.ArrayLike | None = None
) -> Callable[[Any, Any, Any], float]:
    """Return a scorer for GridSearchCV and similar, for which y is candidates or `Answers`.

    Parameters
    ----------
    criterion : {"hamming", "ranking", "auc", "log_likelihood"}
        Minus the estimated Hamming loss, minus the estimated ranking risk (up to a constant), the
        estimated macro AUC (see `estimate_metrics`), or the likelihood of the answers (see
        `likelihood_losses`). docs/guide/selection.md says when to use which.
    class_prior : array of shape (n_labels,), optional
        By default the classifier's own. Give one if the classifiers to compare may have estimated
        different ones, or have none.

    Returns
    -------
    scorer : callable (estimator, X, candidates) -> float

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from comes import CandidateClassifier
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> candidates = case_b(X > 0, exclude_rate=0.5)
    >>> search = GridSearchCV(
    ...     CandidateClassifier(class_prior=[0.5, 0.5], epochs=5, random_state=0),
    ...     {"learning_rate": [1e-6, 1e-2]},
    ...     scoring=candidate_scorer("ranking"),
    ...     cv=2,
    ... )
    >>> search.fit(X, candidates).best_params_
    {'learning_rate': 0.01}
    """
    if criterion not in CRITERIA:
        names = ", ".join(CRITERIA)
        raise ComesError(f"criterion must be one of {names}; got {criterion!r}.")
    return _CandidateScorer(*CRITERIA[criterion], class_prior)


@dataclass(frozen=True, eq=False)
class _CandidateScorer:
    """A scorer as scikit-learn calls it; unlike a closure, it can be sent to other processes."""

    metric: str
    sign: int
    class_prior: npt.ArrayLike | None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of a fitted estimator on rows with candidates y."""
        final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        prior = self.class_prior
        if prior is None:
            prior = getattr(final, "class_prior_", None)
        if prior is None:
            raise ComesError(
                f"{type(final).__name__} has no class_prior_: give candidate_scorer a class_prior."
            )
        check_paired(X=X, y=y)
        names = getattr(final, "label_names_", None)
        if hasattr(y, "columns") and names is not None:
            y = y.iloc[:, match_names([str(name) for name in y.columns], names)]
        scores = np.asarray(estimator.decision_function(X))
        if self.metric == LIKELIHOOD:
            return self.sign * float(likelihood_losses(scores, y, prior).mean())
        cut = getattr(final, "cut_scores", None)
        predictions = None if cut is None else np.asarray(cut(scores))
        estimates = estimate_metrics(scores, y, prior, predictions=predictions, n_resamples=0)
        return self.sign * estimates[self.metric].value
