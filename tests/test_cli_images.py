"""``comes fit``, ``predict``, ``evaluate`` and ``report`` on a folder of pictures."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from comes.cli import app
from comes.datasets import open_dataset, write_dataset
from comes.errors import ComesError
from comes.generation import simulate_answers
from comes.images import ImageClassifier, make_backbone
from pictures import LABELS, write_pictures
from report_pages import rows_of

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
    fitted = run(*fit_arguments(home, home / "model"))
    assert f"{N} images" in fitted["data"]
    return str(home / "model")


def fit_arguments(home: Path, output: Path) -> list[str]:
    options = {
        "--labels": "has_*",
        "--relevant": "is_*",
        "--images": str(home / "photos"),
        "--backbone": BACKBONE,
    }
    given = [part for option in options.items() for part in option]
    given += settings(weights=home / "weights.pth", image_size=32, exclude_rate=0.7)
    return ["fit", str(home / "photos.csv"), *given, "-o", str(output)]


def settings(**values: object) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
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
    assert page["page"] == str(tmp_path / "page" / "index.html")
    text = (tmp_path / "page" / "index.html").read_text()
    assert all(label in text for label in LABELS) and text.count("data:image/jpeg") == 3


@pytest.mark.long
def test_fine_tuning_keeps_its_state_until_it_is_done(home: Path, tmp_path: Path) -> None:
    tuning = ["--epochs", "1", *settings(batch_size=30, part_size=8, features="pooled")]
    output = tmp_path / "model"
    fitted = run(*fit_arguments(home, output), *tuning)
    assert fitted["epochs"] == 1
    assert not (tmp_path / "model.checkpoint").exists()
    torch.save({"fingerprint": "another"}, tmp_path / "model.checkpoint")
    with pytest.raises(ComesError, match="belongs to another training"):
        run(*fit_arguments(home, tmp_path / "model"), "--epochs", "1")


def test_options_that_do_not_go_together_are_refused(home: Path, tmp_path: Path) -> None:
    refused: list[tuple[list[str], str]] = [
        (["--select", "lr"], "is for tables"),
        (["--model", "linear"], r"no setting 'model'. It is for tables"),
        (["--learning-rate", "1"], "learning_rate is for fine-tuning"),
        (["--set", "augment=crop"], "augment is for fine-tuning"),
        (["--method", "auto"], "is for tables"),
        (["--backbone", "resnet18"], "backbone must be"),
        (["--set", "features=some"], "features must be one of"),
    ]
    for arguments, message in refused:
        with pytest.raises(ComesError, match=message):
            run(*fit_arguments(home, tmp_path / "model"), *arguments)
            pytest.fail(f"{arguments} were taken")
    table = tmp_path / "table.csv"
    pd.DataFrame({"x": [0.5, 1.5], "has_sky": [0, 1]}).to_csv(table, index=False)
    with pytest.raises(ComesError, match="the data has none: name their folder"):
        run("fit", table, "--labels", "has_*", "--backbone", "resnet50", "-o", tmp_path / "m")


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


@pytest.mark.long
def test_broken_pictures_are_left_out_if_asked(home: Path, model: str, tmp_path: Path) -> None:
    for name in ("photos.csv", "weights.pth"):
        shutil.copy(home / name, tmp_path / name)
    shutil.copytree(home / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "003.png").write_bytes(b"no picture")
    (tmp_path / "photos" / "004.png").unlink()
    with pytest.raises(ComesError, match=f"1 of {N} images are not in photos"):
        run(*fit_arguments(tmp_path, tmp_path / "model"))
    with pytest.warns(UserWarning, match="2 images cannot be read and are left out"):
        fitted = run(*fit_arguments(tmp_path, tmp_path / "model"), "--skip-broken")
    assert f"{N - 2} images" in fitted["data"]
    predict = ("predict", str(tmp_path / "photos"), "-m", model, "-o", str(tmp_path / "p.csv"))
    with pytest.raises(ComesError, match=r"'003.png' cannot be read"):
        run(*predict)
    with pytest.warns(UserWarning, match="1 images cannot be read"):
        run(*predict, "--skip-broken")
    assert len(pd.read_csv(tmp_path / "p.csv")) == N - 2


@pytest.fixture(scope="module")
def answered(home: Path) -> Path:
    """A folder with answers.csv and a model of them, which no test changes."""
    folder = home / "answered"
    folder.mkdir()
    photos = ["--images", home / "photos"]
    photographed = open_dataset(home / "photos.csv", relevant=["is_*"], images=str(home / "photos"))
    drawn = simulate_answers(
        photographed.known_relevant(), asked_rate=0.9, no_rate=0.7, yes_rate=0.9, seed=0
    ).rename_labels(photographed.label_names)
    write_dataset(replace(photographed, answers=drawn), folder / "answers.csv")
    network = ["--backbone", BACKBONE, *settings(weights=home / "weights.pth", image_size=32)]
    output = [*settings(no_rate=0.7, yes_rate=0.9), "-o", folder / "model"]
    fitted = run("fit", folder / "answers.csv", *photos, *network, *output)
    assert fitted["method"] == "likelihood"
    return folder


def test_answers_lead_to_a_page_that_counts_them(home: Path, answered: Path) -> None:
    model = ImageClassifier.load(answered / "model")
    assert model.no_rate_ is not None and model.no_rate_.tolist() == [0.7] * 3
    options = ["--images", home / "photos", "-m", answered / "model", "-o", answered / "page"]
    table = rows_of(Path(run("report", answered / "answers.csv", *options)["page"]))
    heads = ["predicted", "relevant", "asked", "no", "maybe", "yes", "no rate", "yes rate"]
    assert table["label"][: len(heads)] == heads  # the file has the true labels, too
    said = pd.read_csv(answered / "answers.csv")
    for label in (f"is_{name}" for name in LABELS):
        words = said[f"answer:{label}"]
        counts = [int((words == word).sum()) for word in ("no", "maybe", "yes")]
        assert table[label][2:6] == [str(count) for count in (sum(counts), *counts)]
        assert table[label][6:8] == ["0.70", "0.90"]


def test_predictions_have_a_page_with_maps_and_choose_what_to_ask(
    home: Path, answered: Path, tmp_path: Path
) -> None:
    output, page, chosen = (tmp_path / name for name in ("predictions.csv", "page", "next.csv"))
    options = ["-m", answered / "model", "-o", output]
    shown = ["--page", page, "--maps", "--examples", 5, "--scores"]
    asking = ["--ask-next", chosen, "--questions", 6]
    made = run("predict", home / "photos", *options, *shown, *asking)
    assert made["page"] == str(page / "index.html") and made["rows"] == N
    assert made["ask_next"] == str(chosen) and len(pd.read_csv(chosen)) == 6
    text = (page / "index.html").read_text(encoding="utf-8")
    assert f"of {N} are shown" in text and 'alt="evidence for is_' in text
    assert pd.read_csv(output).filter(like="score:").shape == (N, 3)


def test_options_of_a_page_need_it(home: Path, answered: Path, tmp_path: Path) -> None:
    options = ["-m", answered / "model", "-o", tmp_path / "predictions.csv"]
    refused: list[tuple[list[object], str]] = [
        (["--maps"], "--maps needs a page"),
        (["--asked", answered / "answers.csv"], "--asked needs --ask-next"),
        (["--questions", 5], "--questions needs --ask-next"),
        (["--examples", 5], "--examples needs a page"),
        (["--item", "image"], "images are named by their files"),
        (["--page", home], "holds something else"),
    ]
    for arguments, message in refused:
        with pytest.raises(ComesError, match=message):
            run("predict", home / "photos", *options, *arguments)
            pytest.fail(f"{arguments} were taken")
