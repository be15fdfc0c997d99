"""Whether knowing how often labels are relevant would help a fit most, by what it knows itself.

Estimated class priors are off by about their standard errors. Where that is much, labels stand in
the wrong order within a row. How much it costs is simulated: the probabilities of the model are
moved to other class priors, as far away as the errors are large, labels are drawn from them, and
the average precision of the scores is compared with that of the moved ones.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from comes.estimator import CandidateClassifier
from comes.metrics import average_precision

WORTH_SAYING = 0.01  # average precision; experiments/fit_checks.py compares it with the truth
N_ROWS, N_DRAWS = 400, 8
SMALLEST_PRIOR = 1e-3
ADVICE = (
    "Knowing how often each label is relevant may help most: write a table with 'comes priors' "
    "(the same file and label options, and -o priors.csv), fill in what you know in its column "
    "known_prior, and pass --priors priors.csv. Or pass a few hundred rows with all their true "
    "labels: --clean FILE."
)


def advise(classifier: CandidateClassifier, X: Any, seed: int = 0) -> str | None:
    """Return what may help most, or None if something else is wrong or class priors are known."""
    if classifier.history_.warnings:
        return None
    return ADVICE if measure_prior_cost(classifier, X, seed) > WORTH_SAYING else None


def measure_prior_cost(classifier: CandidateClassifier, X: Any, seed: int = 0) -> float:
    """Return the average precision that errors of the class priors may cost, as simulated."""
    prior, error = classifier.class_prior_, classifier.class_prior_error_
    if prior is None or error is None or len(prior) < 2:
        return 0.0
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[:N_ROWS])
    some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    scores = np.asarray(classifier.decision_function(some)) - classifier.score_offset_
    return float(np.mean([_draw_cost(scores, prior, error, rng) for _ in range(N_DRAWS)]))


def _draw_cost(
    scores: npt.NDArray[np.floating],
    prior: npt.NDArray[np.float64],
    error: npt.NDArray[np.float64],
    rng: np.random.Generator,
) -> float:
    """Return what scores lose if the class priors are off by one draw of their errors."""
    unknown = np.sqrt(prior * (1 - prior))  # a label whose error is not known may be anything
    drawn = prior + np.where(np.isnan(error), unknown, error) * rng.normal(size=len(prior))
    levels = (logit(np.clip(p, SMALLEST_PRIOR, 1 - SMALLEST_PRIOR)) for p in (drawn, prior))
    right = scores + np.subtract(*levels)
    relevant = rng.random(scores.shape) < expit(right)
    return average_precision(right, relevant) - average_precision(scores, relevant)
