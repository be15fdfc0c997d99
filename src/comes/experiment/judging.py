"""The numbers of one repeat: metrics of its test rows, and how its training went."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset
from comes.datasets.dataset import take_rows
from comes.estimator import CandidateClassifier
from comes.experiment.repeats import Repeat
from comes.images import ImageClassifier
from comes.label_metrics import LABEL_METRICS, measure_labels
from comes.metrics import evaluate, hamming_loss
from comes.results import HammingByCut, RepeatResult, TrueRisk
from comes.risks import bce_risk, ranking_risk
from comes.selection.thresholds import cut_by_row

Classifier = CandidateClassifier | ImageClassifier
DIGITS = 6  # of a metric in a result
LABEL_DIGITS = 4  # of that of a label


class Found(NamedTuple):
    """What a search found for a repeat; nothing where there was none."""

    settings: Mapping[str, Any] = MappingProxyType({})
    tied: int | None = None  # how many other settings are level with them
    edges: tuple[str, ...] | None = None  # in what nothing was tried beyond them


def judge_classifier(
    classifier: Classifier, dataset: Dataset, repeat: Repeat, found: Found
) -> RepeatResult:
    """Return the numbers of a repeat."""
    relevant = dataset.known_relevant()[repeat.test]
    X = take_rows(dataset.X, repeat.test)
    if isinstance(classifier, ImageClassifier):  # other methods will ask for the same features
        scores = classifier.decision_function(X, cache=True)
    else:
        scores = classifier.decision_function(X)
    predictions = classifier.cut_scores(scores)
    return RepeatResult(
        pml=_round_values(evaluate(scores, relevant, predictions, "pml")),
        sklearn=_round_values(evaluate(scores, relevant, predictions, "sklearn")),
        hamming_loss=HammingByCut(
            zero=round(hamming_loss(scores > 0, relevant), DIGITS),
            minmax=round(hamming_loss(cut_by_row(scores), relevant), DIGITS),
        ),
        true_risk=TrueRisk(**_round_values(true_risks(scores, relevant))),
        risk=tuple(float(f"{value:.5g}") for value in classifier.history_.risk),
        seconds=round(classifier.history_.seconds, 2),
        chosen=dict(found.settings) or None,
        tied=found.tied,
        edges=found.edges,
        held_out=tuple(round(score, DIGITS) for score in classifier.history_.validation) or None,
        by_label=_measure_labels(scores, relevant, predictions),
    )


def _measure_labels(
    scores: npt.NDArray[np.floating], relevant: BoolMatrix, predictions: npt.NDArray[np.int64]
) -> dict[str, tuple[float | None, ...]]:
    """Return what a result keeps of every label."""
    table = measure_labels(scores, relevant, predictions)
    return {
        name: tuple(None if np.isnan(v) else round(v, LABEL_DIGITS) for v in table[name].tolist())
        for name in LABEL_METRICS
    }


def true_risks(scores: npt.NDArray[np.floating], relevant: BoolMatrix) -> dict[str, float]:
    """Return what the risks of the paper estimate: its Equations 2 and 4 on true labels."""
    g, y = torch.as_tensor(scores, dtype=torch.float64), torch.as_tensor(relevant)
    # With the truth for candidates and its own prior, (1 - pi_j) / n_j is 1 / n.
    ranking = ranking_risk(g, y, y.double().mean(dim=0))
    return {"hamming": float(bce_risk(g, y)), "ranking": float(ranking) - risk_floor(relevant)}


def risk_floor(relevant: BoolMatrix) -> float:
    """Return the least ranking risk that any scores can have: sum_{j<k} p(y_j = 0, y_k = 0)."""
    n_irrelevant = (~relevant).sum(axis=1)
    return float((n_irrelevant * (n_irrelevant - 1) / 2).mean())


def name_device(classifier: Classifier) -> str:
    """Return where a classifier was trained: "cpu", or the name of a GPU."""
    network = classifier.network_ if isinstance(classifier, ImageClassifier) else classifier.module_
    device = next(network.parameters()).device
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"


def _round_values(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in metrics.items()}
