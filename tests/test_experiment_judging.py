"""The numbers of a repeat."""

import math

import numpy as np
import pytest

from comes.experiment.judging import true_risks


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
