"""Scores of rows by a fitted classifier, and what they are worth."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from comes.estimator.inputs import as_feature_matrix, check_same_order
from comes.estimator.predictions import PredictsFromScores
from comes.estimator.reading_answers import read_answers
from comes.estimator.row_risks import compute_risk
from comes.metrics import average_precision
from comes.selection.thresholds import recalibrate_to_prior
from comes.training import predict_scores
from comes.training.rows import choose_device, to_device

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

FloatArray = npt.NDArray[np.floating]


class ScoresRows(PredictsFromScores):
    """What a fitted network says about rows of features."""

    device: str
    module_: nn.Module
    scaling_: Any  # a Scaling

    def decision_function(self, X: Any) -> Any:
        """Return raw scores, higher for more relevant: one array of shape (n_samples, n_labels)."""
        return self._as_output(X, self._compute_scores(X))

    def _compute_scores(self, X: Any) -> FloatArray:
        """Return raw scores, always as an array."""
        return self._bend(self._trained_scores(X))

    def _bend(self, scores: FloatArray) -> FloatArray:
        """Recalibrate the scores of a model of 1.0.0 with rates by instance; keep others."""
        power = self.score_power_
        return scores if power is None else recalibrate_to_prior(scores, power)

    def _trained_scores(self, X: Any) -> FloatArray:
        """Return the scores whose risk training minimised."""
        check_is_fitted(self)
        return self._score_matrix(as_feature_matrix(self, X))

    def _score_matrix(self, X: Any) -> FloatArray:
        """Return the scores of a matrix of features."""
        return np.asarray(self._score_scaled(self.scaling_(X)).cpu().numpy())

    def _score_scaled(self, X: Any) -> Tensor:
        """Return the scores of scaled features, on the device of the network."""
        device = choose_device(self.device)
        return predict_scores(self.module_.to(device), to_device(X, device))

    def _stream_scores(self, X: Any, at_once: int) -> Iterator[Tensor]:
        """Give scores of `decision_function` for so many rows at a time, where they are made."""
        scaled = self.scaling_(as_feature_matrix(self, X))
        for start in range(0, scaled.shape[0], at_once):
            scores = self._score_scaled(scaled[start : start + at_once])
            if self.score_power_ is not None:
                scores = torch.as_tensor(self._bend(scores.cpu().numpy()))
            yield scores

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """Return the average precision against true labels, in the ``pml`` convention.

        Columns of a DataFrame y are matched by name. Sample weights are not supported.
        """
        check_same_order(X, y)
        relevant = self._read_truth(y, sample_weight)
        return average_precision(self._compute_scores(X), relevant)

    def risk(self, X: Any, candidates: Any, *, corrected: bool = False) -> float:
        """Return the estimate of the method's risk on other rows with candidates or answers.

        Without a true label: lower is better, among classifiers of one method. What training needs
        beside it (absolute values, clamps, the flood, the pull to the class prior) is left out,
        unless ``corrected``: a clamp at 0 would make classifiers look alike.
        """
        check_same_order(X, candidates)
        scores = torch.as_tensor(self._trained_scores(X))
        answers = read_answers(candidates).align_labels(self.label_names_)
        return compute_risk(cast("CandidateClassifier", self), scores, answers, corrected=corrected)
