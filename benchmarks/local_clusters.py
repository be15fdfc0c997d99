"""Clusters of this machine, for benchmarks and tests, and how to kill a part of one."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

STORE = 80 * 2**20  # bytes; the least that Ray takes for the results of a node


class LocalCluster(NamedTuple):
    """A cluster, and a function that kills one of its workers (Dask) or nodes (Ray)."""

    backend: str
    address: str
    kill_one: Callable[[], object]


@contextmanager
def start_dask(workers: int) -> Iterator[LocalCluster]:
    """Start a scheduler and workers of one thread; a killed worker is started again."""
    import distributed

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options, silence_logs=logging.CRITICAL) as started:
        (nanny, *_) = started.workers.values()
        address = started.scheduler_address
        yield LocalCluster("dask", address, lambda: os.kill(nanny.pid, signal.SIGKILL))


@contextmanager
def start_ray(nodes: int) -> Iterator[LocalCluster]:
    """Start nodes of Ray of one core; a killed node is gone with its worker."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    options: Any = {"num_cpus": 1, "object_store_memory": STORE}
    started = Cluster(initialize_head=True, head_node_args=options | {"include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            last = started.add_node(**options)
        address = started.address
        yield LocalCluster("ray", address, lambda: started.remove_node(last, allow_graceful=False))
    finally:
        started.shutdown()


STARTS = {"dask": start_dask, "ray": start_ray}


@contextmanager
def killing(
    kill_one: Callable[[], object], folder: Path, pattern: str, n: int
) -> Iterator[list[int]]:
    """Kill a part of a cluster once n files are in a folder; give how many there were then."""
    over, there = threading.Event(), []

    def wait() -> None:
        while not over.is_set():
            if (found := len(list(folder.glob(pattern)))) >= n:
                kill_one()
                there.append(found)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield there
    finally:
        over.set()
        thread.join()
