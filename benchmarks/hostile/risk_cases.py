"""Risks and losses: shapes, types, priors and rates that cannot be."""

from collections.abc import Callable

import numpy as np
import torch

from comes.risks import (
    HammingRisk,
    LikelihoodRisk,
    RankingRisk,
    bce_risk,
    ccmn_hamming_risk,
    ccmn_ranking_risk,
    comrank_risk,
    ctl_risk,
    gdf_risk,
    hamming_risk,
    likelihood_risk,
    logistic_loss,
    mlcl_risk,
    ranking_risk,
)
from comes.risks.baselines import BaselineRisk
from hostile.casework import CASES, Case, Place, handled

AREA = "risks"
SCORES = torch.tensor([[1.0, -1.0, 0.5], [0.2, 0.3, -2.0], [0.0, 1.0, 1.0], [2.0, -0.5, 0.1]])
POSSIBLE = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=torch.bool)
PRIOR = torch.tensor([0.3, 0.4, 0.2])
CODES = torch.tensor([[0, 1, 2], [1, 0, 3], [2, 1, 0], [1, 1, 1]], dtype=torch.int8)

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "scores of another shape": (lambda: hamming_risk(SCORES[:, :2], POSSIBLE, PRIOR), r"shape"),
    "scores as a vector": (lambda: bce_risk(SCORES[0], POSSIBLE[0]), r"shape|matrix|\(n, q\)|2"),
    "candidates as numbers": (lambda: hamming_risk(SCORES, POSSIBLE.float(), PRIOR), r"bool"),
    "a prior of 23": (lambda: hamming_risk(SCORES, POSSIBLE, PRIOR * 100), r"class_prior.*1"),
    "a prior of 1.3": (lambda: ranking_risk(SCORES, POSSIBLE, PRIOR + 1), r"class_prior.*1"),
    "a prior below zero": (lambda: hamming_risk(SCORES, POSSIBLE, -PRIOR), r"class_prior"),
    "a prior that is no number": (
        lambda: hamming_risk(SCORES, POSSIBLE, PRIOR * np.nan),
        r"class_prior",
    ),
    "a prior of fewer labels": (
        lambda: hamming_risk(SCORES, POSSIBLE, PRIOR[:2]),
        r"class_prior|shape",
    ),
    "a prior as a column": (
        lambda: ranking_risk(SCORES, POSSIBLE, PRIOR[:, None]),
        r"class_prior|shape",
    ),
    "a module with a prior of 2": (lambda: HammingRisk(PRIOR * 10), r"class_prior"),
    "a module with a prior of words": (lambda: RankingRisk(["a", "b"]), r"class_prior"),
    "a flood level below zero": (lambda: RankingRisk(PRIOR, flood_level=-1.0), r"flood"),
    "a flood level that is a word": (lambda: RankingRisk(PRIOR, flood_level="high"), r"flood"),
    "a flip rate of one": (
        lambda: ccmn_hamming_risk(SCORES, POSSIBLE, torch.ones(3)),
        r"flip_rate",
    ),
    "a flip rate above one": (lambda: ccmn_ranking_risk(SCORES, POSSIBLE, PRIOR * 9), r"flip_rate"),
    "a transition that is not square": (
        lambda: mlcl_risk(SCORES, POSSIBLE, torch.ones(3, 2)),
        r"transition",
    ),
    "a transition above one": (
        lambda: mlcl_risk(SCORES, POSSIBLE, torch.full((3, 3), 2.0)),
        r"transition",
    ),
    "a module with an nan transition": (
        lambda: BaselineRisk(mlcl_risk, transition=torch.full((3, 3), torch.nan))(SCORES, POSSIBLE),
        r"transition",
    ),
    "answers that are no state": (
        lambda: likelihood_risk(SCORES, CODES + 4, PRIOR),
        r"state|0.*3|code",
    ),
    "a rate of no above one": (
        lambda: likelihood_risk(SCORES, CODES, PRIOR * 9, PRIOR),
        r"no_rate",
    ),
    "a rate of yes that is no number": (
        lambda: likelihood_risk(SCORES, CODES, PRIOR, PRIOR * np.nan),
        r"yes_rate",
    ),
    "mistakes half of the time": (
        lambda: likelihood_risk(SCORES, CODES, PRIOR, PRIOR, mistake_rate=0.6),
        r"mistake_rate",
    ),
    "a module with rates of two lengths": (
        lambda: LikelihoodRisk(PRIOR, PRIOR[:2]),
        r"yes_rate|shape",
    ),
    "weights of fewer rows": (
        lambda: hamming_risk(SCORES, POSSIBLE, PRIOR, sample_weight=torch.ones(2)),
        r"sample_weight",
    ),
    "weights below zero": (
        lambda: bce_risk(SCORES, POSSIBLE, sample_weight=-torch.ones(4)),
        r"sample_weight",
    ),
    "weights of labels below zero": (
        lambda: bce_risk(SCORES, POSSIBLE, label_weight=-torch.ones(3)),
        r"label_weight",
    ),
    "a loss that is a word": (lambda: hamming_risk(SCORES, POSSIBLE, PRIOR, loss="hinge"), r"loss"),
    "a pair loss that is a word": (
        lambda: comrank_risk(SCORES, POSSIBLE, pair_loss="softplus"),
        r"loss",
    ),
    "a loss of neither 1 nor 0": (lambda: logistic_loss(SCORES, 2), r"-1|0|1"),
    "an exclude share of fewer labels": (
        lambda: hamming_risk(SCORES, POSSIBLE, PRIOR, exclude_share=PRIOR[:1]),
        r"exclude_share",
    ),
    "an exclude share above one": (
        lambda: hamming_risk(SCORES, POSSIBLE, PRIOR, exclude_share=PRIOR * 9),
        r"exclude_share",
    ),
}
for _name, (_call, _words) in CALLS.items():
    CASES.append(Case(AREA, _name, lambda _, call=_call: call(), "refused", _words))


@handled(AREA)
def _priors_as_a_numpy_array(_: Place) -> object:
    expected = HammingRisk(PRIOR)(SCORES, POSSIBLE)
    return torch.allclose(HammingRisk(PRIOR.numpy())(SCORES, POSSIBLE), expected)


@handled(AREA)
def _nothing_is_excluded(_: Place) -> object:
    scores = SCORES.clone().requires_grad_()
    for risk in (HammingRisk(PRIOR), RankingRisk(PRIOR), gdf_risk, ctl_risk, comrank_risk):
        value = risk(scores, torch.ones_like(POSSIBLE))
        (gradient,) = torch.autograd.grad(value, scores)
        if not (torch.isfinite(value) and torch.isfinite(gradient).all()):
            return False
    return True


@handled(AREA)
def _scores_of_a_thousand(_: Place) -> object:
    scores = (SCORES * 1000).requires_grad_()
    values = [
        hamming_risk(scores, POSSIBLE, PRIOR),
        ranking_risk(scores, POSSIBLE, PRIOR),
        likelihood_risk(scores, CODES, PRIOR, PRIOR),
        bce_risk(scores, POSSIBLE),
    ]
    gradients = [torch.autograd.grad(value, scores)[0] for value in values]
    return all(torch.isfinite(g).all() for g in gradients)


@handled(AREA)
def _half_precision(_: Place) -> object:
    half = hamming_risk(SCORES.bfloat16(), POSSIBLE, PRIOR)
    return bool(abs(float(half) - float(hamming_risk(SCORES, POSSIBLE, PRIOR))) < 0.02)


@handled(AREA)
def _rates_of_one_everywhere(_: Place) -> object:
    scores = SCORES.clone().requires_grad_()
    ones = torch.ones(3)
    value = likelihood_risk(scores, CODES.clamp(max=2), ones, ones)
    (gradient,) = torch.autograd.grad(value, scores)
    return bool(torch.isfinite(gradient).all())


@handled(AREA)
def _scores_and_candidates_as_arrays(_: Place) -> object:
    expected = hamming_risk(SCORES, POSSIBLE, PRIOR)
    return torch.allclose(hamming_risk(SCORES.numpy(), POSSIBLE.numpy(), PRIOR.numpy()), expected)


@handled(AREA)
def _scores_as_integers(_: Place) -> object:
    whole = SCORES.round()
    return torch.allclose(bce_risk(whole.long(), POSSIBLE), bce_risk(whole, POSSIBLE))


@handled(AREA)
def _a_batch_without_rows(_: Place) -> object:
    return float(hamming_risk(SCORES[:0], POSSIBLE[:0], PRIOR)) == 0


@handled(AREA)
def _a_rate_of_no_of_nothing(_: Place) -> object:
    scores = SCORES.clone().requires_grad_()
    value = likelihood_risk(scores, CODES.where(CODES != 1, 0), PRIOR * 0, PRIOR)
    (gradient,) = torch.autograd.grad(value, scores)
    return bool(torch.isfinite(gradient).all() and torch.isfinite(value))
