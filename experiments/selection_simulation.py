"""Whether metrics estimated from candidates are unbiased, and their intervals cover the truth.

    python experiments/selection_simulation.py

writes ``experiments/results/selection_simulation.json``: for two exclude rates, over 1000 draws of
500 rows with five labels, the mean error of every estimate in standard errors of that mean, how
often a 95 % interval is given, and how often one that is given covers the value of the population,
over the labels of the estimate. Each is run with the true class prior, and with a prior that is off
as estimates are (a standard deviation of 0.02), with that error told to the intervals or not.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.files import replacing_file
from comes.priors import ClassPriorEstimate
from comes.selection import estimate_metrics

RESULT = Path(__file__).parent / "results" / "selection_simulation.json"
PRIOR = np.array([0.05, 0.15, 0.3, 0.5, 0.7])
SHIFT = np.array([2.0, 1.5, 1.0, 1.5, 2.0])  # of the score of a relevant label
N, REPEATS, PRIOR_ERROR = 500, 1000, 0.02

Array = npt.NDArray[np.float64]


def draw(rng: np.random.Generator, n: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return scores and true labels, which depend on each other through one latent number."""
    hidden = rng.normal(size=(n, 1))
    relevant = rng.random((n, 5)) < np.clip(PRIOR + 0.1 * PRIOR * (1 - PRIOR) * hidden, 0, 1)
    return SHIFT * relevant - SHIFT / 2 + rng.normal(size=(n, 5)), relevant


def truth(n: int = 2_000_000) -> dict[str, Array]:
    """Return the metrics of every label in the population, counted on many rows, (5,) each."""
    scores, relevant = draw(np.random.default_rng(1), n)
    predicted = scores > 0
    both = (predicted & relevant).mean(axis=0)
    aucs = []
    for j in range(5):
        order = scores[:, j].argsort()
        irrelevant_below = np.cumsum(~relevant[order, j])
        pairs = relevant[:, j].sum() * (~relevant[:, j]).sum()
        aucs.append(irrelevant_below[relevant[order, j]].sum() / pairs)
    below = scores.argsort(axis=1).argsort(axis=1)
    return {
        "hamming_loss": (predicted != relevant).mean(axis=0),
        "macro_recall": both / relevant.mean(axis=0),
        "macro_precision": both / predicted.mean(axis=0),
        "macro_f1": 2 * both / (predicted.mean(axis=0) + relevant.mean(axis=0)),
        "macro_auc": np.array(aucs),
        "ranking_risk": (below * ~relevant).mean(axis=0),
    }


def simulate(rate: float, prior: str, true: dict[str, Array]) -> dict[str, Any]:
    """Return bias and coverage over repeats."""
    errors: dict[str, list[float]] = {name: [] for name in true}
    covered: dict[str, list[bool]] = {name: [] for name in true}
    for seed in range(REPEATS):
        rng = np.random.default_rng([seed, int(100 * rate)])
        scores, relevant = draw(rng, N)
        candidates = relevant | (rng.random(relevant.shape) >= rate)
        given: Any = PRIOR
        if prior != "true":
            given = np.clip(PRIOR + PRIOR_ERROR * rng.normal(size=5), 0.01, 0.99)
        if prior == "told":
            error = np.full(5, PRIOR_ERROR)
            given = ClassPriorEstimate(given, given, given, given, error, ("ok",) * 5)
        found = estimate_metrics(scores, candidates, given, n_resamples=200, seed=seed)
        everywhere = estimate_metrics(scores, candidates, given, n_resamples=0)
        for name, values in true.items():
            errors[name].append(everywhere[name].value - combine(name, values))
            estimate = found[name]
            if estimate.reason is None:
                value = combine(name, values[list(estimate.labels)])
                covered[name].append(estimate.low_with_prior <= value <= estimate.high_with_prior)
    rows = {}
    for name, values in true.items():
        mean, spread = np.mean(errors[name]), np.std(errors[name], ddof=1)
        rows[name] = {
            "truth": round(combine(name, values), 4),
            "mean": round(combine(name, values) + float(mean), 4),
            "spread": round(float(spread), 4),
            "bias_in_standard_errors": round(float(mean / (spread / REPEATS**0.5)), 2),
            "given": round(len(covered[name]) / REPEATS, 3),
            "coverage": round(float(np.mean(covered[name])), 3),
        }
    return rows


def combine(name: str, values: Array) -> float:
    """Return a metric over labels from the metric of each."""
    return float(values.sum() if name == "ranking_risk" else values.mean())


def main() -> None:
    """Run all and write the result."""
    true = truth()
    result = {
        f"rate {rate}, prior {prior}": simulate(rate, prior, true)
        for rate in (0.1, 0.5)
        for prior in ("true", "off", "told")
    }
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
