"""Run an experiment and report on it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comes.experiment.config import read_experiment
from comes.experiment.results import Result, read_errors
from comes.experiment.run import run_tasks
from comes.experiment.tasks import read_task_results, tasks_of
from comes.report.experiment_page import list_means, write_report


@dataclass(frozen=True)
class ExperimentRun:
    """What running an experiment did, and what its folder holds now."""

    folder: Path
    results: list[Result]  # of all its tasks that have one
    done: int  # tasks that were run now
    failed: dict[str, str]  # tasks that gave an error, by name, with its last line
    missing: int  # tasks without a result
    page: Path | None  # of the report; None if another shard will write it

    def summary(self) -> dict[str, int]:
        """Return how many tasks were run, kept from before, and are missing."""
        kept = len(self.results) - self.done
        return {"done": self.done, "kept": kept, "missing": self.missing}

    def means(self) -> list[dict[str, Any]]:
        """Return the mean of every metric over the repeats, a row per result."""
        return list_means(self.results)


def run_experiment(
    config: str | Path,
    folder: str | Path | None = None,
    *,
    workers: int = 2,
    shard: tuple[int, int] = (1, 1),
    backend: str = "loky",
    scheduler: str | None = None,
) -> ExperimentRun:
    """Run every task of a config file that has no result yet, and write the report.

    Parameters
    ----------
    config : path
        A .toml file: data, methods, repeats.
    folder : path, optional
        Folder of results, one for each task; by default ``runs/NAME``.
    workers : int
        Tasks at a time, here. On a GPU one is best. A cluster with an address has its own workers.
    shard : (int, int)
        (2, 8) runs the second eighth of the tasks, for machines that share the folder.
    backend : {"loky", "dask", "ray"}
        The joblib backend: processes here, or a cluster.
    scheduler : str, optional
        Address of the cluster, as in "tcp://10.0.0.1:8786" (Dask) or "10.0.0.1:6379" (Ray). By
        default that of ``DASK_SCHEDULER_ADDRESS`` or ``RAY_ADDRESS``; without one a cluster of
        ``workers`` processes is started here.

    Returns
    -------
    run : ExperimentRun
        ``means()`` has a row per result; ``failed`` has an error per task that has none; ``page``
        is the path of the report.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "tiny.toml").write_text('''
    ... name = "tiny"
    ... folds = 2
    ... settings = { epochs = 1 }
    ... data = [{ name = "scenes", rows = 60, case = "b" }]
    ... methods = [{ method = "bce" }]
    ... ''')
    >>> run = run_experiment(home / "tiny.toml", home / "runs", workers=1)
    >>> run.summary(), [row["method"] for row in run.means()]
    ({'done': 1, 'kept': 0, 'missing': 0}, ['bce'])
    """
    experiment = read_experiment(config)
    tasks = tasks_of(experiment)
    folder = Path("runs") / experiment.name if folder is None else Path(folder)
    ran = run_tasks(
        tasks, folder, workers=workers, shard=shard, backend=backend, scheduler=scheduler
    )
    failed = {name: error for name, error in ran.items() if error is not None}
    results = read_task_results(tasks, folder)
    missing, page = len(tasks) - len(results), None
    if results and not (missing and shard != (1, 1)):  # the last shard writes the page
        errors = read_errors([folder / task.key for task in tasks])
        page = write_report(results, folder / "report", errors)
    return ExperimentRun(folder, results, len(ran) - len(failed), failed, missing, page)
