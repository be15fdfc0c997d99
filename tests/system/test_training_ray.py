"""The recipe for Ray Train, run with two workers on one machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from comes.datasets import make_scenes
from comes.workflows.data import convert_dataset
from comes.workflows.fit import fit_model

DOCUMENT = Path(__file__).parents[2] / "docs" / "guide" / "training.md"
OWN_CLUSTER = {"RAY_ADDRESS": "local", "RAY_memory_monitor_refresh_ms": "0"}
ALONE = {"method": "comes-hl", "epochs": 3, "random_state": 0, "device": "cpu"}


@pytest.mark.needs("ray")
def test_the_recipe_for_ray_finds_the_model_of_one_process(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```py\n(.*?TorchTrainer.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    for written, wanted in (
        ("/shared", str(tmp_path)),
        ("num_workers=4", "num_workers=2"),
        ('"epochs": 20', '"epochs": 3, "device": "cpu"'),
    ):
        assert written in code
        code = code.replace(written, wanted)
    (tmp_path / "recipe.py").write_text(code)
    convert_dataset(make_scenes(n=200), tmp_path / "data.npz", simulate="b", rate=0.5)
    ended = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=tmp_path,
        env=os.environ | OWN_CLUSTER,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    fit_model(tmp_path / "data.npz", ALONE, output=tmp_path / "alone")
    one, two = (load_file(tmp_path / n / "model.safetensors") for n in ("alone", "model"))
    for name, weights in one.items():
        np.testing.assert_allclose(two[name], weights, atol=1e-4, err_msg=name)
