"""Experiments: a config file to a folder of results.

Config files are read by pydantic. Tasks are run without it, so that a machine with a GPU and plain
scientific Python can run them; the names that need it are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from comes.experiment.running import Outcome, run_tasks
from comes.experiment.tasks import Task, read_task_results, run_task

if TYPE_CHECKING:
    from comes.experiment.config import Experiment, read_experiment
    from comes.experiment.planning import tasks_of

__all__ = [
    "Experiment",
    "Outcome",
    "Task",
    "read_experiment",
    "read_task_results",
    "run_task",
    "run_tasks",
    "tasks_of",
]


def __getattr__(name: str) -> Any:
    if name in ("Experiment", "read_experiment"):
        from comes.experiment import config

        return getattr(config, name)
    if name == "tasks_of":
        from comes.experiment.planning import tasks_of

        return tasks_of
    raise AttributeError(f"module 'comes.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
