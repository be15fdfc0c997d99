"""Quality, thresholds and model selection from candidates alone: nothing here sees a true label.

`CRITERIA` has the criteria of `candidate_scorer` by name, each with its metric and the sign that
makes greater better; `Criterion` is the type of the names. `OVER_LABELS` has, for each metric over
labels, the metric of one label that it is the mean of (of the ranking risk: the sum).
"""

from comes.selection.assumption import AssumptionCheck, check_constant_rate
from comes.selection.calibration import Calibration, fit_calibration
from comes.selection.estimates import MetricEstimates, compare_metrics, estimate_metrics
from comes.selection.intervals import OVER_LABELS, Estimate
from comes.selection.offsets import (
    exponent_matching_prior,
    offset_matching_prior,
    recalibrate_to_prior,
)
from comes.selection.prior_draws import prior_error
from comes.selection.ranking_floor import RankingFloor, check_ranking_risk
from comes.selection.reliability import Reliability, check_reliability
from comes.selection.said_likelihood import find_rates, likelihood_losses
from comes.selection.scorers import CRITERIA, Criterion, candidate_scorer
from comes.selection.thresholds import choose_thresholds, cut_by_row

__all__ = [
    "CRITERIA",
    "OVER_LABELS",
    "AssumptionCheck",
    "Calibration",
    "Criterion",
    "Estimate",
    "MetricEstimates",
    "RankingFloor",
    "Reliability",
    "candidate_scorer",
    "check_constant_rate",
    "check_ranking_risk",
    "check_reliability",
    "choose_thresholds",
    "compare_metrics",
    "cut_by_row",
    "estimate_metrics",
    "exponent_matching_prior",
    "find_rates",
    "fit_calibration",
    "likelihood_losses",
    "offset_matching_prior",
    "prior_error",
    "recalibrate_to_prior",
]
