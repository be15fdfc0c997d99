"""Run the tasks of an experiment: in parallel, resumed where it was stopped, in shards.

A task is a pure function of its spec and writes one ``KEY/result.json``, last and by rename. A task
that has one is not run again. Each task uses one torch thread, so that its numbers do not depend on
how many run at a time.
"""

import io
import logging
import os
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import chdir, closing, contextmanager, nullcontext, redirect_stdout, suppress
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

FOLDERS = ("COMES_CACHE", "COMES_DATA")  # variables that workers elsewhere must have, too
ONE_AT_A_TIME = threading.Lock()  # a worker of Dask may have many threads


def run_tasks(
    tasks: Sequence[Task],
    folder: str | Path,
    *,
    workers: int = 1,
    shard: tuple[int, int] = (1, 1),
    backend: str = "loky",
    scheduler: str | None = None,
    progress: bool | None = None,
) -> dict[str, str | None]:
    """Run the tasks of a shard that have no result; return their names, with an error or None.

    A task that fails leaves ``error.txt`` in its folder, and is run again the next time. The folder
    may hold the results of other experiments.
    """
    which, of = shard
    if not 1 <= which <= of:
        raise ComesError(f"a shard is 1/N to N/N; got {which}/{of}.")
    folder = Path(folder).resolve()  # workers of a cluster are elsewhere
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ComesError(f"{folder} cannot be a folder of results: {error.strerror}.") from None
    todo = [t for t in tasks[which - 1 :: of] if not (folder / t.key / RESULT_FILE).exists()]
    variables = {name: os.environ[name] for name in FOLDERS if name in os.environ}
    calls = (delayed(_run_and_write)(task, folder, os.getcwd(), variables) for task in todo)
    on_gpu = any(str(task.spec.settings.get("device")).startswith("cuda") for task in todo)
    tells = backend != "ray"  # what has ended before all has
    ran: dict[str, str | None] = {}
    with (
        _use_backend(backend, scheduler, workers, on_gpu) as n_jobs,
        progress_bar(len(todo), "tasks", show=progress if tells else False) as advance,
    ):
        try:
            return_as = "generator_unordered" if tells else "list"
            ended = Parallel(n_jobs, return_as=return_as, batch_size=1)(calls)
            with closing(ended) if tells else nullcontext(ended):
                for name, error_message in ended:
                    ran[name] = error_message
                    advance(name)
        except Exception as error:  # a task catches those of its own
            if backend == "loky" and not isinstance(error, BrokenProcessPool):
                raise
            raise ComesError(
                f"a worker ended before its task did ({first_line(error)}). If it was killed for "
                "its memory, take fewer workers (--workers). Results so far are kept."
            ) from None
    return ran


@contextmanager
def _use_backend(backend: str, scheduler: str | None, workers: int, on_gpu: bool) -> Iterator[int]:
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
    if backend not in ("dask", "ray"):
        raise ComesError(f"backend must be loky, dask or ray; got {backend!r}.")
    try:
        join = _join_dask if backend == "dask" else _join_ray
        cluster, options = join(scheduler, workers, on_gpu)
    except ImportError as error:
        raise ComesError(
            f"backend {backend} needs {error.name}, which is not installed: pip install "
            "'comes[scale]'."
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, ComesError):
            raise
        raise ComesError(
            f"no {backend.title()} cluster answers at {scheduler or 'its address'}: "
            f"{first_line(error)}. Start it there, or correct the address (--scheduler). Ray must "
            "run on this machine, too, and may need a token (RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH)."
        ) from None
    with cluster, parallel_config(backend=backend, **options):
        yield -1


def _join_dask(scheduler: str | None, workers: int, on_gpu: bool) -> tuple[Any, dict[str, Any]]:
    """Join a Dask cluster, or start one here."""
    import dask
    from distributed import Client

    address = scheduler or dask.config.get("scheduler-address", None)
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    client = Client(address, set_as_default=False, **({} if address else local))
    return client, {"client": client}


def _join_ray(scheduler: str | None, workers: int, on_gpu: bool) -> tuple[Any, dict[str, Any]]:
    """Join a Ray cluster, or start one here; what Ray prints is dropped."""
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    address = scheduler or os.environ.get("RAY_ADDRESS")
    local: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with redirect_stdout(io.StringIO()):
        cluster = ray.init(
            address or "local", log_to_driver=False, logging_level=logging.ERROR, **local
        )
    if on_gpu and not ray.cluster_resources().get("GPU"):  # Ray would wait for one
        cluster.disconnect()
        raise ComesError(
            "settings have device cuda, and the Ray cluster has no GPU. Start it on machines with "
            "GPUs, or set device to cpu."
        )
    return cluster, {"ray_remote_args": {"num_gpus": int(on_gpu)}}


def _run_and_write(
    task: Task, folder: Path, working_folder: str, variables: dict[str, str]
) -> tuple[str, str | None]:
    """Run a task and write its result; return its name, with its error if there was one."""
    home = folder / task.key
    is_here = os.path.isdir(working_folder)
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
    for leftover in (home / ERROR_FILE, *home.glob(f"*{CHECKPOINT}")):
        leftover.unlink(missing_ok=True)
    return task.name, None
