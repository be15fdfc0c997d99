"""Counts of answers about many labels, drawn from class priors and rates that are known."""

import numpy as np
import numpy.typing as npt

from comes.priors.pooled import AnswerCounts

FloatArray = npt.NDArray[np.float64]


def draw_priors(q: int, seed: int = 0) -> FloatArray:
    """Return class priors of which most are small, as in sets with many labels."""
    return np.random.default_rng(seed).beta(0.2, 8, size=q)


def count_candidates(
    prior: FloatArray, n: int, rate: float | FloatArray, seed: int
) -> AnswerCounts:
    """Return how many of n rows exclude each label."""
    rng = np.random.default_rng(seed)
    no = rng.binomial(n // 2 - rng.binomial(n // 2, prior, size=(2, len(prior))), rate)
    return AnswerCounts(np.array([n // 2] * 2), no, 0 * no, 0 * no)


def count_answers(
    prior: FloatArray, asked: int, a: float | FloatArray, b: float | FloatArray, seed: int
) -> AnswerCounts:
    """Return the counts of answers, where each label is asked about so often."""
    rng = np.random.default_rng(seed)
    relevant = rng.binomial(asked // 2, prior, size=(2, len(prior)))
    no, yes = rng.binomial(asked // 2 - relevant, a), rng.binomial(relevant, b)
    return AnswerCounts(np.array([10**6] * 2), no, yes, asked // 2 - no - yes)


def is_near(values: list[float], truth: float) -> bool:
    """Return whether the mean is within four of its standard errors of the truth."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return bool(abs(np.mean(values) - truth) < 4 * error)
