"""Rows that a classifier was trained on are recognised, before and after it is saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes.estimator import CandidateClassifier, count_seen_rows, seen_rows

X = np.random.default_rng(0).normal(size=(90, 4))


def fit(rows: Any) -> CandidateClassifier:
    return CandidateClassifier("bce", model="linear", epochs=1).fit(rows, X[:60, :2] > 0)


def test_training_rows_are_counted_and_others_are_not(tmp_path: Path) -> None:
    classifier = fit(X[:60])
    assert count_seen_rows(classifier, X[60:]) == 0
    assert count_seen_rows(classifier, X[50:]) == 10
    assert count_seen_rows(classifier, X[:60][::-1]) == 60
    assert count_seen_rows(classifier, X[:60] + 1e-4) == 0
    assert count_seen_rows(classifier, sparse.csr_array(X[50:])) == 10
    classifier.save(tmp_path / "model")
    assert count_seen_rows(CandidateClassifier.load(tmp_path / "model"), X[50:]) == 10


def test_a_model_that_remembers_nothing_has_seen_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = fit(X[:60])
    classifier.seen_rows_ = None
    assert count_seen_rows(classifier, X) == 0
    monkeypatch.setattr(seen_rows, "MOST_ROWS", 20)
    assert count_seen_rows(fit(X[:60]), X) == 20
