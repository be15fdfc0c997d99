"""The methods by name: which risk, on what scale, and what they must know first."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from comes.errors import ComesError
from comes.risks import (
    BceRisk,
    CcmnHammingRisk,
    CcmnRankingRisk,
    ComrankRisk,
    CtlRisk,
    CtlUnbiasedRisk,
    GdfRisk,
    HammingRisk,
    MlclRisk,
    RankingRisk,
)
from comes.training import Risk

REDUCTIONS = ("sum", "mean", "per_label")


@dataclass(frozen=True)
class Known:
    """What a risk may know beyond scores and candidates: given, or estimated before training."""

    class_prior: Tensor | None  # pi, (q,)
    flip_rate: Tensor | None  # rho, (q,)
    transition: Tensor | None  # T, (q, q)
    exclude_share: Tensor | None  # n_j / n of the data set, (q,); None for the batch's own
    flood_level: float  # beta
    corrected: bool = True  # False: the estimate without the correction that training needs

    def needed(self, name: Literal["class_prior", "flip_rate", "transition"]) -> Tensor:
        """Return what a risk cannot do without."""
        values: Tensor | None = getattr(self, name)
        assert values is not None, f"the method does not say that it needs the {name}"
        return values


class Method(NamedTuple):
    """A risk, and how the estimator treats it and the scores that come of it."""

    make_risk: Callable[[Known], Risk]
    needs: Literal["nothing", "class_prior", "flip_rate", "transition"] = "nothing"
    # What the risk is over labels. Scores of a risk over pairs have no natural zero.
    unit: Literal["mean", "sum", "pairs", "own"] = "mean"
    reduction: str = "sum"  # the default; docs/training.md has the evidence
    keeps_one_excluded: bool = False  # trains on one excluded label per row


# Variants of a method by name; the first is the default.
METHODS: Mapping[str, Mapping[str, Method]] = {
    "comes-hl": {
        "corrected": Method(
            lambda known: HammingRisk(
                known.needed("class_prior"),
                exclude_share=known.exclude_share,
                correction=torch.abs if known.corrected else torch.positive,
            ),
            needs="class_prior",
        )
    },
    "comes-rl": {
        "flooded": Method(
            lambda known: RankingRisk(
                known.needed("class_prior"),
                exclude_share=known.exclude_share,
                flood_level=known.flood_level if known.corrected else 0.0,
            ),
            needs="class_prior",
            unit="pairs",
            reduction="per_label",
        )
    },
    "bce": {"candidates": Method(lambda known: BceRisk())},
    "ccmn": {
        "hamming": Method(
            lambda known: CcmnHammingRisk(
                known.needed("flip_rate"),
                correction=torch.relu if known.corrected else torch.positive,
            ),
            needs="flip_rate",
        ),
        "ranking": Method(
            lambda known: CcmnRankingRisk(known.needed("flip_rate")),
            needs="flip_rate",
            unit="pairs",
            reduction="per_label",
        ),
    },
    "gdf": {
        "single": Method(lambda known: GdfRisk(), unit="sum", keeps_one_excluded=True),
        "all": Method(lambda known: GdfRisk(), unit="sum"),
        "unbiased": Method(lambda known: GdfRisk(unbiased=True), unit="sum"),
        "unbiased-single": Method(
            lambda known: GdfRisk(unbiased=True), unit="sum", keeps_one_excluded=True
        ),
    },
    "ctl": {
        "weighted": Method(lambda known: CtlRisk(), unit="sum"),
        "unbiased": Method(lambda known: CtlUnbiasedRisk(), unit="sum"),
        "unbiased-released": Method(
            lambda known: CtlUnbiasedRisk(released_weight=True), unit="sum"
        ),
    },
    "mlcl": {
        "probability": Method(
            lambda known: MlclRisk(known.needed("transition")),
            needs="transition",
            reduction="mean",
        ),
        "released": Method(
            lambda known: MlclRisk(known.needed("transition"), as_released=True),
            needs="transition",
            reduction="mean",
        ),
    },
    "comes-hl-unbiased": {
        "uncorrected": Method(
            lambda known: HammingRisk(
                known.needed("class_prior"),
                exclude_share=known.exclude_share,
                correction=torch.positive,
            ),
            needs="class_prior",
        )
    },
    "comrank": {
        "all": Method(lambda known: ComrankRisk(), unit="pairs", reduction="per_label"),
        "single": Method(
            lambda known: ComrankRisk(pair_loss=torch.exp),
            unit="pairs",
            reduction="per_label",
            keeps_one_excluded=True,
        ),
    },
}


def find_method(method: str | Risk, variant: str | None = None) -> Method:
    """Return the method of that name and variant, or one of the user's own risk."""
    if not isinstance(method, str):
        if not callable(method):
            raise ComesError(
                f"method must be a name or a function risk(scores, candidates); got {method!r}."
            )
        if variant is not None:
            raise ComesError(f"a risk of your own has no variants; got {variant!r}.")
        return Method(lambda known: copy.deepcopy(method), unit="own")  # a function is its own copy
    if method not in METHODS:
        raise ComesError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    variants = METHODS[method]
    if variant is None:
        return next(iter(variants.values()))
    if variant not in variants:
        raise ComesError(f"variant of {method} must be {' or '.join(variants)}; got {variant!r}.")
    return variants[variant]


def risk_scale(method: Method, reduction: str, q: int) -> float:
    """Return the factor that turns the method's risk into the reduction asked for."""
    if reduction not in (*REDUCTIONS, "auto"):
        raise ComesError(f"reduction must be auto, sum, mean or per_label; got {reduction!r}.")
    if method.unit == "own":
        if reduction != "auto":
            raise ComesError(
                f"a risk of your own is minimised as it is; reduction must be auto; got "
                f"{reduction!r}."
            )
        return 1.0
    if reduction == "auto":
        reduction = method.reduction
    if method.unit == "pairs":
        return 1 / {"sum": 1.0, "mean": max(1.0, q * (q - 1) / 2), "per_label": float(q)}[reduction]
    wanted, is_sum = reduction == "sum", method.unit == "sum"
    return 1.0 if wanted == is_sum else q if wanted else 1 / q
