"""``comes fit``, ``predict``, ``evaluate`` and ``report`` on a folder of pictures."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.models import make_backbone
from pictures import LABELS, write_pictures

BACKBONE = "timm:resnet10t"
N = 60


@pytest.fixture(scope="module", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Features are computed once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/, photos.csv and weights.pth, which no test changes."""
    folder = tmp_path_factory.mktemp("home")
    write_pictures(folder, n=N)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.save(make_backbone(BACKBONE).network.state_dict(), folder / "weights.pth")
    return folder


@pytest.fixture(scope="module")
def model(home: Path) -> str:
    """A model of the frozen network, which no test changes."""
    fitted = run(*fit_arguments(home, home / "model"), "--freeze")
    assert f"{N} images" in fitted["data"]
    return str(home / "model")


def fit_arguments(home: Path, output: Path) -> list[str]:
    options = {
        "--labels": "has_*",
        "--relevant": "is_*",
        "--images": str(home / "photos"),
        "--weights": str(home / "weights.pth"),
        "--backbone": BACKBONE,
        "--image-size": "32",
    }
    given = [part for option in options.items() for part in option]
    return ["fit", str(home / "photos.csv"), *given, "-o", str(output)]


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_predictions_of_a_folder_are_those_of_the_table_that_names_it(
    home: Path, model: str, tmp_path: Path
) -> None:
    photos, output, again = str(home / "photos"), tmp_path / "one.csv", tmp_path / "two.csv"
    assert run("predict", photos, "-m", model, "-o", str(output))["rows"] == N
    predictions = pd.read_csv(output)
    assert predictions["item"].tolist()[:2] == ["000.png", "001.png"]
    run("predict", str(home / "photos.csv"), "--images", photos, "-m", model, "-o", str(again))
    pd.testing.assert_frame_equal(pd.read_csv(again), predictions)


def test_a_model_is_judged_and_shown(home: Path, model: str, tmp_path: Path) -> None:
    reading = ["--labels", "has_*", "--relevant", "is_*", "--images", str(home / "photos")]
    found = run("evaluate", str(home / "photos.csv"), *reading, "-m", model)
    assert 0 < found["mean_average_precision"] <= 1
    assert "hamming_loss" in found["estimated"]["metrics"]
    options = ["-m", model, "-o", str(tmp_path / "page"), "--examples", "3"]
    page = run("report", str(home / "photos.csv"), *reading, *options)
    assert page["rows"] == N
    text = (tmp_path / "page" / "index.html").read_text()
    assert all(label in text for label in LABELS) and text.count("data:image/jpeg") == 3


def test_fine_tuning_keeps_its_state_until_it_is_done(home: Path, tmp_path: Path) -> None:
    tuning = ["--epochs", "2", "--batch-size", "20", "--part-size", "8"]
    output = tmp_path / "model"
    fitted = run(*fit_arguments(home, output), "--image-features", "pooled", *tuning)
    assert fitted["epochs"] == 2
    assert not (tmp_path / "model.checkpoint").exists()


def test_a_state_of_another_training_is_not_taken(home: Path, tmp_path: Path) -> None:
    torch.save({"fingerprint": "another"}, tmp_path / "model.checkpoint")
    with pytest.raises(ComesError, match="belongs to another training"):
        run(*fit_arguments(home, tmp_path / "model"), "--epochs", "1")


@pytest.mark.slow
def test_two_processes_find_the_model_of_one(home: Path, tmp_path: Path) -> None:
    tuning = ["--epochs", "2", "--batch-size", "16", "--augment", "none", "--device", "cpu"]
    tuning += ["--learning-rate", "1e-3", "--image-features", "pooled"]
    run(*fit_arguments(home, tmp_path / "one"), *tuning)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What torchrun sets, without the seconds that it takes to start.
    together = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "comes", *fit_arguments(home, tmp_path / "two"), *tuning]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **together, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ended = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weights in one.items():
        np.testing.assert_allclose(two[name], weights, atol=2e-4, err_msg=name)
    assert [stdout.count("model:") for stdout, _ in ended] == [1, 0]  # one process speaks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--freeze", "--epochs", "3"], "Leave one of the two out"),
        (["--select", "lr"], "is for tables"),
        (["--model", "linear"], r"for tables were given \('model'\)"),
        (["--learning-rate", "1"], "learning_rate is for fine-tuning"),
        (["--augment", "crop"], "augment is for fine-tuning"),
        (["--method", "auto"], "is for tables"),
        (["--backbone", "resnet18"], "backbone must be"),
        (["--image-features", "some"], "features must be one of"),
    ],
)
def test_options_that_do_not_go_together(
    home: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(ComesError, match=message):
        run(*fit_arguments(home, tmp_path / "model"), *arguments)


@pytest.mark.parametrize("option", [["--freeze"], ["--backbone", "resnet50"]])
def test_options_of_images_need_images(tmp_path: Path, option: list[str]) -> None:
    table = tmp_path / "table.csv"
    pd.DataFrame({"x": [0.5, 1.5], "has_sky": [0, 1]}).to_csv(table, index=False)
    with pytest.raises(ComesError, match="has no images"):
        run("fit", str(table), "--labels", "has_*", *option, "-o", str(tmp_path / "m"))


def test_models_and_data_of_two_kinds_do_not_mix(home: Path, model: str, tmp_path: Path) -> None:
    table, photos = str(home / "photos.csv"), str(home / "photos")
    predict = ("-m", model, "-o", str(tmp_path / "p.csv"))
    with pytest.raises(ComesError, match=r"\(--images\)"):
        run("evaluate", table, "--relevant", "is_*", "-m", model)
    with pytest.raises(ComesError, match=r"--images"):
        run("predict", table, *predict)
    with pytest.raises(ComesError, match="images must not be empty"):
        run("predict", table, "--images", "", *predict)
    with pytest.raises(ComesError, match="has no picture"):
        (tmp_path / "empty").mkdir()
        run("predict", str(tmp_path / "empty"), *predict)
    with pytest.raises(ComesError, match="one file of data"):
        run("report", table, table, "--images", photos, "-m", model)
    with pytest.raises(ComesError, match="need --model"):
        run("report", "runs", "--images", photos)
    with pytest.raises(ComesError, match="label"):  # another list of labels
        run("evaluate", table, "--relevant", "is_left,is_right", "--images", photos, "-m", model)


def test_a_model_of_a_table_takes_no_images(home: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    values = {"x": rng.normal(size=40), "has_sky": rng.integers(0, 2, 40)}
    pd.DataFrame(values).to_csv(table, index=False)
    output = str(tmp_path / "m")
    run("fit", str(table), "--labels", "has_*", "--method", "bce", "--epochs", "1", "-o", output)
    with pytest.raises(ComesError, match="trained on a table"):
        photos, csv = str(home / "photos"), str(tmp_path / "p.csv")
        run("predict", str(table), "--images", photos, "-m", output, "-o", csv)


def test_broken_pictures_are_left_out_if_asked(home: Path, model: str, tmp_path: Path) -> None:
    for name in ("photos.csv", "weights.pth"):
        shutil.copy(home / name, tmp_path / name)
    shutil.copytree(home / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "003.png").write_bytes(b"no picture")
    (tmp_path / "photos" / "004.png").unlink()
    with pytest.raises(ComesError, match="1 of 60 images are not in photos"):
        run(*fit_arguments(tmp_path, tmp_path / "model"))
    with pytest.warns(UserWarning, match="2 images cannot be read and are left out"):
        fitted = run(*fit_arguments(tmp_path, tmp_path / "model"), "--skip-broken")
    assert "58 images" in fitted["data"]
    predict = ("predict", str(tmp_path / "photos"), "-m", model, "-o", str(tmp_path / "p.csv"))
    with pytest.raises(ComesError, match=r"'003.png' cannot be read"):
        run(*predict)
    with pytest.warns(UserWarning, match="1 images cannot be read"):
        run(*predict, "--skip-broken")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 58
