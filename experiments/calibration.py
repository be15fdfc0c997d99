"""What calibrated probabilities gain, by answers and by a clean sample, and where they cost.

    python experiments/calibration.py

writes ``experiments/results/calibration.json``, a row per (set, what was said, seed, method). Of
each set up to 2000 rows are trained on, 500 calibrate and the others, up to 2000, test. Candidates
exclude every irrelevant label with a probability of one half; answers are about three pairs in ten,
and 80 % of them are sure. Models are those of the defaults, with everything estimated. They are
calibrated by what was said about 100 or 500 other rows, or by their true labels.

Judged on the true labels of the test rows: the calibration error (the distance of mean probability
and share of relevant rows in ten bins of equal size, mean over bins and over labels that 20 test
rows have) and the log loss of a pair. ``SPREADS`` are the priors of `fit_calibration` that were
compared; they were chosen by the log loss on ``DEVELOPMENT`` alone. What the result holds already
is not run again.
"""

import argparse
import itertools
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.model_selection import train_test_split

from comes.answers import Answers, answer_evidence
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import independent, simulate_answers
from comes.selection import fit_calibration
from comes.selection.calibration import rates_given_prior

RESULT = Path(__file__).parent / "results" / "calibration.json"
FILES = {
    "emotions": "emotions.arff",
    "scene": "scene-train.arff",
    "yeast": "yeast.arff",
    "enron": "enron.arff",
    "bibtex": "bibtex.arff",
}
DEVELOPMENT = ("emotions", "scene", "yeast")
SETS = ("emotions", "scene", "yeast", "enron", "scenes", "bibtex")
DRAWS = ("candidates", "answers")
METHODS = ("likelihood", "bce", "comes-hl", "comes-rl")
ROWS = (100, 500)
MOST, CALIBRATING = 2000, 500
MOST_PAIRED = 100  # labels for which the risk over pairs is trained, which takes long
FEWEST = 20  # relevant, and irrelevant, test rows of a label whose calibration error counts
SPREADS = {  # shared, and of each label: of the logarithm of the slope, and of the level
    "default": ((1.0, 1.0), (0.25, 0.5)),
    "tighter": ((1.0, 1.0), (0.1, 0.2)),
    "shared only": ((1.0, 1.0), (0.01, 0.01)),
    "looser": ((1.0, 1.0), (0.5, 1.0)),
    "loosest": ((2.0, 2.0), (1.0, 2.0)),
}


def load(name: str, folder: Path) -> Dataset:
    """Return a set with true labels."""
    if name == "scenes":
        return make_scenes("train", 5000)
    return open_dataset(folder / FILES[name])


def say(relevant: Any, draw: str, seed: int) -> Answers:
    """Return what is said about rows."""
    if draw == "candidates":
        return Answers.from_candidates(independent(relevant, 0.5, seed=seed))
    return simulate_answers(relevant, asked_rate=0.3, seed=seed)


def judge(log_odds: Any, relevant: Any) -> dict[str, float]:
    """Return the calibration error and the log loss of a pair."""
    loss = np.logaddexp(0, np.where(relevant, -log_odds, log_odds)).mean()
    n_yes = relevant.sum(axis=0)
    counted = np.flatnonzero((n_yes >= FEWEST) & (len(relevant) - n_yes >= FEWEST))
    probability = expit(log_odds)
    errors = [measure_error(probability[:, j], relevant[:, j]) for j in counted]
    return {"error": round(float(np.mean(errors)), 5), "loss": round(float(loss), 5)}


def measure_error(probability: Any, relevant: Any) -> float:
    """Return the calibration error of one label, in ten bins of equal size."""
    bins = np.array_split(np.argsort(probability, kind="stable"), 10)
    gaps = [abs(probability[rows].mean() - relevant[rows].mean()) * len(rows) for rows in bins]
    return float(sum(gaps) / len(relevant))


def lean(classifier: CandidateClassifier, said: Answers) -> Any:
    """Return how far what was said leans, by the rates of a model, as `calibrate` does."""
    rates = classifier.rates_
    if rates.no_rate is not None:
        return answer_evidence(said, rates.answer_rates)
    return answer_evidence(said, rates_given_prior(said, rates.class_prior))


def run(dataset: Dataset, draw: str, seed: int, method: str) -> dict[str, Any]:
    """Return what calibrations of one model gain."""
    relevant = dataset.known_relevant()
    rows, rest = train_test_split(
        np.arange(len(relevant)), train_size=min(MOST, len(relevant) * 3 // 5), random_state=seed
    )
    order = np.random.default_rng(seed).permutation(rest)
    n_known = min(CALIBRATING, len(order) // 2)
    known, test = order[:n_known], order[n_known : n_known + MOST]
    said = say(relevant, draw, seed)
    X = dataset.known_features()
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    classifier = CandidateClassifier(method, random_state=seed, verbose=-1)
    classifier.fit(X[rows], answers=said[rows])
    scores, judged = (
        classifier.decision_function(X[some]).astype(np.float64) - classifier.score_offset_
        for some in (known, test)
    )
    found: dict[str, Any] = {"none": judge(judged, relevant[test])}
    sources = {"truth": np.where(relevant[known], 1.0, -1.0)}
    if method != "bce":  # which knows neither rates nor class priors
        sources["said"] = lean(classifier, said[known])
    for name, (shared, own) in SPREADS.items():
        for source, evidence in sources.items():
            for n in ROWS:
                made = fit_calibration(
                    scores[:n], evidence[:n], shared_spread=shared, own_spread=own
                )
                found[f"{source}, {n}, {name}"] = judge(made.calibrate(judged), relevant[test])
    return {"n_train": len(rows), "n_known": n_known, "n_test": len(test), "found": found}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ["COMES_DATA"]) / "mulan")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    done = json.loads(RESULT.read_text()) if RESULT.exists() else []
    keys = {(row["set"], row["draw"], row["seed"], row["method"]) for row in done}
    for name in SETS:
        dataset = None
        for method, draw, seed in itertools.product(METHODS, DRAWS, range(options.seeds)):
            key = (name, draw, seed, method)
            if key in keys:
                continue
            dataset = dataset or load(name, options.data)
            if method == "comes-rl" and dataset.known_relevant().shape[1] > MOST_PAIRED:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ComesWarning)
                outcome = run(dataset, *key[1:])
            row = dict(zip(("set", "draw", "seed", "method"), key, strict=True)) | outcome
            print(
                key, outcome["found"]["none"], outcome["found"]["truth, 500, default"], flush=True
            )
            done.append(row)
            with replacing_file(RESULT) as path:
                path.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
