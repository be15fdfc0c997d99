"""One task is one cell of a table: a method on a data set, with all its repeats."""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import comes
from comes.experiment.fitting import Trial, choose_settings, fit_trials
from comes.experiment.judging import judge_classifier, name_device
from comes.experiment.peak_memory import forget_peaks, read_device_peak, read_peak
from comes.experiment.repeats import draw_repeats, load_data
from comes.metrics import count_degenerate
from comes.results import RESULT_FILE, Degenerate, Names, Result, Size, TaskSpec, read_results


@dataclass(frozen=True)
class Task:
    """A method on a data set. Its spec alone decides the result.

    Examples
    --------
    >>> from comes.results import DataSpec
    >>> spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    >>> task = Task(Names("smoke", "scenes", "plain BCE"), spec)
    >>> task.name, task.key
    ('plain BCE on scenes', '55cf8858d1e5c08f')
    """

    names: Names
    spec: TaskSpec

    @property
    def name(self) -> str:
        """What a person would call it; it is unique within an experiment."""
        return self.names.title(self.spec)

    @property
    def key(self) -> str:
        """Name of its folder: equal specs have equal keys, in whatever experiment they are."""
        return self.spec.key


def run_task(task: Task, folder: Path | None = None) -> Result:
    """Train and test every repeat of a task.

    Parameters
    ----------
    task : Task
    folder : Path, optional
        Keeps checkpoints, from which long trainings resume.

    Returns
    -------
    result : Result

    Examples
    --------
    >>> from comes.results import DataSpec
    >>> data = DataSpec(name="scenes", case="b", rate=0.5, rows=40)
    >>> settings = {"epochs": 1, "hidden": 4, "device": "cpu"}
    >>> spec = TaskSpec(data=data, method="bce", settings=settings, folds=2)
    >>> result = run_task(Task(Names("tiny", "scenes", "bce"), spec))
    >>> result.size.n, len(result.repeats), "average_precision" in result.means()
    (40, 2, True)
    """
    started = time.perf_counter()
    forget_peaks()
    dataset, n_train = load_data(task.spec.data)
    repeats = list(draw_repeats(task.spec, dataset, n_train))
    chosen = choose_settings(task.spec, dataset, repeats)
    trials = [Trial(k, *both) for k, both in enumerate(zip(repeats, chosen, strict=True))]
    fitted = fit_trials(task.spec, dataset, trials, folder)
    relevant = dataset.known_relevant()
    d = 0 if task.spec.images else dataset.X.shape[1]
    device = name_device(fitted[0])
    return Result(
        names=task.names,
        spec=task.spec,
        size=Size(n=len(dataset), d=d, q=relevant.shape[1]),
        degenerate=Degenerate(**count_degenerate(relevant)),
        repeats=tuple(
            judge_classifier(classifier, dataset, trial.repeat, trial.found)
            for classifier, trial in zip(fitted, trials, strict=True)
        ),
        seconds=round(time.perf_counter() - started, 2),
        versions={
            "comes": comes.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        device=device,
        label_names=tuple(dataset.label_names),
        peak_memory=read_peak(),
        peak_device_memory=read_device_peak(device),
    )


def read_task_results(tasks: Sequence[Task], folder: str | Path) -> list[Result]:
    """Return the results of tasks that a folder holds, under the names of these tasks.

    Parameters
    ----------
    tasks : list of Task
    folder : path
        It may hold results of other experiments.

    Returns
    -------
    results : list of Result
        Empty where no task has a result yet.

    Examples
    --------
    >>> import tempfile
    >>> from comes.results import DataSpec
    >>> spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    >>> read_task_results([Task(Names("smoke", "scenes", "bce"), spec)], tempfile.mkdtemp())
    []
    """
    names = {task.key: task.names for task in tasks}
    if not any((Path(folder) / key / RESULT_FILE).exists() for key in names):
        return []
    return read_results([folder], names)
