"""Run the tasks of an experiment: in parallel, resumed where it was stopped, in shards.

A task is a pure function of its spec and writes one ``KEY/result.json``, last and by rename. A task
that has one is not run again. Each task uses one torch thread, so that its numbers do not depend on
how many run at a time.
"""

import os
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from comes.clusters import Cluster
from comes.errors import ComesError, ComesWarning, first_line
from comes.experiment.results import ERROR_FILE, RESULT_FILE, write_result
from comes.experiment.tasks import CHECKPOINT, Task, run_task
from comes.files import end_with_parent
from comes.progress import progress_bar


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Examples
    --------
    >>> Outcome(done=3, kept=1, failed={"bce on scenes": "ComesError: ..."}).done
    3
    """

    done: int  # tasks that were run
    kept: int  # tasks that had a result before
    failed: dict[str, str]  # tasks that gave an error, by name, with its last line


def run_tasks(
    tasks: Sequence[Task],
    folder: str | Path,
    *,
    workers: int = 1,
    shard: tuple[int, int] = (1, 1),
    backend: str = "loky",
    scheduler: str | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Run the tasks that have no result yet.

    Parameters
    ----------
    tasks : list of Task
        See `comes.experiment.tasks_of`.
    folder : path
        Where results go, one folder for each task. It may hold those of other experiments.
    workers : int
        Tasks at a time, here. On a GPU one is best. A cluster with an address has its own workers.
    shard : (int, int)
        (2, 8) runs the second eighth of the tasks, for machines that share the folder.
    backend : {"loky", "dask", "ray"}
        What runs them: processes here, or a cluster.
    scheduler : str, optional
        Address of the cluster, as in `comes.clusters.Cluster`.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    outcome : Outcome
        A task that fails leaves ``error.txt`` in its folder, and is run again the next time.

    Examples
    --------
    >>> import tempfile
    >>> from comes.experiment.results import DataSpec, Names, TaskSpec
    >>> data = DataSpec(name="scenes", case="b", rate=0.5, rows=40)
    >>> settings = {"epochs": 1, "hidden": 4, "device": "cpu"}
    >>> spec = TaskSpec(data=data, method="bce", settings=settings, folds=2)
    >>> tasks, folder = [Task(Names("tiny", "scenes", "bce"), spec)], tempfile.mkdtemp()
    >>> run_tasks(tasks, folder)
    Outcome(done=1, kept=0, failed={})
    >>> run_tasks(tasks, folder)
    Outcome(done=0, kept=1, failed={})
    """
    which, of = shard
    if not 1 <= which <= of:
        raise ComesError(f"a shard is 1/N to N/N; got {which}/{of}.")
    folder = Path(folder).resolve()  # workers of a cluster are elsewhere
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ComesError(f"{folder} cannot be a folder of results: {error.strerror}.") from None
    mine = tasks[which - 1 :: of]
    todo = [task for task in mine if not (folder / task.key / RESULT_FILE).exists()]
    failed = {}
    cluster = _find_cluster(backend, scheduler, workers)
    found = _run_here(todo, folder, workers) if cluster is None else _send(todo, folder, cluster)
    with progress_bar(len(todo), "tasks", show=progress) as advance, closing(found) as ended:
        for task, message in ended:
            if message is not None:
                failed[task.name] = message
            advance(task.name)
    return Outcome(len(todo) - len(failed), len(mine) - len(todo), failed)


def _find_cluster(backend: str, scheduler: str | None, workers: int) -> Cluster | None:
    """Return the cluster that is to run tasks; None if processes here are."""
    if backend in ("dask", "ray"):
        return Cluster(backend, scheduler, workers)
    if backend != "loky":
        raise ComesError(f"backend must be loky, dask or ray; got {backend!r}.")
    if scheduler is not None:
        raise ComesError(
            f"scheduler is the address of a cluster; got {scheduler} with backend loky, which runs "
            "here. Give backend dask or ray (--backend), or leave it out."
        )
    return None


def _send(
    tasks: Sequence[Task], folder: Path, cluster: Cluster
) -> Generator[tuple[Task, str | None], None, None]:
    """Run tasks on a cluster; give each as it ends, with its error if there was one."""
    on_gpu = any(str(task.spec.settings.get("device")).startswith("cuda") for task in tasks)
    cluster = replace(cluster, gpus=int(on_gpu))
    for task, ended in cluster.run(partial(_run_and_write, folder=folder), tasks):
        yield task, str(ended) if isinstance(ended, ComesError) else ended[1]


def _run_here(
    tasks: Sequence[Task], folder: Path, workers: int
) -> Generator[tuple[Task, str | None], None, None]:
    """Run tasks in processes of this machine; give each as it ends, with its error."""
    start = {"initializer": _start_worker, "initargs": (os.getpid(), os.getcwd())}
    with parallel_config(backend="loky", inner_max_num_threads=1, **start):
        run = Parallel(n_jobs=workers, return_as="generator_unordered")
        try:
            yield from run(delayed(_run_and_write)(task, folder) for task in tasks)
        except BrokenProcessPool as error:
            raise ComesError(
                f"a worker ended before its task did ({first_line(error)}). If it was killed for "
                "its memory, take fewer workers (--workers). Results so far are kept."
            ) from None


def _run_and_write(task: Task, folder: Path) -> tuple[Task, str | None]:
    """Run a task and write its result; return it with its error, if there was one."""
    home = folder / task.key
    try:
        home.mkdir(exist_ok=True)
        if not (home / RESULT_FILE).exists():  # it may be that of a worker that was lost
            with warnings.catch_warnings(), _use_one_thread():
                warnings.simplefilter("ignore", ComesWarning)  # about labels that nothing excludes
                result = run_task(task, home)
            write_result(result, home)
    except Exception as error:
        text = f"{task.name}\n{traceback.format_exc()}"
        with suppress(OSError):  # a full disk
            (home / ERROR_FILE).write_text(text, encoding="utf-8")
        return task, f"{type(error).__name__}: {error}"
    for leftover in (home / ERROR_FILE, *home.glob(f"*{CHECKPOINT}")):
        leftover.unlink(missing_ok=True)
    return task, None


def _start_worker(parent: int, folder: str) -> None:
    """Let a worker find files where its parent does, and end with it."""
    os.chdir(folder)  # another folder than that of an earlier run starts other workers
    end_with_parent(parent)


@contextmanager
def _use_one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
