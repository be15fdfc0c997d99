"""``comes fit``, ``predict``, ``evaluate`` and ``report`` on a folder of pictures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.models import make_backbone
from pictures import LABELS, write_pictures

BACKBONE = "timm:resnet10t"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with photos/, photos.csv and weights.pth."""
    write_pictures(tmp_path, n=60)
    torch.manual_seed(0)
    torch.save(make_backbone(BACKBONE).network.state_dict(), tmp_path / "weights.pth")
    return tmp_path


def fit_arguments(folder: Path) -> list[str]:
    options = {"labels": "has_*", "images": "photos", "weights": "weights.pth"}
    options |= {"relevant": "is_*", "backbone": BACKBONE, "image-size": "32"}
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    for name in ("photos", "weights.pth"):
        given[given.index(name)] = str(folder / name)
    return ["fit", str(folder / "photos.csv"), *given, "-o", str(folder / "model")]


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_from_a_folder_of_pictures_to_predictions_and_pages(folder: Path) -> None:
    fitted = run(*fit_arguments(folder), "--freeze")
    assert "60 images" in fitted["data"]
    model, photos = str(folder / "model"), str(folder / "photos")
    reading = ["--labels", "has_*", "--relevant", "is_*", "--images", photos]
    table = str(folder / "photos.csv")

    output = folder / "predictions.csv"
    assert run("predict", photos, "-m", model, "-o", str(output))["rows"] == 60
    predictions = pd.read_csv(output)
    assert predictions["item"].tolist()[:2] == ["000.png", "001.png"]
    again = folder / "again.csv"
    run("predict", table, "--images", photos, "-m", model, "-o", str(again))
    pd.testing.assert_frame_equal(pd.read_csv(again), predictions)

    found = run("evaluate", table, *reading, "-m", model)
    assert 0 < found["mean_average_precision"] <= 1
    assert "hamming_loss" in found["estimated"]["metrics"]

    page = run("report", table, *reading, "-m", model, "-o", str(folder / "page"))
    assert page["rows"] == 60
    text = (folder / "page" / "index.html").read_text()
    assert all(label in text for label in LABELS) and "data:image/jpeg" in text


def test_fine_tuning_keeps_its_state_until_it_is_done(folder: Path) -> None:
    tuning = ["--epochs", "2", "--batch-size", "20", "--part-size", "8"]
    fitted = run(*fit_arguments(folder), "--image-features", "pooled", *tuning)
    assert fitted["epochs"] == 2
    assert not (folder / "model.checkpoint").exists()


def test_a_state_of_another_training_is_not_taken(folder: Path) -> None:
    torch.save({"fingerprint": "another"}, folder / "model.checkpoint")
    with pytest.raises(ComesError, match="belongs to another training"):
        run(*fit_arguments(folder), "--epochs", "1")


def test_two_processes_find_the_model_of_one(folder: Path) -> None:
    tuning = ["--epochs", "2", "--batch-size", "16", "--augment", "none", "--device", "cpu"]
    tuning += ["--learning-rate", "1e-3", "--image-features", "pooled"]
    run(*fit_arguments(folder), *tuning)
    shutil.move(folder / "model", folder / "one")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launcher, "--nproc-per-node", "2", "-m", "comes", *fit_arguments(folder), *tuning]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    from safetensors.numpy import load_file

    one, two = (load_file(folder / name / "model.safetensors") for name in ("one", "model"))
    for name, weights in one.items():
        np.testing.assert_allclose(two[name], weights, atol=2e-4, err_msg=name)
    assert done.stdout.count("model:") == 1  # one process speaks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--freeze", "--epochs", "3"], "take one"),
        (["--select", "lr"], "are for tables"),
        (["--model", "linear"], "are for tables"),
        (["--learning-rate", "1"], "--learning-rate is for fine-tuning"),
        (["--augment", "crop"], "--augment is for fine-tuning"),
        (["--method", "auto"], "are for tables"),
        (["--backbone", "resnet18"], "backbone must be"),
        (["--image-features", "some"], "features must be one of"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(ComesError, match=message):
        run(*fit_arguments(folder), *arguments)


def test_options_of_images_need_images(folder: Path) -> None:
    pd.DataFrame({"x": [0.5, 1.5], "has_sky": [0, 1]}).to_csv(folder / "table.csv", index=False)
    with pytest.raises(ComesError, match="has no images"):
        table = str(folder / "table.csv")
        run("fit", table, "--labels", "has_*", "--freeze", "-o", str(folder / "m"))


def test_models_and_data_of_two_kinds_do_not_mix(folder: Path) -> None:
    run(*fit_arguments(folder))
    model, photos = str(folder / "model"), str(folder / "photos")
    table = str(folder / "photos.csv")
    with pytest.raises(ComesError, match=r"\(--images\)"):
        run("evaluate", table, "--relevant", "is_*", "-m", model)
    with pytest.raises(ComesError, match="must be given"):
        run("predict", table, "-m", model, "-o", str(folder / "p.csv"))
    with pytest.raises(ComesError, match="has no picture"):
        (folder / "empty").mkdir()
        run("predict", str(folder / "empty"), "-m", model, "-o", str(folder / "p.csv"))
    with pytest.raises(ComesError, match="one file of data"):
        run("report", table, table, "--images", photos, "-m", model)
    with pytest.raises(ComesError, match="add --model"):
        run("report", "runs", "--images", photos)
    with pytest.raises(ComesError, match="label"):  # another list of labels
        run("evaluate", table, "--relevant", "is_left,is_right", "--images", photos, "-m", model)


def test_broken_pictures_are_left_out_if_asked(folder: Path) -> None:
    (folder / "photos" / "003.png").write_bytes(b"no picture")
    (folder / "photos" / "004.png").unlink()
    with pytest.raises(ComesError, match="1 of 60 images are not in photos"):
        run(*fit_arguments(folder))
    with pytest.warns(UserWarning, match="2 images cannot be read and are left out"):
        fitted = run(*fit_arguments(folder), "--skip-broken")
    assert "58 images" in fitted["data"]
    photos, model = str(folder / "photos"), str(folder / "model")
    with pytest.raises(ComesError, match=r"'003.png' cannot be read"):
        run("predict", photos, "-m", model, "-o", str(folder / "p.csv"))
    with pytest.warns(UserWarning, match="1 images cannot be read"):
        run("predict", photos, "--skip-broken", "-m", model, "-o", str(folder / "p.csv"))
    assert len(pd.read_csv(folder / "p.csv")) == 58
