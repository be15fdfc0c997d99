"""Tasks on real clusters of this machine: the same results, also if a part is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_clusters import STARTS, LocalCluster, killing

from comes.errors import ComesError
from comes.experiment.run import run_tasks
from comes.experiment.tasks import Task
from small_experiments import read_numbers, small_tasks

METHODS = [{"method": method} for method in ("bce", "comes-hl", "ccmn")]
SWEEP = {"key": "train_rows", "values": [60, 70, 80, 90]}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in ("dask", "ray")],
)
def started(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Three workers of Dask, or three nodes of Ray, started where nothing else is."""
    with STARTS[request.param](3) as cluster:
        yield cluster


def tasks() -> list[Task]:
    """Return twelve tasks."""
    return small_tasks(folds=2, methods=METHODS, sweep=SWEEP)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of these tasks, made in this process."""
    folder = tmp_path_factory.mktemp("alone")
    assert list(run_tasks(tasks(), folder).values()) == [None] * 12
    return folder


def test_a_killed_part_of_a_cluster_loses_no_result(
    started: LocalCluster, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the workers are not
    backend, address = started.backend, started.address
    with killing(started.kill_one, tmp_path / "runs", "*/result.json", 3) as there:
        for _ in range(5):
            try:
                ran = run_tasks(tasks(), "runs", backend=backend, scheduler=address)
                break
            except ComesError as error:  # a lost node ends a run on Ray, which may notice late
                assert backend == "ray" and "a worker ended before its task did" in str(error)
    assert there[0] < 12 and not any(ran.values())
    assert read_numbers(tmp_path / "runs") == read_numbers(alone)


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("dask", "ray")]
)
def test_without_an_address_a_cluster_is_started_here(
    backend: str, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    failing = small_tasks(methods=[{"method": "gdf", "settings": {"epochs": 0}}])
    ran = run_tasks([*tasks()[:3], *failing], tmp_path, workers=2, backend=backend)
    assert [name for name, error in ran.items() if error] == [failing[0].name]
    assert len(ran) == 4
    expected = read_numbers(alone)
    found = read_numbers(tmp_path)
    assert len(found) == 3 and all(found[key] == expected[key] for key in found)
