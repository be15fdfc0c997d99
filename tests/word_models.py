"""A stand-in for the package model2vec: a vector for each word, as json in a folder."""

import json
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest


class StaticModel:
    """The mean vector of the words that are known."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors
        self.dim = len(next(iter(vectors.values())))

    @classmethod
    def from_pretrained(cls, folder: str) -> "StaticModel":
        return cls(json.loads(Path(folder, "vectors.json").read_text()))

    def encode(self, texts: Sequence[str]) -> Any:
        known = [[self.vectors[w] for w in t.lower().split() if w in self.vectors] for t in texts]
        return np.array([np.mean(v, axis=0) if v else np.zeros(self.dim) for v in known])


def save_model(folder: Path, vectors: Mapping[str, Sequence[float]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"model_type": "model2vec"}')
    (folder / "vectors.json").write_text(json.dumps(vectors))
    return folder


def stand_in_for_model2vec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model2vec", types.SimpleNamespace(StaticModel=StaticModel))
