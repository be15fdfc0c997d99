"""How well the rates of answers are estimated, beside counts that know the truth.

    python experiments/answer_rates.py

writes ``experiments/results/answer_rates.json``. On the development sets one pair in ten is asked
about; an irrelevant one is called "no" with probability a, a relevant one "yes" with probability b.
``runs`` has, per set, rates and seed, the estimates over all labels, their standard errors, the
shares of "no" among irrelevant and of "yes" among relevant pairs that were asked about, standard
errors of these shares, and mean absolute errors by label; ``summary`` says how often an estimate
lies within two of its standard errors of the share, and within two standard errors of the share.
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.priors import estimate_answer_rates

RESULT = Path(__file__).parent / "results" / "answer_rates.json"
SETS = ("scenes", "scene", "yeast", "emotions", "enron", "bibtex")
RATES = {"0.8, 0.8": (0.8, 0.8), "0.9, 0.6": (0.9, 0.6), "0.7, 0.9": (0.7, 0.9), "by label": None}
BY_LABEL = (0.5, 0.95)  # the range that rates by label are drawn from
SEEDS = range(5)
ASKED = 0.1

FloatArray = npt.NDArray[np.float64]


def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels, by its name or from a file."""
    if name == "scenes":
        return make_scenes("train", 12_000)
    return open_dataset(name) if folder is None else open_dataset(folder / f"{name}.npz")


def run(name: str, title: str, seed: int, folder: Path | None) -> dict[str, Any]:
    """Return what was estimated and counted in one set, with rates by their title."""
    warnings.simplefilter("ignore", ComesWarning)  # labels with few answers, by design
    return {"rates": title, **compare(name, load(name, folder), RATES[title], seed)}


def answer(
    relevant: BoolMatrix, rates: tuple[float, float] | None, seed: int
) -> tuple[Answers, FloatArray]:
    """Return answers to one pair in ten, and the rates a and b of every label, (2, q)."""
    rng = np.random.default_rng(seed)
    q = relevant.shape[1]
    a, b = rng.uniform(*BY_LABEL, size=(2, q)) if rates is None else np.tile(rates, (q, 1)).T
    is_sure = rng.random(relevant.shape) < np.where(relevant, b, a)
    codes = np.where(is_sure, np.where(relevant, State.YES, State.NO), State.MAYBE)
    codes = np.where(rng.random(relevant.shape) < ASKED, codes, State.NOT_ASKED)
    return Answers.from_codes(codes), np.stack([a, b])


def compare(name: str, dataset: Dataset, rates: tuple[float, float] | None, seed: int) -> Any:
    """Return estimates beside counts that know the truth."""
    relevant = dataset.known_relevant()
    answers, true_rates = answer(relevant, rates, seed)
    asked = answers.codes != State.NOT_ASKED
    groups = [(~relevant & asked, answers.excluded), (relevant & asked, answers.confirmed)]
    estimate = estimate_answer_rates(dataset.X, answers, random_state=seed)
    count = np.array([said.sum() / pairs.sum() for pairs, said in groups])
    n = np.array([pairs.sum() for pairs, _ in groups])
    by_label = np.stack([estimate.rates.no_rate, estimate.rates.yes_rate])
    prior = groups[1][0].sum(axis=0) / np.maximum(asked.sum(axis=0), 1)
    return {
        "data": name,
        "seed": seed,
        "estimate": estimate.overall.round(4).tolist(),
        "error": estimate.overall_error.round(4).tolist(),
        "count": count.round(4).tolist(),
        "count_error": np.sqrt(count * (1 - count) / n).round(4).tolist(),
        "error_by_label": np.abs(by_label - true_rates).mean(axis=1).round(4).tolist(),
        "prior_error": round(float(np.abs(estimate.class_prior - prior).mean()), 4),
    }


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often estimates are near the counts, by rates and over all."""
    found = {}
    for rates in (*dict.fromkeys(run["rates"] for run in runs), "all"):
        own = [run for run in runs if rates in (run["rates"], "all")]
        distance = np.array([np.subtract(run["estimate"], run["count"]) for run in own])
        is_said = np.array([run["error"] for run in own]).any(axis=0)
        inside = {}
        for error in ("error", "count_error"):
            near = abs(distance) <= 2 * np.array([run[error] for run in own])
            inside[f"within_two_{error}s"] = near[:, is_said].mean(axis=0).round(3).tolist()
        found[rates] = {
            "runs": len(own),
            **inside,
            "bias": distance.mean(axis=0)[is_said].round(4).tolist(),
            "root_mean_square": np.sqrt((distance**2).mean(axis=0))[is_said].round(4).tolist(),
        }
    return found


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    tasks = itertools.product(SETS, RATES, SEEDS)
    work = Parallel(n_jobs=options.workers, verbose=5)
    runs = work(delayed(run)(*task, options.data) for task in tasks)
    result = {
        "command": "python experiments/answer_rates.py",
        "summary": summarise(runs),
        "runs": runs,
    }
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
