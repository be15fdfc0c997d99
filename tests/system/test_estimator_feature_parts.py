"""Features by the workers of a real cluster: those of one process, and none lost with a worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from local_clusters import STARTS, LocalCluster, killing

from comes.clusters import Cluster
from comes.datasets import read_images
from comes.errors import ComesError
from comes.jobs import compute_features
from comes.models import make_backbone
from command_line import command_runner
from pictures import SIZE, tiny, write_pictures

BACKBONE, N, AT_ONCE = "timm:resnet10t", 44, 2  # six parts, the last one short


@pytest.fixture(scope="module")
def started() -> Iterator[LocalCluster]:
    """Two workers of Dask."""
    with STARTS["dask"](2) as cluster:
        yield cluster


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with photos/ and weights.pth, and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMES_CACHE", "cache")
    write_pictures(tmp_path, n=N)
    torch.manual_seed(0)
    torch.save(make_backbone(BACKBONE).network.state_dict(), tmp_path / "weights.pth")
    return tmp_path


def compute(**options: Any) -> Any:
    how: dict[str, Any] = {"backbone": BACKBONE, "weights": "weights.pth", "image_size": SIZE}
    return compute_features("photos", part_size=AT_ONCE, device="cpu", **how, **options).X


def compute_alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COMES_CACHE", "another")
    return compute()


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("dask", marks=pytest.mark.needs("dask")),
        pytest.param("ray", marks=pytest.mark.needs("ray")),
    ],
)
def test_a_killed_part_of_a_cluster_loses_no_features(
    backend: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        STARTS[backend](2) as started,
        killing(started.kill_one, home / "cache", "features/*.parts/*.npy", 1) as there,
    ):
        found = compute(cluster=started.cluster)
    assert there[0] < 6
    (file,) = (home / "cache" / "features").iterdir()  # parts are gone
    np.testing.assert_array_equal(np.load(file), found)
    np.testing.assert_allclose(found, compute_alone(monkeypatch), atol=1e-5)


@pytest.mark.needs("dask")
def test_what_is_there_is_kept(
    started: LocalCluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows, of a run without a cluster that broke off, and a part that is finished."""
    photo = home / "photos" / "021.png"
    good = photo.read_bytes()
    photo.write_bytes(good[:50])
    with pytest.raises(ComesError, match="'021.png' cannot be read"):
        compute()
    photo.write_bytes(good)
    (growing,) = (home / "cache" / "features").glob("*.part")
    parts = growing.with_suffix(".parts")
    parts.mkdir()
    images = read_images("photos")[32:40]
    np.save(parts / f"{images.fingerprint()[:32]}.npy", np.zeros((8, 512), np.float32))
    found = compute(cluster=started.cluster)
    expected = compute_alone(monkeypatch).copy()
    expected[32:40] = 0
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.needs("dask")
def test_an_error_of_a_worker_is_told(started: LocalCluster, home: Path) -> None:
    photo = home / "photos" / "000.png"
    photo.write_bytes(photo.read_bytes()[:50])
    with pytest.raises(ComesError, match="'000.png' cannot be read"):
        compute(cluster=started.cluster)


@pytest.mark.needs("dask")
def test_the_command_computes_on_a_cluster(
    started: LocalCluster,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = command_runner(monkeypatch, capsys)
    how = ["--backbone", BACKBONE, "--weights", "weights.pth", "--image-size", str(SIZE)]
    where = ["--backend", started.cluster.backend, "--scheduler", str(started.cluster.scheduler)]
    told = run("features", "photos", *how, *where, "-o", "found.npy", "--json").stdout
    assert json.loads(told) == {"images": N, "features": 512, "file": "found.npy"}
    error = run("features", "photos", *how, *where[2:], code=1).stderr
    assert "without --backend" in error


@pytest.mark.needs("dask")
def test_what_no_cluster_can_compute_is_refused(home: Path) -> None:
    with pytest.raises(ComesError, match="a cluster takes a network by its name; got a module"):
        compute_features("photos", backbone=tiny(), weights=None, cluster=Cluster("dask"))
    with pytest.raises(ComesError, match="device must be one that torch knows; got 'gpu'"):
        compute_features("photos", device="gpu", cluster=Cluster("dask"))
