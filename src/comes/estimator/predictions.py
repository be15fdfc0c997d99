"""What both classifiers do with their scores."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from comes.selection import cut_by_row

FloatArray = npt.NDArray[np.floating]


class PredictsFromScores:
    """Labels and probabilities of a classifier that has scores, a level and thresholds."""

    threshold: str
    threshold_: FloatArray
    score_offset_: FloatArray

    def decision_function(self, X: Any) -> FloatArray:
        """Return raw scores, higher for more relevant."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return 1 for relevant, 0 for irrelevant: one array of shape (n_samples, n_labels)."""
        return self.cut_scores(self.decision_function(X))

    def cut_scores(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the predictions that belong to scores of `decision_function`."""
        check_is_fitted(self)
        if self.threshold == "minmax":
            return cut_by_row(scores).astype(np.int64)
        return (np.asarray(scores) > self.threshold_).astype(np.int64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of relevance: one array of shape (n_samples, n_labels).

        The sigmoid of the score above `score_offset_`. For COMES-HL this is what the risk
        estimates. For risks over pairs only the mean over training rows is fitted, to the class
        prior: the risk itself says nothing of the level of the scores. For BCE it is the
        probability that the label is a candidate.
        """
        return np.asarray(expit(self.decision_function(X) - self.score_offset_))
