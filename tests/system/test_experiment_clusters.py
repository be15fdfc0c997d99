"""Tasks on real clusters of this machine: the same results, also if a part is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_clusters import STARTS, LocalCluster, killing

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
    assert run_tasks(tasks(), folder).done == 12
    return folder


def test_a_killed_part_of_a_cluster_loses_no_result(
    started: LocalCluster, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the workers are not
    backend, address = started.cluster.backend, started.cluster.scheduler
    with killing(started.kill_one, tmp_path / "runs", "*/result.json", 3) as there:
        outcome = run_tasks(tasks(), "runs", backend=backend, scheduler=address)
    assert there[0] < 12
    assert (outcome.done, outcome.failed) == (12, {})
    assert read_numbers(tmp_path / "runs") == read_numbers(alone)
