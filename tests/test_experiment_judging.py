"""The numbers of a repeat."""

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from comes.datasets import make_scenes
from comes.estimator import CandidateClassifier
from comes.experiment.tasks import judge_classifier, true_risks
from comes.generation import case_b
from comes.metrics import Convention, evaluate, hamming_loss
from comes.selection.thresholds import cut_by_row

CONVENTIONS: tuple[Convention, ...] = ("pml", "sklearn")


def test_true_risks_are_their_definitions() -> None:
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=(7, 4)), rng.random((7, 4)) < 0.4
    hamming = ranking = 0.0
    for g, y in zip(scores, relevant, strict=True):
        hamming += sum(math.log1p(math.exp(-s if r else s)) for s, r in zip(g, y, strict=True)) / 4
        for j in range(4):
            for k in range(4):
                if y[j] and not y[k]:
                    ranking += 1 / (1 + math.exp(g[j] - g[k]))
    risks = true_risks(scores, relevant)
    assert risks == {"hamming": pytest.approx(hamming / 7), "ranking": pytest.approx(ranking / 7)}


def test_numbers_are_by_both_conventions_and_three_cuts() -> None:
    """A row without a relevant label tells the conventions apart, a level of scores the cuts."""
    dataset = make_scenes(n=60)
    relevant = dataset.known_relevant().copy()
    relevant[:5] = False
    dataset = replace(dataset, relevant=relevant)
    rows = np.arange(60)
    settings: dict[str, Any] = {"epochs": 2, "hidden": 4, "device": "cpu", "threshold": "prior"}
    classifier = CandidateClassifier("bce", class_prior=relevant.mean(axis=0), **settings)
    classifier.fit(dataset.X, case_b(relevant, exclude_rate=0.5))
    result = judge_classifier(
        classifier, dataset, rows, {"chosen": {"epochs": 2}, "tied": 1, "edges": ()}
    )
    scores = classifier.decision_function(dataset.X)
    cut = classifier.cut_scores(scores)
    for convention in CONVENTIONS:
        expected = evaluate(scores, relevant, cut, convention)
        found = getattr(result, convention)
        assert found == {name: round(value, 6) for name, value in expected.items()}
    assert result.pml != result.sklearn
    assert result.hamming_loss.zero == round(hamming_loss(scores > 0, relevant), 6)
    assert result.hamming_loss.minmax == round(hamming_loss(cut_by_row(scores), relevant), 6)
    assert len({result.pml["hamming_loss"], *asdict(result.hamming_loss).values()}) == 3
    assert (result.chosen, len(result.risk)) == ({"epochs": 2}, 2)
    assert (result.tied, result.edges) == (1, ())
