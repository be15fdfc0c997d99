"""How well class priors are estimated from candidates alone, and what the errors cost.

    python experiments/priors.py

writes ``experiments/results/priors.json``:

- ``estimators``: the mean absolute error and the seconds of every estimator that works label by
  label (``rates.py`` has the one that does not), on data sets with known truth and candidates of
  case b, at three exclude rates. The stored file was written with version 1.0.0, which also had
  ``dedpul``, ``km2`` (on the first six labels) and ``candidate-rate``.
- ``training``: average precision of COMES-HL with true, estimated and published-BBE priors, on a
  held-out third of the rows, over three label seeds.
- ``real``: the error on the candidates that mirflickr5000 and the Yeast sets come with.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import case_b
from comes.priors import count_class_prior, estimate_class_prior

RESULT = Path(__file__).parent / "results" / "priors.json"
SETS = ("scenes", "emotions", "scene", "yeast", "enron", "bibtex")
RATES = (0.1, 0.5, 0.9)
METHODS = ("best-bin", "bbe")


def load(name: str) -> Dataset:
    """Return a data set with true labels."""
    return make_scenes("train", 5000) if name == "scenes" else open_dataset(name)


def estimators() -> list[dict[str, Any]]:
    """Return the error of every estimator on every set."""
    rows = []
    for name in SETS:
        dataset = load(name)
        relevant = dataset.known_relevant()
        truth = count_class_prior(relevant)
        for rate in RATES:
            candidates = case_b(relevant, rate, seed=0)
            for method in METHODS:
                started = time.perf_counter()
                estimate = estimate_class_prior(dataset.X, candidates, method)
                error = np.abs(estimate.class_prior - truth)
                inside = (estimate.lower <= truth) & (truth <= estimate.upper)
                rows.append(
                    {
                        "data": name,
                        "exclude_rate": rate,
                        "method": method,
                        "error": round(float(error.mean()), 4),
                        "seconds": round(time.perf_counter() - started, 2),
                        "inside_bounds": round(float(inside.mean()), 3),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def training() -> list[dict[str, Any]]:
    """Return the average precision of COMES-HL with true and with estimated priors."""
    rows = []
    for name in ("emotions", "scene", "yeast"):
        dataset = load(name)
        for rate in (0.1, 0.5):
            for seed in range(3):
                seen, unseen = train_test_split(
                    np.arange(len(dataset)), test_size=1 / 3, random_state=seed
                )
                train, test = dataset.take(seen), dataset.take(unseen)
                relevant = train.known_relevant()
                candidates = case_b(relevant, rate, seed)
                priors = {
                    "true": count_class_prior(relevant),
                    "best-bin": np.asarray(estimate_class_prior(train.X, candidates, "best-bin")),
                    "bbe": np.asarray(estimate_class_prior(train.X, candidates, "bbe")),
                }
                for which, prior in priors.items():
                    classifier = CandidateClassifier.as_published(
                        class_prior=prior, random_state=seed, verbose=-1
                    ).fit(train.X, candidates)
                    score = classifier.score(test.X, test.known_relevant())
                    row = {"data": name, "exclude_rate": rate, "seed": seed, "prior": which}
                    rows.append({**row, "average_precision": round(score, 4)})
                    print(rows[-1], flush=True)
    return rows


def real() -> list[dict[str, Any]]:
    """Return estimates from real candidates beside the truth."""
    rows = []
    for name in ("mirflickr5000", "YeastCC", "YeastBP"):
        dataset = open_dataset(name)
        truth = count_class_prior(dataset.known_relevant())
        started = time.perf_counter()
        estimate = estimate_class_prior(dataset.X, dataset.known_candidates(), "best-bin")
        seconds = time.perf_counter() - started
        inside = (estimate.lower <= truth) & (truth <= estimate.upper)
        row = {
            "data": name,
            "error": round(float(np.abs(estimate.class_prior - truth).mean()), 4),
            "inside_bounds": round(float(inside.mean()), 3),
            "seconds": round(seconds, 1),
        }
        if len(truth) <= 10:
            row["true"] = truth.round(3).tolist()
            row["estimated"] = estimate.class_prior.round(3).tolist()
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    """Run all three parts and write them."""
    warnings.simplefilter("ignore", ComesWarning)  # labels with few exclusions, by design
    result = {
        "command": "python experiments/priors.py",
        "real": real(),
        "training": training(),
        "estimators": estimators(),
    }
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
