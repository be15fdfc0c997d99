"""What yes, maybe and who was asked are worth: learners on the same simulated answers.

    python experiments/answers.py

writes ``experiments/results/answers.json``, a row per (set, seed, learner). The rows of a set are
split 80/20 anew with every seed; one pair in ten is asked about, and 80 % of the answers are sure
(`comes.generation.simulate_answers`). Learners see all answers, no and maybe (yes counts as maybe),
candidates (only no), or the truth; rates are estimated, or the ones drawn with. The likelihood is
trained as ``TRAINING`` says (one network, 40 epochs in batches of 256), which is not the default of
`CandidateClassifier`; COMES-HL and BCE as the paper trains.

``rates`` compares estimated rates over all labels with the shares of the same answers that only the
truth can count. ``--data FOLDER`` reads ``FOLDER/SET.npz``, written by `comes datasets convert`, in
the place of names. What the result holds already is not run again, so that parts can be run one
after the other.
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.flat_settings import from_flat, frozen_settings
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
TRAINING: dict[str, Any] = {  # of the likelihood; answers without a pull to class priors
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": 40,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": True,
}


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
    if name == "scenes":
        return make_scenes("train", 12000)
    return open_dataset(name) if folder is None else open_dataset(folder / f"{name}.npz")


def look(answers: Answers, relevant: BoolMatrix, sees: str) -> BoolMatrix | Answers:
    """Return what a learner sees."""
    if sees == "all":
        return answers
    if sees == "no and maybe":
        return Answers(no=answers.excluded, maybe=answers.doubtful | answers.confirmed)
    return answers.candidates if sees == "candidates" else Answers(no=~relevant, yes=relevant)


def make_classifier(learner: Learner, known: dict[str, Any]) -> CandidateClassifier:
    """Return a classifier with what the learner knows, not fitted."""
    settings = {"method": learner.method, **known}
    if learner.method != "likelihood":
        return CandidateClassifier(
            **from_flat(frozen_settings(learner.method, None, None, settings))
        )
    settings["prior_weight"] = None if learner.sees == "candidates" else 0.0
    return CandidateClassifier(**from_flat({**TRAINING, **settings}))


def run(
    name: str, seed: int, titles: Sequence[str], folder: Path | None, device: str
) -> dict[str, Any]:
    """Return what these learners make of the answers of one draw, and the estimated rates."""
    warnings.simplefilter("ignore", ComesWarning)
    dataset = load(name, folder)
    rows = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    train, test = (dataset.take(part) for part in rows)
    relevant = train.known_relevant()
    answers = simulate_answers(relevant, asked_rate=ASKED, no_rate=SURE, yes_rate=SURE, seed=seed)
    found = []
    for title in titles:
        learner = LEARNERS[title]
        known: dict[str, Any] = dict(learner.rates or {})
        if learner.knows_prior:
            known["class_prior"] = count_class_prior(relevant)
        known |= {"random_state": seed, "progress": False, "device": device}
        classifier = make_classifier(learner, known)
        started = time.perf_counter()
        classifier.fit(train.X, look(answers, relevant, learner.sees))
        seconds = time.perf_counter() - started
        scores = classifier.decision_function(test.X)
        metrics = evaluate(scores, test.known_relevant(), classifier.cut_scores(scores))
        row: dict[str, Any] = {"set": name, "seed": seed, "learner": title}
        row |= {metric: round(metrics[metric], 4) for metric in METRICS}
        found.append(row | {"seconds": round(seconds, 1)})
    return {"rows": found, "rates": check_rates(train.X, answers, relevant, name, seed)}


def check_rates(
    X: Any, answers: Answers, relevant: BoolMatrix, name: str, seed: int
) -> list[dict[str, Any]]:
    """Return estimated rates of no and yes beside the shares that know the truth."""
    found = []
    for sees in ("all", "no and maybe"):
        seen = look(answers, relevant, sees)
        assert isinstance(seen, Answers) and seen.asked is not None
        estimate = estimate_answer_rates(X, seen)
        pairs = {"no": (seen.excluded, ~relevant), "yes": (seen.confirmed, relevant)}
        for place, (rate, (said, truth)) in enumerate(pairs.items()):
            row: dict[str, Any] = {"set": name, "seed": seed, "sees": sees, "rate": rate}
            row["estimated"] = round(float(estimate.overall[place]), 4)
            row["error"] = round(float(estimate.overall_error[place]), 4)
            row["counted"] = round(float(said.sum() / (seen.asked & truth).sum()), 4)
            if said.any():
                found.append(row)
    return found


def main() -> None:
    """Run what is missing, and write the result after every task."""
    parser = argparse.ArgumentParser(description="Learners on the same simulated answers.")
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="tasks (set, seed) at a time")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows, rates = kept.get("rows", []), kept.get("rates", [])
    done = {(row["set"], row["seed"], row["learner"]) for row in rows}
    tasks = []
    for name, seed in itertools.product(options.sets, options.seeds):
        titles = [title for title in options.learners if (name, seed, title) not in done]
        tasks += [(name, seed, titles, options.data, options.device)] if titles else []
    work = Parallel(n_jobs=options.workers, return_as="generator_unordered")
    for found in work(delayed(run)(*task) for task in tasks):
        rows += found["rows"]
        rates = [rate for rate in rates if place(rate) != place(found["rates"][0])]
        rates += found["rates"]
        write(options.out, rows, rates)
        print(json.dumps(found["rows"]), flush=True)
    print(summarise(rows))
    print(count_hits(rates))


def place(row: dict[str, Any]) -> tuple[int, int, int]:
    """Return where a row stands in the result: by set, seed and learner."""
    learner = list(LEARNERS).index(row["learner"]) if "learner" in row else 0
    return SETS.index(row["set"]), row["seed"], learner


def write(path: Path, rows: list[dict[str, Any]], rates: list[dict[str, Any]]) -> None:
    """Write the result, in an order that does not depend on what was done first."""
    result: dict[str, Any] = {"command": "python experiments/answers.py"}
    result |= {"asked_rate": ASKED, "no_rate": SURE, "yes_rate": SURE}
    rows.sort(key=place)
    result |= {"rows": rows, "rates": sorted(rates, key=place)}
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def summarise(rows: Sequence[dict[str, Any]]) -> str:
    """Return the mean of every learner, over seeds and then over sets."""
    table = pd.DataFrame(rows).groupby(["learner", "set"], sort=False)[list(METRICS)].mean()
    return str(table.groupby("learner", sort=False).mean().round(4).to_string())


def count_hits(rates: Sequence[dict[str, Any]]) -> str:
    """Return how often an estimated rate is within two standard errors of the counted one."""
    table = pd.DataFrame(rates)
    table["distance"] = (table["estimated"] - table["counted"]).abs()
    table["hit"] = table["distance"] <= 2 * table["error"]
    found = table.groupby(["sees", "rate"], sort=False)[["hit", "distance", "error"]].mean()
    return str(found.round(3).to_string())


if __name__ == "__main__":
    main()
