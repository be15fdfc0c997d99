"""Where to cut probabilities without another training: F1 and Hamming loss on true labels.

    python experiments/cuts.py

writes ``experiments/results/cuts.json``, a row per (set, rows, what was said, method); it takes a
few minutes. Of each set two numbers of rows are trained on, `ROWS`, and up to 1500 others test.
Labels that fewer than three of the training rows have are left out. Everything is estimated.
``--data FOLDER`` holds medical.npz and yahoo-arts.npz. What the result holds already is not run
again.

The cuts of one model are compared: "half", a probability of one half; "auto"; and the two that it
is made of, "expected", which predicts a label for as many training rows as its probabilities add up
to, and "f1", the greatest F1 that is expected by them. "prior" is as often as the estimated class
prior says, on the training rows.
"""

import argparse
import itertools
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from defaults import as_set, load, say
from scipy.special import expit, logit

from comes.datasets import Dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.metrics import hamming_loss
from comes.selection import choose_thresholds
from comes.selection.thresholds import cut_of_greatest_f1

RESULT = Path(__file__).parent / "results" / "cuts.json"
ROWS = {  # drawn with seed 0 and with seed 1
    "emotions": (300, 400),
    "scene": (300, 1000),
    "yeast": (300, 1000),
    "scenes": (1000, 300),
    "enron": (1000, 300),
    "medical": (500, 800),
    "yahoo-arts": (1000, 2000),
    "goemotions": (1000, 3000),
}
DRAWS = ("0.1", "0.5", "answers")
OTHERS = ("comes-hl", "comes-rl", "ccmn", "mlcl", "ctl", "bce")  # of few rows, and candidates
OTHER_ROWS = {"emotions": 300, "scene": 300, "yeast": 300, "enron": 300}
MOST_TEST = 1500
FEWEST = 3  # training rows that have a label


def judge(predicted: Any, relevant: Any) -> dict[str, float]:
    """Return macro and micro F1, the Hamming loss, and how many labels no row is predicted to have.

    The macro F1 is over labels that some test row has.
    """
    hits, marked = (predicted & relevant).sum(axis=0), predicted.sum(axis=0) + relevant.sum(axis=0)
    is_shown = relevant.any(axis=0)
    return {
        "macro_f1": round(float((2 * hits[is_shown] / marked[is_shown]).mean()), 4),
        "micro_f1": round(float(2 * hits.sum() / marked.sum()), 4),
        "hamming_loss": round(hamming_loss(predicted, relevant), 4),
        "never": int((~predicted[:, is_shown].any(axis=0)).sum()),
        "labels": int(is_shown.sum()),
    }


def run(dataset: Dataset, n: int, draw: str, method: str, seed: int) -> dict[str, Any]:
    """Return how the cuts of one model do."""
    order = np.random.default_rng(seed).permutation(len(dataset))[: n + MOST_TEST]
    part = dataset.take(order)
    relevant = part.known_relevant()
    relevant = relevant[:, relevant[:n].sum(axis=0) >= FEWEST]
    X = part.X.to_numpy() if hasattr(part.X, "to_numpy") else part.X
    said = say(as_set(X, relevant), draw, seed)
    classifier = CandidateClassifier(method, random_state=seed, verbose=-1, device="cpu")
    classifier.fit(X[:n], said[:n])
    offset = classifier.score_offset_
    scores = classifier.decision_function(X[:n]).astype(np.float64) - offset
    eta, every = expit(scores), np.ones(scores.shape, dtype=bool)
    cuts = {
        "half": np.zeros(len(offset)),
        "auto": classifier.threshold_ - offset,
        "expected": choose_thresholds(scores, every, eta.mean(axis=0), "prior"),
        "f1": logit(cut_of_greatest_f1(eta)),
    }
    if classifier.class_prior_ is not None:
        cuts["prior"] = choose_thresholds(scores, every, classifier.class_prior_, "prior")
    tested = classifier.decision_function(X[n:]) - offset
    found = {name: judge(tested > cut, relevant[n:]) for name, cut in cuts.items()}
    return {"seed": seed, "n_test": len(relevant) - n, "found": found}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description="Where to cut probabilities.")
    usual = Path(os.environ["COMES_DATA"]) / "sparse"
    parser.add_argument("--data", type=Path, default=usual, help="folder of SET.npz")
    folder = parser.parse_args().data
    warnings.simplefilter("ignore", ComesWarning)
    done = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    keys = {(row["set"], row["rows"], row["draw"], row["method"]) for row in done}
    tasks = [
        (name, n, draw, "likelihood", seed)
        for name, both in ROWS.items()
        for seed, n in enumerate(both)
        for draw in DRAWS
    ]
    tasks += [
        (name, n, draw, method, 0)
        for name, n in OTHER_ROWS.items()
        for draw in DRAWS[:2]
        for method in OTHERS
    ]
    tasks = sorted(task for task in tasks if task[:4] not in keys)
    for name, own in itertools.groupby(tasks, key=lambda task: task[0]):
        dataset = load(name, folder)
        for task in own:
            row = dict(zip(("set", "rows", "draw", "method"), task[:4], strict=True))
            done.append(row | run(dataset, *task[1:]))
            print(task, done[-1]["found"]["half"], done[-1]["found"]["auto"], flush=True)
        done.sort(key=lambda row: (row["set"], row["rows"], row["draw"], row["method"]))
        result = {"command": "python experiments/cuts.py", "rows": done}
        with replacing_file(RESULT) as path:
            path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
