"""A head for VOC2012 with every choice made on candidates: what it costs against clean labels.

    python experiments/image_choice.py [--device cuda]

needs VOC2012-160px and the ResNet-50 weights under ``$COMES_DATA``, and writes
``experiments/results/image_choice.json``. It runs both cases of the paper with three label seeds.
The class prior is estimated. Heads with five temperatures and five thresholds of evidence are
cross-fitted over the training images and judged there by the ranking risk estimated from
candidates. The chosen head is fitted on all training images and judged on the true labels of the
val images, and so are all others, to see what the choice has cost.
"""

import argparse
import itertools
import json
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.estimator import cross_fit, features_of, pretrained_backbone, sparse_head
from comes.files import replacing_file
from comes.generation import generate
from comes.metrics import mean_average_precision
from comes.priors import estimate_class_prior
from comes.selection import estimate_metrics

RESULT = Path(__file__).parent / "results" / "image_choice.json"
WEIGHTS = "weights/resnet50-v1-imagenet-fp16.safetensors"
TEMPERATURES, STANDARD_ERRORS = (1.0, 1.5, 2.0, 3.0, 4.0), (1.0, 1.5, 2.0, 2.5, 3.0)
GRID = list(itertools.product(TEMPERATURES, STANDARD_ERRORS))
CASES: list[tuple[Literal["a", "b"], float]] = [("a", 0.9), ("b", 0.1)]
Array = npt.NDArray[np.float32]


def features(device: torch.device) -> tuple[dict[float, Array], dict[float, Array], Any, Any]:
    """Return class features of both splits at every temperature, and the true labels."""
    train, val = (open_dataset(f"VOC2012-160px:{split}") for split in ("train", "val"))
    backbone = pretrained_backbone("resnet50", WEIGHTS, train.X, 224, device)
    classifier, backbone.classifier = backbone.classifier, None
    pooled = [features_of(backbone, data.X, 224, device, torch.bfloat16) for data in (train, val)]
    backbone.classifier = classifier
    found: list[dict[float, Array]] = [{}, {}]
    for own, rows in zip(found, pooled, strict=True):
        for temperature in TEMPERATURES:
            backbone.temperature = temperature
            with torch.no_grad():
                made = backbone.class_features(torch.as_tensor(rows, device=device))
            own[temperature] = made.cpu().numpy()
    return found[0], found[1], train.known_relevant(), val.known_relevant()


def run(case: Literal["a", "b"], rate: float, seed: int, data: Any, device: str) -> dict[str, Any]:
    """Return the estimates and the true metrics of every head."""
    X, X_val, relevant, relevant_val = data
    S = generate(case, relevant, None, rate=rate, seed=seed)
    prior = estimate_class_prior(X[2.0], S, random_state=seed)
    rows = []
    for temperature, errors in GRID:
        own = X[temperature]
        settings = {"epochs": 30, "random_state": seed, "device": device, "progress": False}
        head = sparse_head(own, S, prior.class_prior, errors, **settings)
        (fold,) = cross_fit([head], own, S, seed=seed, n_jobs=1)
        estimate = estimate_metrics(fold.scores, S, prior, n_resamples=0)["ranking_risk"].value
        scores = head.fit(own, S).decision_function(X_val[temperature])
        rows.append(
            {
                "temperature": temperature,
                "standard_errors": errors,
                "ranking_risk": round(estimate, 4),
                "mAP": round(mean_average_precision(scores, relevant_val), 4),
            }
        )
    return {
        "case": case,
        "seed": seed,
        "prior_error": round(float(np.abs(prior.class_prior - relevant.mean(axis=0)).mean()), 4),
        "chosen": min(rows, key=lambda row: row["ranking_risk"]),
        "default": rows[GRID.index((2.0, 2.0))],
        "best_by_truth": max(rows, key=lambda row: row["mAP"]),
        "heads": rows,
    }


def main() -> None:
    """Run both cases with three label seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    warnings.simplefilter("ignore", ComesWarning)
    data = features(torch.device(device))
    runs = []
    for (case, rate), seed in itertools.product(CASES, range(3)):
        runs.append(run(case, rate, seed, data, device))
        shown = {name: runs[-1][name] for name in ("chosen", "default", "best_by_truth")}
        print(case, seed, shown, flush=True)
    result = {"command": "python experiments/image_choice.py", "device": device, "runs": runs}
    with replacing_file(RESULT) as path:
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
