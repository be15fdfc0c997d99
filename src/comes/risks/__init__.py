"""Risks: functions of scores and answers that training minimises. One file per estimator."""

from comes.risks.bce import BceRisk, bce_risk
from comes.risks.ccmn import (
    CcmnHammingRisk,
    CcmnRankingRisk,
    ccmn_hamming_risk,
    ccmn_ranking_risk,
)
from comes.risks.comrank import ComrankRisk, comrank_risk
from comes.risks.ctl import CtlRisk, CtlUnbiasedRisk, ctl_risk, ctl_unbiased_risk
from comes.risks.gdf import GdfRisk, gdf_risk
from comes.risks.hamming import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
)
from comes.risks.likelihood import LikelihoodRisk, likelihood_risk
from comes.risks.mlcl import MlclRisk, mlcl_risk
from comes.risks.pairs import choose_pair_sums
from comes.risks.ranking import (
    RankingRisk,
    RankingSums,
    flood_level_of_prior,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)
from comes.risks.said_pairs import SparseTargets

__all__ = [
    "BceRisk",
    "CcmnHammingRisk",
    "CcmnRankingRisk",
    "ComrankRisk",
    "CtlRisk",
    "CtlUnbiasedRisk",
    "GdfRisk",
    "HammingRisk",
    "HammingSums",
    "LikelihoodRisk",
    "MlclRisk",
    "RankingRisk",
    "RankingSums",
    "SparseTargets",
    "bce_risk",
    "ccmn_hamming_risk",
    "ccmn_ranking_risk",
    "choose_pair_sums",
    "comrank_risk",
    "ctl_risk",
    "ctl_unbiased_risk",
    "flood_level_of_prior",
    "gdf_risk",
    "hamming_risk",
    "hamming_risk_from_sums",
    "hamming_sums",
    "likelihood_risk",
    "mlcl_risk",
    "ranking_risk",
    "ranking_risk_from_sums",
    "ranking_sums",
]
