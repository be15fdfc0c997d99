"""What happened by default in 1.0.0, against other ways to train, on many sets and draws.

    python experiments/defaults.py

writes ``experiments/results/defaults.json``, a row per (set, draw, seed, learner). The rows of a
set are split 80/20 anew with every seed. Candidates are drawn independently with one rate or with
unequal ones, or by the paper's case b, or are the file's own ("real"); "answers" asks about one
pair in ten, and 80 % of the answers are sure; "truth" is fully labelled. Everything that a learner
must know is estimated, but for those that are told the class priors. Every learner that is not "as
published" has the settings of 1.0.0 where it says nothing else: `recipes.py` has the default of
today.

``held_out`` is minus the log-likelihood of what was said about the test rows, which sees no true
label. NAME:450 is a part of a set. ``--data FOLDER`` reads ``FOLDER/SET.npz``,
written by `comes datasets convert`, in the place of names. What the result holds already is not run
again.
"""

import argparse
import itertools
import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from fit_checks import make_genbase_like
from joblib import Parallel, delayed
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.flat_settings import from_flat, frozen_settings
from comes.generation import case_b, independent, simulate_answers
from comes.metrics import average_precision, mean_average_precision
from comes.priors import count_class_prior
from comes.selection import likelihood_losses
from comes.training.rows import choose_device

RESULT = Path(__file__).parent / "results" / "defaults.json"
DEVELOPMENT = ("scenes", "scene", "yeast", "emotions", "enron", "bibtex")
OTHERS = ("mirflickr5000", "YeastBP", "YeastCC", "YeastMF", "Corel5k", "goemotions", "delicious")
WITH_CANDIDATES = OTHERS[:4]
SMALL = ("scene:450", "yeast:450", "bibtex:450")
GENERATED = ("genbase-like",)
DRAWS = ("0.1", "0.3", "0.5", "case b", "unequal", "answers", "real")
BEFORE = {"n_networks": 1, "dropout": 0.0, "batch_size": 256, "epochs": 40}


class Learner(NamedTuple):
    """A method with settings, and what it is told."""

    method: str | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    as_published: bool = False
    knows_prior: bool = False


LEARNERS = {
    "default": Learner(),
    "one network": Learner(settings={"n_networks": 1}),
    "no dropout": Learner(settings={"dropout": 0.0}),
    "bias from 0": Learner(settings={"starts_at_prior": False}),
    "no pull to the class priors": Learner(settings={"prior_weight": 0.0}),
    "40 passes in batches of 256, one network, no dropout": Learner(settings=BEFORE),
    "learning rate 1e-3": Learner(settings={"learning_rate": 1e-3}),
    "50 passes": Learner(settings={"epochs": 50}),
    "1000 units, dropout 0.8": Learner(settings={"hidden": 1000, "dropout": 0.8}),
    "weight decay 1e-2": Learner(settings={"weight_decay": 1e-2}),
    "linear": Learner(settings={"model": "linear"}),
    "likelihood, as published": Learner("likelihood", as_published=True),
    "COMES-HL, as published": Learner("comes-hl", as_published=True),
    "COMES-HL, trained as the default": Learner(
        "comes-hl",
        settings={
            "optimizer": "adam",
            "learning_rate": 5e-4,
            "epochs": 25,
            "batch_size": 64,
            "dropout": 0.5,
            "n_networks": 4,
        },
    ),
    "COMES-RL, flooded": Learner("comes-rl"),
    "CCMN, as published": Learner("ccmn", as_published=True),
    "BCE": Learner("bce"),
    "BCE, as published": Learner("bce", as_published=True),
    "default, priors known": Learner(knows_prior=True),
    "COMES-HL, as published, priors known": Learner(
        "comes-hl", as_published=True, knows_prior=True
    ),
}


def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels; of NAME:450 so many rows and the labels they show."""
    name, _, n_rows = name.partition(":")
    if name == "scenes":
        dataset = make_scenes("train", 12000)
    elif name == "genbase-like":
        dataset = make_flags()
    elif folder is not None and (folder / f"{name}.npz").exists():
        dataset = open_dataset(folder / f"{name}.npz")
    else:
        path = Path(os.environ["COMES_DATA"]) / "sparse" / f"{name}.npz"
        named = open_dataset(path if path.exists() else name) if name != "goemotions" else None
        dataset = read_texts() if named is None else named
    if not n_rows:
        return dataset
    rows = np.random.default_rng(99).permutation(len(dataset))[: int(n_rows)]
    part = dataset.take(rows)
    shown = np.flatnonzero(part.known_relevant().sum(axis=0) >= 3)
    return as_set(part.X, part.known_relevant()[:, shown])


def as_set(X: Any, relevant: BoolMatrix) -> Dataset:
    """Return a set whose labels have numbers for names."""
    names = [str(label) for label in range(relevant.shape[1])]
    return Dataset(X, relevant=relevant, label_names=names)


def make_flags() -> Dataset:
    """Return few rows with many flags: 463 rows, 1185 flags, 27 labels that flags give away."""
    X, relevant = make_genbase_like()
    return as_set(X.toarray(), relevant)


def read_texts(n: int = 15000) -> Dataset:
    """Return short texts of GoEmotions as weighted words."""
    folder = Path(os.environ["COMES_DATA"]) / "text" / "goemotions"
    table = pd.read_csv(folder / "train.tsv", sep="\t", header=None, quoting=3)
    table = table.sample(n, random_state=0)
    words = TfidfVectorizer(min_df=5, sublinear_tf=True, max_features=4000)
    relevant = np.zeros((n, 28), dtype=bool)
    for row, numbers in enumerate(table[1].astype(str)):
        relevant[row, [int(number) for number in numbers.split(",")]] = True
    return as_set(words.fit_transform(table[0]), relevant)


def say(dataset: Dataset, draw: str, seed: int) -> BoolMatrix | Answers:
    """Return what is said about all rows."""
    relevant = dataset.known_relevant()
    if draw == "real":
        return dataset.known_answers().candidates
    if draw == "truth":
        return Answers(no=~relevant, yes=relevant)
    if draw == "answers":
        return simulate_answers(relevant, asked_rate=0.1, no_rate=0.8, yes_rate=0.8, seed=seed)
    if draw == "case b":
        return case_b(relevant, exclude_rate=0.1, seed=seed)
    if draw == "unequal":
        rates = np.random.default_rng(1000 + seed).uniform(0.05, 0.6, relevant.shape[1])
        return independent(relevant, exclude_rate=rates, seed=seed)
    return independent(relevant, exclude_rate=float(draw), seed=seed)


def run(
    name: str, draw: str, seed: int, titles: Sequence[str], folder: Path | None, device: str
) -> list[dict[str, Any]]:
    """Return what these learners make of one draw; what is estimated, is so once for all."""
    warnings.simplefilter("ignore", ComesWarning)
    device = choose_device(device).type
    dataset = load(name, folder)
    said = say(dataset, draw, seed)
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    X, relevant = dataset.X, dataset.known_relevant()
    X = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    shared: dict[str, Any] = {"random_state": seed, "progress": False, "device": device}
    started = time.perf_counter()
    usual = frozen_settings("likelihood", "default", None, shared)
    first = CandidateClassifier(**from_flat(usual)).fit(X[train], said[train])
    seconds = time.perf_counter() - started
    prior = first.class_prior_
    assert prior is not None
    estimated: dict[str, Any] = {"class_prior": prior}
    if draw == "answers":
        estimated |= {"no_rate": first.no_rate_, "yes_rate": first.yes_rate_}
    found = []
    for title in titles:
        learner, classifier = LEARNERS[title], first
        if title != "default":
            known = dict(estimated)
            if learner.knows_prior:
                known["class_prior"] = count_class_prior(relevant[train])
            if learner.method in ("comes-hl", "comes-rl", "bce", "ccmn"):
                known = {"class_prior": known["class_prior"]}
            if learner.method == "ccmn":
                known["flip_rate"] = "class_prior"
            method = learner.method or "likelihood"
            settings = {"method": method, **known, **shared, **learner.settings}
            training = None if learner.as_published else "default"
            settings = frozen_settings(method, training, None, settings)
            classifier = CandidateClassifier(**from_flat(settings))
            started = time.perf_counter()
            classifier.fit(X[train], said[train])
            seconds = time.perf_counter() - started
        scores = classifier.decision_function(X[test])
        row: dict[str, Any] = {"set": name, "draw": draw, "seed": seed, "learner": title}
        row["average_precision"] = round(average_precision(scores, relevant[test]), 4)
        row["mean_average_precision"] = round(mean_average_precision(scores, relevant[test]), 4)
        if draw != "truth":
            losses = likelihood_losses(scores, said[test], prior)
            row["held_out"] = round(float(losses.mean()), 5)
        found.append(row | {"seconds": round(seconds, 1), "device": device})
    return found


def regress(name: str, seed: int) -> dict[str, Any]:
    """Return what logistic regression, label by label, makes of fully labelled flags."""
    dataset = load(name, None)
    train, test = train_test_split(np.arange(len(dataset)), test_size=0.2, random_state=seed)
    X, relevant = np.asarray(dataset.X), dataset.known_relevant()
    scores = np.full((len(test), relevant.shape[1]), -np.inf)
    for j in np.flatnonzero(relevant[train].any(axis=0)):
        model = LogisticRegression(max_iter=1000).fit(X[train], relevant[train, j])
        scores[:, j] = model.decision_function(X[test])
    scores[:, ~relevant[train].any(axis=0)] = scores[np.isfinite(scores)].min() - 1
    row: dict[str, Any] = {"set": name, "draw": "truth", "seed": seed}
    row["learner"] = "logistic regression"
    row["average_precision"] = round(average_precision(scores, relevant[test]), 4)
    row["mean_average_precision"] = round(mean_average_precision(scores, relevant[test]), 4)
    return row


def main() -> None:
    """Run what is missing, and write the result after every task."""
    parser = argparse.ArgumentParser(description="The default against other ways to train.")
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sets", nargs="+", default=[*DEVELOPMENT, *OTHERS, *SMALL, *GENERATED])
    parser.add_argument("--draws", nargs="+", default=[*DRAWS, "truth"])
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="tasks at a time")
    parser.add_argument("--limit", type=float, default=np.inf, help="start nothing after seconds")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {tuple(row[key] for key in ("set", "draw", "seed", "learner")) for row in rows}
    tasks = []
    for name, draw, seed in itertools.product(options.sets, options.draws, options.seeds):
        if draw == "real" and name not in WITH_CANDIDATES:
            continue
        if (draw == "truth") != (name in GENERATED):
            continue
        titles = [t for t in options.learners if (name, draw, seed, t) not in done]
        titles = [t for t in titles if draw not in ("answers", "truth") or _can_learn(t)]
        tasks += [(name, draw, seed, titles, options.data, options.device)] if titles else []
    started = time.monotonic()
    work = Parallel(
        n_jobs=options.workers, return_as="generator_unordered", pre_dispatch="1*n_jobs"
    )
    todo = (t for t in tasks if time.monotonic() - started < options.limit)
    for name, seed in {(task[0], task[2]) for task in tasks if task[1] == "truth"}:
        rows.append(regress(name, seed))
    for found in work(delayed(run)(*task) for task in todo):
        rows += found
        write(options.out, rows)
        print(f"{time.monotonic() - started:.0f}", json.dumps(found[0]), len(found), flush=True)
    print(summarise(rows))


def _can_learn(title: str) -> bool:
    """Return whether a learner takes yes, and needs no class prior of candidates."""
    return LEARNERS[title].method in (None, "likelihood", "bce") and not LEARNERS[title].knows_prior


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the result, in an order that does not depend on what was done first."""
    learners = [*LEARNERS, "logistic regression"]
    rows.sort(key=lambda r: (r["set"], r["draw"], r["seed"], learners.index(r["learner"])))
    result = {"command": "python experiments/defaults.py", "rows": rows}
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def summarise(rows: Sequence[dict[str, Any]]) -> str:
    """Return the mean of every learner over the development sets, by draw."""
    table = pd.DataFrame(rows)
    table = table[table["set"].isin(DEVELOPMENT)]
    by_set = table.pivot_table(
        index="learner",
        columns=["draw", "set"],
        values=["average_precision", "mean_average_precision"],
        sort=False,
    )
    means = by_set.T.groupby(level=[0, 1], sort=False).mean().T
    return str(means.round(4).to_string())


if __name__ == "__main__":
    main()
