"""Risks: functions of scores and answers that training minimises.

Every risk is a pure function, and a module that remembers its parameters. Scores that are NaN or
infinite are refused, except on a GPU and in compiled code, where reading a number would cost time.
"""

from comes.risks.baselines import (
    BceRisk,
    ComrankRisk,
    CtlRisk,
    GdfRisk,
    MlclRisk,
    bce_risk,
    comrank_risk,
    ctl_risk,
    gdf_risk,
    mlcl_risk,
)
from comes.risks.ccmn import (
    CcmnHammingRisk,
    CcmnRankingRisk,
    ccmn_hamming_risk,
    ccmn_ranking_risk,
)
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
    flood_level_of_prior,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)
from comes.risks.sparse import SparseTargets

__all__ = [
    "BceRisk",
    "CcmnHammingRisk",
    "CcmnRankingRisk",
    "ComrankRisk",
    "CtlRisk",
    "GdfRisk",
    "HammingRisk",
    "HammingSums",
    "LikelihoodRisk",
    "MarginLoss",
    "MlclRisk",
    "RankingRisk",
    "RankingSums",
    "SparseTargets",
    "bce_risk",
    "ccmn_hamming_risk",
    "ccmn_ranking_risk",
    "comrank_risk",
    "ctl_risk",
    "flood_level_of_prior",
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
