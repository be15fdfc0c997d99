"""`compute_features`, and ``comes features``: images through a network, once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from comes.datasets import ReadOptions, read_features
from comes.errors import ComesError
from comes.images import make_backbone
from comes.training.pixels import PixelRows
from comes.workflows import features as feature_jobs
from comes.workflows.features import compute_features
from comes.workflows.fit import fit_model
from command_line import Run, command_runner
from pictures import SIZE, tiny, write_pictures

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


def settings(home: Path) -> dict[str, Any]:
    return {"backbone": BACKBONE, "weights": home / "weights.pth", "image_size": SIZE}


def test_a_written_file_is_read_with_its_names(home: Path) -> None:
    for ending in ("npz", "parquet"):
        path = home / f"features.{ending}"
        found = compute_features(home / "photos", path, **settings(home))
        assert found.X.shape == (N, 512) and len(found) == N
        X, items = read_features(path)
        np.testing.assert_array_equal(np.asarray(X), found.X)
        assert items == found.items == [f"{row:03}.png" for row in range(N)]
    reading = ReadOptions(labels=["has_*"], features=path)
    short = {"method": "bce", "epochs": 1, "hidden": 4}
    model = fit_model(home / "photos.csv", reading=reading, settings=short).classifier
    assert model.n_features_in_ == 512
    found = compute_features(home / "photos", home / "features.npy", **settings(home))
    np.testing.assert_array_equal(np.load(home / "features.npy"), found.X)


def test_a_model_of_the_same_images_finds_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from comes import ImageClassifier
    from comes.datasets import Images
    from comes.images import features as module

    found = compute_features(home / "photos", **settings(home))
    monkeypatch.setattr(module, "_stream", pytest.fail)
    rng = np.random.default_rng(0)
    clf = ImageClassifier("bce", features="pooled", **settings(home))
    clf.fit(Images(home / "photos", found.items), rng.random((N, 2)) < 0.5)


def test_classes_are_square_roots_of_probabilities(home: Path) -> None:
    how = settings(home) | {"weights": None}
    X = compute_features(home / "photos", features="classes", **how).X
    assert X.shape == (N, 1000)
    np.testing.assert_allclose((X**2).sum(axis=1), 1, atol=1e-4)


def test_what_cannot_be_is_refused_before_anything_is_computed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_jobs, "put_through", pytest.fail)
    for wrong, message in (
        ({"output": home / "features.xlsx"}, "should end in .npz, .parquet or .npy; got .xlsx"),
        ({"output": home / "no" / "features.npz"}, "is not a folder"),
        ({"features": "all"}, "features must be pooled or classes; got 'all'"),
        ({"features": "classes", "backbone": tiny()}, "has no classes of its own"),
    ):
        with pytest.raises(ComesError, match=message):
            compute_features(home / "photos", **(settings(home) | {"weights": None} | wrong))


def arguments(home: Path) -> list[str]:
    given = {"--backbone": BACKBONE, "--weights": str(home / "weights.pth"), "--image-size": "32"}
    return ["features", str(home / "photos"), *(part for pair in given.items() for part in pair)]


def test_the_command_writes_and_tells(home: Path, run: Run) -> None:
    told = json.loads(run(*arguments(home), "-o", str(home / "f.npz"), "--json").stdout)
    assert told == {"images": N, "features": 512, "file": str(home / "f.npz")}
    assert json.loads(run(*arguments(home), "--json").stdout) == {"images": N, "features": 512}


def test_an_interrupted_command_says_that_it_can_go_on(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PixelRows, "_decode_picture", interrupt)
        error = run(*arguments(home), code=1).stderr
    assert "What was computed is kept: the same command goes on" in error
    run(*arguments(home))
