"""Calls on real clusters of this machine. They are those of functions that every worker has."""

import logging
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_clusters import STARTS

from comes import clusters
from comes.clusters import Cluster
from comes.errors import ComesError

DASK = pytest.param("dask", marks=pytest.mark.needs("dask"))
RAY = pytest.param("ray", marks=pytest.mark.needs("ray"))


@pytest.fixture(scope="module", params=[DASK, RAY])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two workers of Dask, or two nodes of Ray."""
    with STARTS[request.param](2) as started:
        yield started.cluster


def test_every_item_comes_with_its_result(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also if there are more of them than the cluster is told of at a time; nothing is printed."""
    monkeypatch.setattr(clusters, "MOST_SENT", 3)
    handler = signal.getsignal(signal.SIGTERM)
    items = [str(number) for number in range(20)]
    assert sorted(cluster.run(int, items)) == sorted(zip(items, range(20), strict=True))
    assert list(cluster.run(int, [])) == []
    assert signal.getsignal(signal.SIGTERM) is handler
    assert capfd.readouterr() == ("", "")


def test_calls_find_the_folders_of_the_caller(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMES_DATA", raising=False)
    before = list(cluster.run(os.getenv, ["COMES_DATA"]))
    assert list(cluster.run(os.path.abspath, ["photos"])) == [("photos", str(tmp_path / "photos"))]
    monkeypatch.setenv("COMES_DATA", "data")
    monkeypatch.delenv("COMES_CACHE", raising=False)
    found: dict[str, Any] = dict(cluster.run(os.getenv, ["COMES_DATA", "COMES_CACHE"]))
    assert found == {"COMES_DATA": str(tmp_path / "data"), "COMES_CACHE": None}
    monkeypatch.delenv("COMES_DATA")  # and a worker is as it was before
    assert list(cluster.run(os.getenv, ["COMES_DATA"])) == before


def test_an_error_is_that_of_its_item(cluster: Cluster) -> None:
    found = dict(cluster.run(int, ["1", "one"]))
    assert found["1"] == 1
    assert isinstance(found["one"], ComesError)
    assert "a worker failed: ValueError: invalid literal" in str(found["one"])
    ((_, ours),) = cluster.run(Cluster, ["slurm"])
    assert isinstance(ours, ComesError)
    assert str(ours) == "the backend of a cluster must be dask or ray; got 'slurm'."


def test_a_call_that_kills_its_workers_is_given_up(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    ((_, found),) = cluster.run(os._exit, [1])
    assert "its worker was lost 4 times" in str(found)
    assert list(cluster.run(int, ["2"])) == [("2", 2)]
    assert capfd.readouterr().out == ""


def test_without_an_address_a_cluster_is_started_here(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert list(Cluster(cluster.backend, workers=1).run(int, ["3"])) == [("3", 3)]


@pytest.mark.parametrize("cluster", [RAY], indirect=True)
def test_a_ray_without_gpu_is_not_waited_for(cluster: Cluster) -> None:
    with pytest.raises(ComesError, match="the Ray cluster has 0. Start it"):
        list(replace(cluster, gpus=1).run(int, ["3"]))


@pytest.mark.parametrize("cluster", [RAY], indirect=True)
def test_a_ray_that_the_caller_joined_stays(cluster: Cluster) -> None:
    import ray

    ray.init(cluster.scheduler, log_to_driver=False, logging_level=logging.ERROR)
    try:
        assert list(Cluster("ray").run(int, ["4"])) == [("4", 4)]
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@pytest.mark.parametrize(
    ("backend", "address"),
    [
        pytest.param("dask", "tcp://127.0.0.1:9", marks=pytest.mark.needs("dask")),
        pytest.param("ray", "127.0.0.1:9", marks=pytest.mark.needs("ray")),
        pytest.param("ray", "here", marks=pytest.mark.needs("ray")),
    ],
)
def test_a_cluster_that_does_not_answer_is_told(
    backend: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "dask":
        import dask

        monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", 1)
    with pytest.raises(ComesError, match=rf"no {backend.title()} .* answers at {address}"):
        list(Cluster(backend, address).run(int, ["5"]))
