"""Experiments: a config file to a folder of results.

`tasks_of` needs pydantic; what it returns is plain, and `run_tasks` needs it no more.
"""

from comes.experiment.running import Outcome, run_task, run_tasks
from comes.experiment.tasks import Task

__all__ = ["Outcome", "Task", "run_task", "run_tasks"]
