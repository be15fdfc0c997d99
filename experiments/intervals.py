"""How often 95 % intervals of `comes evaluate` are given and hold the truth, with estimated priors.

    python experiments/intervals.py
    python experiments/intervals.py --rows 150 300 800

The first writes ``experiments/results/intervals.json``. Each draw splits up to 3000 rows of a data
set into two thirds to train on and a third to judge, and draws candidates at one exclude rate for
all labels, independently or as an exact share (case b). A linear COMES-HL estimates its class
priors from the training rows and is judged by the candidates of the other rows. The truth is the
same metric of the same rows and labels by true labels. For every metric: how many draws, how many
intervals were given, how many of those hold the truth, their mean width and share of the labels,
and the reasons for the others with numbers written as N. It takes about 10 minutes on one core.

The second writes ``experiments/results/intervals_small.json``: the same of so many rows, drawn anew
each time, with the labels that at least three of them have, of the default classifier, with all
features and with a twentieth of them (at least five), which hardly tell labels. Two more sets are
read from the folder ``sparse`` of ``$COMES_DATA``. It takes about 10 minutes, too.
"""

import argparse
import itertools
import json
import os
import re
import warnings
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import replacing_file
from comes.generation import case_b, independent
from comes.selection import estimate_metrics
from comes.selection.intervals import OVER_LABELS

RESULTS = Path(__file__).parent / "results"
RATES, SMALL_RATES = (0.1, 0.2, 0.5, 0.8), (0.2, 0.5)
MOST_ROWS = 3000
DRAWINGS = ("independent", "case b")
# Draws of each set, at every rate and both ways: 200 in all.
SEEDS = {"emotions": 4, "scene": 4, "scenes": 5, "yeast": 4, "enron": 4, "bibtex": 4}
SMALL_SETS, SMALL_SEEDS = (*SEEDS, "medical", "yahoo-arts"), 1

Estimated = dict[str, Any]  # name, value, low, high, labels, reason, true
Features = Literal["all", "few"]


class Draw(NamedTuple):
    """What is drawn; without rows, all that there are."""

    data: str
    rate: float
    drawing: str
    seed: int
    rows: int | None = None
    features: Features = "all"


Row = tuple[Draw, int, Estimated]  # of one metric, with the number of labels


@lru_cache(1)
def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels, by its name or from a file; at most 3000 of its rows."""
    if name == "scenes":
        return make_scenes("train", MOST_ROWS)
    path = Path(os.environ.get("COMES_DATA", "")) / "sparse" / f"{name}.npz"
    if folder is not None:
        path = folder / f"{name}.npz"
    dataset = open_dataset(path if folder is not None or path.exists() else name)
    if len(dataset) <= MOST_ROWS:
        return dataset
    return dataset.take(np.random.default_rng(0).permutation(len(dataset))[:MOST_ROWS])


def take_part(dataset: Dataset, wanted: Draw) -> Dataset:
    """Return some rows, with labels that at least three of them have, and perhaps few features."""
    if wanted.rows is None:
        return dataset
    rng = _random_of(wanted)
    part = dataset.take(np.sort(rng.permutation(len(dataset))[: wanted.rows]))
    relevant, X = part.known_relevant(), part.known_features()
    shown = np.flatnonzero(relevant.sum(axis=0) >= 3)
    if wanted.features == "few":
        X = X if hasattr(X, "tocsc") else np.asarray(X, dtype=np.float64)
        n_features = X.shape[1]
        X = X[:, np.sort(rng.permutation(n_features)[: max(5, n_features // 20)])]
    names = [dataset.label_names[label] for label in shown]
    return Dataset(X, names, relevant=relevant[:, shown])


def exclude(
    relevant: BoolMatrix, rate: float, drawing: str, rng: np.random.Generator
) -> BoolMatrix:
    """Return candidates drawn at one exclude rate."""
    process = independent if drawing == "independent" else case_b
    return process(relevant, rate, rng)


def _random_of(wanted: Draw) -> np.random.Generator:
    """Return the random numbers of a draw; all features and few of them have the same."""
    numbers = [wanted.seed, round(100 * wanted.rate), DRAWINGS.index(wanted.drawing)]
    return np.random.default_rng(numbers + ([] if wanted.rows is None else [wanted.rows]))


def judge(dataset: Dataset, wanted: Draw) -> list[Estimated]:
    """Return what candidates of held-out rows say about a model, beside the truth."""
    seed = wanted.seed
    rng = _random_of(wanted)
    order = rng.permutation(len(dataset))
    n_train = 2 * len(dataset) // 3
    train, held = (dataset.take(np.sort(rows)) for rows in (order[:n_train], order[n_train:]))
    model = CandidateClassifier(random_state=seed, verbose=-1)
    if wanted.rows is None:
        model = CandidateClassifier(
            "comes-hl",
            model="linear",
            optimizer="adam",
            learning_rate=0.005,
            epochs=20,
            random_state=seed,
            verbose=-1,
        )
    candidates = exclude(train.known_relevant(), wanted.rate, wanted.drawing, rng)
    model.fit(train.X, candidates, label_names=dataset.label_names)
    relevant, scores = held.known_relevant(), model.decision_function(held.X)
    prior, cut = model.class_prior_, model.cut_scores(scores)
    assert prior is not None
    found = estimate_metrics(  # as `comes evaluate` does
        scores,
        exclude(relevant, wanted.rate, wanted.drawing, rng),
        prior,
        class_prior_error=model.class_prior_error_,
        predictions=cut,
    )
    # With the true labels as candidates and their shares as prior, the estimates are exact.
    exact = estimate_metrics(
        scores, relevant, relevant.mean(axis=0), predictions=cut, n_resamples=0
    ).per_label
    estimated = []
    for name, one in found.metrics.items():
        of_labels = exact[OVER_LABELS[name]].iloc[list(one.labels)]
        metric = {"name": name, "low": one.low_with_prior, "high": one.high_with_prior}
        metric |= {"labels": len(one.labels), "reason": one.reason}
        true = of_labels.sum() if name == "ranking_risk" else of_labels.mean()
        estimated.append(metric | {"true": float(true)})
    return estimated


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


def draw(wanted: Draw, folder: Path | None) -> list[Row]:
    """Return every metric of one draw."""
    warnings.simplefilter("ignore", ComesWarning)  # of flagged priors, by design
    dataset = take_part(load(wanted.data, folder), wanted)
    return [(wanted, len(dataset.label_names), metric) for metric in judge(dataset, wanted)]


def count(rows: list[Row], names: list[str], where: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the counts of every metric over the draws of, say, one set, or all."""
    chosen = [
        (q, metric)
        for of, q, metric in rows
        if all(getattr(of, key) == value for key, value in where.items())
    ]
    return {
        name: summarise(
            [metric for _, metric in chosen if metric["name"] == name],
            [q for q, metric in chosen if metric["name"] == name],
        )
        for name in names
    }


def write(rows: list[Row], by: tuple[str, ...], arguments: list[str], path: Path) -> None:
    """Write the counts over all draws, and by what they differ in."""
    names = list(dict.fromkeys(metric["name"] for *_, metric in rows))
    result: dict[str, Any] = {
        "command": " ".join(["python experiments/intervals.py", *arguments]),
        "metrics": count(rows, names, {}),
    }
    for key in by:
        values = dict.fromkeys(getattr(of, key) for of, *_ in rows)
        result[f"by_{key}"] = {str(v): count(rows, names, {key: v}) for v in values}
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    """Draw and judge on every set, and write the counts."""
    parser = argparse.ArgumentParser(description="Intervals with estimated class priors.")
    parser.add_argument("--data", type=Path, help="folder of SET.npz")
    parser.add_argument("--rows", type=int, nargs="+", help="few rows of the sets")
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--workers", type=int, default=2, help="draws at a time")
    options = parser.parse_args()
    if options.rows:
        features: tuple[Features, ...] = ("all", "few")
        parts = itertools.product(
            SMALL_SETS, SMALL_RATES, DRAWINGS, range(SMALL_SEEDS), options.rows, features
        )
        tasks = [Draw(*part) for part in parts]
        by: tuple[str, ...] = ("data", "rows", "rate", "features")
        arguments, out = ["--rows", *map(str, options.rows)], RESULTS / "intervals_small.json"
    else:
        tasks = [
            Draw(name, rate, drawing, seed)
            for name, rate, drawing in itertools.product(SEEDS, RATES, DRAWINGS)
            for seed in range(SEEDS[name])
        ]
        by, arguments, out = ("data", "rate"), [], RESULTS / "intervals.json"
    work = Parallel(n_jobs=options.workers, verbose=5)
    parts_found = work(delayed(draw)(task, options.data) for task in tasks)
    rows = [row for part in parts_found for row in part]
    write(rows, by, arguments, options.out or out)


if __name__ == "__main__":
    main()
