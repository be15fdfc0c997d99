"""Why COMES-RL needs a flood level on mirflickr5000: its own candidates, and redrawn ones.

    python experiments/redrawn.py

writes ``experiments/results/redrawn.json``: COMES-RL with true class priors on three of ten folds,
once with the candidates of the file and once with candidates that exclude every label at the same
rate, but whatever the row (case b). The ranking risk of the test rows' candidates is compared with
what the class priors allow; only the average precision looks at the truth.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from comes.datasets import open_dataset
from comes.estimator import CandidateClassifier, fit_together
from comes.files import replacing_file
from comes.generation import case_b
from comes.methods import COMESRL
from comes.metrics import average_precision
from comes.priors import count_class_prior
from comes.selection import check_ranking_risk

RESULT = Path(__file__).parent / "results" / "redrawn.json"
FOLDS = 3  # of ten
LEVELS: dict[str, Any] = {"none": 0.0, "auto": "auto"}


def compare(name: str, X: Any, relevant: Any, candidates: Any, folds: list[Any]) -> list[Any]:
    """Train on these candidates at every flood level; return a row for each."""
    rows = []
    for title, level in LEVELS.items():
        models = [
            CandidateClassifier(
                COMESRL(flood_level=level),
                class_prior=count_class_prior(relevant[train]),
                random_state=k,
                verbose=-1,
            )
            for k, (train, _) in enumerate(folds)
        ]
        fitted = fit_together(models, X, candidates, [train for train, _ in folds], n_jobs=1)
        found = []
        for model, (train, test) in zip(fitted, folds, strict=True):
            scores = model.decision_function(X[test])
            floor = check_ranking_risk(scores, candidates[test], relevant[train].mean(axis=0))
            found.append(
                {
                    "average_precision": average_precision(scores, relevant[test]),
                    "risk": floor.risk,
                    "high": floor.high,
                    "floor": floor.floor,
                }
            )
        means = {key: round(float(np.mean([f[key] for f in found])), 4) for key in found[0]}
        rows.append({"candidates": name, "flood_level": title, **means})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run all and write the result."""
    flickr = open_dataset("mirflickr5000")
    relevant, own = flickr.known_relevant(), flickr.known_candidates()
    rate = (~own).sum(axis=0) / (~relevant).sum(axis=0)  # P(excluded | irrelevant), by label
    folds = list(KFold(10, shuffle=True, random_state=0).split(relevant))[:FOLDS]
    result = {
        "command": "python experiments/redrawn.py",
        "rows": [
            *compare("of the file", flickr.X, relevant, own, folds),
            *compare("redrawn", flickr.X, relevant, case_b(relevant, rate), folds),
        ],
    }
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
