"""What the default costs on a CPU, against the settings of the paper.

    python benchmarks/default_time.py

writes ``benchmarks/results/default_time.json``: seconds of a whole ``fit`` on drawn candidates of
5000 rows with 100 features and 10 labels, estimates included, in turns; one irrelevant label in ten
is excluded, or one in two. The paper's settings are those of COMES-HL, 200 epochs.
"""

import functools
from typing import Any

import numpy as np
from measuring import compared, seconds_in_turns, write

from comes.estimator import CandidateClassifier
from comes.generation import independent

N, D, Q, REPEATS = 5000, 100, 10, 3
RATES = (0.1, 0.5)


def draw(rate: float) -> tuple[Any, Any]:
    """Return rows, and candidates of labels that a linear score with noise decides."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    scores = X @ rng.normal(size=(D, Q)) / D**0.5 + rng.normal(size=(N, Q)) / 2
    return X, independent(scores > 1, exclude_rate=rate, seed=0)


def main() -> None:
    """Measure both and write medians and their ratio."""
    shared: dict[str, Any] = {"random_state": 0, "device": "cpu", "verbose": -1}
    result: dict[str, Any] = {"rows": N, "features": D, "labels": Q, "repeats": REPEATS}
    result["seconds"] = {}
    for rate in RATES:
        X, candidates = draw(rate)
        ways = {
            "published": CandidateClassifier.as_published("comes-hl", **shared),
            "default": CandidateClassifier(**shared),
        }
        actions = {name: functools.partial(way.fit, X, candidates) for name, way in ways.items()}
        result["seconds"][str(rate)] = compared(seconds_in_turns(actions, REPEATS), "published")
        print(rate, result["seconds"][str(rate)], flush=True)
    write("default_time", result)


if __name__ == "__main__":
    main()
