"""The only file of the goldens that calls comes: plain inputs in, plain numbers out.

Settings keep the names of version 1.0.0. Where the API changes, this file changes with it, in a
commit that changes no stored number.
"""

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from starlette.testclient import TestClient
from torch import nn

from comes import (
    Answers,
    CandidateClassifier,
    ImageClassifier,
    estimate_class_prior,
    load_model,
)
from comes.annotate import collect_answers, create_project, export_answers, open_project, summarise
from comes.annotate.web.server import make_app
from comes.answers import LongAnswers
from comes.datasets import open_shards
from comes.experiment.config import Experiment, read_experiment
from comes.experiment.results import read_results
from comes.experiment.run import run_tasks
from comes.experiment.tasks import tasks_of
from comes.flat_settings import from_flat
from comes.generation import case_a, case_b, independent, simulate_answers
from comes.label_metrics import measure_labels
from comes.metrics import evaluate
from comes.priors import estimate_answer_rates, estimate_flip_rate, estimate_transition
from comes.report.experiment_page import list_means, write_report
from comes.selection import (
    check_constant_rate,
    choose_thresholds,
    compare_metrics,
    estimate_metrics,
    fit_calibration,
)

Numbers = dict[str, Any]
SHOWN = 20  # rows whose scores are stored


@contextmanager
def silent() -> Iterator[None]:
    """Short trainings warn that they are short."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def make_answers(kind: str, labels: Any, shape: tuple[int, int]) -> Answers:
    """Return labels of a kind, as `problems.labels_of_kind` draws them."""
    if kind == "candidates":
        return Answers.from_candidates(labels)
    if kind == "answers":
        return Answers(**labels)
    if kind == "ticks":
        return Answers.from_positives(labels)
    columns = (labels[name].tolist() for name in ("row", "label", "answer", "person"))
    return Answers.from_long(LongAnswers.read(*columns), shape)


# Rows


def fit_rows(
    X: Any, kind: str, labels: Any, settings: Mapping[str, Any], **fit_options: Any
) -> Numbers:
    """Fit a classifier of rows; return all that it learned."""
    n = X.shape[0]
    q = labels.shape[1] if hasattr(labels, "shape") else labels["no"].shape[1]
    q = 1 + labels["label"].max() if kind == "annotators" else q
    classifier = CandidateClassifier(**from_flat(settings))
    with silent():
        classifier.fit(X, make_answers(kind, labels, (n, q)), **fit_options)
    return learned(classifier, X)


def fit_in_parts(X: Any, candidates: Any, settings: Mapping[str, Any], parts: int) -> Numbers:
    """Fit by `partial_fit`, part by part."""
    classifier = CandidateClassifier(**from_flat(settings))
    with silent():
        for rows in np.array_split(np.arange(len(X)), parts):
            classifier.partial_fit(X[rows], candidates=candidates[rows])
    return learned(classifier, X)


def fit_sparse(
    X: Any, no: Any, yes: Any, settings: Mapping[str, Any], *, sparse_answers: bool
) -> Numbers:
    """Fit on a sparse matrix of features, with answers that are sparse, too, or not."""
    rows = sparse.csr_array(X)
    as_given = sparse.csr_array if sparse_answers else np.asarray
    classifier = CandidateClassifier(**from_flat(settings))
    with silent():
        classifier.fit(rows, Answers(no=as_given(no), yes=as_given(yes)))
    return learned(classifier, rows)


def fit_shards(
    X: Any, candidates: Any, settings: Mapping[str, Any], folder: Path, parts: int
) -> Numbers:
    """Write rows as Parquet files, and fit on their stream."""
    names = [f"x{column}" for column in range(X.shape[1])]
    for number, rows in enumerate(np.array_split(np.arange(len(X)), parts)):
        part = pd.DataFrame(X[rows], columns=names)
        for label in range(candidates.shape[1]):
            part[f"is_{label}"] = candidates[rows, label].astype(int)
        part.to_parquet(folder / f"part-{number}.parquet", index=False)
    classifier = CandidateClassifier(**from_flat(settings))
    with silent():
        classifier.fit_stream(open_shards(folder, labels=("is_*",)), buffer_rows=100)
    return learned(classifier, pd.DataFrame(X, columns=names))


def fit_table(
    frame: pd.DataFrame, answers: Mapping[str, Any], settings: Mapping[str, Any]
) -> Numbers:
    """Fit on a table of mixed columns."""
    classifier = CandidateClassifier(**from_flat(settings))
    with silent():
        classifier.fit(frame, Answers(**answers))
    encoded = classifier.encoder_.transform(frame)
    dense = encoded.toarray() if sparse.issparse(encoded) else np.asarray(encoded)
    return learned(classifier, frame) | {
        "n_features": dense.shape[1],
        "column_sums": dense.sum(axis=0),
        "encoded": dense[:3],
    }


def learned(classifier: Any, X: Any) -> Numbers:
    """Return what a fitted classifier of rows knows and predicts."""
    first = X.iloc[:SHOWN] if isinstance(X, pd.DataFrame) else X[:SHOWN]
    return {
        "class_prior": classifier.class_prior_,
        "no_rate": classifier.no_rate_,
        "yes_rate": classifier.yes_rate_,
        "flip_rate": getattr(classifier, "flip_rate_", None),
        "risk": classifier.history_.risk,
        "scores": classifier.decision_function(first),
        "probabilities": classifier.predict_proba(first),
        "threshold": classifier.threshold_,
        "predictions": classifier.predict(first),
    }


# Before training, and after


def estimate_priors(X: Any, candidates: Any, method: str) -> Numbers:
    """Estimate class priors from candidates."""
    with silent():
        estimate = estimate_class_prior(X, candidates, method, random_state=0)
    return {
        "class_prior": estimate.class_prior,
        "exclude_rate": estimate.exclude_rate,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "standard_error": estimate.standard_error,
        "flags": list(estimate.flags),
    }


def estimate_rates(X: Any, kind: str, labels: Any, shape: tuple[int, int]) -> Numbers:
    """Estimate rates of answers, by label and by person."""
    with silent():
        estimate = estimate_answer_rates(X, make_answers(kind, labels, shape), random_state=0)
    return {
        "class_prior": estimate.class_prior,
        "class_prior_error": estimate.class_prior_error,
        "no_rate": estimate.rates.no_rate,
        "yes_rate": estimate.rates.yes_rate,
        "overall": estimate.overall,
        "overall_error": estimate.overall_error,
        "people": describe(estimate.rates.people),
        "flags": list(estimate.flags),
    }


def describe(value: Any) -> Any:
    """Return a dataclass, mapping or sequence as plain values."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: describe(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(name): describe(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [describe(part) for part in value]
    return value


def estimate_noise(X: Any, candidates: Any) -> Numbers:
    """Estimate flip rates and the transition matrix."""
    with silent():
        return {
            "flip_rate": estimate_flip_rate(X, candidates, random_state=0),
            "transition": estimate_transition(X, candidates, random_state=0),
        }


def judge(kind: str, labels: Any, scores: Any, prior: Any, error: Any) -> Numbers:
    """Estimate metrics from labels that are not exact, with intervals."""
    answers = make_answers(kind, labels, scores.shape)
    with silent():
        found = estimate_metrics(
            scores, answers, prior, class_prior_error=error, n_resamples=50, seed=0
        )
    metrics = {
        name: [one.value, one.low, one.high, one.low_with_prior, one.high_with_prior]
        for name, one in found.metrics.items()
    }
    numbers = found.per_label.select_dtypes("number")
    return {
        "metrics": metrics,
        "per_label": {name: numbers[name].to_numpy() for name in numbers},
        "thresholds": {
            by: choose_thresholds(scores, answers, prior, by) for by in ("risk", "f1", "prior")
        },
    }


def judge_more(candidates: Any, relevant: Any, scores: Any, others: Any, prior: Any) -> Numbers:
    """Compare two models, calibrate one, and check the assumption of a constant rate."""
    with silent():
        compared = compare_metrics(scores, others, candidates, prior, n_resamples=50, seed=0)
        calibration = fit_calibration(scores, np.where(relevant, 0.8, -0.6))
        check = check_constant_rate(scores, candidates, ~relevant)
    return {
        "compared": describe(compared),
        "calibrated": calibration.calibrate(scores)[:SHOWN],
        "check": {
            name: value
            for name, value in describe(check).items()
            if isinstance(value, (float, np.ndarray))
        },
    }


def measure(scores: Any, relevant: Any) -> Numbers:
    """Return metrics against the truth, in both conventions, and by label."""
    by_label = measure_labels(scores, relevant)
    numbers = by_label.select_dtypes("number")
    return {
        "pml": dict(evaluate(scores, relevant, convention="pml")),
        "sklearn": dict(evaluate(scores, relevant, convention="sklearn")),
        "labels": {name: numbers[name].to_numpy() for name in numbers},
    }


def draw(relevant: Any) -> Numbers:
    """Draw candidates and answers by every process."""
    answers = simulate_answers(relevant, asked_rate=0.5, no_rate=0.8, yes_rate=0.7, seed=0)
    return {
        "case_a": case_a(relevant, flip_rate=0.4, seed=0)[:SHOWN],
        "case_b": case_b(relevant, exclude_rate=0.5, seed=0)[:SHOWN],
        "independent": independent(relevant, exclude_rate=0.5, seed=0)[:SHOWN],
        "answers": answers.codes[:SHOWN],
    }


# Pictures


class TinyNetwork(nn.Module):
    """Two convolutions with drawn weights."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU()
            )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return 16 features of every picture."""
        features: torch.Tensor = self.layers(pixels).mean(dim=(2, 3))
        return features


def fit_images(
    pixels: Any, kind: str, labels: Any, shape: tuple[int, int], settings: Mapping[str, Any]
) -> Numbers:
    """Fit a classifier of pictures on a tiny network."""
    classifier = ImageClassifier(backbone=TinyNetwork(), **from_flat(settings))
    with silent():
        classifier.fit(pixels, make_answers(kind, labels, shape))
        return learned_images(classifier, pixels)


def learned_images(classifier: Any, pixels: Any) -> Numbers:
    """Return what a fitted classifier of pictures knows and predicts."""
    return {
        "class_prior": classifier.class_prior_,
        "threshold": classifier.threshold_,
        "scores": classifier.decision_function(pixels[:SHOWN]),
        "probabilities": classifier.predict_proba(pixels[:SHOWN]),
        "predictions": classifier.predict(pixels[:SHOWN]),
    }


# Experiments


def run_experiment(config: Mapping[str, Any], folder: Path) -> Numbers:
    """Run an experiment; return its result files, and the texts of its report."""
    with silent():
        run_tasks(tasks_of(Experiment(**config)), folder / "runs", progress=False)
    found = {}
    for path in sorted((folder / "runs").glob("*/result.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for of_machine in ("seconds", "peak_memory", "peak_device_memory", "versions", "device"):
            result.pop(of_machine, None)
        for repeat in result["repeats"]:
            repeat.pop("seconds", None)
        found[path.parent.name] = result
    results = [replace(one, seconds=1.0) for one in read_results([folder / "runs"])]
    page = write_report(results, folder / "report")
    tables = {path.name: path.read_text(encoding="utf-8") for path in page.parent.glob("*.tex")}
    text = "\n".join(tables[name] for name in sorted(tables))
    text = re.sub(r"\\shortstack\{([^{}]*)\}", lambda head: head[1].replace("\\\\", ", "), text)
    kept = re.findall(r"^% .*|\\begin\{tabular\}[\s\S]*?\\end\{tabular\}", text, re.MULTILINE)
    return {"results": found, "report.tex": "\n\n".join(kept) + "\n"}  # without the captions


def plan_experiment(path: Path) -> list[str]:
    """Return the keys of the tasks of an experiment file."""
    return [task.spec.key for task in tasks_of(read_experiment(path))]


def tabulate_results(folder: Path) -> pd.DataFrame:
    """Return the table of means of the results in a folder."""
    return pd.DataFrame(list_means(read_results([folder])))


# Annotation


def annotate(folder: Path) -> Numbers:
    """Make a project, answer its cards over HTTP as two people, and export the answers."""
    items = "".join(f"text-{k},the {k}. text\n" for k in range(12))
    (folder / "items.csv").write_text(f"item,text\n{items}", encoding="utf-8")
    (folder / "classes.txt").write_text("sport\nweather\nmusic\n", encoding="utf-8")
    project = create_project(
        folder / "project",
        folder / "items.csv",
        folder / "classes.txt",
        rate=0.8,
        overlap=0.5,
        seed=3,
    )
    try:
        app = make_app(project)
        order = {name: answer_cards(app, name) for name in ("Ann", "Ben")}
        return order | exported(project, folder)
    finally:
        project.engine.dispose()


def answer_cards(app: Any, name: str) -> Numbers:
    """Answer all cards of a person by a rule, undo the first answer, and give it again."""
    asked: list[list[str]] = []
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.post("/api/join", json={"name": name})
        while cards := client.post("/api/cards", json={"tab": f"tab-of-{name}"}).json()["cards"]:
            given = [
                {
                    "card": card["card"],
                    "answer": ["no", "yes", "maybe", "no"][(card["card"] + len(name)) % 4],
                    "key": f"key-{name}-{card['card']}",
                    "seconds": 1.5,
                }
                for card in cards
            ]
            if not asked:
                first = {"tab": f"tab-of-{name}", "answers": given[:1]}
                client.post("/api/answers", json=first).raise_for_status()
                undone = {"tab": f"tab-of-{name}", "keys": [given[0]["key"]]}
                client.post("/api/undo", json=undone).raise_for_status()
                given[0]["key"] += "-again"
            sent = {"tab": f"tab-of-{name}", "answers": given}
            client.post("/api/answers", json=sent).raise_for_status()
            asked += [[card["name"], card["class"]] for card in cards]
    return {"asked": asked}


def exported(project: Any, folder: Path) -> Numbers:
    """Return what a project exports and how it sums up."""
    dataset = collect_answers(project)
    summary = summarise(project)
    return {
        "counts": export_answers(project, folder / "answers.csv"),
        "items": list(dataset.items or ()),
        "codes": dataset.known_answers().codes,
        "n_answers": summary.n_answers,
        "n_done": summary.n_done,
        "kappa": summary.agreement.kappa,
        "classes": [[row.name, row.n_excluded] for row in summary.classes],
        "answers.csv": (folder / "answers.csv").read_text(encoding="utf-8"),
    }


# What version 1.0.0 wrote


def predict_stored(folder: Path, X: Any) -> Numbers:
    """Load a model folder, and predict; that of pictures holds weights of the tiny network."""
    if folder.name == "images":
        model = ImageClassifier.load(folder, backbone=TinyNetwork())
    else:
        model = load_model(folder)
    return {
        "labels": list(model.label_names_),
        "class_prior": model.class_prior_,
        "threshold": model.threshold_,
        "scores": model.decision_function(X[:SHOWN]),
        "probabilities": model.predict_proba(X[:SHOWN]),
        "predictions": model.predict(X[:SHOWN]),
    }


def export_stored(folder: Path, target: Path) -> Numbers:
    """Open an annotation project, and export it."""
    project = open_project(folder)
    try:
        return exported(project, target)
    finally:
        project.engine.dispose()
