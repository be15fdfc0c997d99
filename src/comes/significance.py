"""Whether a method is better than another: on repeats of one data set, and over data sets.

`LEVEL` is the level of significance of all tests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "LEVEL",
    "PairedTest",
    "Ranks",
    "compare_paired",
    "holm",
    "rank_methods",
    "standard_deviation",
]

LEVEL = 0.05
ROUNDING = 1e-9  # differences of metrics that are stored with six digits
MIN_REPEATS = 5  # with fewer, a t-test says little, and spreads of near 0 come by chance


def standard_deviation(values: npt.NDArray[np.float64]) -> float:
    """Return the spread over repeats, dividing by their number less one; 0 for a single one.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 2.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class PairedTest:
    """By how much two methods differ on the same repeats, and how surely.

    NaN with fewer than five repeats, or a difference that is the same in all of them.

    Examples
    --------
    >>> PairedTest(difference=0.1, p=0.01, p_corrected=0.04).p < LEVEL
    True
    """

    difference: float  # mean of first minus second
    p: float  # paired t-test, as in the paper
    p_corrected: float  # of Nadeau and Bengio: folds share training rows, so they vary less


def compare_paired(
    first: npt.ArrayLike, second: npt.ArrayLike, test_over_train: float
) -> PairedTest:
    """Compare two methods by the values of a metric on the same repeats, two-sided.

    A test needs at least five repeats and some variance: fewer repeats, and a difference that is
    the same in every repeat (and not zero), give no p at all. Values that are equal throughout
    give p = 1.

    Parameters
    ----------
    first, second : array of shape (n_repeats,)
    test_over_train : float
        Rows tested on over rows trained on: the corrected test has variance
        (1 / n_repeats + test_over_train) s² in the place of s² / n_repeats. NaN where repeats draw
        no rows, which is what the correction is for; there is no corrected p then.

    Examples
    --------
    >>> first, second = [0.8, 0.9, 0.7, 0.8, 0.7], [0.7, 0.7, 0.6, 0.6, 0.7]
    >>> test = compare_paired(first, second, test_over_train=1 / 4)
    >>> print(f"{test.difference:.3f} {test.p:.3f} {test.p_corrected:.3f}")
    0.120 0.033 0.099
    """
    differences = np.subtract(first, second, dtype=float)
    k, mean = len(differences), float(differences.mean())
    if k < MIN_REPEATS:
        return PairedTest(mean, math.nan, math.nan)
    if np.ptp(differences) <= ROUNDING:
        p = 1.0 if abs(mean) <= ROUNDING else math.nan
        return PairedTest(mean, p, math.nan if math.isnan(test_over_train) else p)
    errors = differences.std(ddof=1) * np.sqrt([1 / k, 1 / k + test_over_train])
    plain, corrected = 2 * stats.t.sf(abs(mean) / errors, df=k - 1)
    return PairedTest(mean, float(plain), float(corrected))


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p values adjusted for multiple tests by Holm's method; NaN is not counted.

    Examples
    --------
    >>> [float(p) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full_like(p, np.nan)
    order = np.argsort(p)[: np.isfinite(p).sum()]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


@dataclass(frozen=True)
class Ranks:
    """Methods ranked on every data set, 1 for the best, and the mean of that.

    Examples
    --------
    >>> ranks = Ranks(["a", "b", "c"], [1.0, 2.2, 2.8], 5, 0.02, critical_difference=1.5)
    >>> ranks.rank_of("b"), ranks.alike()
    (2.2, [(0, 1), (1, 2)])
    """

    methods: list[str]  # best first
    mean_rank: list[float]
    n_data: int
    friedman_p: float  # of "all methods are alike"
    critical_difference: float  # of Nemenyi, at the level 0.05

    def rank_of(self, method: str) -> float:
        """Return the mean rank of a method."""
        return self.mean_rank[self.methods.index(method)]

    def alike(self) -> list[tuple[int, int]]:
        """Return maximal runs of methods, first to last, within the critical difference."""
        runs: list[tuple[int, int]] = []
        for first, rank in enumerate(self.mean_rank):
            last = max(
                k for k, r in enumerate(self.mean_rank) if r - rank <= self.critical_difference
            )
            if last > first and not (runs and runs[-1][1] >= last):
                runs.append((first, last))
        return runs


def rank_methods(
    methods: Sequence[str], means: npt.NDArray[np.float64], *, higher_is_better: bool
) -> Ranks | None:
    """Rank methods over data sets; None for fewer than two methods or two data sets.

    Parameters
    ----------
    methods : list of str
    means : array of shape (n_methods, n_data)
        A metric; data sets that miss a method are left out.
    higher_is_better : bool

    Examples
    --------
    >>> ranks = rank_methods(["a", "b"], np.array([[0.9, 0.8], [0.7, 0.6]]), higher_is_better=True)
    >>> ranks.methods, ranks.mean_rank
    (['a', 'b'], [1.0, 2.0])
    """
    complete = means[:, np.isfinite(means).all(axis=0)]
    k, n = complete.shape
    if k < 2 or n < 2:
        return None
    ranks = stats.rankdata(-complete if higher_is_better else complete, axis=0)  # (k, n)
    order = ranks.mean(axis=1).argsort(kind="stable")
    # Friedman's test; with ties the spread is less than n k (k² - 1) / 12, and 0 if all are tied.
    spread = ((ranks - (k + 1) / 2) ** 2).sum()
    between = (k - 1) * ((ranks.sum(axis=1) - n * (k + 1) / 2) ** 2).sum()
    return Ranks(
        methods=[methods[row] for row in order],
        mean_rank=[float(ranks[row].mean()) for row in order],
        n_data=n,
        friedman_p=float(stats.chi2.sf(between / spread, df=k - 1)) if spread else 1.0,
        critical_difference=_find_nemenyi_q(k) * math.sqrt(k * (k + 1) / (6 * n)),
    )


@cache
def _find_nemenyi_q(k: int) -> float:
    """Return the critical value of Nemenyi's test of k methods."""
    return float(stats.studentized_range.ppf(1 - LEVEL, k, np.inf) / math.sqrt(2))
