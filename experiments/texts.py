"""GoEmotions: what is learned from candidates and from answers about short texts.

    python experiments/texts.py

writes ``experiments/results/texts.json``. The first 10000 of the 43410 training comments, so that
no training takes more than a few minutes, tested on the true labels of the 5427 test comments.
Learners see candidates (for each label, half of the rows irrelevant to it exclude it: case b),
answers about a tenth of the pairs (four fifths of them yes or no, the others maybe), or, as what
could be reached, all true labels. Texts are TF-IDF features, or vectors of an embedding that an
installed package carries. Everything else is the default; rates and class priors are estimated.

Each training is a process of its own with one thread, whose time and peak memory are measured. What
the result holds already is not run again. ``--rows 43410`` trains on all comments.
"""

import argparse
import itertools
import json
import multiprocessing
import resource
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from comes.answers import Answers
from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import case_b, simulate_answers
from comes.metrics import average_precision, mean_average_precision
from comes.tables import ColumnEncoder

RESULT = Path(__file__).parent / "results" / "texts.json"
FEATURES = ("tfidf", "wordllama")
ASKED, SURE, EXCLUDED = 0.1, 0.8, 0.5


class Learner(NamedTuple):
    """A method, and what it sees."""

    method: str
    sees: str


LEARNERS = {
    "likelihood on candidates": Learner("likelihood", "candidates"),
    "BCE on candidates": Learner("bce", "candidates"),
    "likelihood on answers": Learner("likelihood", "answers"),
    "BCE on answers": Learner("bce", "answers"),
    "supervised": Learner("bce", "truth"),
}


def draw(sees: str, relevant: Any) -> Answers:
    """Return what a learner sees of the labels."""
    if sees == "candidates":
        return Answers.from_candidates(case_b(relevant, exclude_rate=EXCLUDED, seed=0))
    if sees == "answers":
        return simulate_answers(relevant, asked_rate=ASKED, no_rate=SURE, yes_rate=SURE, seed=0)
    return Answers.from_candidates(relevant)  # all that is irrelevant is excluded


def run(features: str, title: str, n_rows: int) -> dict[str, Any]:
    """Return what a learner makes of the test comments, and what it costs."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ComesWarning)
    method, sees = LEARNERS[title]
    train, test = open_dataset("GoEmotions:train"), open_dataset("GoEmotions:test")
    train = train.take(np.arange(len(train))[:n_rows])
    started = time.perf_counter()
    encoder = ColumnEncoder(kinds={"text": "text"}, text=features)
    X = encoder.fit_transform(train.X)
    encoded = time.perf_counter()
    classifier = CandidateClassifier(method, random_state=0, verbose=-1, device="cpu")
    classifier.fit(X, answers=draw(sees, train.known_relevant()))
    fitted = time.perf_counter()
    scores = classifier.decision_function(encoder.transform(test.X))
    truth = test.known_relevant()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "texts": features,
        "learner": title,
        "rows": len(train),
        "features": X.shape[1],
        "average_precision": round(average_precision(scores, truth), 4),
        "mean_average_precision": round(mean_average_precision(scores, truth), 4),
        "epochs": len(classifier.history_.risk),
        "seconds_of_features": round(encoded - started, 1),
        "seconds_of_training": round(fitted - encoded, 1),
        "seconds_of_prediction": round(time.perf_counter() - fitted, 1),
        "peak_megabytes": round(peak),
    }


def main() -> None:
    """Run what is missing, and write the result after every training."""
    parser = argparse.ArgumentParser(description="Learners on GoEmotions, by what they see.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--rows", type=int, default=10000, help="training comments")
    parser.add_argument("--texts", nargs="+", default=FEATURES, help="tfidf, or embeddings")
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(row["texts"], row["learner"], row["rows"]) for row in rows}
    start = multiprocessing.get_context("spawn")
    for task in itertools.product(options.texts, options.learners, [options.rows]):
        if task in done:
            continue
        with start.Pool(1) as pool:  # a process of its own, so that its peak is its own
            rows.append(pool.apply(run, task))
        print(json.dumps(rows[-1]), flush=True)
        order = list(LEARNERS)
        rows.sort(key=lambda row: (row["texts"], order.index(row["learner"]), row["rows"]))
        result = {"command": "python experiments/texts.py", "rows": rows}
        with replacing_file(options.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
