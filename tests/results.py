"""Results of experiments that nobody ran, for tests of what is made of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comes.metrics import METRICS


def make_result(
    method: str = "bce",
    data: str = "photos",
    values: Sequence[float] = (0.5, 0.6, 0.7),
    **changes: Any,
) -> dict[str, Any]:
    """Return a result whose metrics all have these values, one for each repeat."""
    repeats = [
        {
            "pml": dict.fromkeys(METRICS, value),
            "sklearn": dict.fromkeys(METRICS, value + 0.1),
            "hamming_loss": {"zero": value, "minmax": value + 0.2},
            "true_risk": {"hamming": value, "ranking": 2 * value},
            "risk": [1.0, value],
            "seconds": 0.1,
        }
        for value in values
    ]
    spec = {"data": {"name": data}, "method": method, "settings": {}, "class_prior": "true"}
    return {
        "key": f"{method}-{data}",
        "experiment": "small",
        "data": data,
        "method": method,
        "sweep": "",
        "spec": spec | {"folds": 3, "seed": 0, "test_share": 0.3, "prior_noise": 0.0},
        "size": {"n": 30, "d": 4, "q": 3},
        "degenerate": {"rows_without_relevant": 5, "rows_all_relevant": 1},
        "repeats": repeats,
        "seconds": 1.5,
        "versions": {"comes": "0", "torch": "2", "numpy": "2", "python": "3"},
        "device": "cpu",
    } | changes


def write_results(folder: Path, results: Sequence[dict[str, Any]]) -> Path:
    """Write results as `comes bench` does."""
    for number, result in enumerate(results):
        home = folder / f"task-{number}"
        home.mkdir(parents=True)
        (home / "result.json").write_text(json.dumps(result))
    return folder
