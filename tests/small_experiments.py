"""Experiments that run in less than a second."""

import json
from pathlib import Path
from typing import Any

from comes.experiment.config import Experiment
from comes.experiment.tasks import Task, tasks_of

SETTINGS = {"epochs": 2, "hidden": 8, "device": "cpu"}
DATA = [{"name": "scenes", "case": "b", "rate": 0.5, "rows": 300}]
NAME = "scenes, case b 0.5"  # of the data in tables


def small_experiment(**changes: Any) -> Experiment:
    """Return an experiment of two methods, changed."""
    values: dict[str, Any] = {"name": "small", "folds": 3, "data": DATA, "settings": SETTINGS}
    values["methods"] = [{"method": "comes-hl"}, {"method": "bce"}]
    return Experiment(**values | changes)


def small_tasks(**changes: Any) -> list[Task]:
    """Return the tasks of that experiment."""
    return tasks_of(small_experiment(**changes))


def small_task(method: str = "bce", **changes: Any) -> Task:
    """Return a task of one method."""
    (task,) = small_tasks(methods=[{"method": method}], **changes)
    return task


def read_numbers(folder: Path) -> dict[str, Any]:
    """Return what the results in a folder say, without what depends on the machine."""
    found = {}
    for path in folder.glob("*/result.json"):
        result = json.loads(path.read_text())
        for repeat in result["repeats"]:
            del repeat["seconds"]
        of_machine = ("seconds", "peak_memory", "peak_device_memory")
        found[path.parent.name] = {k: v for k, v in result.items() if k not in of_machine}
    return found
