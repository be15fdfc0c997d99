"""An experiment of 200 small tasks alone, on Dask and on Ray, with and without a kill.

    python benchmarks/clusters.py                 # 200 tasks
    python benchmarks/clusters.py --tasks 20      # prints, and writes nothing

writes ``benchmarks/results/clusters.json``. Three workers of Dask and three nodes of Ray, all on
this machine, run what one process ran; once as they are, and once with a worker (Dask) or a node
(Ray) killed by SIGKILL after a quarter of the results. ``same`` counts the results whose bytes are
those of the one process, seconds and memory aside. The seconds say what a cluster costs to start
and to talk to, not what it brings: all of it shares the cores of one machine.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from local_clusters import STARTS, killing
from measuring import significant, write

from comes.errors import ComesError
from comes.experiment.config import Experiment
from comes.experiment.run import run_tasks
from comes.experiment.tasks import Task, tasks_of

METHODS = ("bce", "ccmn", "comes-hl", "comes-rl")
PARTS = 3
COSTS = ("seconds", "peak_memory", "peak_device_memory")


def make_tasks(n: int) -> list[Task]:
    """Return n tasks: four methods, each with other numbers of rows to train on."""
    experiment: dict[str, Any] = {
        "name": "clusters",
        "folds": 2,
        "settings": {"epochs": 1, "hidden": 8, "device": "cpu"},
        "data": [{"name": "scenes", "case": "b", "rate": 0.5, "rows": 200}],
        "methods": [{"method": method} for method in METHODS],
        "sweep": {"key": "train_rows", "values": list(range(40, 40 + n // len(METHODS)))},
    }
    return tasks_of(Experiment(**experiment))


def read_bytes(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every result, by its key, without what it cost."""
    found = {}
    for path in folder.glob("*/result.json"):
        result = json.loads(path.read_bytes())
        for part in (result, *result["repeats"]):
            for cost in COSTS:
                part.pop(cost, None)
        found[path.parent.name] = json.dumps(result).encode()
    return found


def run(tasks: list[Task], folder: Path, **options: Any) -> dict[str, Any]:
    """Run tasks; return the seconds that this took and how many results there are."""
    started = time.perf_counter()
    try:
        ran = run_tasks(tasks, folder, progress=False, **options)
    except ComesError:  # a lost node ends a run on Ray; the same call goes on
        ran = run_tasks(tasks, folder, progress=False, **options)
    assert not any(ran.values()), ran
    seconds = significant(time.perf_counter() - started)
    return {"seconds": seconds, "results": len(list(folder.glob("*/result.json")))}


def run_on(backend: str, tasks: list[Task], folder: Path, alone: dict[str, bytes]) -> Any:
    """Run tasks on a cluster as it is, then on one that loses a part."""
    row: dict[str, Any] = {}
    for name in ("undisturbed", "killed"):
        there = folder / name
        kill_at = len(tasks) // 4 if name == "killed" else len(tasks) + 1
        with (
            STARTS[backend](PARTS) as started,
            killing(started.kill_one, there, "*/result.json", kill_at) as killed,
        ):
            row[name] = run(tasks, there, backend=backend, scheduler=started.address)
        found = read_bytes(there)
        row[name]["same"] = sum(found[key] == expected for key, expected in alone.items())
        row[name] |= {"results_at_the_kill": killed[0]} if killed else {}
        print(backend, name, row[name], flush=True)
    return row


def main() -> None:
    """Run everything and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    n = parser.parse_args().tasks
    tasks = make_tasks(n)
    result: dict[str, Any] = {"tasks": len(tasks), "workers_or_nodes": PARTS}
    with tempfile.TemporaryDirectory() as home:
        result["alone"] = run(tasks, Path(home) / "alone")
        print("alone", result["alone"], flush=True)
        alone = read_bytes(Path(home) / "alone")
        for backend in STARTS:
            result[backend] = run_on(backend, tasks, Path(home) / backend, alone)
    if n == parser.get_default("tasks"):
        write("clusters", result)


if __name__ == "__main__":
    main()
