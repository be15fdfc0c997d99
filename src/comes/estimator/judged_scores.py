"""Scores of rows that training did not see, judged on what was said about them."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comes.estimator.contests import Contest, Prior, Said
from comes.estimator.cross_fitting import CrossFitted, Rows
from comes.selection import choose_thresholds, compare_metrics, estimate_metrics, likelihood_losses
from comes.selection.scorers import CRITERIA

FloatArray = npt.NDArray[np.float64]
METRICS = tuple(metric for metric, _ in CRITERIA.values())
N_RESAMPLES = 400
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class JudgedScores:
    """Scores of held-out rows by one classifier, their cuts, and what they cost."""

    raw: FloatArray  # (n_held, q)
    aligned: FloatArray  # above their level, so that rows of several folds compare
    predictions: npt.NDArray[np.bool_]
    losses: FloatArray  # of the likelihood, (n_held,)

    def estimate(self, S: Said, prior: FloatArray) -> dict[str, float]:
        """Return the metrics of a table of classifiers."""
        risk = estimate_metrics(self.raw, S, prior, predictions=self.predictions, n_resamples=0)
        found = estimate_metrics(
            self.aligned, S, prior, predictions=self.predictions, n_resamples=0
        )
        return {
            "ranking_risk": risk["ranking_risk"].value,
            "hamming_loss": found["hamming_loss"].value,
            "macro_auc": found["macro_auc"].value,
            "likelihood_loss": float(self.losses.mean()),
        }

    def compare(
        self, best: "JudgedScores", S: Said, class_prior: Prior, criterion: str
    ) -> dict[str, float]:
        """Return how far they are behind the best, with an interval."""
        if criterion == "log_likelihood":
            return compare_losses(self.losses, best.losses)
        name, sign = CRITERIA[criterion]
        # The ranking risk compares labels of a row; the others compare rows, also of several folds.
        own, other = (j.raw if name == "ranking_risk" else j.aligned for j in (self, best))
        predictions = (self.predictions, best.predictions)
        gap = compare_metrics(own, other, S, class_prior, predictions=predictions)[name]
        low, high = sorted((-sign * gap.low_with_prior, -sign * gap.high_with_prior))
        return {"behind": -sign * gap.value, "behind_low": low, "behind_high": high}


def compare_losses(losses: FloatArray, best: FloatArray) -> dict[str, float]:
    """Return the mean difference of the losses of rows, with an interval from resampled rows.

    The class prior is taken as known: it moves the losses of both alike.
    """
    gap, n = losses - best, len(losses)
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    low, high = np.quantile(counts @ gap / n, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    value = float(gap.mean())
    return {
        "behind": value,
        "behind_low": min(float(low), value),
        "behind_high": max(float(high), value),
    }


def judge_scores(
    contest: Contest, S: Said, prior: FloatArray, crossed: list[tuple[Rows, CrossFitted]]
) -> JudgedScores:
    """Gather the scores of all splits, and cut them by the prior."""
    raw, level = np.empty(contest.candidates.shape), np.empty(contest.candidates.shape)
    for held, found in crossed:
        raw[held], level[held] = found
    raw, level = raw[contest.rows], level[contest.rows]
    aligned = raw - level
    # Cut by the prior, so that methods are not judged by the level of their scores.
    predictions = aligned > choose_thresholds(aligned, S, prior, "prior")
    return JudgedScores(raw, aligned, predictions, likelihood_losses(aligned, S, prior))


def describe_failure() -> dict[str, float]:
    """Return the metrics of a classifier whose training failed, and how far it is behind."""
    behind = dict.fromkeys(("behind", "behind_low", "behind_high"), math.inf)
    return dict.fromkeys(METRICS, math.nan) | behind
