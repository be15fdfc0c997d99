"""Risks: scores and candidates in, one number to minimise out. One file per estimator."""

from comes.risks.bce import BceRisk, bce_risk
from comes.risks.hamming import (
    HammingRisk,
    HammingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
)
from comes.risks.ranking import (
    RankingRisk,
    RankingSums,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)

__all__ = [
    "BceRisk",
    "HammingRisk",
    "HammingSums",
    "RankingRisk",
    "RankingSums",
    "bce_risk",
    "hamming_risk",
    "hamming_risk_from_sums",
    "hamming_sums",
    "ranking_risk",
    "ranking_risk_from_sums",
    "ranking_sums",
]
