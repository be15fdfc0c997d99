"""The methods by name: which risk, on what scale, and what they must know first."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from comes.errors import ComesError
from comes.risks import BceRisk, HammingRisk, RankingRisk

REDUCTIONS = ("sum", "mean", "per_label")


class Method(NamedTuple):
    """A risk, and how the estimator treats the scores that come of it."""

    # (class_prior, exclude_share or None, flood_level) -> risk
    make_risk: Callable[[Tensor, Tensor | None, float], nn.Module]
    needs_class_prior: bool
    ranks: bool  # a sum over pairs of labels, whose scores have no natural zero
    reduction: str  # the default; docs/training.md has the evidence


METHODS = {
    "comes-hl": Method(
        lambda prior, share, _: HammingRisk(prior, exclude_share=share),
        needs_class_prior=True,
        ranks=False,
        reduction="sum",
    ),
    "comes-rl": Method(
        lambda prior, share, flood: RankingRisk(prior, exclude_share=share, flood_level=flood),
        needs_class_prior=True,
        ranks=True,
        reduction="per_label",
    ),
    "bce": Method(
        lambda prior, share, _: BceRisk(),
        needs_class_prior=False,
        ranks=False,
        reduction="sum",
    ),
}


def find_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        raise ComesError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    return METHODS[name]


def risk_scale(method: Method, reduction: str, q: int) -> float:
    """Return the factor that turns the method's risk into the reduction asked for.

    A first-order risk is a mean over labels, a ranking risk a sum over pairs.
    """
    if reduction not in (*REDUCTIONS, "auto"):
        raise ComesError(f"reduction must be auto, sum, mean or per_label; got {reduction!r}.")
    if reduction == "auto":
        reduction = method.reduction
    if not method.ranks:
        return q if reduction == "sum" else 1.0
    divisor = {"sum": 1.0, "mean": max(1.0, q * (q - 1) / 2), "per_label": float(q)}[reduction]
    return 1 / divisor
