"""The job that runs an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comes.experiment.config import read_experiment
from comes.experiment.results import Result, read_errors, read_results
from comes.experiment.run import Outcome, run_tasks
from comes.experiment.tasks import read_task_results, tasks_of
from comes.files import refuse_inputs
from comes.report.experiment_page import list_means, write_report


@dataclass(frozen=True)
class ExperimentRun:
    """What running an experiment did, and what its folder holds now.

    Attributes
    ----------
    folder : Path
    outcome : Outcome
        What this run did.
    results : list of Result
        All results of the experiment, from this run and earlier ones.
    missing : int
        Tasks without a result.
    page : Path, or None
        Page of the report; None if another shard will write it.

    Examples
    --------
    >>> run = ExperimentRun(Path("runs"), Outcome(2, 1, {}), [], missing=0, page=None)
    >>> run.summary()
    {'done': 2, 'kept': 1, 'missing': 0}
    """

    folder: Path
    outcome: Outcome
    results: list[Result]
    missing: int
    page: Path | None

    def summary(self) -> dict[str, int]:
        """Return how many tasks were run, kept from before, and are missing."""
        return {"done": self.outcome.done, "kept": self.outcome.kept, "missing": self.missing}

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
        Folder of results; by default ``runs/NAME``.
    workers, shard, backend, scheduler
        As in `comes.experiment.run_tasks`.

    Returns
    -------
    run : ExperimentRun

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
    outcome = run_tasks(
        tasks, folder, workers=workers, shard=shard, backend=backend, scheduler=scheduler
    )
    results = read_task_results(tasks, folder)
    missing = len(tasks) - len(results)
    page = None
    if results and not (missing and shard != (1, 1)):  # the last shard writes the page
        errors = read_errors([folder / task.key for task in tasks])
        page = write_report(results, folder / "report", errors)
    return ExperimentRun(folder, outcome, results, missing, page)


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written.

    Attributes
    ----------
    page : Path
    results : list of Result
    errors : list of str
        A line for every task that failed.

    Examples
    --------
    >>> WrittenReport(Path("report/index.html"), [], ["bce on scenes: out of memory"]).errors
    ['bce on scenes: out of memory']
    """

    page: Path
    results: list[Result]
    errors: list[str]


def report_results(folders: Sequence[str | Path], output: str | Path) -> WrittenReport:
    """Write the tables, the plots and the page of the results in folders.

    Parameters
    ----------
    folders : sequence of paths
        Folders that `run_experiment` wrote.
    output : path
        Folder of the report.

    Returns
    -------
    written : WrittenReport

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> report_results([home], home / "report")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: ... holds no result.json: give a folder that `comes bench` wrote.
    """
    refuse_inputs(output, *folders)
    results, errors = read_results(folders), read_errors(folders)
    return WrittenReport(write_report(results, output, errors), results, errors)
