"""What is loaded is what was saved: rotten bits and edited descriptions are noticed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.errors import ComesError
from comes.estimator import load_model
from comes.estimator.checksums import find_system_error

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["red", "green", "blue"])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    CandidateClassifier("bce", epochs=1, hidden=4).fit(X, X > 0).save(tmp_path / "model")
    return tmp_path / "model"


def edit(model: Path, **changes: Any) -> None:
    """Change what the description of a model says."""
    path = model / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_every_bit_of_the_weights_counts(model: Path) -> None:
    path = model / "model.safetensors"
    whole = path.read_bytes()
    for place in (len(whole) - 1, len(whole) // 2, len(whole) - 100):
        rotten = bytearray(whole)
        rotten[place] ^= 1
        path.write_bytes(bytes(rotten))
        with pytest.raises(ComesError, match=r"model\.safetensors is damaged.*fit it again"):
            load_model(model)
    path.write_bytes(whole)
    load_model(model)


@pytest.mark.parametrize(
    "changes",
    [
        {"feature_names": ["blue", "green", "red"]},
        {"label_names": ["blue", "green", "red"]},
        {"n_features": 4},
        {"checksums": 3},
    ],
)
def test_an_edited_description_is_told(model: Path, changes: dict[str, Any]) -> None:
    edit(model, **changes)
    with pytest.raises(ComesError, match=r"model\.json (was changed after|is damaged)"):
        load_model(model)


def test_another_layout_and_a_model_without_checksums_load(model: Path) -> None:
    before = load_model(model).decision_function(X)
    edit(model)
    np.testing.assert_array_equal(load_model(model).decision_function(X), before)
    described = json.loads((model / "model.json").read_text())
    del described["checksums"]
    (model / "model.json").write_text(json.dumps(described))
    np.testing.assert_array_equal(load_model(model).decision_function(X), before)


def test_an_error_of_the_system_is_found_in_a_message() -> None:
    error = find_system_error(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )
    assert error is not None and (error.errno, error.strerror) == (28, "No space left on device")
    assert find_system_error("invalid header") is None
