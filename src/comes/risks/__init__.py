"""Risks: functions of scores and answers that training minimises.

Every risk is a pure function; the four that most loops need are also modules that remember their
parameters. Scores that are NaN or infinite are refused, except on a GPU and in compiled code, where
reading a number would cost time.
"""

from comes.risks.baselines import BaselineRisk as BaselineRisk  # for comes.methods: not public
from comes.risks.baselines import BceRisk, bce_risk, comrank_risk, ctl_risk, gdf_risk, mlcl_risk
from comes.risks.ccmn import ccmn_hamming_risk, ccmn_ranking_risk
from comes.risks.hamming import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
)
from comes.risks.likelihood import LikelihoodRisk, likelihood_risk
from comes.risks.losses import (
    MarginLoss,
    hinge_loss,
    logistic_loss,
    ramp_loss,
    sigmoid_loss,
    squared_loss,
    unhinged_loss,
)
from comes.risks.ranking import (
    RankingRisk,
    RankingSums,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)
from comes.risks.sparse import SparseTargets

__all__ = [
    "BceRisk",
    "HammingRisk",
    "HammingSums",
    "LikelihoodRisk",
    "MarginLoss",
    "RankingRisk",
    "RankingSums",
    "SparseTargets",
    "bce_risk",
    "ccmn_hamming_risk",
    "ccmn_ranking_risk",
    "comrank_risk",
    "ctl_risk",
    "gdf_risk",
    "hamming_risk",
    "hamming_risk_from_sums",
    "hamming_sums",
    "hinge_loss",
    "likelihood_risk",
    "logistic_loss",
    "mlcl_risk",
    "ramp_loss",
    "ranking_risk",
    "ranking_risk_from_sums",
    "ranking_sums",
    "sigmoid_loss",
    "squared_loss",
    "unhinged_loss",
]
