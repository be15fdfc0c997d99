"""COMES-HL, COMES-RL and BCE on real candidate labels, by what the risk is divided by.

Three splits of ``KFold(10, shuffle=True, random_state=0)``, true class priors counted on the
training rows (the paper's protocol), the estimator's defaults, scores of the last epoch:

    python experiments/core.py mirflickr5000 YeastCC YeastBP

reads the files under ``$COMES_DATA/pml`` and writes ``experiments/results/core/DATASET.json``.
The results hold the seconds of every training and the device: in all 2 minutes for mirflickr5000 on
one core, 5 and 7 for YeastCC and YeastBP, run side by side on one H200.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import KFold

import comes
from comes.datasets import Dataset, read_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.metrics import count_degenerate, evaluate
from comes.priors import count_class_prior

RUNS = [
    ("comes-hl", "sum"),
    ("comes-hl", "mean"),
    ("bce", "sum"),
    ("bce", "mean"),
    ("comes-rl", "sum"),
    ("comes-rl", "per_label"),
    ("comes-rl", "mean"),
]
N_SPLITS = 3
RESULTS = Path(__file__).parent / "results" / "core"


def run(dataset: Dataset, method: str, reduction: str) -> dict[str, Any]:
    """Train and test on every split; return the metrics of each and their means."""
    relevant, candidates = dataset.known_relevant(), dataset.candidates_with_names()
    splits = list(KFold(10, shuffle=True, random_state=0).split(relevant))[:N_SPLITS]
    metrics, seconds = [], []
    for train, test in splits:
        classifier = CandidateClassifier(
            method,
            class_prior=count_class_prior(relevant[train]),
            reduction=reduction,
            random_state=0,
        ).fit(dataset.X[train], candidates.iloc[train])
        scores = classifier.decision_function(dataset.X[test])
        metrics.append(evaluate(scores, relevant[test], classifier.cut_scores(scores)))
        seconds.append(round(classifier.history_.seconds, 1))
    means = {name: round(float(np.mean([m[name] for m in metrics])), 4) for name in metrics[0]}
    return {
        "method": method,
        "reduction": reduction,
        "means": means,
        "splits": [{name: round(value, 4) for name, value in m.items()} for m in metrics],
        "seconds": seconds,
    }


def main(names: list[str]) -> None:
    """Run everything on the named data sets."""
    warnings.simplefilter("ignore", ComesWarning)  # labels that no training row excludes
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names:
        dataset = read_dataset(Path(os.environ["COMES_DATA"]) / "pml" / f"{name}.mat")
        print(f"{name}: {dataset}", flush=True)
        result: dict[str, Any] = {
            "command": f"python experiments/core.py {name}",
            "data": str(dataset),
            "degenerate": count_degenerate(dataset.known_relevant()),
            "convention": "pml",
            "comes": comes.__version__,
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            "runs": [],
        }
        for method, reduction in RUNS:
            result["runs"].append(run(dataset, method, reduction))
            print(method, reduction, result["runs"][-1]["means"], flush=True)
        with replacing_file(RESULTS / f"{name}.json") as path:
            path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or ["mirflickr5000"])
