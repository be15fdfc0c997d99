"""How often 95 % intervals of `comes evaluate` are given and hold the truth, with estimated priors.

    python experiments/intervals.py

writes ``experiments/results/intervals.json``. Each draw splits up to 3000 rows of a data set into
two thirds to train on and a third to judge, and draws candidates at one exclude rate for all
labels, independently or as an exact share (case b). A linear COMES-HL estimates its class priors
from the training rows and is judged by the candidates of the other rows. The truth is the same
metric of the same rows and labels by true labels. For every metric: how many draws, how many
intervals were given, how many of those hold the truth, their mean width and share of the labels,
and the reasons for the others with numbers written as N. It takes about 15 minutes on one core.
"""

import argparse
import itertools
import json
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import case_b, independent
from comes.workflows import judge_model

RESULT = Path(__file__).parent / "results" / "intervals.json"
RATES = (0.1, 0.2, 0.5, 0.8)
MOST_ROWS = 3000
DRAWINGS = ("independent", "case b")
# Draws of each set, at every rate and both ways: 200 in all.
SEEDS = {"emotions": 4, "scene": 4, "scenes": 5, "yeast": 4, "enron": 4, "bibtex": 4}

Estimated = dict[str, Any]  # name, value, low, high, labels, reason, true
Row = tuple[str, float, int, Estimated]  # set, rate, number of labels


def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels, by its name or from a file; at most 3000 of its rows."""
    if name == "scenes":
        return make_scenes("train", MOST_ROWS)
    dataset = open_dataset(name) if folder is None else open_dataset(folder / f"{name}.npz")
    if len(dataset) <= MOST_ROWS:
        return dataset
    return dataset.take(np.random.default_rng(0).permutation(len(dataset))[:MOST_ROWS])


def exclude(
    relevant: BoolMatrix, rate: float, drawing: str, rng: np.random.Generator
) -> BoolMatrix:
    """Return candidates drawn at one exclude rate."""
    process = independent if drawing == "independent" else case_b
    return process(relevant, rate, rng)


def judge(dataset: Dataset, rate: float, drawing: str, seed: int) -> list[Estimated]:
    """Return what candidates of held-out rows say about a model, beside the truth."""
    rng = np.random.default_rng([seed, round(100 * rate), DRAWINGS.index(drawing)])
    order = rng.permutation(len(dataset))
    n_train = 2 * len(dataset) // 3
    train, held = (dataset.take(np.sort(rows)) for rows in (order[:n_train], order[n_train:]))
    model = CandidateClassifier(
        "comes-hl",
        model="linear",
        optimizer="adam",
        learning_rate=0.005,
        epochs=20,
        random_state=seed,
        verbose=-1,
    )
    candidates = exclude(train.known_relevant(), rate, drawing, rng)
    model.fit(train.X, candidates, label_names=dataset.label_names)
    relevant = held.known_relevant()
    judged = Dataset(held.X, held.label_names, exclude(relevant, rate, drawing, rng), relevant)
    estimated = judge_model(model, judged).estimated
    assert estimated is not None
    return [{"name": name} | metric for name, metric in estimated["metrics"].items()]


def summarise(found: list[Estimated], n_labels: list[int]) -> dict[str, Any]:
    """Return the counts of one metric over draws."""
    given = [(m, q) for m, q in zip(found, n_labels, strict=True) if m["reason"] is None]
    held = [m["low"] <= m["true"] <= m["high"] for m, _ in given]
    reasons = Counter(re.sub(r"-?\d[\d.e+-]*", "N", m["reason"]) for m in found if m["reason"])
    return {
        "draws": len(found),
        "printed": len(given),
        "held": int(sum(held)),
        "width": _average([m["high"] - m["low"] for m, _ in given]),
        "labels": _average([m["labels"] / q for m, q in given]),
        "reasons": dict(reasons.most_common()),
    }


def _average(values: list[float]) -> float | None:
    """Return the rounded mean, None of nothing."""
    return round(float(np.mean(values)), 4) if values else None


def draw(name: str, rate: float, drawing: str, seed: int, folder: Path | None) -> list[Row]:
    """Return every metric of one draw."""
    warnings.simplefilter("ignore", ComesWarning)  # of flagged priors, by design
    dataset = load(name, folder)
    metrics = judge(dataset, rate, drawing, seed)
    return [(name, rate, len(dataset.label_names), metric) for metric in metrics]


def count(rows: list[Row], name: str, **where: Any) -> dict[str, Any]:
    """Return the counts of one metric over the draws of one set, one rate, or all."""
    chosen = [
        (m, q)
        for data, rate, q, m in rows
        if m["name"] == name and where.get("data", data) == data and where.get("rate", rate) == rate
    ]
    return summarise([m for m, _ in chosen], [q for _, q in chosen])


def write(rows: list[Row], path: Path) -> None:
    """Write the counts over all draws, by data set and by rate."""
    names = list(dict.fromkeys(m["name"] for *_, m in rows))
    result = {
        "command": "python experiments/intervals.py",
        "metrics": {name: count(rows, name) for name in names},
        "by_data": {data: {name: count(rows, name, data=data) for name in names} for data in SEEDS},
        "by_rate": {
            str(rate): {name: count(rows, name, rate=rate) for name in names} for rate in RATES
        },
    }
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    """Draw and judge on every set, and write the counts."""
    parser = argparse.ArgumentParser(description="Intervals with estimated class priors.")
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--workers", type=int, default=2, help="draws at a time")
    options = parser.parse_args()
    tasks = [
        (name, rate, drawing, seed)
        for name, rate, drawing in itertools.product(SEEDS, RATES, DRAWINGS)
        for seed in range(SEEDS[name])
    ]
    work = Parallel(n_jobs=options.workers, verbose=5)
    parts = work(delayed(draw)(*task, options.data) for task in tasks)
    write([row for part in parts for row in part], options.out)


if __name__ == "__main__":
    main()
