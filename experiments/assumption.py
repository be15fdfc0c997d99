"""Whether labels are excluded at a constant rate, tested on 1000 rows with true labels.

    python experiments/assumption.py

writes ``experiments/results/assumption.json``: mirflickr5000 with its own candidates, and scene and
yeast with candidates of case b, for which the assumption holds.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from comes.datasets import open_dataset
from comes.files import replacing_file
from comes.generation import case_b
from comes.selection import check_constant_rate

RESULT = Path(__file__).parent / "results" / "assumption.json"


def check(name: str) -> dict[str, Any]:
    """Return what is found on a sample of rows."""
    dataset = open_dataset(name)
    relevant = dataset.known_relevant()
    candidates = dataset.candidates
    if candidates is None:
        candidates = case_b(relevant, exclude_rate=0.5)
    rows = np.random.default_rng(0).choice(len(relevant), 1000, replace=False)
    X = np.asarray(dataset.X, dtype=float)[rows]
    found = check_constant_rate(X, candidates[rows], ~relevant[rows])
    return {
        "data": name,
        "says": found.per_label["says"].tolist(),
        "auc": [None if np.isnan(value) else round(value, 3) for value in found.per_label["auc"]],
        "rate": [round(value, 3) for value in found.per_label["rate"]],
        "conclusion": found.conclusion,
    }


def main() -> None:
    """Run all and write the result."""
    result = [check(name) for name in ("mirflickr5000", "scene", "yeast")]
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
