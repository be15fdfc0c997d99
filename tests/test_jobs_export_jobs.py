"""The job that writes a model as ONNX: what it says, and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.errors import ComesError, ComesWarning
from comes.workflows import predict as export_jobs
from comes.workflows.predict import export_model

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


def test_the_job_says_how_far_the_file_is_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: Any, path: Path) -> Path:
        path.write_bytes(b"a file")
        return path

    clf = CandidateClassifier("bce", epochs=1, hidden=4, random_state=0).fit(X, X[:, :3] > 0)
    monkeypatch.setattr(export_jobs, "export_onnx", write)
    monkeypatch.setattr(export_jobs, "measure_onnx", lambda *_: 1e-6)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert exported["difference"] == 1e-6
    assert exported["input"] == "features: float32 (n, 4)"
    table = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    clf.fit(table, X[:, :3] > 0)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert exported["input"] == f"features: float32 (n, {clf.n_inputs_}), encoded from 2 columns"
    monkeypatch.setattr(export_jobs, "measure_onnx", lambda *_: 0.02)
    with pytest.warns(ComesWarning, match="up to 0.02 away .* more than 1e-05"):
        export_model(clf, tmp_path / "model.onnx")
    monkeypatch.setattr(export_jobs, "find_spec", lambda _: None)
    assert export_model(clf, tmp_path / "model.onnx")["difference"] is None


def test_a_target_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"model.bin should end in .onnx"):
        export_model("no such model", tmp_path / "model.bin")
    with pytest.raises(ComesError, match="is not a folder"):
        export_model("no such model", tmp_path / "missing" / "model.onnx")
