"""Heads for VOC2012 with every choice made on what was said: what it costs against true labels.

    python experiments/image_choice.py [--features FOLDER] [--device cuda]

needs VOC2012-160px and the ResNet-50 weights under ``$COMES_DATA``, and writes
``experiments/results/image_choice.json``. Both cases of the paper, and answers about a tenth of the
pairs (four fifths of them yes or no), with label seeds that nothing was decided on. Class priors
and rates are estimated. Heads differ in what they read, in the temperature, and in how much
evidence a weight needs. Each is cross-fitted over the training images and judged there by the
likelihood of what was said. The chosen head is fitted on all training images and judged on the true
labels of the val images, and so are all others, to see what the choice has cost. For the default
head: teacher, student and both, a second student, Hamming loss, and how far its probabilities can
be trusted.

Features are kept in FOLDER (train.npy, val.npy), if one is given.
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.answers import AnswerRates, Answers, answer_evidence, posterior_probability
from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import generate, simulate_answers
from comes.images import Backbone, compute_features, heads, make_backbone
from comes.images.heads import Evidence, Head, cross_score, fit_view_head, view_probe
from comes.images.network import Views, find_clusters, show_views
from comes.metrics import hamming_loss, mean_average_precision
from comes.selection import likelihood_losses
from comes.training.convex import fit_soft_targets

RESULT = Path(__file__).parent / "results" / "image_choice.json"
WEIGHTS = "weights/resnet50-v1-imagenet-fp16.safetensors"
DEFAULT = ("all", 2.0, 2.0)
GRID = [  # what is read, temperature, standard errors: one of them away from the default
    DEFAULT,
    ("both", 2.0, 2.0),
    ("classes", 2.0, 2.0),
    ("clusters", 2.0, 2.0),
    ("all", 1.5, 2.0),
    ("all", 3.0, 2.0),
    ("all", 2.0, 1.5),
    ("all", 2.0, 2.5),
]
Drawn = Literal["a", "b", "answers"]
DRAWN: tuple[Drawn, ...] = ("a", "b", "answers")
SEEDS = (10, 11, 12)
N_BINS = 10
Array = npt.NDArray[np.floating]


def main() -> None:
    """Run both cases and answers with three label seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--features", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ComesWarning)
    device = torch.device(options.device)
    splits = {split: open_dataset(f"VOC2012-160px:{split}") for split in ("train", "val")}
    backbone = make_backbone("resnet50", WEIGHTS, splits["train"].X, device=device)
    classifier, backbone.classifier = backbone.classifier, None
    pooled = {
        split: read_features(backbone, data.X, split, options.features, device)
        for split, data in splits.items()
    }
    truth = {split: data.known_relevant() for split, data in splits.items()}
    runs = []
    for drawn, seed in itertools.product(DRAWN, SEEDS):
        answers = draw(drawn, truth["train"], splits["train"].label_names, seed)
        found = run(pooled, classifier, answers, truth, seed, device)
        runs.append({"case": drawn, "seed": seed} | found)
        shown = {name: runs[-1][name] for name in ("case", "seed", "chosen", "best_by_truth")}
        print(shown, flush=True)
        result = {"command": "python experiments/image_choice.py", "device": options.device}
        with replacing_file(RESULT) as path:
            path.write_text(json.dumps(result | {"runs": runs}, indent=1) + "\n")


def read_features(
    backbone: Backbone, images: Any, split: str, folder: Path | None, device: torch.device
) -> Array:
    """Return the features of a split, from a file if it is there."""
    path = None if folder is None else folder / f"{split}.npy"
    if path is not None and path.exists():
        return np.asarray(np.load(path), dtype=np.float32)
    found = compute_features(backbone, images, device, torch.bfloat16)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, found)
    return found


def draw(drawn: Drawn, relevant: Any, names: list[str], seed: int) -> Answers:
    """Return what is said about the training images."""
    if drawn == "answers":
        said = simulate_answers(relevant, asked_rate=0.1, no_rate=0.8, yes_rate=0.8, seed=seed)
        return Answers.from_codes(said.codes, label_names=names)
    rate = 0.9 if drawn == "a" else 0.1
    return Answers.from_candidates(generate(drawn, relevant, None, rate=rate, seed=seed), names)


def run(
    pooled: dict[str, Array],
    classifier: Any,
    answers: Answers,
    truth: Any,
    seed: int,
    device: torch.device,
) -> dict[str, Any]:
    """Return the likelihood and the true mAP of every head."""
    known, about = None, {}
    clusters = find_clusters(pooled["train"], seed)
    found: list[dict[str, Any]] = []
    for kind, temperature, errors in GRID:
        classes = None if kind == "clusters" else classifier
        groups = None if kind == "classes" else clusters
        views = Views(groups, classes, temperature, pooled=kind == "all")
        X, unseen = (show_views(views, pooled[split], device) for split in ("train", "val"))
        evidence = Evidence(X, answers, views.n_sparse)
        probe = view_probe(random_state=seed, device=str(device), verbose=-1)
        heads.STANDARD_ERRORS = errors
        head, training, _ = fit_view_head(probe, evidence, known)
        known = training.rates  # estimated with the first, and used by all
        scores = cross_score(probe, evidence, known, seed)
        losses = likelihood_losses(scores, answers, known.class_prior)
        found.append(
            {
                "features": kind,
                "temperature": temperature,
                "standard_errors": errors,
                "loss": round(float(losses.mean()), 5),
                "mAP": round(mean_average_precision(head.score(unseen), truth["val"]), 4),
            }
        )
        if (kind, temperature, errors) == DEFAULT:
            about = judge(head, known.answer_rates, evidence, unseen, truth["val"])
    assert known is not None
    off = np.abs(known.class_prior - truth["train"].mean(axis=0)).mean()
    return {
        "prior_error": round(float(off), 4),
        "chosen": min(found, key=lambda head: head["loss"]),
        "default": found[GRID.index(DEFAULT)],
        "best_by_truth": max(found, key=lambda head: head["mAP"]),
        "about_default": about,
        "heads": found,
    }


def judge(
    head: Head, rates: AnswerRates, evidence: Evidence, unseen: Array, relevant: Any
) -> dict[str, Any]:
    """Return what teacher and student bring, and how good the head's probabilities are."""
    n, layer = evidence.n_sparse, cast(nn.Linear, head.layer)
    weight = layer.weight.detach().cpu().numpy()
    scaled, scores = head.scaled(unseen), head.score(unseen)
    taught = 2 * scaled[:, :n] @ weight[:, :n].T  # the bias of a label does not change its order
    learned = 2 * scaled[:, n:] @ weight[:, n:].T
    targets = posterior_probability(
        head.score(evidence.X), answer_evidence(evidence.answers, rates)
    )
    X = torch.from_numpy(head.scaled(evidence.X)[:, n:])
    second = fit_soft_targets(X, torch.as_tensor(targets, dtype=torch.float32))
    again = scaled[:, n:] @ second.weight.detach().numpy().T
    judged = {"teacher": taught, "student": learned, "both": scores, "second": taught + again}
    found: dict[str, Any] = {
        name: round(mean_average_precision(own, relevant), 4) for name, own in judged.items()
    }
    probability = 1 / (1 + np.exp(-scores.astype(np.float64)))
    found["hamming_loss"] = round(hamming_loss(probability > 0.5, relevant), 4)
    return found | trust(probability, relevant)


def trust(probability: npt.NDArray[np.float64], relevant: Any) -> dict[str, Any]:
    """Return, for ten ranges of probabilities, their mean and how often labels are relevant."""
    place = np.minimum((N_BINS * probability).astype(int), N_BINS - 1).ravel()
    count = np.bincount(place, minlength=N_BINS)
    said, true = (
        np.bincount(place, np.asarray(values, float).ravel(), N_BINS) / np.maximum(count, 1)
        for values in (probability, relevant)
    )
    error = float(np.abs(said - true) @ count / count.sum())
    return {
        "said": said.round(4).tolist(),
        "true": true.round(4).tolist(),
        "pairs": count.tolist(),
        "calibration_error": round(error, 4),
    }


if __name__ == "__main__":
    main()
