"""Quality, thresholds and model selection from candidates or answers: no true label is used."""

from comes.selection.calibration import check_reliability, fit_calibration, likelihood_losses
from comes.selection.checks import check_constant_rate, check_ranking_risk
from comes.selection.estimates import compare_metrics, estimate_metrics
from comes.selection.intervals import Estimate
from comes.selection.scorers import candidate_scorer
from comes.selection.thresholds import choose_thresholds

__all__ = [
    "Estimate",
    "candidate_scorer",
    "check_constant_rate",
    "check_ranking_risk",
    "check_reliability",
    "choose_thresholds",
    "compare_metrics",
    "estimate_metrics",
    "fit_calibration",
    "likelihood_losses",
]
