"""What yes, maybe and who was asked are worth: learners on the same simulated answers.

    python experiments/answers.py

writes ``experiments/results/answers.json``, a row per (set, seed, learner). The rows of a set are
split 80/20 anew with every seed; one pair in ten is asked about, and 80 % of the answers are sure
(`comes.generation.simulate_answers`). Learners see all answers, no and maybe (yes counts as maybe),
candidates (only no), or the truth; rates are estimated, or the ones drawn with. All with the
defaults of `CandidateClassifier`.

``rates`` compares estimated rates with the shares among the same answers that only the truth can
count, over all labels. ``--data FOLDER`` reads ``FOLDER/SET.npz`` (`comes convert SET -o SET.npz`)
in the place of names.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from comes.answers import Answers, BoolMatrix
from comes.datasets import Dataset, load_dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import simulate_answers
from comes.metrics import evaluate
from comes.priors import count_class_prior, estimate_answer_rates

RESULT = Path(__file__).parent / "results" / "answers.json"
SETS = ("scenes", "scene", "yeast", "emotions", "enron", "bibtex")
ASKED, SURE = 0.1, 0.8  # of pairs; of answers, no and yes alike
METRICS = ("average_precision", "mean_average_precision")
EXCLUDE_RATE = {"exclude_rate": ASKED * SURE}
NO_RATE = {"no_rate": SURE, "yes_rate": 0.0}
RATES = {"no_rate": SURE, "yes_rate": SURE}


class Learner(NamedTuple):
    """A method, what it sees, and what it knows."""

    method: str
    sees: str
    rates: dict[str, float] | None = None
    knows_prior: bool = False


LEARNERS = {
    "BCE on candidates": Learner("bce", "candidates"),
    "COMES-HL on candidates, true priors": Learner("comes-hl", "candidates", None, True),
    "likelihood on candidates": Learner("likelihood", "candidates"),
    "likelihood on candidates, true rate": Learner("likelihood", "candidates", EXCLUDE_RATE),
    "likelihood on candidates, true rate and priors": Learner(
        "likelihood", "candidates", EXCLUDE_RATE, True
    ),
    "likelihood on no and maybe": Learner("likelihood", "no and maybe"),
    "likelihood on no and maybe, true rate": Learner("likelihood", "no and maybe", NO_RATE),
    "COMES-HL on no and maybe, true priors": Learner("comes-hl", "no and maybe", None, True),
    "likelihood on all answers": Learner("likelihood", "all"),
    "likelihood on all answers, true rates": Learner("likelihood", "all", RATES),
    "BCE on all answers": Learner("bce", "all"),
    "BCE on true labels": Learner("bce", "truth"),
    "likelihood on true labels": Learner("likelihood", "truth", {"no_rate": 1.0, "yes_rate": 1.0}),
}


def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels, by its name or from a file."""
    if folder is not None:
        return open_dataset(folder / f"{name}.npz")
    return make_scenes("train", 12000) if name == "scenes" else load_dataset(name)


def look(answers: Answers, relevant: BoolMatrix, sees: str) -> BoolMatrix | Answers:
    """Return what a learner sees."""
    if sees == "all":
        return answers
    if sees == "no and maybe":
        return Answers(no=answers.excluded, maybe=answers.doubtful | answers.confirmed)
    return answers.candidates if sees == "candidates" else Answers(no=~relevant, yes=relevant)


def run(name: str, seed: int, names: Sequence[str], folder: Path | None) -> dict[str, Any]:
    """Return what every learner makes of the answers of one draw."""
    dataset = load(name, folder)
    relevant = dataset.known_relevant()
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    X = np.asarray(dataset.X, dtype=np.float32) if isinstance(dataset.X, np.ndarray) else dataset.X
    answers = simulate_answers(
        relevant[train], asked_rate=ASKED, no_rate=SURE, yes_rate=SURE, seed=seed
    )
    rows = []
    for title in names:
        learner = LEARNERS[title]
        known: dict[str, Any] = dict(learner.rates or {})
        if learner.knows_prior:
            known["class_prior"] = count_class_prior(relevant[train])
        classifier = CandidateClassifier(learner.method, **known, random_state=seed, progress=False)
        started = time.perf_counter()
        classifier.fit(X[train], look(answers, relevant[train], learner.sees))
        seconds = time.perf_counter() - started
        scores = classifier.decision_function(X[test])
        found = evaluate(scores, relevant[test], classifier.cut_scores(scores))
        row: dict[str, Any] = {"set": name, "seed": seed, "learner": title}
        row |= {metric: round(found[metric], 4) for metric in METRICS}
        rows.append(row | {"seconds": round(seconds, 1)})
    return {"rows": rows, "rates": check_rates(X[train], answers, relevant[train], name, seed)}


def check_rates(
    X: Any, answers: Answers, relevant: BoolMatrix, name: str, seed: int
) -> list[dict[str, Any]]:
    """Return estimated rates of no and yes beside the shares that know the truth."""
    estimate = estimate_answer_rates(X, answers)
    assert answers.asked is not None
    found = []
    for rate, error, said, truth in (
        ("no", estimate.no_error, answers.excluded, ~relevant),
        ("yes", estimate.yes_error, answers.confirmed, relevant),
    ):
        asked = (answers.asked & truth).sum(axis=0)
        row: dict[str, Any] = {"set": name, "seed": seed, "rate": rate}
        estimated = estimate.no_rate if rate == "no" else estimate.yes_rate
        row["estimated"] = round(weigh(estimated, asked), 4)
        row["counted"] = round(float((said & answers.asked).sum() / asked.sum()), 4)
        row["error"] = None if error is None else round(weigh(error, asked), 4)
        found.append(row)
    return found


def weigh(values: npt.NDArray[np.float64], weights: npt.NDArray[np.int64]) -> float:
    """Return the mean over labels, weighted by the answers that each has."""
    return float(np.average(values, weights=weights))


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Learners on the same simulated answers.")
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="tasks (set, seed) at a time")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ComesWarning)
    tasks = [(name, seed) for name in options.sets for seed in range(options.seeds)]
    rows: list[dict[str, Any]] = []
    rates: list[dict[str, Any]] = []
    work = Parallel(n_jobs=options.workers, return_as="generator")
    for found in work(delayed(run)(*task, options.learners, options.data) for task in tasks):
        rows, rates = rows + found["rows"], rates + found["rates"]
        print(json.dumps(found["rows"][-1]), flush=True)
        result = {
            "command": "python experiments/answers.py",
            "asked_rate": ASKED,
            "no_rate": SURE,
            "yes_rate": SURE,
            "rows": rows,
            "rates": rates,
        }
        with replacing_file(options.out) as temporary:  # what is there after an interruption
            temporary.write_text(json.dumps(result, indent=1) + "\n")
    print(summarise(rows))


def summarise(rows: Sequence[dict[str, Any]]) -> str:
    """Return the mean of every learner, over seeds and then over sets."""
    table = pd.DataFrame(rows).groupby(["learner", "set"], sort=False)[list(METRICS)].mean()
    return str(table.groupby("learner", sort=False).mean().round(4).to_string())


if __name__ == "__main__":
    main()
