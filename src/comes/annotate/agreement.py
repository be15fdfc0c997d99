"""How often two people who are asked the same question agree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

DRAWS = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Agreement:
    """Agreement over pairs of answers; kappa is Fleiss', which does not order the two people."""

    n_pairs: int
    share: float  # of pairs that agree; NaN without pairs
    kappa: float  # NaN where all answers are the same
    lower: float  # bounds of kappa
    upper: float


def measure_agreement(counts: npt.ArrayLike) -> Agreement:
    """Return the agreement, from how many pairs are both no, different, and both possible.

    The interval is that of the posterior under Jeffreys' prior, which also holds for few pairs.

    Examples
    --------
    >>> agreement = measure_agreement([40, 10, 50])
    >>> agreement.share, round(agreement.kappa, 3)
    (0.9, 0.798)
    """
    table = np.asarray(counts, dtype=float)
    n = int(table.sum())
    if not n:
        return Agreement(0, np.nan, np.nan, np.nan, np.nan)
    drawn = np.random.default_rng(0).dirichlet(table + 0.5, DRAWS)
    tail = (1 - CONFIDENCE) / 2
    lower, upper = np.quantile(_compute_kappa(drawn), [tail, 1 - tail])
    share, kappa = (table[0] + table[2]) / n, _compute_kappa(table / n)
    return Agreement(n, float(share), float(kappa), float(lower), float(upper))


def _compute_kappa(shares: npt.NDArray[np.float64]) -> Any:
    """Return Fleiss' kappa of shares of pairs (both no, different, both possible)."""
    observed = shares[..., 0] + shares[..., 2]
    no = shares[..., 0] + shares[..., 1] / 2
    expected = no**2 + (1 - no) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
