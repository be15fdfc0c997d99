"""Work sent to a Dask or Ray cluster: results as they come, and none lost with a worker.

A call is a pure function of its item, so that one whose worker was lost is simply made again, and
one that was made twice does no harm. What is large stays in files that all machines see.
"""

import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from comes.errors import ComesError, first_line

__all__ = ["Cluster"]

PACKAGES = {"dask": "distributed", "ray": "ray"}
MOST_SENT = 1000  # calls that the cluster knows at a time
TRIES = 4  # of a call whose worker is lost; what Dask does by default
SECONDS_TO_ANSWER = 10
VARIABLES = ("COMES_CACHE", "COMES_DATA")  # folders that a worker must find, too

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Cluster:
    """A Dask or Ray cluster.

    Parameters
    ----------
    backend : {"dask", "ray"}
    scheduler : str, optional
        Its address, as in "tcp://10.0.0.1:8786" (Dask) or "10.0.0.1:6379" (Ray, from a machine of
        the cluster). By default that of ``DASK_SCHEDULER_ADDRESS`` or ``RAY_ADDRESS``; without one
        a cluster is started here, and stopped at the end.
    workers : int
        Processes of a cluster that is started here.
    gpus : int
        GPUs that Ray gives to each call. A worker of Dask has what it was started with.

    Examples
    --------
    >>> Cluster("slurm")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: the backend of a cluster must be dask or ray; got 'slurm'.
    """

    backend: str
    scheduler: str | None = None
    workers: int = 2
    gpus: int = 0

    def __post_init__(self) -> None:
        if self.backend not in PACKAGES:
            raise ComesError(f"the backend of a cluster must be dask or ray; got {self.backend!r}.")
        package = PACKAGES[self.backend]
        if importlib.util.find_spec(package) is None:
            raise ComesError(
                f"backend {self.backend} needs {package}, which is not installed: pip install "
                "'comes[scale]'."
            )

    def run(
        self, function: Callable[[Item], Found], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Found | ComesError]]:
        """Give every item with what the function returns for it, in the order in which they end.

        Calls see the working folder and ``COMES_CACHE`` and ``COMES_DATA`` of this process, one at
        a time in each worker. A call that raises an error, or that lost its worker again and again,
        comes with a `ComesError` in the place of its result; the others go on.
        """
        call = _Call(function, os.getcwd(), _list_variables())
        run = _run_on_dask if self.backend == "dask" else _run_on_ray
        yield from run(self, call, items)


class _Call(NamedTuple):
    """A function that finds files where the process that sent it does."""

    function: Callable[[Any], Any]
    folder: str
    variables: dict[str, str]

    def __call__(self, item: Any) -> Any:
        is_here = os.path.isdir(self.folder)
        with _ONE_AT_A_TIME, chdir(self.folder) if is_here else nullcontext():
            before = {name: os.environ.get(name) for name in self.variables}
            os.environ.update(self.variables)
            try:
                return self.function(item)
            finally:
                for name, value in before.items():
                    os.environ.pop(name)
                    if value is not None:
                        os.environ[name] = value


_ONE_AT_A_TIME = threading.Lock()  # a worker of Dask may have many threads


def _list_variables() -> dict[str, str]:
    """Return the folders that variables name, as a worker elsewhere must name them."""
    given = {name: os.path.expanduser(os.environ.get(name, "")) for name in VARIABLES}
    return {name: os.path.abspath(folder) for name, folder in given.items() if folder}


def _run_on_dask(
    cluster: Cluster, call: _Call, items: Iterable[Any]
) -> Iterator[tuple[Any, Any | ComesError]]:
    """Send calls to Dask, which makes those of a lost worker again."""
    from distributed import as_completed

    with _open_dask(cluster) as client:
        sent: dict[Any, Any] = {}
        waiting = iter(items)

        def send(some: Iterator[Any]) -> list[Any]:
            futures = {client.submit(call, item, pure=False): item for item in some}
            sent.update(futures)
            return list(futures)

        arriving = as_completed(send(islice(waiting, MOST_SENT)), loop=client.loop)
        for future in arriving:
            yield sent.pop(future), _read_future(future)
            arriving.update(send(islice(waiting, 1)))


@contextmanager
def _open_dask(cluster: Cluster) -> Iterator[Any]:
    """Give a client of Dask."""
    import dask
    from distributed import Client

    address = cluster.scheduler or dask.config.get("scheduler-address", None)
    started: dict[str, Any] = {} if address else _describe_local(cluster)
    try:
        client = Client(address, set_as_default=False, **started)
    except (OSError, ValueError) as error:
        raise ComesError(
            f"no Dask scheduler answers at {address}: {first_line(error)}. Start one there, or "
            "correct the address."
        ) from None
    with client:
        yield client


def _describe_local(cluster: Cluster) -> dict[str, Any]:
    return {
        "n_workers": cluster.workers,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
    }


def _read_future(future: Any) -> Any | ComesError:
    """Return what a call that ended on Dask gave, or its error."""
    from distributed import KilledWorker

    if future.status == "cancelled":
        raise ComesError(
            "the Dask scheduler was lost. What was finished is kept: start it and go on."
        )
    error = future.exception()
    if error is None:
        return future.result()
    return _make_lost() if isinstance(error, KilledWorker) else _make_failed(error)


def _run_on_ray(
    cluster: Cluster, call: _Call, items: Iterable[Any]
) -> Iterator[tuple[Any, Any | ComesError]]:
    """Send calls to Ray, which makes those of a lost worker or machine again."""
    import ray

    with _open_ray(cluster):
        if cluster.gpus > ray.cluster_resources().get("GPU", 0):  # Ray would wait for one to come
            raise ComesError(
                f"each call wants {cluster.gpus} GPU; the Ray cluster has "
                f"{ray.cluster_resources().get('GPU', 0):g}. Start it on machines with more, or "
                "use cpu."
            )
        options: Any = {"num_cpus": 1, "num_gpus": cluster.gpus, "max_retries": TRIES - 1}
        remote, shared = ray.remote(**options)(_make_call), ray.put(call)
        sent: dict[Any, Any] = {}
        waiting = iter(items)
        try:
            while True:
                some = islice(waiting, MOST_SENT - len(sent))
                sent.update({remote.remote(shared, item): item for item in some})
                if not sent:
                    return
                with _keeping_quiet():
                    (done, *_), _ = ray.wait(list(sent))
                    found = _read_reference(done)
                yield sent.pop(done), found
        finally:
            for left in sent:  # of an error or an interruption
                ray.cancel(left)


def _make_call(call: _Call, item: Any) -> Any:
    """Make a call; Ray takes a function only."""
    return call(item)


@contextmanager
def _open_ray(cluster: Cluster) -> Iterator[None]:
    """Join a cluster of Ray, or start one here; Ray keeps what it has to say to itself."""
    import ray

    if ray.is_initialized():  # by the caller, who also ends it
        yield
        return
    address = cluster.scheduler or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"address": address or "local"}
    if address:
        _check_address(address)
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"num_cpus": cluster.workers, "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with _keeping_quiet():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise _make_unreachable(address, error) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray sets its own
    try:
        yield
    finally:
        with _keeping_quiet():
            ray.shutdown()


@contextmanager
def _keeping_quiet() -> Iterator[None]:
    """Keep from standard output what Ray reports there, such as lost nodes."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for many minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not host or not port.isdigit():  # "auto", say
        return
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise _make_unreachable(address, error) from None


def _make_unreachable(address: str | None, error: Exception) -> ComesError:
    return ComesError(
        f"no Ray cluster answers at {address}: {first_line(error)}. Start it (ray start), correct "
        "the address, call this on a machine of the cluster, and name its token if it has one "
        "(RAY_AUTH_MODE=token, RAY_AUTH_TOKEN_PATH)."
    )


def _read_reference(reference: Any) -> Any | ComesError:
    """Return what a call that ended on Ray gave, or its error."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return _make_failed(error.cause)
    except ray.exceptions.RayError:
        return _make_lost()


def _make_lost() -> ComesError:
    return ComesError(
        f"its worker was lost {TRIES} times. If it was killed for its memory, give the workers "
        "more."
    )


def _make_failed(error: Exception) -> ComesError:
    """Return an error of a worker as one of ours."""
    if isinstance(error, ComesError):
        return error
    return ComesError(
        f"a worker failed: {type(error).__name__}: {first_line(error)}. Workers need the same "
        "packages and folders as this machine."
    )
