"""``comes datasets convert`` of pictures: features by a network, computed once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from comes import ImageClassifier
from comes.datasets import ReadOptions, open_dataset, read_features, read_images
from comes.images import features as feature_files
from comes.images import make_backbone
from comes.training.pixels import PixelRows
from comes.workflows.fit import fit_model
from command_line import Run, command_runner
from pictures import SIZE, write_pictures

BACKBONE, N = "timm:resnet10t", 12


run = pytest.fixture(command_runner)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/, photos.csv and weights.pth."""
    folder = tmp_path_factory.mktemp("photos")
    write_pictures(folder, n=N)
    torch.manual_seed(0)
    torch.save(make_backbone(BACKBONE).network.state_dict(), folder / "weights.pth")
    return folder


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


def convert(home: Path, *data: str) -> list[str]:
    network = ["--backbone", BACKBONE, "--weights", str(home / "weights.pth"), "--image-size", "32"]
    return ["datasets", "convert", *(data or [str(home / "photos")]), *network]


def test_features_are_written_with_the_names_of_the_pictures(home: Path, run: Run) -> None:
    arrays = []
    for ending in ("npz", "parquet", "npy"):
        path = home / f"features.{ending}"
        told = json.loads(run(*convert(home), "-o", str(path), "--json").stdout)
        assert told == {"images": N, "features": 512, "file": str(path)}
        if ending == "npy":
            arrays.append(np.load(path))
            continue
        X, items = read_features(path)
        arrays.append(np.asarray(X))
        assert items == [f"{row:03}.png" for row in range(N)]
    for X in arrays[1:]:
        np.testing.assert_array_equal(X, arrays[0])
    reading = ReadOptions(labels=["has_*"], features=home / "features.npz")
    short = {"method": "bce", "epochs": 1, "hidden": 4}
    model = fit_model(home / "photos.csv", reading=reading, settings=short).classifier
    assert model.n_features_in_ == 512


def test_a_table_that_names_pictures_gives_features_or_labels(home: Path, run: Run) -> None:
    table = (str(home / "photos.csv"), "--images", str(home / "photos"))
    told = json.loads(run(*convert(home, *table), "-o", str(home / "f.npz"), "--json").stdout)
    assert told["images"] == N
    labels = ("datasets", "convert", *table, "--labels", "has_*", "--ignore", "is_*")
    run(*labels, "-o", str(home / "labels.csv"))
    assert open_dataset(home / "labels.csv").label_names == ["has_left", "has_middle", "has_right"]


def test_a_model_of_the_same_images_finds_them(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*convert(home), "-o", str(home / "f.npz"))
    monkeypatch.setattr(feature_files, "_stream", pytest.fail)
    rng = np.random.default_rng(0)
    weights = home / "weights.pth"
    clf = ImageClassifier(
        "bce", features="pooled", backbone=BACKBONE, weights=weights, image_size=SIZE
    )
    clf.fit(read_images(home / "photos"), rng.random((N, 2)) < 0.5)


def test_what_cannot_be_is_refused_before_anything_is_computed(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_files, "_stream", pytest.fail)
    for output, message in (
        ("features.xlsx", "should end in .npz, .parquet or .npy; got .xlsx"),
        ("no/features.npz", "is not a folder"),
        ("photos.npz", "nowhere"),
    ):
        data = ["nowhere.zip"] if message == "nowhere" else []
        assert message in run(*convert(home, *data), "-o", str(home / output), code=1).stderr


def test_an_interrupted_command_says_that_it_can_go_on(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    command = (*convert(home), "-o", str(home / "f.npz"))
    with monkeypatch.context() as patched:
        patched.setattr(PixelRows, "_decode_picture", interrupt)
        error = run(*command, code=1).stderr
    assert "What was computed is kept: the same command goes on" in error
    run(*command)
