"""Whether a fit that went well is left in peace, and one that went wrong is told.

    python experiments/fit_checks.py

writes ``experiments/results/fit_checks.json``. ``fits`` has a row per fit: what `history_.warnings`
says, and the average precision on the fifth of the rows that was not trained on, which the checks
do not see. Normal fits have the defaults of their method on development sets; "slow" ones have a
tenth of the learning rate, and "genbase-like" data (463 rows, 1185 rare binary features, 27 labels)
is slow to learn by SGD. ``advice`` compares what knowing the class priors is said to be worth
(`comes fit`) with what the true priors of the training rows are worth. Irrelevant pairs are
excluded independently.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.datasets import make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.flat_settings import from_flat
from comes.methods import PAPER_TRAINING
from comes.metrics import average_precision
from comes.workflows.fit import WORTH_SAYING, measure_prior_cost

RESULT = Path(__file__).parent / "results" / "fit_checks.json"
SETS = ("emotions", "scene", "yeast", "scenes")
KINDS = {  # what is known before the colon of a sentence in `history_.warnings`
    "undertrained": "The network is undertrained",
    "nothing learned": "Nothing was learned",
    "flat labels": "The scores of label",
    "predicts nothing": "No label is predicted",
    "predicts everything": "of all labels are predicted",
}
LIKELIHOOD, COMES, BCE = {"method": "likelihood"}, {"method": "comes-hl"}, {"method": "bce"}
PUBLISHED = BCE | dict(PAPER_TRAINING)
ADAM = {"optimizer": "adam", "learning_rate": 1e-3, "epochs": 400}


class Draw(NamedTuple):
    """Rows to train on, what is said about them, and rows to judge with."""

    X: Any
    said: Any
    relevant: BoolMatrix
    X_test: Any
    relevant_test: BoolMatrix


def make_genbase_like(seed: int = 0) -> tuple[Any, BoolMatrix]:
    """Return rows of one to three families, each with motifs of its own, most of them rare."""
    rng = np.random.default_rng(seed)
    n, d, q = 463, 1185, 27
    weight = 1 / np.arange(1, q + 1)
    relevant = np.zeros((n, q), dtype=bool)
    for row in relevant:
        count = rng.choice([1, 2, 3], p=[0.8, 0.15, 0.05])
        row[rng.choice(q, count, replace=False, p=weight / weight.sum())] = True
    family, often = rng.integers(0, q, size=d), rng.random(d) < 0.15
    chance = np.where(relevant[:, family], np.where(often, 0.8, 0.05), 0.001)
    return sparse.csr_matrix((rng.random((n, d)) < chance).astype(float)), relevant


def draw(name: str, rate: float | None, seed: int) -> Draw:
    """Return a split of a set, with candidates, or with the truth where there is no rate."""
    if name == "genbase-like":
        X, relevant = make_genbase_like(seed)
    else:
        dataset = make_scenes("train", 2000) if name == "scenes" else open_dataset(name)
        X, relevant = np.asarray(dataset.X), dataset.known_relevant()
    train, test = train_test_split(np.arange(len(relevant)), test_size=0.2, random_state=seed)
    own, rng = relevant[train], np.random.default_rng(seed)
    said: Any = Answers(no=~own, yes=own)
    if rate is not None:
        said = own | (rng.random(own.shape) >= rate)
    return Draw(X[train], said, own, X[test], relevant[test])


def fit(data: Draw, settings: dict[str, Any]) -> CandidateClassifier:
    """Return a fitted classifier; its warnings are in its history."""
    settings = from_flat({"random_state": 0, "progress": False, **settings})
    return CandidateClassifier(**settings).fit(data.X, data.said)


def judge(fitted: CandidateClassifier, data: Draw) -> float:
    """Return the average precision on other rows."""
    return round(average_precision(fitted.decision_function(data.X_test), data.relevant_test), 3)


def check(title: str, name: str, rate: float | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of one fit."""
    data = draw(name, rate, seed=0)
    fitted = fit(data, settings)
    said = " ".join(fitted.history_.warnings)
    return {
        "fit": title,
        "set": name,
        "rate": rate,
        **{kind: sentence in said for kind, sentence in KINDS.items()},
        "average_precision": judge(fitted, data),
        "seconds": round(fitted.history_.seconds, 1),
    }


def compare_advice(name: str, rate: float, seed: int) -> dict[str, Any]:
    """Return what class priors are said to be worth, and what the true ones are worth."""
    data = draw(name, rate, seed)
    estimated = fit(data, LIKELIHOOD)
    known = fit(data, LIKELIHOOD | {"class_prior": data.relevant.mean(axis=0)})
    cost = measure_prior_cost(estimated, data.X)
    return {
        "set": name,
        "rate": rate,
        "seed": seed,
        "cost": round(cost, 3),
        "is_said": cost > WORTH_SAYING,
        "gain": round(judge(known, data) - judge(estimated, data), 3),
    }


def main() -> None:
    """Run everything and write the result."""
    warnings.simplefilter("ignore", ComesWarning)
    started = time.perf_counter()
    rates: tuple[float | None, ...] = (0.1, 0.5, None)
    fits = [
        check(title, name, rate, settings)
        for name in SETS
        for rate in rates
        for title, settings in (("likelihood", LIKELIHOOD), ("comes-hl", COMES))
        if rate is not None or title == "likelihood"
    ]
    slow = LIKELIHOOD | {"learning_rate": 5e-5}
    fits += [check("likelihood, slow", name, rate, slow) for name in SETS for rate in rates]
    for rate in (None, 0.5):
        fits.append(check("bce, as published", "genbase-like", rate, PUBLISHED))
        fits.append(check("bce, adam, 400 epochs", "genbase-like", rate, PUBLISHED | ADAM))
        fits.append(check("bce", "genbase-like", rate, BCE))
        fits.append(check("likelihood", "genbase-like", rate, LIKELIHOOD))
    advice = [
        compare_advice(name, rate, seed) for name in SETS for rate in (0.1, 0.5) for seed in (0, 1)
    ]
    seconds = round(time.perf_counter() - started)
    with replacing_file(RESULT) as path:
        text = json.dumps({"fits": fits, "advice": advice, "seconds": seconds}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
