"""One learner of ``extreme.py``, in a process and an environment of its own.

    python experiments/extreme_learner.py FOLDER KIND LEARNER SETTINGS

reads the training rows, what is known of their labels, and the features of the test rows; writes
the five best labels of each test row, and what that took. No true label of a test row is read.
Learners of LibMultiLabel need nothing but LibMultiLabel; ours need nothing but comes.
"""

import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import normalize

TOP, THREADS = 5, 2
ROWS_AT_A_TIME = 250  # LibMultiLabel scores all labels of these rows

Fitted = Callable[[Any], npt.NDArray[np.int64]]


def fit_ours(X: Any, ticked: Any, settings: dict[str, Any]) -> Fitted:
    """Fit a CandidateClassifier to ticked labels."""
    import torch

    from comes.answers import Answers
    from comes.errors import ComesWarning
    from comes.estimator import CandidateClassifier
    from comes.flat_settings import from_flat

    torch.set_num_threads(THREADS)
    warnings.simplefilter("ignore", ComesWarning)
    settings = {"random_state": 0, "progress": False, "device": "cpu", **settings}
    classifier = CandidateClassifier(**from_flat(settings))
    classifier.fit(X, answers=Answers.from_positives(ticked))
    return lambda rows: np.asarray(classifier.predict_top(rows, TOP).labels)


def fit_libmultilabel(X: Any, ticked: Any, settings: dict[str, Any]) -> Fitted:
    """Fit a tree, or a linear model of each label against the rest, to rows of length 1.

    LIBLINEAR asks for such rows; on bibtex, whose features are 0 and 1, P@1 is .08 lower without.
    """
    from libmultilabel import linear  # type: ignore[import-not-found,unused-ignore]

    np.random.seed(0)  # of the clusters of labels
    trains = {"tree": linear.train_tree, "1vsrest": linear.train_1vsrest}[settings["technique"]]
    y, x = sparse.csr_matrix(ticked, dtype=float), normalize(sparse.csr_matrix(X, dtype=float))
    model = trains(y, x, options=settings["options"], verbose=False)
    return lambda rows: best_in_parts(model, normalize(sparse.csr_matrix(rows)))


def best_in_parts(model: Any, rows: Any) -> npt.NDArray[np.int64]:
    """Return the labels with the highest scores of a model of LibMultiLabel, (n, 5)."""
    parts = []
    for start in range(0, rows.shape[0], ROWS_AT_A_TIME):
        scores = model.predict_values(rows[start : start + ROWS_AT_A_TIME])
        some = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1)
        parts.append(np.take_along_axis(some, order, axis=1))
    return np.vstack(parts)


def peak_megabytes() -> int:
    """Return the most memory that this process had at a time.

    Of the kernel's own count, since getrusage counts the parent's memory when the process starts.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return round(int(found[1]) / 1024)


def main() -> None:
    """Fit, predict, and write both files."""
    folder, (kind, learner, settings) = Path(sys.argv[1]), sys.argv[2:]
    X, ticked = (sparse.load_npz(folder / f"{name}.npz") for name in ("X", kind))
    fit = fit_libmultilabel if learner.startswith("LibMultiLabel") else fit_ours
    started = time.perf_counter()
    predict = fit(X, ticked, json.loads(settings))
    fitted = time.perf_counter()
    best = predict(sparse.load_npz(folder / "X_test.npz"))
    cost = {
        "seconds_of_training": round(fitted - started, 1),
        "seconds_of_prediction": round(time.perf_counter() - fitted, 1),
        "peak_megabytes": peak_megabytes(),
    }
    np.save(folder / "best.npy", best)
    (folder / "cost.json").write_text(json.dumps(cost))


if __name__ == "__main__":
    main()
