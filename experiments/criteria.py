"""Which criterion chooses best among models, where all that judges them is what was said.

    python experiments/criteria.py

writes ``experiments/results/criteria.json``, a row per (set, what was said, seed). Of each set 30 %
of the rows test and 21 % are held out; models are trained on the rest, with class priors and rates
estimated from what was said, by several methods, each with three learning rates and two numbers of
epochs. Each model is judged on the held-out rows by every criterion, and on the true labels of the
test rows by average precision and mAP.

What is said: candidates drawn independently at two rates, or the set's own, and answers (no and yes
are said at a rate of 0.8) about one pair in ten or four. What the result holds already is not run
again, so that it can be stopped. ``--data FOLDER`` reads ``FOLDER/SET.npz`` in the place of names.
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from comes.answers import Answers
from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier, fit_together
from comes.files import replacing_file
from comes.flat_settings import from_flat, frozen_settings
from comes.generation import independent, simulate_answers
from comes.metrics import average_precision, mean_average_precision
from comes.priors import estimate_answer_rates, estimate_class_prior
from comes.selection import choose_thresholds, estimate_metrics, likelihood_losses

RESULT = Path(__file__).parent / "results" / "criteria.json"
SETS = ("emotions", "scene", "yeast", "scenes")
DRAWS: list[tuple[str, float | None]] = [
    *itertools.product(("candidates",), (0.1, 0.5)),
    *itertools.product(("answers",), (0.1, 0.4)),
]
CASES = [(name, *draw) for name in SETS for draw in DRAWS] + [
    ("mirflickr5000", "own candidates", None),
    ("mirflickr5000", "answers", 0.1),
]
BY_SGD = list(itertools.product(("sgd",), (1e-3, 5e-3, 2.5e-2), (20, 60)))
BY_ADAM = list(itertools.product(("adam",), (1e-4, 5e-4, 2.5e-3), (8, 24)))
ON_CANDIDATES = ("bce", "ccmn", "ctl", "comes-hl", "comes-rl")
ON_ANSWERS = ("bce", "comes-hl", "comes-rl")  # others see no more than candidates


class Model(NamedTuple):
    """A method and how it is trained."""

    method: str
    optimizer: str
    learning_rate: float
    epochs: int


class Known(NamedTuple):
    """What is estimated from what was said, and given to every model."""

    class_prior: Any
    rates: dict[str, Any]  # of answers, for the likelihood


def load(name: str, folder: Path | None) -> Dataset:
    """Return a set with true labels, by its name or from a file."""
    if name == "scenes":
        return make_scenes("train", 2000)
    return open_dataset(name) if folder is None else open_dataset(folder / f"{name}.npz")


def say(dataset: Dataset, rows: Any, how: str, rate: float | None, seed: int) -> Answers:
    """Return what is said about rows."""
    if rate is None:
        assert dataset.candidates is not None
        return Answers.from_candidates(dataset.candidates[rows])
    relevant = dataset.known_relevant()[rows]
    if how == "candidates":
        return Answers.from_candidates(independent(relevant, rate, seed=seed))
    return simulate_answers(relevant, asked_rate=rate, seed=seed)


def learn(X: Any, said: Answers, seed: int) -> Known:
    """Return the class prior and rates that what was said suggests."""
    if said.kind == "candidates":
        return Known(estimate_class_prior(X, said.candidates, random_state=seed), {})
    found = estimate_answer_rates(X, said, random_state=seed)
    rates = {"no_rate": found.rates.no_rate, "yes_rate": found.rates.yes_rate}
    return Known(found.class_prior, rates)


def list_models(said: Answers) -> list[Model]:
    """Return the models to choose from."""
    others = ON_CANDIDATES if said.kind == "candidates" else ON_ANSWERS
    settings = [(method, BY_SGD) for method in others] + [("likelihood", BY_ADAM)]
    return [Model(method, *own) for method, grid in settings for own in grid]


def make_classifier(model: Model, known: Known, seed: int) -> CandidateClassifier:
    """Return a model, one network, not fitted, with the class prior and rates."""
    more: dict[str, Any] = {}
    if model.method == "likelihood":
        weight = 0.3 if known.rates else 1.0
        more = {**known.rates, "optimizer": "adam", "starts_at_prior": True, "prior_weight": weight}
    if model.method == "ccmn":
        more = {"flip_rate": "class_prior"}
    more |= {"class_prior": known.class_prior, "random_state": seed, "progress": False}
    settings = frozen_settings(model.method, None, None, {**model._asdict(), **more})
    return CandidateClassifier(**from_flat(settings))


def judge(classifier: CandidateClassifier, X: Any, said: Answers, prior: Any) -> dict[str, float]:
    """Return what every criterion says of a model; less is better."""
    scores = classifier.decision_function(X).astype(np.float64)
    aligned = scores - classifier.score_offset_
    cut = aligned > choose_thresholds(aligned, said, prior, "prior")
    ranking, others = (
        estimate_metrics(g, said, prior, predictions=cut, n_resamples=0) for g in (scores, aligned)
    )
    found = {
        "likelihood": likelihood_losses(aligned, said, prior).mean(),
        "likelihood, own levels": likelihood_losses(
            aligned, said, prior, calibration="slope"
        ).mean(),
        "likelihood as it is": likelihood_losses(aligned, said, prior, calibration="none").mean(),
        "ranking": ranking["ranking_risk"].value,
        "hamming": others["hamming_loss"].value,
        "auc": -others["macro_auc"].value,
        "own risk": classifier.risk(X, said),
        "risk of training": classifier.risk(X, said, corrected=True),
    }
    return {name: round(float(value), 6) for name, value in found.items()}


def run(name: str, how: str, rate: float | None, seed: int, folder: Path | None) -> dict[str, Any]:
    """Return what the criteria and the truth say of every model on one set."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ComesWarning)
    dataset = load(name, folder)
    X: Any = dataset.X.to_numpy(dtype=float) if hasattr(dataset.X, "to_numpy") else dataset.X
    relevant = dataset.known_relevant()
    rows, test = train_test_split(np.arange(len(relevant)), test_size=0.3, random_state=seed)
    train, held = train_test_split(np.arange(len(rows)), test_size=0.3, random_state=seed)
    said = say(dataset, rows, how, rate, seed)
    known = learn(X[rows], said, seed)
    models = list_models(said)
    classifiers = [make_classifier(model, known, seed) for model in models]
    fitted = fit_together(classifiers, X[rows], said, [train] * len(models), n_jobs=1)
    prior, found = np.asarray(known.class_prior, dtype=float), []
    for model, classifier in zip(models, fitted, strict=True):
        scores = classifier.decision_function(X[test])
        truth = {
            "average_precision": round(average_precision(scores, relevant[test]), 4),
            "mean_average_precision": round(mean_average_precision(scores, relevant[test]), 4),
        }
        judged = judge(classifier, X[rows][held], said[held], prior)
        found.append({"model": model, "criteria": judged} | truth)
    return {"data": name, "said": how, "rate": rate, "seed": seed, "found": found}


def main() -> None:
    """Run what is missing and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    runs = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else []
    done = {(r["data"], r["said"], r["rate"], r["seed"]) for r in runs}
    cases = [(*case, seed) for seed, case in itertools.product(range(options.seeds), CASES)]
    missing = [case for case in cases if case not in done]
    parallel = Parallel(n_jobs=options.workers, return_as="generator")
    for found in parallel(delayed(run)(*case, options.data) for case in missing):
        runs.append(found)
        with replacing_file(RESULT) as temporary:
            temporary.write_text(json.dumps({"runs": runs}) + "\n")
        print(found["data"], found["said"], found["rate"], found["seed"], flush=True)


if __name__ == "__main__":
    main()
