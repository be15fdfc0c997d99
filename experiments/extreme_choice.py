"""Settings of a network for very many labels, judged by held-out rows of the training part.

    python experiments/extreme_choice.py

writes ``experiments/results/extreme_choice.json``. A quarter of the rows, words and labels of the
generated set of ``extreme.py``, with all labels known, a tenth of the rows held out: the loss of
their labels by row, P@1 and P@5. Its test rows are not used.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from extreme_rows import SMALL, TENTH, Size, make_rows

from comes.answers import Answers
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.metrics import precision_at_k

RESULT = Path(__file__).parent / "results" / "extreme_choice.json"
QUARTER = Size(*(count // 4 for count in TENTH))
HELD_OUT = 0.1
TRIED: list[dict[str, Any]] = [
    {"model": "low_rank", "hidden": 256, "dropout": 0.2, "learning_rate": 1e-2},
    {"model": "mlp", "hidden": 256, "dropout": 0.2, "learning_rate": 1e-2},
    {"model": "low_rank", "hidden": 256, "dropout": 0.5, "learning_rate": 1e-2},
    {"model": "low_rank", "hidden": 512, "dropout": 0.5, "learning_rate": 1e-2},
    {"model": "low_rank", "hidden": 256, "dropout": 0.2, "learning_rate": 3e-2},
    {"model": "mlp", "hidden": 256, "dropout": 0.5, "learning_rate": 5e-4},
    {"model": "low_rank", "hidden": 256, "dropout": 0.5, "learning_rate": 3e-2},
    {"model": "low_rank", "hidden": 512, "dropout": 0.5, "learning_rate": 3e-2},
]
ALWAYS: dict[str, Any] = {"n_networks": 1, "epochs": 5, "batch_size": 256}


def run(settings: dict[str, Any], X: Any, relevant: Any) -> dict[str, Any]:
    """Return the loss and P@1 of held-out rows after training on the others."""
    n_train = round(X.shape[0] * (1 - HELD_OUT))
    classifier = CandidateClassifier(
        "bce", random_state=0, verbose=-1, device="cpu", **ALWAYS, **settings
    )
    started = time.perf_counter()
    classifier.fit(X[:n_train], answers=Answers.from_positives(relevant[:n_train]))
    seconds = time.perf_counter() - started
    scores, held = classifier.decision_function(X[n_train:]), relevant[n_train:]
    row, label = held.nonzero()
    loss = np.logaddexp(0, scores).sum() - scores[row, label].sum()
    return (
        ALWAYS
        | settings
        | {
            "held_out_loss": round(float(loss) / len(scores), 3),
            "precision_at_1": round(precision_at_k(scores, held, 1), 4),
            "precision_at_5": round(precision_at_k(scores, held, 5), 4),
            "seconds": round(seconds, 1),
        }
    )


def main() -> None:
    """Run what is missing, and write the result after every training."""
    parser = argparse.ArgumentParser(description="Settings for very many labels.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--small", action="store_true", help="3000 labels, for a trial")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ComesWarning)
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    size = SMALL if options.small else QUARTER
    X, relevant = (part[: size.train] for part in make_rows(size))
    for settings in TRIED:
        if any(settings.items() <= row.items() for row in rows):
            continue
        rows.append(run(settings, X, relevant))
        print(json.dumps(rows[-1]), flush=True)
        result = {"command": "python experiments/extreme_choice.py", **size._asdict(), "rows": rows}
        with replacing_file(options.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
