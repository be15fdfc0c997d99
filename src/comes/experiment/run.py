"""Run the tasks of an experiment: in parallel, resumed where it was stopped, in shards.

A task is a pure function of its spec and writes one ``KEY/result.json``, last and by rename. A task
that has one is not run again. Each task uses one torch thread, so that its numbers do not depend on
how many run at a time.
"""

import importlib.util
import logging
import os
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import chdir, closing, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from comes.errors import ComesError, ComesWarning, first_line
from comes.experiment.results import ERROR_FILE, RESULT_FILE, write_result
from comes.experiment.tasks import CHECKPOINT, Task, run_task
from comes.files import end_with_parent
from comes.progress import progress_bar

PACKAGES = {"dask": "distributed", "ray": "ray"}
FOLDERS = ("COMES_CACHE", "COMES_DATA")  # variables that workers elsewhere must have, too
ONE_AT_A_TIME = threading.Lock()  # a worker of Dask may have many threads


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

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

    A task that fails leaves ``error.txt`` in its folder, and is run again the next time.

    Parameters
    ----------
    tasks : list of Task
    folder : path
        Where results go, one folder for each task. It may hold those of other experiments.
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
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.
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
    given = {name: os.path.expanduser(os.environ.get(name, "")) for name in FOLDERS}
    variables = {name: os.path.abspath(path) for name, path in given.items() if path}
    calls = (delayed(_run_and_write)(task, folder, os.getcwd(), variables) for task in todo)
    on_gpu = any(str(task.spec.settings.get("device")).startswith("cuda") for task in todo)
    failed = {}
    return_as = "list" if backend == "ray" else "generator_unordered"  # what its backend can do
    with (
        _open_backend(backend, scheduler, workers, on_gpu) as n_jobs,
        progress_bar(len(todo), "tasks", show=progress) as advance,
    ):
        try:
            ended = Parallel(n_jobs, return_as=return_as, batch_size=1)(calls)
            with nullcontext(ended) if backend == "ray" else closing(ended):
                for name, message in ended:
                    if message is not None:
                        failed[name] = message
                    advance(name)
        except Exception as error:  # a task catches those of its own
            if backend == "loky" and not isinstance(error, BrokenProcessPool):
                raise
            raise ComesError(
                f"a worker ended before its task did ({first_line(error)}). If it was killed for "
                "its memory, take fewer workers (--workers). Results so far are kept."
            ) from None
    return Outcome(len(todo) - len(failed), len(mine) - len(todo), failed)


@contextmanager
def _open_backend(backend: str, scheduler: str | None, workers: int, on_gpu: bool) -> Iterator[int]:
    """Let joblib use a backend; give the number of jobs."""
    if backend == "loky":
        if scheduler is not None:
            raise ComesError(
                f"scheduler is the address of a cluster; got {scheduler} with backend loky, which "
                "runs here. Give backend dask or ray (--backend), or leave it out."
            )
        start: dict[str, Any] = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
        with parallel_config(backend="loky", inner_max_num_threads=1, **start):
            yield workers
        return
    if backend not in PACKAGES:
        raise ComesError(f"backend must be loky, dask or ray; got {backend!r}.")
    if importlib.util.find_spec(PACKAGES[backend]) is None:
        raise ComesError(
            f"backend {backend} needs {PACKAGES[backend]}, which is not installed: pip install "
            "'comes[scale]'."
        )
    open_cluster = _open_dask if backend == "dask" else _open_ray
    with (
        open_cluster(scheduler, workers, on_gpu) as options,
        parallel_config(backend=backend, **options),
    ):
        yield -1


@contextmanager
def _open_dask(scheduler: str | None, workers: int, on_gpu: bool) -> Iterator[dict[str, Any]]:
    """Join a Dask cluster, or start one here."""
    import dask
    from distributed import Client

    address = scheduler or dask.config.get("scheduler-address", None)
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    try:
        client = Client(address, set_as_default=False, **({} if address else local))
    except (OSError, ValueError) as error:
        raise ComesError(
            f"no Dask scheduler answers at {address}: {first_line(error)}. Start one there, or "
            "correct the address."
        ) from None
    with client:
        yield {"client": client, "pure": False}


@contextmanager
def _open_ray(scheduler: str | None, workers: int, on_gpu: bool) -> Iterator[dict[str, Any]]:
    """Join a Ray cluster, or start one here; what Ray prints is dropped."""
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    was_joined = ray.is_initialized()  # by the caller, who also ends it
    address = scheduler or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"address": address or "local"}
    if not address:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"num_cpus": workers, "include_dashboard": False}
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            if not was_joined:
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (OSError, ValueError, RuntimeError) as error:
            raise ComesError(
                f"no Ray cluster answers at {address}: {first_line(error)}. Start it (ray start), "
                "correct the address, run this on a machine of the cluster, and name its token if "
                "it has one (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN_PATH)."
            ) from None
    try:
        if on_gpu and not ray.cluster_resources().get("GPU"):  # Ray would wait for one
            raise ComesError(
                "settings have device cuda, and the Ray cluster has no GPU. Start it on machines "
                "with GPUs, or set device to cpu."
            )
        yield {"ray_remote_args": {"num_gpus": int(on_gpu)}}
    finally:
        if not was_joined:
            ray.shutdown()


def _run_and_write(
    task: Task, folder: Path, working_folder: str, variables: dict[str, str]
) -> tuple[str, str | None]:
    """Run a task and write its result; return its name, with its error if there was one."""
    home = folder / task.key
    is_here = os.path.isdir(working_folder)
    before = {name: os.environ.get(name) for name in variables}
    n_threads = torch.get_num_threads()
    with ONE_AT_A_TIME, chdir(working_folder) if is_here else nullcontext():
        os.environ.update(variables)
        torch.set_num_threads(1)
        try:
            home.mkdir(exist_ok=True)
            if not (home / RESULT_FILE).exists():  # it may be that of a worker that was lost
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ComesWarning)  # labels that nothing excludes
                    result = run_task(task, home)
                write_result(result, home)
        except Exception as error:
            text = f"{task.name}\n{traceback.format_exc()}"
            with suppress(OSError):  # a full disk
                (home / ERROR_FILE).write_text(text, encoding="utf-8")
            return task.name, f"{type(error).__name__}: {error}"
        finally:
            torch.set_num_threads(n_threads)
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})
    for leftover in (home / ERROR_FILE, *home.glob(f"*{CHECKPOINT}")):
        leftover.unlink(missing_ok=True)
    return task.name, None
